"""`PrefillVariant`: one prefill entry, its shape and its launch knobs."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields

from rdna_registry.arguments import INT32_MAX, MAX_HEADS, ArgumentError, as_flag, as_int, as_multiple, is_plain_number
from rdna_registry.devices import Device, prefill_target_workgroups
from rdna_registry.dtypes import DType, as_dtype
from rdna_registry.remember import remembered

PREFILL_MIN_M = 128
"""Fewest query tokens that the prefill look-up serves."""


@dataclass(frozen=True)
class PrefillVariant:
    """One prefill entry: the shape, the query length from which it was tuned, and the knobs that it is launched with.

    A workgroup takes ``block_rows`` query rows of a kv head; ``head_dim_split`` waves share 16 of them, and
    ``key_waves`` waves share the ``key_tile`` keys of a step. ``v_t`` stages V transposed, ``double_buffer`` uses two
    buffers; ``head_group`` kv heads are interleaved. Knobs that contradict each other are a ValueError.
    """

    head_size: int
    num_q_heads: int
    num_kv_heads: int
    window: int
    page_size: int
    min_query_len: int
    waves: int
    key_tile: int
    head_dim_split: int
    v_t: int
    double_buffer: int
    key_waves: int
    max_segments: int
    head_group: int
    dtype: DType = DType.fp16

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            "head_size": as_multiple("head_size", self.head_size, 16, 1024),
            "num_q_heads": as_int("num_q_heads", self.num_q_heads, 1, MAX_HEADS),
            "num_kv_heads": as_int("num_kv_heads", self.num_kv_heads, 1, MAX_HEADS),
            "window": as_int("window", self.window, 0, INT32_MAX),
            "page_size": as_multiple("page_size", self.page_size, 16, INT32_MAX),
            "min_query_len": as_int("min_query_len", self.min_query_len, 1),
            "waves": as_int("waves", self.waves, 1, 32),
            "head_dim_split": as_int("head_dim_split", self.head_dim_split, 1, 32),
            "key_waves": as_int("key_waves", self.key_waves, 1, 32),
            "v_t": as_flag("v_t", self.v_t),
            "double_buffer": as_flag("double_buffer", self.double_buffer),
            "max_segments": as_int("max_segments", self.max_segments, 1, 1024),
            "head_group": as_int("head_group", self.head_group, 1),
            "dtype": as_dtype(self.dtype),
        }
        checked["key_tile"] = as_multiple("key_tile", self.key_tile, 16 * self.key_waves)
        for field, value in checked.items():
            object.__setattr__(self, field, value)
        if self.num_q_heads % self.num_kv_heads:
            raise ArgumentError("num_q_heads", self.num_q_heads, f"a multiple of num_kv_heads = {self.num_kv_heads}")
        if self.head_size % (16 * self.head_dim_split):
            raise ArgumentError("head_dim_split", self.head_dim_split, f"a divisor of {self.head_size // 16}")
        sharing = self.head_dim_split * self.key_waves
        if self.waves & (self.waves - 1) or self.waves % sharing:
            allowed = f"a power of two that is a multiple of head_dim_split * key_waves = {sharing}"
            raise ArgumentError("waves", self.waves, allowed)

    @property
    def gqa(self) -> int:
        """Query heads of one kv head."""
        return self.num_q_heads // self.num_kv_heads

    @property
    def block_rows(self) -> int:
        """Query rows of a workgroup."""
        return self.waves // (self.head_dim_split * self.key_waves) * 16

    def scratch_rows(self, device: Device) -> int:
        """Rows of partials that any plan for a device needs, all kv heads together."""
        return 2 * prefill_target_workgroups(device) * self.block_rows

    @functools.cached_property
    def name(self) -> str:
        """``rdna_prefill_`` and the values of `prefill_config_fields`, joined by ``_``."""
        return "rdna_prefill_" + "_".join(str(value) for value in prefill_config_fields(self))

    @classmethod
    def from_name(cls, name: str) -> PrefillVariant:
        """The variant that has this `name`; ValueError where the text is no such name."""
        values = name.removeprefix("rdna_prefill_").split("_")
        numbers = len(values) == len(PREFILL_CONFIG_FIELDS) and all(map(is_plain_number, values))
        if not name.startswith("rdna_prefill_") or not numbers:
            allowed = f"rdna_prefill_ and {len(PREFILL_CONFIG_FIELDS)} numbers joined by _"
            raise ArgumentError("name", name, allowed)
        knobs = dict(zip(PREFILL_CONFIG_FIELDS, map(int, values), strict=True))
        code = as_flag("dtype", knobs.pop("dtype"))
        return cls(**knobs, dtype=DType.bf16 if code else DType.fp16)


PREFILL_CONFIG_FIELDS: tuple[str, ...] = tuple(field.name for field in fields(PrefillVariant))


@remembered
def prefill_config_fields(variant: PrefillVariant) -> tuple[int, ...]:
    """The variant's values in the order of `PREFILL_CONFIG_FIELDS`, dtype as 0 (fp16) or 1 (bf16)."""
    values = (getattr(variant, field) for field in PREFILL_CONFIG_FIELDS)
    return tuple(value.code if isinstance(value, DType) else value for value in values)
