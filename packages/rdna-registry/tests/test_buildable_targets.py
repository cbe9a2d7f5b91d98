"""The targets that are built on request."""

from __future__ import annotations

import pytest
from rdna_registry import (
    BUILDABLE_TARGETS,
    TARGETS,
    ArgumentError,
    Target,
    as_buildable,
    as_target,
    prefill_target_workgroups,
)


def test_each_target_stands_in_one_list() -> None:
    names = [target.name for target in (*TARGETS, *BUILDABLE_TARGETS)]
    assert len(set(names)) == len(names)
    assert [as_buildable(name).name for name in names] == names


@pytest.mark.parametrize("target", BUILDABLE_TARGETS, ids=lambda target: target.name)
def test_it_is_not_served_as_a_tested_one(target: Target) -> None:
    with pytest.raises(ArgumentError, match="gfx1151, gfx1100"):
        as_target(target.name)


@pytest.mark.parametrize(
    ("name", "waves"), [("gfx1101", 12), ("gfx1102", 9), ("gfx1103", 9), ("gfx1150", 9), ("gfx1152", 9), ("gfx1153", 9)]
)
def test_occupancy_is_what_clang_says_of_98_registers(name: str, waves: int) -> None:
    assert as_buildable(name).waves_per_simd(98) == waves


@pytest.mark.parametrize("target", BUILDABLE_TARGETS, ids=lambda target: target.name)
def test_how_wide_its_products_are_is_not_guessed(target: Target) -> None:
    with pytest.raises(ArgumentError, match="device is"):
        prefill_target_workgroups(target)


@pytest.mark.parametrize("name", ["gfx1170", "gfx11", "gfx1150:xnack-", ""])
def test_others_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="gfx1153"):
        as_buildable(name)
