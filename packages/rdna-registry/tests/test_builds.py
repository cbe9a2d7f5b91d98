from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest
from rdna_registry import (
    BUILDABLE_HEAD_SIZES,
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
from rdna_registry.builds import wave_dims
from rdna_registry.decode_builds import builds_of, nearest_head_size, short_builds, tuned_head_size

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
        "RDNA_HEAD_DIM_SPLIT": 1,
        "RDNA_PREFETCH": 1,
        "RDNA_V_IN_LDS": 0,
        "RDNA_DOT_PRODUCT": 0,
        "RDNA_BF16": 0,
    }
    assert build.configuration["dtype"] == "fp16"


@pytest.mark.parametrize(
    ("head_size", "waves", "shared"),
    [
        (64, 8, 1),
        (128, 8, 1),
        (192, 4, 2),
        (192, 8, 4),
        (256, 2, 2),
        (256, 4, 2),
        (256, 8, 4),
        (512, 4, 4),
        (512, 8, 8),
    ],
)
def test_the_waves_that_share_a_tile_by_default(head_size: int, waves: int, shared: int) -> None:
    build = Build(head_size, 16, waves, 0, 0, 0, 0, DType.fp16)
    assert build.waves_per_tile == build.definitions["RDNA_HEAD_DIM_SPLIT"] == shared
    assert build.key_block == 16 * waves // shared
    assert dataclasses.replace(build, dot_product=1).waves_per_tile == 1
    assert dataclasses.replace(build, head_dim_split=2).waves_per_tile == 2


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
        ({"head_size": 44}, "head_size"),
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
def test_bad_fields_are_refused(change: dict[str, Any], argument: str) -> None:
    fields: dict[str, Any] = {**Build.from_name(NAME).configuration, **change}
    with pytest.raises(ArgumentError, match=f"^{argument} is"):
        Build(**fields)


def test_every_entry_has_its_build_in_the_list() -> None:
    listed = builds(head_sizes=TUNED)
    wanted = {entry.build for entry in variants()}
    assert len(wanted) == 58
    assert wanted == {build for build in listed if entries_of(build)}
    short = [build for head_size in TUNED for build in short_builds(head_size)]
    assert len(listed) == len({build.name for build in listed}) == len(wanted) + len(DType) * len(short)
    assert not any(entries_of(build) for build in short)


def test_the_builds_of_the_whole_family() -> None:
    listed = builds(head_sizes=FAMILY)
    of_size = Counter(build.head_size for build in listed)
    assert of_size == {64: 16, 80: 8, 96: 6, 128: 16, 192: 6, 256: 22, 512: 8}
    for build in listed:
        assert build.dot_product == 0
        other = dataclasses.replace(build, dtype=DType.bf16 if build.dtype is DType.fp16 else DType.fp16)
        assert other in listed
        assert wave_dims(build.head_size, build.waves_per_tile)
        assert build.waves % build.waves_per_tile == 0


@pytest.mark.parametrize(
    ("head_size", "waves", "dims"),
    [(64, 1, 64), (72, 1, 80), (8, 1, 16), (80, 2, 48), (136, 2, 80), (192, 4, 48), (512, 8, 64), (144, 4, 0)],
)
def test_waves_share_a_head_in_whole_steps(head_size: int, waves: int, dims: int) -> None:
    assert wave_dims(head_size, waves) == dims


@pytest.mark.parametrize("head_size", BUILDABLE_HEAD_SIZES)
def test_every_multiple_of_8_has_builds(head_size: int) -> None:
    listed = builds_of(head_size)
    assert {build.head_size for build in listed} == {head_size}
    assert {build.dtype for build in listed} == set(DType)
    assert max(build.rows_padded for build in listed) == (32 if head_size <= 256 else 16)
    assert all(wave_dims(head_size, build.waves_per_tile) for build in listed)


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
    [
        (64, 64),
        (80, 64),
        (96, 128),
        (112, 128),
        (128, 128),
        (192, 256),
        (256, 256),
        (512, 512),
        (16, 64),
        (72, 64),
        (88, 128),
        (360, 512),
        (1024, 512),
    ],
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
        "decode_h192_r32_w4_s2_p0_l1_d0_fp16",  # for long queries
    }


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_builds_of_a_target(target: Any) -> None:
    listed = builds(target.name)
    assert set(listed) == {build for head_size in SERVED_HEAD_SIZES for build in builds_of(head_size)}
    assert {build.head_size for build in listed} == set(SERVED_HEAD_SIZES)
    assert listed == builds(target)


def test_unknown_target() -> None:
    with pytest.raises(ArgumentError, match="target is 'gfx90a'; allowed: one of gfx1151, gfx1100"):
        builds("gfx90a")


def test_entries_of_the_builds_are_all_entries_once() -> None:
    found: list[KernelVariant] = []
    for build in {entry.build for entry in variants()}:
        entries = entries_of(build)
        assert all(entry.build == build for entry in entries)
        found += entries
    assert len(found) == len(set(found)) == 1280


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("64", "head_sizes is '6'"),
        ((True,), "head_sizes is True"),
        ((72.0,), "head_sizes is 72.0"),
    ],
    ids=str,
)
def test_head_sizes_that_are_no_integers(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        builds(head_sizes=given)
