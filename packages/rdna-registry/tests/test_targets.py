from __future__ import annotations

import pytest
from rdna_registry import DEFAULT_TARGET, TARGETS, ArgumentError, as_target, prefill_target_workgroups


def test_targets() -> None:
    assert DEFAULT_TARGET == "gfx1151"
    assert [target.name for target in TARGETS] == ["gfx1151", "gfx1100"]
    for target in TARGETS:
        assert as_target(target.name) is target
        assert as_target(target) is target


@pytest.mark.parametrize("given", ["gfx90a", "", None, 1151])
def test_unknown_targets(given: object) -> None:
    with pytest.raises(ArgumentError, match=r"target is .*allowed: one of gfx1151, gfx1100"):
        as_target(given)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(("vgprs", "waves"), [(0, 16), (96, 16), (97, 12), (120, 12), (121, 10), (256, 5)])
def test_waves_per_simd(vgprs: int, waves: int) -> None:
    assert as_target("gfx1151").waves_per_simd(vgprs) == waves


class Properties:
    multi_processor_count = 7


def test_target_workgroups() -> None:
    assert prefill_target_workgroups("gfx1151") == 80
    assert prefill_target_workgroups(as_target("gfx1100")) == 192
    assert prefill_target_workgroups(Properties()) == 28


@pytest.mark.parametrize("device", [None, "cpu", "gfx90a", 3])
def test_target_workgroups_of_no_gpu(device: object) -> None:
    with pytest.raises(ArgumentError, match="device is"):
        prefill_target_workgroups(device)
