from __future__ import annotations

from typing import Any

import pytest
from rdna_registry import (
    PREFILL_CONFIG_FIELDS,
    ArgumentError,
    DType,
    PrefillVariant,
    prefill_config_fields,
)
from rdna_registry.prefill_tables import prefill_entries

FIELDS: dict[str, Any] = {
    "head_size": 128,
    "num_q_heads": 32,
    "num_kv_heads": 8,
    "window": 0,
    "page_size": 16,
    "min_query_len": 512,
    "waves": 8,
    "key_tile": 64,
    "head_dim_split": 2,
    "v_t": 1,
    "double_buffer": 0,
    "key_waves": 2,
    "max_segments": 8,
    "head_group": 4,
}


def test_fields_and_name() -> None:
    variant = PrefillVariant(**FIELDS, dtype=DType.bf16)
    assert (*FIELDS, "dtype") == PREFILL_CONFIG_FIELDS
    assert prefill_config_fields(variant) == (*FIELDS.values(), 1)
    assert variant.name == "rdna_prefill_128_32_8_0_16_512_8_64_2_1_0_2_8_4_1"
    assert PrefillVariant(**FIELDS).dtype is DType.fp16


def test_rows() -> None:
    variant = PrefillVariant(**FIELDS)
    assert variant.gqa == 4
    assert variant.block_rows == 32
    assert variant.scratch_rows("gfx1151") == 2 * 80 * 32


def test_names_parse_back_and_are_unique() -> None:
    entries = [entry for rows in prefill_entries().values() for entry in rows]
    assert len({entry.name for entry in entries}) == 222
    for entry in entries:
        assert PrefillVariant.from_name(entry.name) == entry


@pytest.mark.parametrize("name", ["", "rdna_prefill_1", "rdna_decode_128_32_8_0_16_512_8_64_2_1_0_2_8_4_1"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"^name is"):
        PrefillVariant.from_name(name)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"head_size": 100}, "head_size"),
        ({"num_q_heads": 12}, "num_q_heads"),
        ({"num_kv_heads": 0}, "num_kv_heads"),
        ({"window": -1}, "window"),
        ({"window": 2**31}, "window"),
        ({"num_q_heads": 2**17, "num_kv_heads": 2**17}, "num_q_heads"),
        ({"page_size": 20}, "page_size"),
        ({"min_query_len": 0}, "min_query_len"),
        ({"waves": 0}, "waves"),
        ({"waves": 12}, "waves"),
        ({"waves": 2}, "waves"),
        ({"key_tile": 16}, "key_tile"),
        ({"key_tile": 0}, "key_tile"),
        ({"head_dim_split": 0}, "head_dim_split"),
        ({"head_dim_split": 3}, "head_dim_split"),
        ({"v_t": 2}, "v_t"),
        ({"double_buffer": 2}, "double_buffer"),
        ({"key_waves": 0}, "key_waves"),
        ({"max_segments": 0}, "max_segments"),
        ({"head_group": 0}, "head_group"),
        ({"dtype": "fp8"}, "dtype"),
    ],
    ids=str,
)
def test_bad_values_are_refused(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument} is .*; allowed: "):
        PrefillVariant(**{**FIELDS, **change})


@pytest.mark.parametrize("argument", list(FIELDS))
def test_values_of_other_types_are_refused(argument: str) -> None:
    with pytest.raises(TypeError, match=f"^{argument} is"):
        PrefillVariant(**{**FIELDS, argument: 16.0})
