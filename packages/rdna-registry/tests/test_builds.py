from __future__ import annotations

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
    variants,
)

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
    for build in builds(head_sizes=(64, 128, 256, 512)):
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
    listed = builds(head_sizes=(64, 128, 256, 512))
    assert {entry.build for entry in variants()} == set(listed)
    assert len(listed) == len({build.name for build in listed}) == 66


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_builds_of_a_target(target: object) -> None:
    listed = builds(target.name)  # type: ignore[attr-defined]
    assert len(listed) == 30
    assert {build.head_size for build in listed} == set(SERVED_HEAD_SIZES)
    assert listed == builds(target)  # type: ignore[arg-type]


def test_unknown_target() -> None:
    with pytest.raises(ArgumentError, match="target is 'gfx90a'; allowed: one of gfx1151, gfx1100"):
        builds("gfx90a")


def test_entries_of_the_builds_are_all_entries_once() -> None:
    found: list[KernelVariant] = []
    for build in builds(head_sizes=(64, 128, 256, 512)):
        entries = entries_of(build)
        assert entries
        assert all(entry.build == build for entry in entries)
        found += entries
    assert len(found) == len(set(found)) == 1280
