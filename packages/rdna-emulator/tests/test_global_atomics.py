"""GLOBAL, FLAT and MUBUF atomics against the models, with and without a result."""

from __future__ import annotations

import numpy as np
import pytest
from assembly import AssemblyKernel, assemble_code_object
from lds_kernels import GLOBAL_ATOMICS, run_atomic
from numpy.typing import NDArray
from rdna_emulator import Device, MemoryFault, Module

LANES = np.arange(32)
SPACES = ("global", "global_saddr", "flat", "flat_lds", "buffer")
# Arguments: memory [64 elements], byte offsets [32], data [4, 32], mask [1], results [2, 32].
PROLOGUE = """
  s_load_b256 s[4:11], s[0:1], 0x0
  s_load_b64 s[12:13], s[0:1], 0x20
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v2, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v1, v2, s[6:7]
  global_load_b32 v8, v2, s[8:9]
  global_load_b32 v9, v2, s[8:9] offset:128
  global_load_b32 v10, v2, s[8:9] offset:256
  global_load_b32 v11, v2, s[8:9] offset:384
  s_load_b32 s14, s[10:11], 0x0
  v_lshlrev_b32_e32 v3, 4, v0
  global_load_b128 v[16:19], v3, s[4:5]
  v_mov_b32_e32 v20, 0x11111111
  v_mov_b32_e32 v21, 0x22222222
  s_mov_b64 s[16:17], s[4:5]
  s_mov_b32 s18, 512
  s_mov_b32 s19, 0x31027000
  s_waitcnt vmcnt(0) lgkmcnt(0)
"""
EPILOGUE = """
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_waitcnt_vscnt null, 0x0
  s_mov_b32 exec_lo, -1
  global_store_b32 v2, v20, s[12:13]
  global_store_b32 v2, v21, s[12:13] offset:128
"""
FLAT_ADDRESS = """
  v_add_co_u32 v4, vcc_lo, {low}, v1
  v_mov_b32_e32 v6, {high}
  v_add_co_ci_u32_e32 v5, vcc_lo, 0, v6, vcc_lo
"""
FILL_LDS = """
  ds_store_b128 v3, v[16:19]
  s_waitcnt lgkmcnt(0)
  s_mov_b64 s[16:17], src_shared_base
"""
COPY_LDS = """
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_mov_b32 exec_lo, -1
  ds_load_b128 v[16:19], v3
  s_waitcnt lgkmcnt(0)
  global_store_b128 v3, v[16:19], s[4:5]
"""


def _kernel(space: str, name: str, returns: bool) -> AssemblyKernel:
    _, bits, compares = GLOBAL_ATOMICS[name]
    words = bits // 32
    registers = words * (2 if compares else 1)
    data = "v8" if registers == 1 else f"v[8:{7 + registers}]"
    result = "v20" if words == 1 else "v[20:21]"
    suffix = " glc" if returns else ""
    before, after = "", ""
    if space == "buffer":
        lines = f"  buffer_atomic_{name} {data}, v1, s[16:19], 0 offen{suffix}\n"
        if returns:
            after = "  v_mov_b32_e32 v20, v8\n" + ("  v_mov_b32_e32 v21, v9\n" if words == 2 else "")
            after = "  s_waitcnt vmcnt(0)\n" + after
    else:
        prefix = "flat" if "flat" in space else "global"
        address = "v1" if space == "global_saddr" else "v[4:5]"
        base = {"global": ", off", "global_saddr": ", s[4:5]"}.get(space, "")
        lines = f"  {prefix}_atomic_{name} {result + ', ' if returns else ''}{address}, {data}{base}{suffix}\n"
        if space == "flat_lds":
            before, after = FILL_LDS + FLAT_ADDRESS.format(low="s16", high="s17"), COPY_LDS
        elif space != "global_saddr":
            before = FLAT_ADDRESS.format(low="s4", high="s5")
    body = PROLOGUE + before + "  s_mov_b32 exec_lo, s14\n" + lines + after + EPILOGUE
    lds = 512 if space == "flat_lds" else 0
    return AssemblyKernel(_name(space, name, returns), body, ("pointer",) * 5, lds_bytes=lds, block=32)


