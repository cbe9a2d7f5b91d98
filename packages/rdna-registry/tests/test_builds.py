from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from rdna_registry import (
    SERVED_HEAD_SIZES,
    TARGETS,
    ArgumentError,
    Build,
    DType,
    KernelVariant,
    builds,
    entries_of,
    example_entries,
    variants,
)
from rdna_registry.decode_builds import builds_of, nearest_head_size, tuned_head_size

TUNED = (64, 128, 256, 512)
FAMILY = (64, 80, 96, 128, 192, 256, 512)
NAME = "decode_h64_r16_w4_s0_p1_l0_d0_fp16"


def test_name_and_fields() -> None:
    build = Build(64, 16, 4, 0, 1, 0, 0, DType.fp16)
    assert build.name == NAME
    assert build.operation == "decode"
    assert build.definitions == {
        "RDNA_KERNEL_NAME": NAME,
        "RDNA_HEAD_SIZE": 64,
        "RDNA_ROWS": 16,
        "RDNA_WAVES": 4,
        "RDNA_HEAD_DIM_SPLIT": 0,
        "RDNA_PREFETCH": 1,
        "RDNA_V_IN_LDS": 0,
        "RDNA_DOT_PRODUCT": 0,
        "RDNA_BF16": 0,
    }
    assert build.configuration["dtype"] == "fp16"


def test_names_parse_back() -> None:
    for build in builds(head_sizes=FAMILY):
        assert Build.from_name(build.name) == build


@pytest.mark.parametrize(
    "name",
    ["", "decode", NAME + "x", NAME.replace("fp16", "fp32"), NAME.replace("r16", "r016"), NAME.replace("w4", "w٤")],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="name is"):
        Build.from_name(name)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"head_size": 40}, "head_size"),
        ({"rows_padded": 8}, "rows_padded"),
        ({"waves": 0}, "waves"),
        ({"head_dim_split": 8}, "head_dim_split"),
        ({"prefetch": 2}, "prefetch"),
        ({"v_in_lds": -1}, "v_in_lds"),
        ({"dot_product": 2}, "dot_product"),
        ({"dtype": "fp32"}, "dtype"),
        ({"operation": "prefill"}, "operation"),
    ],
)
def test_bad_fields_are_refused(change: dict[str, object], argument: str) -> None:
    fields: dict[str, object] = {**Build.from_name(NAME).configuration, **change}
    with pytest.raises(ArgumentError, match=f"^{argument} is"):
        Build(**fields)  # type: ignore[arg-type]


def test_every_entry_has_its_build_in_the_list() -> None:
    listed = builds(head_sizes=TUNED)
    assert {entry.build for entry in variants()} == {build for build in listed if entries_of(build)}
    assert sum(bool(entries_of(build)) for build in listed) == 66
    assert len(listed) == len({build.name for build in listed}) == 70


def test_the_builds_of_the_whole_family() -> None:
    listed = builds(head_sizes=FAMILY)
    assert Counter(build.head_size for build in listed) == {64: 14, 80: 8, 96: 6, 128: 16, 192: 6, 256: 26, 512: 14}
    assert len(listed) <= 160
    for build in listed:
        other = dataclasses.replace(build, dtype=DType.bf16 if build.dtype is DType.fp16 else DType.fp16)
        assert other in listed
        assert build.head_size % (16 * max(build.head_dim_split, 1)) == 0


@pytest.mark.parametrize("head_size", FAMILY)
def test_every_build_of_the_family_has_examples(head_size: int) -> None:
    for build in builds(head_sizes=(head_size,)):
        examples = example_entries(build)
        assert examples
        assert all(entry.build == build for entry in examples)
        if entries_of(build):
            assert examples == entries_of(build)
        else:
            assert {entry.batched for entry in examples} == {0, 1}


def test_a_build_that_no_entry_uses_has_no_examples() -> None:
    assert example_entries(dataclasses.replace(Build.from_name(NAME), waves=16)) == ()


@pytest.mark.parametrize(
    ("head_size", "tuned"),
    [(64, 64), (80, 64), (96, 128), (112, 128), (128, 128), (192, 256), (256, 256), (512, 512), (16, 64), (1024, 512)],
)
def test_the_head_size_whose_rows_serve_another(head_size: int, tuned: int) -> None:
    assert tuned_head_size(head_size) == tuned


def test_of_two_head_sizes_at_the_same_ratio_the_larger_is_nearest() -> None:
    assert nearest_head_size(128, (64, 256)) == nearest_head_size(128, (256, 64)) == 256


def test_a_head_size_without_rows_has_the_common_builds_of_its_neighbour() -> None:
    names = {build.name for build in builds_of(192) if build.dtype is DType.fp16}
    assert names == {
        "decode_h192_r16_w4_s0_p0_l1_d0_fp16",  # as 82 of the 252 matrix entries of head size 256
        "decode_h192_r16_w4_s4_p1_l0_d0_fp16",  # as 90 of them
        "decode_h192_r32_w8_s4_p0_l0_d0_fp16",  # for long queries
    }
    # Of the common builds of 256, those whose waves share a tile four ways do not fit 13 blocks of 16 dimensions.
    assert {build.head_dim_split for build in builds_of(208)} == {0}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_builds_of_a_target(target: object) -> None:
    listed = builds(target.name)  # type: ignore[attr-defined]
    assert set(listed) == {build for head_size in SERVED_HEAD_SIZES for build in builds_of(head_size)}
    assert {build.head_size for build in listed} == set(SERVED_HEAD_SIZES)
    assert listed == builds(target)  # type: ignore[arg-type]


def test_unknown_target() -> None:
    with pytest.raises(ArgumentError, match="target is 'gfx90a'; allowed: one of gfx1151, gfx1100"):
        builds("gfx90a")


def test_entries_of_the_builds_are_all_entries_once() -> None:
    found: list[KernelVariant] = []
    for build in builds(head_sizes=TUNED):
        entries = entries_of(build)
        assert all(entry.build == build for entry in entries)
        found += entries
    assert len(found) == len(set(found)) == 1280
