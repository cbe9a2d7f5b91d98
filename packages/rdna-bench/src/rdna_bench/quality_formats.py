"""The formats of ``rdna-bench quality`` by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from octave_quant import (
    CACHE_DTYPES,
    CENTRED_CACHE_DTYPES,
    CentredFormat,
    OctaveFormat,
    dequantize,
    dequantize_centred,
    quantize,
    quantize_centred,
)

from rdna_bench.arrays import numpy_dtype
from rdna_bench.cache_formats import CacheFormat, Cast, Fp8PerTensor, Int8PerHead, MinMax4
from rdna_bench.calibration import LayerMoments
from rdna_bench.octave_variants import CALIBRATED, CHANGES, OctaveVariant, check_changes
from rdna_bench.weights import Float32

#: The formats that are measured when none are named, from the largest to the smallest.
DEFAULT_FORMATS = ("fp16", "bf16", "int8", "fp8_e4m3", "minmax4", *CACHE_DTYPES)
#: The formats that can be named.
KNOWN_FORMATS = (*DEFAULT_FORMATS, *CENTRED_CACHE_DTYPES)


class Octave:
    """A format of octave_quant: every K and V through its bytes."""

    def __init__(self, name: str, head_size: int) -> None:
        """The format that cache dtype ``name`` stands for, all ``head_size`` dims rotary."""
        self.name = name
        self.format = OctaveFormat.from_cache_dtype(name, head_size, head_size)

    @property
    def slot_bytes(self) -> int:
        """Padding included."""
        return self.format.slot_bytes

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        """As `cache_formats.CacheFormat.store`; NaN and infinity are refused."""
        read_k, read_v = dequantize(quantize(k, v, self.format, nonfinite="raise"), self.format)
        return np.asarray(read_k), np.asarray(read_v)


class CentredOctave:
    """A centred format of octave_quant: every K and V through its bytes, the means those of the calibration text."""

    def __init__(self, name: str, head_size: int, moments: Callable[[], Sequence[LayerMoments]]) -> None:
        """The format that centred cache dtype ``name`` stands for, all ``head_size`` dims rotary."""
        self.name = name
        self._slots = OctaveFormat.from_cache_dtype(CENTRED_CACHE_DTYPES[name], head_size, head_size)
        self._moments = moments

    @property
    def slot_bytes(self) -> int:
        """Those of the plain format."""
        return self._slots.slot_bytes

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        """As `cache_formats.CacheFormat.store`; NaN and infinity are refused."""
        moments = self._moments()[layer]
        fmt = CentredFormat(self._slots, moments.k_mean, moments.v_mean)
        read_k, read_v = dequantize_centred(quantize_centred(k, v, fmt, nonfinite="raise"), fmt)
        return np.asarray(read_k), np.asarray(read_v)


def parse_formats(names: Sequence[str]) -> tuple[str, ...]:
    """``names`` once each, a variant's own format put before it where it is missing.

    Raises:
        ValueError: a name is not known; the message lists those that are.
    """
    known: dict[str, None] = {}
    for name in names:
        base, *changes = name.split("+")
        if base not in KNOWN_FORMATS or (changes and base not in CACHE_DTYPES):
            raise ValueError(
                f"unknown format {name!r}; known: {', '.join(KNOWN_FORMATS)}, and {', '.join(CACHE_DTYPES)} followed "
                f"by + and one of {', '.join(CHANGES)}"
            )
        check_changes(changes)
        known[base_of(name) or name] = known[name] = None
    if not known:
        raise ValueError(f"no format is named; known: {', '.join(KNOWN_FORMATS)}")
    return tuple(known)


def base_of(name: str) -> str | None:
    """The format that ``name`` is a variant of, or None."""
    base, plus, _ = name.partition("+")
    return base if plus else CENTRED_CACHE_DTYPES.get(name)


def needs_calibration(name: str) -> bool:
    """Whether the format takes means from the calibration text."""
    return name in CENTRED_CACHE_DTYPES or any(change in CALIBRATED for change in name.split("+")[1:])


def make_format(name: str, head_size: int, moments: Callable[[], Sequence[LayerMoments]]) -> CacheFormat:
    """The format of this name for heads of ``head_size``; ``moments`` serve the variants that are calibrated.

    Raises:
        ValueError: the format does not serve the head size.
    """
    if name in ("fp16", "bf16"):
        return Cast(name, numpy_dtype(name), head_size)
    if name == "int8":
        return Int8PerHead(head_size)
    if name == "fp8_e4m3":
        return Fp8PerTensor(head_size)
    if name == "minmax4":
        return MinMax4(head_size)
    if name in CENTRED_CACHE_DTYPES:
        return CentredOctave(name, head_size, moments)
    base, *changes = name.split("+")
    octave = Octave(base, head_size)
    if not changes:
        return octave
    layout = octave.format
    return OctaveVariant(
        name,
        k_bits=3 if layout.compact else 4,
        v_bits=layout.v_bits,
        k_block=layout.k_rotation_block,
        slot_bytes=layout.slot_bytes,
        changes=changes,
        moments=moments,
    )
