"""The GPU targets that code objects are built for: the only list of them in the tree."""

from __future__ import annotations

from dataclasses import dataclass

from rdna_registry.arguments import ArgumentError


@dataclass(frozen=True)
class Target:
    """One GPU target of the compiler and the resources that bound a kernel on it.

    ``multiprocessors`` counts work-group processors, as the driver does: each holds two compute units, four SIMDs; 0
    where it is not known, as products of one target differ, and the driver is to be asked.
    ``vgprs_per_simd`` are 32-bit registers of a lane in wave32, given out ``vgpr_granule`` at a time.
    Both are what clang 22 reckons a kernel's occupancy with (`-S` prints it). ``lds_bytes`` is the most that one
    workgroup may use.
    """

    name: str
    multiprocessors: int = 0
    vgprs_per_simd: int = 1536
    vgpr_granule: int = 24
    max_vgprs: int = 256
    max_waves_per_simd: int = 16
    lds_bytes: int = 65536

    def waves_per_simd(self, vgprs: int) -> int:
        """Waves of ``vgprs`` registers a lane that one SIMD holds at a time."""
        granules = -(-max(vgprs, 1) // self.vgpr_granule)
        return min(self.max_waves_per_simd, self.vgprs_per_simd // (granules * self.vgpr_granule))


TARGETS: tuple[Target, ...] = (
    Target("gfx1151", multiprocessors=20),
    Target("gfx1100", multiprocessors=48),
)
DEFAULT_TARGET = TARGETS[0].name

_FEWER_REGISTERS = {"vgprs_per_simd": 1024, "vgpr_granule": 16}
BUILDABLE_TARGETS: tuple[Target, ...] = (
    Target("gfx1101"),
    Target("gfx1102", **_FEWER_REGISTERS),
    Target("gfx1103", **_FEWER_REGISTERS),
    Target("gfx1150", **_FEWER_REGISTERS),
    Target("gfx1152", **_FEWER_REGISTERS),
    Target("gfx1153", **_FEWER_REGISTERS),
)
"""Targets with the same instructions, which the sources compile for on request; nothing of them was ever run."""


def as_target(target: str | Target) -> Target:
    """The `Target` of a name such as ``"gfx1151"``; ValueError for a target that is not in `TARGETS`."""
    if isinstance(target, Target):
        return target
    for known in TARGETS:
        if known.name == target:
            return known
    raise ArgumentError("target", target, "one of " + ", ".join(known.name for known in TARGETS))


def as_buildable(target: str | Target) -> Target:
    """The `Target` of a name in `TARGETS` or `BUILDABLE_TARGETS`; ValueError for any other."""
    if isinstance(target, Target):
        return target
    for known in (*TARGETS, *BUILDABLE_TARGETS):
        if known.name == target:
            return known
    raise ArgumentError("target", target, "one of " + ", ".join(known.name for known in (*TARGETS, *BUILDABLE_TARGETS)))
