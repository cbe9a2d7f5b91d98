from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from rdna_registry import (
    DECODE_CONFIG_FIELDS,
    ArgumentError,
    DType,
    KernelVariant,
    Layout,
    config_fields,
    expected_kv_cache_strides,
    scratch_bytes,
    variants,
)

SHAPE: dict[str, Any] = {
    "head_size": 128,
    "num_q_heads": 32,
    "num_kv_heads": 4,
    "max_query_len": 3,
    "page_size": 16,
    "layout": 1,
}


def test_fields_and_defaults() -> None:
    assert [(field.name, field.default) for field in dataclasses.fields(KernelVariant)][6:] == [
        ("max_segments", 1),
        ("row_groups", 1),
        ("min_segment_blocks", 1),
        ("waves", 8),
        ("head_dim_split", 0),
        ("prefetch", 0),
        ("v_in_lds", 0),
        ("dot_product", 0),
        ("dtype", DType.fp16),
        ("window", 0),
        ("batched", 0),
    ]
    assert [field.name for field in dataclasses.fields(KernelVariant)][:6] == list(SHAPE)
    fields = (field.name for field in dataclasses.fields(KernelVariant))
    assert tuple(name for name in fields if name not in ("layout", "batched")) == DECODE_CONFIG_FIELDS


def test_name_and_config_fields() -> None:
    variant = KernelVariant(**SHAPE, max_segments=5, row_groups=2, dtype=DType.bf16, window=512)
    assert config_fields(variant) == (128, 32, 4, 3, 16, 5, 2, 1, 8, 0, 0, 0, 0, 1, 512)
    assert variant.name == "rdna_decode_128_32_4_3_16_5_2_1_8_0_0_0_0_1_512"
    assert dataclasses.replace(variant, batched=1).name == "rdna_decode_batch_128_32_4_3_16_5_2_1_8_0_0_0_0_1_512"


def test_names_parse_back_and_are_unique() -> None:
    assert len({entry.name for entry in variants()}) == 1280
    for entry in variants():
        assert KernelVariant.from_name(entry.name) == entry


