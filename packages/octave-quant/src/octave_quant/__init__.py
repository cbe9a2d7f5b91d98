"""The octave 3-4 bit KV-cache format: the sign vector, the rotation and the packing of codes."""

from octave_quant.packing import pack, unpack
from octave_quant.rotation import rotate, unrotate
from octave_quant.signs import sign_bits, signs

__all__ = ["pack", "rotate", "sign_bits", "signs", "unpack", "unrotate"]
