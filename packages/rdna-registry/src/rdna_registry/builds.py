"""What the compiler needs to know of a decode kernel, and the name that follows it everywhere."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields
from typing import Any

from rdna_registry.arguments import ArgumentError, as_flag, as_int, as_multiple
from rdna_registry.dtypes import DType, as_dtype

_NAME = re.compile(
    r"decode_h(?P<head_size>[1-9]\d*)_r(?P<rows_padded>[1-9]\d*)_w(?P<waves>[1-9]\d*)_s(?P<head_dim_split>0|[1-9]\d*)"
    r"_p(?P<prefetch>[01])_l(?P<v_in_lds>[01])_d(?P<dot_product>[01])_(?P<dtype>fp16|bf16)",
    re.ASCII,
)


HEAD_SIZE_STEP = 8
"""A head size that kernels can be built for is a multiple of it: rows of K and V are loaded 16 bytes at a time."""


def wave_dims(head_size: int, waves: int) -> int:
    """Dimensions of a head for each of ``waves`` waves that share it, in steps of 16; the last may have less.

    0 where none would be left for the last one.
    """
    dims = -(-head_size // (16 * waves)) * 16
    return dims if (waves - 1) * dims < head_size else 0


@dataclass(frozen=True)
class Build:
    """One decode code object of a target: only what must be a constant of the compiler.

    KV heads, group size, query length, segments, page size, window and batch are run-time arguments of every build.
    """

    head_size: int
    rows_padded: int
    waves: int
    head_dim_split: int
    prefetch: int
    v_in_lds: int
    dot_product: int
    dtype: DType
    operation: str = "decode"

    def __post_init__(self) -> None:
        if self.operation != "decode":
            raise ArgumentError("operation", self.operation, "decode")
        as_multiple("head_size", self.head_size, HEAD_SIZE_STEP)
        as_multiple("rows_padded", self.rows_padded, 16)
        as_int("waves", self.waves, 1, 32)
        as_int("head_dim_split", self.head_dim_split, 0, self.waves)
        for flag in ("prefetch", "v_in_lds", "dot_product"):
            as_flag(flag, getattr(self, flag))
        object.__setattr__(self, "dtype", as_dtype(self.dtype))

    @property
    def name(self) -> str:
        """Its name: also the key in the manifest, the object's file name, the kernel's symbol and the test's id."""
        return (
            f"{self.operation}_h{self.head_size}_r{self.rows_padded}_w{self.waves}_s{self.head_dim_split}"
            f"_p{self.prefetch}_l{self.v_in_lds}_d{self.dot_product}_{self.dtype.name}"
        )

    @classmethod
    def from_name(cls, name: str) -> Build:
        """The build of a `name`; ValueError where the text is no such name."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ArgumentError("name", name, "a build's name, such as decode_h64_r16_w4_s0_p1_l0_d0_fp16")
        values = match.groupdict()
        dtype = DType[values.pop("dtype")]
        numbers: dict[str, Any] = {field: int(text) for field, text in values.items()}
        return cls(**numbers, dtype=dtype)

    @functools.cached_property
    def waves_per_tile(self) -> int:
        """Waves that share a key tile: head_dim_split, or the default where that is 0.

        The default leaves a wave at most 128 head dimensions, for there are no registers for more; of a larger head,
        8 waves have at most 64 each, for the merge of more tiles does not fit in LDS.
        """
        if self.head_dim_split or self.dot_product or self.head_size <= 128:
            return max(self.head_dim_split, 1)
        most = 128 if self.waves < 8 else 64
        split = 2
        while self.head_size > most * split:
            split *= 2
        return min(split, self.waves)

    @property
    def key_block(self) -> int:
        """Keys that a workgroup takes at a time: 16 for each tile."""
        return 16 * self.waves // self.waves_per_tile

    @property
    def source(self) -> str:
        """The device source that is compiled, relative to the folder of device sources."""
        return "decode/decode.hip"

    @property
    def definitions(self) -> dict[str, str | int]:
        """The macros that the source is compiled with."""
        return {
            "RDNA_KERNEL_NAME": self.name,
            "RDNA_HEAD_SIZE": self.head_size,
            "RDNA_ROWS": self.rows_padded,
            "RDNA_WAVES": self.waves,
            "RDNA_HEAD_DIM_SPLIT": self.waves_per_tile,
            "RDNA_PREFETCH": self.prefetch,
            "RDNA_V_IN_LDS": self.v_in_lds,
            "RDNA_DOT_PRODUCT": self.dot_product,
            "RDNA_BF16": self.dtype.code,
        }

    @property
    def configuration(self) -> dict[str, str | int]:
        """The fields as plain values, for the manifest and for reports."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "dtype": self.dtype.name}
