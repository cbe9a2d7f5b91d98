"""KV-cache formats as what is read back from them: each takes K and V of a layer and returns what attention sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from rdna_bench.weights import Float32

_FP8 = np.dtype(ml_dtypes.float8_e4m3fn)
_FP8_MAX = 448.0
#: Values that share one scale and one zero point in the 4-bit min-max format.
MINMAX_GROUP = 64


class CacheFormat(Protocol):
    """One way to keep K and V; ``slot_bytes`` is what one token of one KV head takes, K and V with their scales."""

    @property
    def name(self) -> str: ...

    @property
    def slot_bytes(self) -> int: ...

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        """K (after RoPE) and V of one sequence, ``[tokens, num_kv_heads, head_size]``, as they are read back."""
        ...


@dataclass(frozen=True)
class Cast:
    """Every value rounded to a 16-bit float."""

    name: str
    dtype: np.dtype[Any]
    head_size: int

    @property
    def slot_bytes(self) -> int:
        return 2 * self.head_size * self.dtype.itemsize

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        return k.astype(self.dtype).astype(np.float32), v.astype(self.dtype).astype(np.float32)


@dataclass(frozen=True)
class Fp8PerTensor:
    """e4m3 with one scale for K and one for V of a layer, their largest magnitude in the sequence mapped to 448.

    The scales take no room in a slot. Taking them from the very tokens that are stored is the best that a
    calibration could do.
    """

    head_size: int
    name: str = "fp8_e4m3"

    @property
    def slot_bytes(self) -> int:
        return 2 * self.head_size

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        return self._round(k), self._round(v)

    def _round(self, x: Float32) -> Float32:
        scale = np.float32(max(float(np.abs(x).max()), 1e-12) / _FP8_MAX)
        return (x / scale).astype(_FP8).astype(np.float32) * scale


@dataclass(frozen=True)
class Int8PerHead:
    """8-bit integers, symmetric, with one fp16 scale for K and one for V of each token and head."""

    head_size: int
    name: str = "int8"

    @property
    def slot_bytes(self) -> int:
        return 2 * (self.head_size + 2)

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        return self._round(k), self._round(v)

    def _round(self, x: Float32) -> Float32:
        scale = _fp16(np.abs(x).max(axis=-1, keepdims=True) / 127)
        codes: Float32 = np.clip(np.rint(x / np.where(scale > 0, scale, 1)), -127, 127)
        return codes * scale


@dataclass(frozen=True)
class MinMax4:
    """4-bit integers between the least and the largest of each `MINMAX_GROUP` values of a token and head.

    Each group has an fp16 step and an fp16 least value.
    """

    head_size: int
    name: str = "minmax4"

    def __post_init__(self) -> None:
        if self.head_size % MINMAX_GROUP:
            raise ValueError(f"head size is {self.head_size}; {self.name} needs a multiple of {MINMAX_GROUP}")

    @property
    def slot_bytes(self) -> int:
        return 2 * (self.head_size // 2 + 4 * (self.head_size // MINMAX_GROUP))

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        return self._round(k), self._round(v)

    def _round(self, x: Float32) -> Float32:
        groups = x.reshape(*x.shape[:-1], -1, MINMAX_GROUP)
        least = _fp16(groups.min(axis=-1, keepdims=True))
        step = _fp16((groups.max(axis=-1, keepdims=True) - least) / 15)
        codes: Float32 = np.clip(np.rint((groups - least) / np.where(step > 0, step, 1)), 0, 15)
        return (codes * step + least).reshape(x.shape)


def _fp16(x: NDArray[Any]) -> Float32:
    """Rounded to fp16, held in float32; what fp16 cannot hold becomes its largest value."""
    limit = np.float32(np.finfo(np.float16).max)
    rounded: Float32 = np.clip(x, -limit, limit).astype(np.float16).astype(np.float32)
    return rounded