@pytest.mark.parametrize(
    "name",
    [
        "",
        "rdna_decode_",
        "rdna_prefill_128_32_4_3_16_5_2_1_8_0_0_0_0_1_512",
        "128_32_4_3_16_5_2_1_8_0_0_0_0_1_512",
        "rdna_decode_128_32_4_3_16_5_2_1_8_0_0_0_0_1",
        "rdna_decode_128_32_4_3_16_5_2_1_8_0_0_0_0_1_512_0",
        "rdna_decode_128_32_4_3_16_5_2_1_8_0_0_0_0_1_0512",
        "rdna_decode_128_32_4_3_16_5_2_1_8_0_0_0_0_1_x",
        "rdna_decode_128_32_4_3_16_5_2_1_8_0_0_0_0_1_-1",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"^name is"):
        KernelVariant.from_name(name)


def test_a_name_with_a_third_dtype_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^dtype is 2"):
        KernelVariant.from_name("rdna_decode_128_32_4_3_16_5_2_1_8_0_0_0_0_2_512")


@pytest.mark.parametrize(
    ("row_groups", "rows", "padded"), [(1, 24, 32), (2, 12, 16), (5, 5, 16), (24, 1, 16)], ids=lambda value: str(value)
)
def test_rows(row_groups: int, rows: int, padded: int) -> None:
    variant = KernelVariant(**SHAPE, row_groups=row_groups)
    assert variant.gqa == 8
    assert variant.rows_per_group == rows
    assert variant.rows_padded == variant.build.rows_padded == padded


def test_scratch_of_wmma_entries() -> None:
    variant = KernelVariant(**SHAPE, row_groups=2, max_segments=5)
    rows = 4 * 2 * 5 * 16
    assert variant.scratch_shapes() == ((rows, 128), (rows,), 4 * 4 * 2)
    assert scratch_bytes(variant) == 4 * (rows * 128 + 2 * rows + 32)


def test_scratch_of_dot_product_entries() -> None:
    variant = KernelVariant(**SHAPE, max_segments=5, dot_product=1)
    rows = 32 * 5 * 3
    assert variant.scratch_shapes() == ((rows, 128), (rows,), 32)
    assert scratch_bytes(variant) == 4 * (rows * 128 + 2 * rows + 32)


def test_a_dot_product_entry_has_a_matrix_build_that_fits_in_its_scratch() -> None:
    variant = KernelVariant(**{**SHAPE, "max_query_len": 1}, waves=4, max_segments=5, dot_product=1)
    assert variant.build.name == "decode_h128_r16_w4_s0_p0_l0_d0_fp16"
    assert dataclasses.replace(variant, max_query_len=3).build.name == "decode_h128_r32_w4_s4_p0_l0_d0_fp16"
    (rows, _), _, counters = variant.scratch_shapes()
    assert variant.num_kv_heads * variant.max_segments * variant.rows_per_group == rows
    assert variant.num_kv_heads * variant.row_groups <= counters


def test_strides() -> None:
    variant = KernelVariant(**{**SHAPE, "page_size": 48})
    assert expected_kv_cache_strides(variant) == (4 * 48 * 256, 48 * 256, 256)
    variant = dataclasses.replace(variant, layout=Layout.NHD)
    assert expected_kv_cache_strides(variant) == (4 * 48 * 256, 256, 4 * 256)


def test_values_are_made_plain() -> None:
    given: dict[str, Any] = {"dtype": "bfloat16", "prefetch": True}
    variant = KernelVariant(**SHAPE, **given)
    assert variant.dtype is DType.bf16
    assert type(variant.prefetch) is int
    assert variant == KernelVariant(**SHAPE, dtype=DType.bf16, prefetch=1)
    assert hash(variant) == hash(KernelVariant(**SHAPE, dtype=DType.bf16, prefetch=1))


def test_copies_are_equal() -> None:
    variant = variants()[17]
    assert variant.name
    assert pickle.loads(pickle.dumps(variant)) == copy.deepcopy(variant) == variant


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"head_size": 0}, "head_size"),
        ({"head_size": 76}, "head_size"),
        ({"head_size": 2048}, "head_size"),
        ({"num_q_heads": 30}, "num_q_heads"),
        ({"num_q_heads": 0}, "num_q_heads"),
        ({"num_kv_heads": 0}, "num_kv_heads"),
        ({"max_query_len": 0}, "max_query_len"),
        ({"max_query_len": 128}, "max_query_len"),
        ({"page_size": 24}, "page_size"),
        ({"page_size": -16}, "page_size"),
        ({"layout": 2}, "layout"),
        ({"max_segments": 0}, "max_segments"),
        ({"max_segments": 1025}, "max_segments"),
        ({"row_groups": 0}, "row_groups"),
        ({"row_groups": 25}, "row_groups"),
        ({"row_groups": 7}, "row_groups"),
        ({"min_segment_blocks": 0}, "min_segment_blocks"),
        ({"waves": 3}, "waves"),
        ({"waves": 64}, "waves"),
        ({"head_dim_split": 3}, "head_dim_split"),
        ({"head_dim_split": 16}, "head_dim_split"),
        ({"head_size": 32, "head_dim_split": 4}, "head_dim_split"),
        ({"prefetch": 2}, "prefetch"),
        ({"v_in_lds": -1}, "v_in_lds"),
        ({"dot_product": 2}, "dot_product"),
        ({"dot_product": 1, "row_groups": 2}, "row_groups"),
        ({"dot_product": 1, "head_dim_split": 2}, "head_dim_split"),
        ({"dot_product": 1, "prefetch": 1}, "prefetch"),
        ({"dot_product": 1, "v_in_lds": 1}, "v_in_lds"),
        ({"dtype": "float32"}, "dtype"),
        ({"window": -1}, "window"),
        ({"window": 2**31}, "window"),
        ({"page_size": 2**31}, "page_size"),
        ({"num_q_heads": 65536}, "num_q_heads"),
        ({"num_q_heads": 65536, "num_kv_heads": 65536}, "num_q_heads"),
        ({"num_q_heads": 65535, "num_kv_heads": 65535, "row_groups": 3, "max_segments": 1000}, "max_segments"),
        ({"batched": 2}, "batched"),
    ],
    ids=str,
)
def test_bad_values_are_refused(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument} is .*; allowed: ") as caught:
        KernelVariant(**{**SHAPE, **change})
    assert caught.value.argument == argument


@pytest.mark.parametrize("given", ["16", 16.0, None, True])
@pytest.mark.parametrize("argument", [name for name in DECODE_CONFIG_FIELDS if name != "dtype"])
def test_values_of_other_types_are_refused(argument: str, given: object) -> None:
    if given is True and argument in ("prefetch", "v_in_lds", "dot_product"):
        return
    with pytest.raises(TypeError, match=f"^{argument} is"):
        KernelVariant(**{**SHAPE, argument: given})
