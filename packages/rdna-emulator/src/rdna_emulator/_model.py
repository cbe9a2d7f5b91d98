"""The issue model's parameters, and a launch's modelled time from its workgroups' modelled cycles.

Nothing here was measured by this project. What was published by people who measured a Radeon 8060S (gfx1151) is marked
"published"; everything else is "assumed". The figures rank variants and guard against regressions.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

STALLS = ("dependence", "vmcnt", "lgkmcnt", "vscnt", "barrier")
LAUNCH_MICROSECONDS = 1.48  # published: one launch in a graph on gfx1151


@dataclass(frozen=True)
class ModelParameters:
    """Cycles of one wave unless said otherwise; in the order of the core's structure up to ``l0_lines``."""

    dependence_valu: int = 5  # assumed
    dependence_trans: int = 9  # assumed
    dependence_matrix: int = 5  # assumed: after the matrix unit has ended
    issue_trans: int = 4  # assumed; also the 32-bit multiplications and float64
    issue_matrix: int = 32  # published
    latency_lds: int = 60  # assumed
    latency_scalar: int = 116  # assumed: that of L0
    latency_l0: int = 116  # published: 40 ns
    latency_l2: int = 305  # published: 105 ns
    latency_dram: int = 1566  # published: 540 ns
    l0_lines: int = 128  # published: 16 KiB in lines of 128 bytes
    clock_ghz: float = 2.9  # published: boost
    workgroup_processors: int = 20  # published
    dram_gib_per_second: float = 230.0  # published: the best stream

    def core(self) -> tuple[int, ...]:
        return (
            self.dependence_valu,
            self.dependence_trans,
            self.dependence_matrix,
            self.issue_trans,
            self.issue_matrix,
            self.latency_lds,
            self.latency_scalar,
            self.latency_l0,
            self.latency_l2,
            self.latency_dram,
            self.l0_lines,
        )


PARAMETERS = {
    "gfx1151": ModelParameters(),
    # The vendor's figures for the Radeon RX 7900 XTX: 96 compute units, 2.5 GHz, 960 GB/s; its latencies are taken
    # from gfx1151.
    "gfx1100": ModelParameters(clock_ghz=2.5, workgroup_processors=48, dram_gib_per_second=894.0),
}


def makespan(workgroups: Sequence[tuple[int, int]], processors: int) -> int:
    """Cycles until all workgroups have ended.

    Each of ``workgroups`` is (cycles of its slowest wave, issue cycles of its busiest SIMD). They go in order to the
    processor with the least work; on one processor they overlap, but share the SIMDs.
    """
    loads = [(0, 0, index) for index in range(processors)]  # issue cycles, longest workgroup
    for critical, busiest in workgroups:
        busy, longest, index = heapq.heappop(loads)
        heapq.heappush(loads, (busy + busiest, max(longest, critical), index))
    return max(max(busy, longest) for busy, longest, _ in loads)


def modelled(
    parameters: ModelParameters,
    workgroups: Sequence[tuple[int, int]],
    issue_cycles: int,
    stalls: Sequence[int],
    unique_lines: int,
) -> dict[str, Any]:
    """The modelled figures of one launch: every one is an estimate from assumed and published parameters."""
    cycles = makespan(workgroups, parameters.workgroup_processors)
    compute = cycles / (parameters.clock_ghz * 1e3)
    memory = unique_lines * 128 / (parameters.dram_gib_per_second * 2**30) * 1e6
    return {
        "label": "modelled",
        "workgroup_cycles": cycles,
        "issue_cycles": issue_cycles,
        "stall_cycles": dict(zip(STALLS, stalls, strict=True)),
        "compute_microseconds": compute,
        "memory_microseconds": memory,
        "microseconds": LAUNCH_MICROSECONDS + max(compute, memory),
    }
