"""Kernels of one memory instruction each, for every space, and NumPy models of what the instruction does.

A kernel has one wave. ``data`` (512 bytes, a lane's view of memory), ``offsets`` [32], ``registers`` [4, 32] and
``mask`` [1] come in; memory afterwards, and the registers v[8:11], go out. LDS and scratch are filled from ``data`` and
copied back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from assembly import AssemblyKernel
from numpy.typing import NDArray

BYTES = 512  # of memory
LANES = 32
IMMEDIATE = 12  # the instruction's offset
SPACES = ("global", "global_saddr", "flat", "flat_lds", "flat_private", "scratch", "scratch_saddr", "ds", "buffer")
Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Operation:
    """A load or store: bytes a lane, sign extension, and the half of the register that it uses, keeping the other."""

    bytes: int
    store: bool = False
    sign: bool = False
    half: str = ""

    @property
    def registers(self) -> int:
        return max(1, self.bytes // 4)


LOADS = {
    "u8": Operation(1),
    "i8": Operation(1, sign=True),
    "u16": Operation(2),
    "i16": Operation(2, sign=True),
    "b32": Operation(4),
    "b64": Operation(8),
    "b96": Operation(12),
    "b128": Operation(16),
    "d16_u8": Operation(1, half="low"),
    "d16_i8": Operation(1, sign=True, half="low"),
    "d16_b16": Operation(2, half="low"),
    "d16_hi_u8": Operation(1, half="high"),
    "d16_hi_i8": Operation(1, sign=True, half="high"),
    "d16_hi_b16": Operation(2, half="high"),
}
STORES = {
    "b8": Operation(1, store=True),
    "b16": Operation(2, store=True),
    "b32": Operation(4, store=True),
    "b64": Operation(8, store=True),
    "b96": Operation(12, store=True),
    "b128": Operation(16, store=True),
    "d16_hi_b8": Operation(1, store=True, half="high"),
    "d16_hi_b16": Operation(2, store=True, half="high"),
}
OPERATIONS = {
    **{f"load_{name}": op for name, op in LOADS.items()},
    **{f"store_{name}": op for name, op in STORES.items()},
}
# DS spells the same differently.
DS_NAMES = {
    "load_d16_u8": "load_u8_d16",
    "load_d16_i8": "load_i8_d16",
    "load_d16_b16": "load_u16_d16",
    "load_d16_hi_u8": "load_u8_d16_hi",
    "load_d16_hi_i8": "load_i8_d16_hi",
    "load_d16_hi_b16": "load_u16_d16_hi",
    "store_d16_hi_b8": "store_b8_d16_hi",
    "store_d16_hi_b16": "store_b16_d16_hi",
}

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
  s_waitcnt vmcnt(0) lgkmcnt(0)
"""
EPILOGUE = """
  s_mov_b32 exec_lo, -1
  global_store_b32 v2, v8, s[12:13]
  global_store_b32 v2, v9, s[12:13] offset:128
  global_store_b32 v2, v10, s[12:13] offset:256
  global_store_b32 v2, v11, s[12:13] offset:384
"""
FILL_LDS = """
  ds_store_b128 v3, v[16:19]
  s_waitcnt lgkmcnt(0)
"""
COPY_LDS = """
  s_mov_b32 exec_lo, -1
  ds_load_b128 v[16:19], v3
  s_waitcnt lgkmcnt(0)
  global_store_b128 v3, v[16:19], s[4:5]
"""
# Every lane has a copy of the data in its scratch; lane 5 gives its own back.
FILL_SCRATCH = "".join(
    f"""
  s_load_b32 s15, s[4:5], {4 * k}
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v20, s15
  scratch_store_b32 off, v20, off offset:{4 * k}
"""
    for k in range(BYTES // 4)
)
COPY_SCRATCH = "  s_mov_b32 exec_lo, 0x20\n  v_mov_b32_e32 v21, 0\n" + "".join(
    f"""
  scratch_load_b32 v20, off, off offset:{4 * k}
  s_waitcnt vmcnt(0)
  global_store_b32 v21, v20, s[4:5] offset:{4 * k}
"""
    for k in range(BYTES // 4)
)


def _access(space: str, name: str, operation: Operation) -> str:
    """The lines around the instruction and itself, with v1 the lanes' offsets."""
    prefix = {"global_saddr": "global", "flat_lds": "flat", "flat_private": "flat", "scratch_saddr": "scratch"}.get(
        space, space
    )
    mnemonic = f"{prefix}_{DS_NAMES.get(name, name) if prefix == 'ds' else name}"
    data = "v8" if operation.registers == 1 else f"v[8:{7 + operation.registers}]"
    modifier = f"offset:{IMMEDIATE}"

    def line(address: str, base: str = "") -> str:
        operands = [address, data] if operation.store and space != "buffer" else [data, address]
        return f"  {mnemonic} {', '.join([*operands, *([base] if base else [])])} {modifier}\n"

    def flat_address(low: str, high: str) -> str:
        add = f"  v_add_co_u32 v4, vcc_lo, {low}, v1\n  v_mov_b32_e32 v6, {high}\n"
        return add + "  v_add_co_ci_u32_e32 v5, vcc_lo, 0, v6, vcc_lo\n"

    mask = "  s_mov_b32 exec_lo, s14\n"
    if space == "global":
        return flat_address("s4", "s5") + mask + line("v[4:5]", "off")
    if space == "global_saddr":
        return mask + line("v1", "s[4:5]")
    if space == "flat":
        return flat_address("s4", "s5") + mask + line("v[4:5]")
    if space in ("flat_lds", "flat_private"):
        base = "src_shared_base" if space == "flat_lds" else "src_private_base"
        fill, copy = (FILL_LDS, COPY_LDS) if space == "flat_lds" else (FILL_SCRATCH, COPY_SCRATCH)
        return (
            fill + f"  s_mov_b64 s[16:17], {base}\n" + flat_address("s16", "s17") + mask + line("v[4:5]") + WAIT + copy
        )
    if space == "scratch":
        return FILL_SCRATCH + mask + line("v1", "off") + WAIT + COPY_SCRATCH
    if space == "scratch_saddr":
        subtract = "  s_mov_b32 s16, 100\n  v_subrev_nc_u32_e32 v1, 100, v1\n"
        return FILL_SCRATCH + subtract + mask + line("v1", "s16") + WAIT + COPY_SCRATCH
    if space == "ds":
        return FILL_LDS + mask + line("v1") + WAIT + COPY_LDS
    descriptor = f"  s_mov_b64 s[16:17], s[4:5]\n  s_mov_b32 s18, {BYTES}\n  s_mov_b32 s19, 0x31027000\n"
    modifier = f"offen {modifier}"
    return descriptor + mask + line("v1", "s[16:19], 0")


WAIT = "  s_waitcnt vmcnt(0) lgkmcnt(0)\n  s_waitcnt_vscnt null, 0x0\n"


def memory_kernels() -> list[AssemblyKernel]:
    """A kernel for each space and operation, named ``space__operation``."""
    kernels = []
    for space in SPACES:
        for name, operation in OPERATIONS.items():
            lines = PROLOGUE + _access(space, name, operation) + WAIT + EPILOGUE
            private = "private" in space or "scratch" in space
            kernels.append(
                AssemblyKernel(
                    f"{space}__{name}",
                    lines,
                    ("pointer",) * 5,
                    lds_bytes=BYTES if "lds" in space or space == "ds" else 0,
                    scratch_bytes=BYTES if private else 0,
                    block=32,
                )
            )
    return kernels


def model(
    operation: Operation,
    data: NDArray[np.uint8],
    offsets: Words,
    registers: Words,
    mask: int,
    only_lane: int | None = None,
) -> tuple[NDArray[np.uint8], Words]:
    """Memory and registers after the instruction. ``only_lane``: memory is that lane's own."""
    memory, result = data.copy(), registers.copy()
    for lane in range(LANES):
        if not mask >> lane & 1:
            continue
        at = int(offsets[lane]) + IMMEDIATE
        if operation.store:
            if only_lane is not None and lane != only_lane:
                continue
            source = registers[:, lane].copy()
            if operation.half == "high":
                source[0] >>= 16
            memory[at : at + operation.bytes] = source.view(np.uint8)[: operation.bytes]
            continue
        raw = data[at : at + operation.bytes]
        if operation.bytes >= 4:
            result[: operation.registers, lane] = raw.view(np.uint32) if at % 4 == 0 else raw.copy().view(np.uint32)
            continue
        value = int.from_bytes(raw.tobytes(), "little", signed=operation.sign)
        old = int(registers[0, lane])
        if operation.half == "low":
            value = (old & 0xFFFF0000) | (value & 0xFFFF)
        elif operation.half == "high":
            value = (old & 0xFFFF) | (value & 0xFFFF) << 16
        result[0, lane] = value & 0xFFFFFFFF
    return memory, result


def patterns(operation: Operation, random: np.random.Generator, space: str) -> dict[str, Words]:
    """Offsets of the lanes, each within memory."""
    room = BYTES - IMMEDIATE - operation.bytes
    step = operation.bytes if operation.bytes < 4 else 4
    lanes = np.arange(LANES)
    base = {
        "contiguous": lanes * operation.bytes % (room + 1) // step * step,
        "same": np.full(LANES, 64),
        "backwards": (room // step * step - lanes * 12 // step * step),
        "eights": (lanes % 8 + lanes // 16 * 8) * min(operation.bytes, 16),
        "halves": lanes % 16 * min(operation.bytes, 16),
        "twins": lanes // 2 * min(operation.bytes, 16),
        "strided": lanes * 28 % (room + 1) // step * step,
        "random": random.integers(0, room // step + 1, LANES) * step,
    }
    if operation.bytes in (4, 8, 16) and space not in ("ds", "flat_lds"):
        base["unaligned"] = random.integers(0, room + 1, LANES)
    return {name: np.asarray(offsets, np.uint32) for name, offsets in base.items()}
