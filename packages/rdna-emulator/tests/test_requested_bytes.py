"""Bytes requested of each array, against what the addresses say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from assembly import AssemblyKernel, assemble_code_object
from launch_library import kernel
from numpy.typing import NDArray
from rdna_emulator import Device, Report

# Each thread takes four byte offsets from a table, 4 KiB apart; it loads 16 bytes and adds 1 to a dword there;
# each wave also loads 8 dwords of where the offsets count from.
GATHER = """
  s_load_b128 s[4:7], s[0:1], 0x0
  s_lshl_b32 s3, s2, 8
  v_lshl_add_u32 v0, v0, 2, s3
  v_mov_b32 v8, 1
  s_waitcnt lgkmcnt(0)
  s_load_b256 s[8:15], s[6:7], 0x0
  s_mov_b32 s16, 4
again:
  global_load_b32 v1, v0, s[4:5]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_load_b128 v[4:7], v1, s[6:7]
  global_atomic_add_u32 v1, v8, s[6:7]
  v_add_nc_u32 v0, 0x1000, v0
  s_sub_i32 s16, s16, 1
  s_cmp_lg_u32 s16, 0
  s_cbranch_scc1 again
  s_waitcnt vmcnt(0)
  s_waitcnt_vscnt null, 0x0
"""
WORKGROUPS, BLOCK, TURNS = 3, 64, 4
ARENA = 1 << 16


def offsets(kind: str, generator: np.random.Generator) -> NDArray[np.int32]:
    """Of each turn and thread; every access lies in the first half of the arena."""
    shape = (TURNS, WORKGROUPS * BLOCK)
    if kind == "contiguous":
        table = np.broadcast_to(16 * np.arange(shape[1]), shape).copy()
        table += 4096 * np.arange(TURNS)[:, None]
    elif kind == "strided":
        table = 144 * np.arange(shape[1]) + 2048 * generator.integers(0, 2, (TURNS, 1))
    else:
        table = 4 * generator.integers(0, (ARENA // 2 - 16) // 4, shape)
    return table.astype(np.int32)


def gather(
    folder: Path, threads: int, table: NDArray[np.int32], arena: NDArray[np.uint8], parts: list[range]
) -> Report:
    code = assemble_code_object([AssemblyKernel("gather", GATHER, ("pointer", "pointer"))], "gfx1151", folder)
    padded = np.zeros((TURNS, 1024), np.int32)
    padded[:, : table.shape[1]] = table
    memory = [(f"part {k}", arena[part.start : part.stop]) for k, part in enumerate(parts)]
    return (
        Device("gfx1151", threads=threads)
        .load(code)["gather"]
        .launch(WORKGROUPS, BLOCK, [padded, arena], memory=memory)
    )


@pytest.mark.parametrize("kind", ["contiguous", "strided", "scattered"])
@pytest.mark.parametrize("threads", [1, 2])
def test_arrays_that_overlap_have_the_bytes_that_they_cover(tmp_path: Path, kind: str, threads: int) -> None:
    generator = np.random.default_rng(threads)
    table = offsets(kind, generator)
    arena = np.zeros(ARENA, np.uint8)
    for parts in ([], [range(32)], [range(8), range(8, 72), range(40, 20_000), range(40, 60), range(30_000, ARENA)]):
        covered = np.zeros(ARENA, np.int64)
        for place in table.ravel():
            covered[place : place + 16] += 1
            covered[place : place + 4] += 1
        covered[:32] += WORKGROUPS * BLOCK // 32
        report = gather(tmp_path, threads, table, arena, parts)
        requested = report.counts["global_bytes_requested_by_argument"]
        names = {"argument 0": 4 * table.size, "argument 1": covered.sum()}
        assert requested == names | {f"part {k}": covered[part].sum() for k, part in enumerate(parts)}
        arguments = 16 * WORKGROUPS * BLOCK // 32
        assert report.counts["global_bytes_requested"] == names["argument 0"] + names["argument 1"] + arguments


# Lanes of one instruction in two arrays: odd lanes take the second's address.
BOTH = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_and_b32 v1, 1, v0
  v_lshlrev_b32 v0, 2, v0
  v_cmp_eq_u32 vcc_lo, 1, v1
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, s6
  v_mov_b32 v3, s7
  v_cndmask_b32 v2, s4, v2, vcc_lo
  v_cndmask_b32 v3, s5, v3, vcc_lo
  v_add_co_u32 v2, vcc_lo, v2, v0
  v_add_co_ci_u32_e64 v3, null, 0, v3, vcc_lo
  global_load_b32 v4, v[2:3], off
  s_waitcnt vmcnt(0)
"""


def test_lanes_of_one_instruction_in_two_arrays(tmp_path: Path) -> None:
    code = assemble_code_object([AssemblyKernel("both", BOTH, ("pointer", "pointer"))], "gfx1151", tmp_path)
    arrays = [np.zeros(64, np.float32), np.zeros(64, np.float32)]
    counts = Device("gfx1151", threads=1).load(code)["both"].launch(2, 40, arrays).counts
    assert counts["global_bytes_requested_by_argument"] == {"argument 0": 2 * 20 * 4, "argument 1": 2 * 20 * 4}
    assert counts["global_bytes_requested"] == 2 * 40 * 4 + 2 * 2 * 16


def test_launches_do_not_add_up_and_untouched_arrays_have_none() -> None:
    for size in (1000, 256, 700):
        x, y, other = np.ones(size, np.float32), np.ones(size, np.float32), np.ones(1 << 20, np.float32)
        report = kernel("saxpy").launch(4, 256, [np.float32(2), x, y, np.int32(size)], memory=[("other", other)])
        requested = report.counts["global_bytes_requested_by_argument"]
        assert requested == {"argument 1": 4 * size, "argument 2": 8 * size, "other": 0}
