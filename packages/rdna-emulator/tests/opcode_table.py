"""The core's opcode table, and an encoding of each of its rows, for tests."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rdna_emulator._disassembly import read_text
from rdna_emulator._library import core

FORMATS = (
    "sop1", "sop2", "sopc", "sopk", "sopp", "smem", "vop1", "vop2", "vopc", "vop3", "vop3p", "vopd",
    "ds", "flat", "global", "scratch", "mubuf", "mtbuf", "mimg", "exp", "ldsdir", "vinterp",
)  # fmt: skip
NAMED_ONLY = ("mtbuf", "mimg", "exp", "ldsdir", "vinterp")
LITERAL = 0x4248  # of 16 bits: LLVM writes down more for some 16-bit operations, but not for all
TARGETS = {"gfx1100": 1, "gfx1151": 2}


@dataclass(frozen=True)
class Row:
    format: str
    opcode: int
    mnemonic: str
    targets: int
    kind: str
    executable: bool


@functools.cache
def opcode_table() -> tuple[Row, ...]:
    function = core().rdna_opcode_table
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    rows = (line.split("\t") for line in read_text(function).splitlines())
    return tuple(
        Row(FORMATS[int(form)], int(opcode), mnemonic, int(targets), kind, executable == "1")
        for form, opcode, mnemonic, targets, kind, executable in rows
        if mnemonic != "v_dual"  # a pair as a whole
    )


def bodies() -> frozenset[str]:
    """The mnemonics that have a body; ``.clamp`` follows where it is the saturating form."""
    function = core().rdna_bodies
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    return frozenset(read_text(function).split())


def encode(row: Row, *, vdst: int = 20, data: int = 8, data1: int = 12, address: int = 4) -> list[int]:
    """Words of one instruction of ``row`` with registers that suit every width."""
    op, name = row.opcode, row.mnemonic
    literal = [LITERAL] if "fmaak" in name or "fmamk" in name or "imm32" in name else []
    first = 4 if name.startswith("v_writelane") else 0x104
    second = 8 if name.startswith(("v_readlane", "v_writelane", "v_permlane")) else 0x108
    third = 8 if name.startswith("v_permlane") or "cndmask" in name else 0 if _has_two_sources(name) else 0x10C
    if name in ("v_nop", "v_pipeflush"):
        return [0x7E000000 | op << 9]
    words = {
        "sop1": [0xBE80000A | op << 8 | 10 << 16],
        "sop2": [0x80000000 | op << 23 | 10 << 16 | 8 << 8 | 4],
        "sopc": [0xBF000000 | op << 16 | 8 << 8 | 4],
        "sopk": [0xB0000000 | op << 23 | 10 << 16 | 0x234],
        "sopp": [0xBF800000 | op << 16],
        "smem": [0xF4000000 | op << 18 | 16 << 6 | 4, 0xF8000010],
        "vop1": [0x7E000000 | op << 9 | vdst << 17 | first],
        "vop2": [op << 25 | vdst << 17 | data << 9 | first],
        "vopc": [0x7C000000 | op << 17 | data << 9 | first],
        "vop3": [0xD4000000 | op << 16 | vdst, first | second << 9 | third << 18],
        "vop3p": [0xCC004000 | op << 16 | vdst, 0x18000000 | first | 0x10C << 9 | 0x114 << 18],
        "vopd": [0xCA000104 | op << 17, 10 << 24 | 5 << 17 | (0 if "mov" in name else 9) << 9 | 0x105],
        "ds": [0xD8000010 | op << 18, vdst << 24 | data1 << 16 | data << 8 | address],
        "flat": [0xDC000010 | op << 18, vdst << 24 | 124 << 16 | data << 8 | address],
        "scratch": [0xDC010010 | op << 18, vdst << 24 | 0xFC << 16 | data << 8 | address],
        "global": [0xDC020010 | op << 18, vdst << 24 | 124 << 16 | data << 8 | address],
        "mubuf": [0xE0000010 | op << 18, 4 << 24 | 3 << 16 | data << 8 | address],
        "mtbuf": [0xE8080010 | op << 15, 4 << 24 | 3 << 16 | data << 8 | address],
        "mimg": [0xF0000F00 | op << 18, 4 << 26 | 3 << 16 | data << 8 | address],
        "exp": [0xF800000F, 0x03020100],
        "ldsdir": [0xCE000000 | op << 20 | vdst],
        "vinterp": [0xCD000000 | op << 16 | vdst, 0x104 | 0x108 << 9 | 0x10C << 18],
    }[row.format]
    if name.startswith("buffer_gl") or name == "ds_nop":
        words = [words[0] & ~0xFFFF, 0]
    return words + literal


def _has_two_sources(name: str) -> bool:
    return bool(re.match(r"v_(readlane|writelane)", name))


def registers(names: Iterable[str]) -> set[str]:
    """The single 32-bit registers that names such as ``v[4:5]``, ``v1.h`` and ``vcc`` stand for."""
    result: set[str] = set()
    for name in names:
        whole = name.removesuffix(".l").removesuffix(".h")
        match = re.fullmatch(r"(v|s|ttmp)\[(\d+):(\d+)\]", whole)
        if match:
            result |= {f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1)}
        elif whole in ("vcc", "exec"):
            result |= {f"{whole}_lo", f"{whole}_hi"}
        else:
            result.add(whole)
    return result
