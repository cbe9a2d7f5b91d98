"""The octave 3-4 bit KV-cache format: layout, rotation, codes, packing, and a paged cache of it."""

from octave_quant.attention import paged_attention
from octave_quant.cache import store
from octave_quant.capacity import tokens_that_fit
from octave_quant.centred import CENTRED_CACHE_DTYPES, CentredFormat, dequantize_centred, quantize_centred
from octave_quant.formats import CACHE_DTYPES, OctaveFormat
from octave_quant.packing import pack, unpack
from octave_quant.quantization import dequantize, quantize
from octave_quant.rotary import rope_dim_from_config
from octave_quant.rotation import rotate, unrotate
from octave_quant.signs import sign_bits, signs

__all__ = [
    "CACHE_DTYPES",
    "CENTRED_CACHE_DTYPES",
    "CentredFormat",
    "OctaveFormat",
    "dequantize",
    "dequantize_centred",
    "pack",
    "paged_attention",
    "quantize",
    "quantize_centred",
    "rope_dim_from_config",
    "rotate",
    "sign_bits",
    "signs",
    "store",
    "tokens_that_fit",
    "unpack",
    "unrotate",
]