def _name(space: str, name: str, returns: bool) -> str:
    return f"{space}__{name}{'__returns' if returns else ''}"


def _served(space: str, name: str, returns: bool) -> bool:
    if name == "csub_u32":  # always returns; FLAT has none
        return returns and "flat" not in space
    return True


CASES = [
    (space, name, returns)
    for space in SPACES
    for name in GLOBAL_ATOMICS
    for returns in (False, True)
    if _served(space, name, returns)
]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    kernels = [_kernel(*case) for case in CASES]
    code = assemble_code_object(kernels, "gfx1151", tmp_path_factory.mktemp("atomics"))
    return Device("gfx1151", threads=1).load(code)


def _operands(name: str, bits: int) -> tuple[NDArray[np.uint8], NDArray[np.uint32], list[int], list[int]]:
    """Memory (512 bytes), the data registers [4, 32], and what they mean as data and second data."""
    kind = {"f32": np.float32}.get(name[-3:])
    unsigned = np.uint32 if bits == 32 else np.uint64
    if kind is not None:
        memory = np.resize(np.array([1.5, -2.0, 0.0, 1e30, -0.0, 3.25], kind), 512 // kind().nbytes)
        first, second = (
            np.resize(np.array([-2.0, 1.5, 7.0, 0.0, 2.5], kind), 32),
            np.resize(np.array([1.5, 0.0], kind), 32),
        )
        values = [first.view(unsigned), second.view(unsigned)]
    else:
        top = (1 << bits) - 1
        memory = np.resize(np.array([0, 1, 5, top, 1 << (bits - 1), 9, 5], unsigned), 512 // (bits // 8))
        values = [
            np.resize(np.array([5, 0, 3, 1 << (bits - 1), 1, top], unsigned), 32),
            np.resize(np.array([1, 5, 0, 9], unsigned), 32),
        ]
    words = bits // 32
    registers = np.zeros((4, 32), np.uint32)
    for k, value in enumerate(values):
        registers[k * words : (k + 1) * words] = value.view(np.uint32).reshape(32, words).T
    return memory.view(np.uint8).copy(), registers, [int(v) for v in values[0]], [int(v) for v in values[1]]


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x8F0F0003])
@pytest.mark.parametrize(("space", "name", "returns"), CASES)
def test_atomics(module: Module, space: str, name: str, returns: bool, mask: int) -> None:
    model, bits, _ = GLOBAL_ATOMICS[name]
    memory, registers, data, second = _operands(name, bits)
    size = bits // 8
    places = [int(place) for place in LANES * 5 % 23]
    expected = [int(value) for value in memory.view(f"u{size}")]
    old = np.array(run_atomic(model, bits, expected, places, data, second, mask), np.uint64)
    offsets = np.where([mask >> lane & 1 for lane in range(32)], np.array(places) * size, 0x7FFFFFF1).astype(np.uint32)
    got = np.zeros((2, 32), np.uint32)
    module[_name(space, name, returns)].launch(1, 32, [memory, offsets, registers, np.array([mask], np.uint32), got])
    np.testing.assert_array_equal(memory.view(f"u{size}"), np.array(expected, f"u{size}"))
    active = np.array([mask >> lane & 1 for lane in range(32)], bool)
    if returns:
        found = got[0].astype(np.uint64) | (got[1].astype(np.uint64) << np.uint64(32) if bits == 64 else np.uint64(0))
        np.testing.assert_array_equal(found[active], old[active])
    elif space != "buffer":
        assert set(got[0]) == {0x11111111}


def test_alignment(module: Module) -> None:
    offsets = (LANES * 8).astype(np.uint32)
    offsets[9] += 4
    arguments = [
        np.zeros(512, np.uint8),
        offsets,
        np.zeros((4, 32), np.uint32),
        np.array([0xFFFFFFFF], np.uint32),
        np.zeros((2, 32), np.uint32),
    ]
    module[_name("global", "add_u32", False)].launch(1, 32, arguments)
    with pytest.raises(MemoryFault, match=r"not a multiple of 8\n.*lane 9"):
        module[_name("global", "add_u64", False)].launch(1, 32, arguments)
