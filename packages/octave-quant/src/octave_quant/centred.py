"""The centred formats: slots of the same bytes, in which a group may stand for a vector less a fixed mean.

A model's keys lie around a mean of each channel, and so do its values; what is left without it is shorter, and so is
its error. The mean belongs to the model, one for each layer and KV head, and takes no room in the cache. Some vectors
are longer without it, the first token's key above all, on which attention rests. So each group says by the sign of its
scale, until now always plus, what it holds: minus, the vector less the mean; plus, the vector itself.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octave_quant.formats import CACHE_DTYPES, OctaveFormat
from octave_quant.quantization import check_format, checked_rows, dequantize, quantize
from octave_quant.rotation import in_fp32, rotate
from octave_quant.rows import as_array, like, widened

CENTRED_CACHE_DTYPES: dict[str, str] = {f"{name}_centred": name for name in CACHE_DTYPES}
"""The names of the centred formats, with the name of the format whose slots each has."""

CENTRED_CODE = 32
"""What a centred format adds to the kernel code of its format."""

_MINUS = np.uint8(0x80)


@dataclass(frozen=True, eq=False)
class CentredFormat:
    """A format of centred slots for one layer.

    slots: the layout, that of an `OctaveFormat`.
    key_mean, value_mean: ``[H, head_size]``, finite, kept in fp32; K is meant as it is stored, after rotary embedding.

    ValueError for other shapes and for means that are not finite.
    """

    slots: OctaveFormat
    key_mean: NDArray[Any]
    value_mean: NDArray[Any]

    def __post_init__(self) -> None:
        check_format(self.slots, "slots")
        for name in ("key_mean", "value_mean"):
            with np.errstate(over="ignore"):  # what leaves fp32 is refused below
                mean = in_fp32(getattr(self, name), name).copy()
            if mean.ndim != 2 or mean.shape[1] != self.slots.head_size:
                raise ValueError(f"{name} has shape {mean.shape}; it must be [H, {self.slots.head_size}]")
            if not np.isfinite(mean).all():
                raise ValueError(f"{name} has NaN or Inf; a mean is finite")
            mean.setflags(write=False)
            object.__setattr__(self, name, mean)
        if self.key_mean.shape != self.value_mean.shape:
            raise ValueError(
                f"key_mean has shape {self.key_mean.shape} and value_mean {self.value_mean.shape}; "
                "they must be the same"
            )

    @classmethod
    def from_cache_dtype(
        cls, name: str, head_size: int, rope_dim: int, key_mean: Any, value_mean: Any
    ) -> CentredFormat:
        """The format that a name of `CENTRED_CACHE_DTYPES` means; ValueError for other names, listing those."""
        if not isinstance(name, str) or name not in CENTRED_CACHE_DTYPES:
            raise ValueError(f"cache dtype is {name!r}; known centred ones are {', '.join(CENTRED_CACHE_DTYPES)}")
        slots = OctaveFormat.from_cache_dtype(CENTRED_CACHE_DTYPES[name], head_size, rope_dim)
        return cls(slots, key_mean, value_mean)

    @property
    def kernel_code(self) -> int:
        """The number by which kernels know the format: 32 more than that of its slots."""
        return self.slots.kernel_code + CENTRED_CODE

    @property
    def slot_bytes(self) -> int:
        """Those of `slots`: centring takes no room."""
        return self.slots.slot_bytes


def quantize_centred(key: Any, value: Any, fmt: CentredFormat, *, nonfinite: str = "zero") -> Any:
    """As `octave_quant.quantize`, each group less its mean where that makes it shorter.

    H must be that of the means. Slots whose scales all have the sign plus read the same in the plain format.
    """
    _check_centred(fmt)
    keys, values = checked_rows(key, value, fmt.slots, nonfinite)
    _check_heads(keys.values.shape[1], fmt)
    k, k_centred = _less_mean(widened(keys), fmt.key_mean, fmt.slots.k_rotation_block)
    v, v_centred = _less_mean(widened(values), fmt.value_mean, fmt.slots.head_size)
    slots: NDArray[np.uint8] = quantize(k, v, fmt.slots)
    _signs_of(slots, fmt)[...] |= np.where(np.concatenate((k_centred, v_centred), axis=-1), _MINUS, np.uint8(0))
    return like(slots, key, value)


def dequantize_centred(slots: Any, fmt: CentredFormat, rotated: bool = False) -> tuple[Any, Any]:
    """As `octave_quant.dequantize`, the mean added to the groups that were stored without it.

    A kernel adds ``q . mean`` to the score of such a group of K, which is one number a query, and the mean of V once
    to the output, times the sum of the weights of the tokens whose V was stored without it.
    """
    _check_centred(fmt)
    plain = _checked_slots(slots, fmt).copy()
    _check_heads(plain.shape[1], fmt)
    signs = _signs_of(plain, fmt)
    centred = signs >= _MINUS
    signs &= ~_MINUS
    key, value = dequantize(plain, fmt.slots, rotated)
    num_k_scales = fmt.slots.num_k_scales
    key_mean, value_mean = fmt.key_mean, fmt.value_mean
    if rotated:
        key_mean = rotate(key_mean, fmt.slots.k_rotation_block)
        value_mean = rotate(value_mean, fmt.slots.v_rotation_block)
    _add_mean(key, key_mean, centred[..., :num_k_scales])
    _add_mean(value, value_mean, centred[..., num_k_scales:])
    return like(key, slots), like(value, slots)


def _checked_slots(slots: Any, fmt: CentredFormat) -> NDArray[np.uint8]:
    array = as_array(slots, "slots")
    if array.dtype != np.uint8:
        raise TypeError(f"slots have dtype {array.dtype}; slots are uint8")
    if array.ndim != 3 or array.shape[-1] != fmt.slot_bytes:
        raise ValueError(f"slots have shape {array.shape}; it must be [T, H, {fmt.slot_bytes}] for this format")
    return array


def _check_centred(fmt: object) -> None:
    if not isinstance(fmt, CentredFormat):
        raise TypeError(f"fmt is {reprlib.repr(fmt)}; it must be a CentredFormat")


def _check_heads(num_kv_heads: int, fmt: CentredFormat) -> None:
    if num_kv_heads != len(fmt.key_mean):
        raise ValueError(f"there are {num_kv_heads} KV heads; the format's means are of {len(fmt.key_mean)}")


def _less_mean(
    x: NDArray[np.float32], mean: NDArray[np.float32], group: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """``x`` ``[T, H, head_size]``, its groups less the mean where they are shorter so, and which those are."""
    shape = (*x.shape[:2], -1, group)
    whole = x.reshape(shape)
    # What is not finite is not shorter, stays as it is, and is dealt with by `quantize`.
    with np.errstate(over="ignore", invalid="ignore"):
        less = whole - mean.reshape(shape[1:])
        shorter: NDArray[np.bool_] = np.square(less).sum(axis=-1) < np.square(whole).sum(axis=-1)
    return np.where(shorter[..., None], less, whole).reshape(x.shape), shorter


def _add_mean(x: NDArray[np.float32], mean: NDArray[np.float32], centred: NDArray[np.bool_]) -> None:
    groups = x.reshape(*centred.shape, -1)
    groups += np.where(centred[..., None], mean.reshape(groups.shape[1:]), np.float32(0))


def _signs_of(slots: NDArray[np.uint8], fmt: CentredFormat) -> NDArray[np.uint8]:
    """A view of the bytes ``[T, H, num_scales]`` that hold the scales' signs in their highest bit."""
    first = fmt.slots.off_scales + 1
    return slots[..., first : first + 2 * fmt.slots.num_scales : 2]
