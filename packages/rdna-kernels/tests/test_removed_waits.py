"""The machine code with a wait taken out: the checks must notice, or the kernels are not checked for missing waits."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_catalogue import write_catalogue
from rdna_emulator import disassemble
from rdna_kernels import Catalogue, EmulatedExecutor
from rdna_registry import DEFAULT_TARGET, plan_decode
from verdict import entry_of, fault_of, make

S_NOP = 0xBF800000

# One build: few rows and many, segments to merge, and more than 32 tiles a wave.
PROBLEMS: tuple[dict[str, Any], ...] = (
    {"lengths": [1100, 40], "gqa": 4, "max_query_len": 2, "page_size": 32},
    {"lengths": [1100, 40], "gqa": 6, "max_query_len": 2, "page_size": 32},
    {"lengths": [4300], "gqa": 2, "max_query_len": 3, "page_size": 32, "num_kv_heads": 8},
    {
        "lengths": [1100, 40],
        "gqa": 4,
        "max_query_len": 2,
        "page_size": 32,
        "sinks": True,
        "softcap": 9.0,
        "alibi": True,
    },
    {"lengths": [1100, 40], "gqa": 6, "max_query_len": 2, "page_size": 32, "softcap": 9.0, "alibi": True},
    {"lengths": [4300], "gqa": 2, "max_query_len": 3, "page_size": 32, "num_kv_heads": 8, "alibi": True},
)


def text_section(code: bytes) -> tuple[int, bytes]:
    """Offset and content of .text in a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", code, 40)
    entry_size, count, names = struct.unpack_from("<3H", code, 58)
    headers = [struct.unpack_from("<2I4Q", code, table + index * entry_size) for index in range(count)]
    strings = headers[names][4]
    for name, _, _, _, offset, size in headers:
        if code[strings + name :].startswith(b".text\0"):
            return offset, code[offset : offset + size]
    raise ValueError("no .text")


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
def test_most_waits_are_missed(target: str, tmp_path: Path) -> None:
    """Not all are: some stand where paths meet, for what only the other path has loaded."""
    problems = [make(shape) for shape in PROBLEMS]
    batch, batch_exact = problems[0]
    plan = plan_decode([2, 2], batch.seq_lens, entry_of(batch), 0, 16)
    lse = np.zeros(batch.q.shape[:2], np.float32)
    (name,) = {entry_of(problem).build.name for problem, _ in problems}
    good = Catalogue.installed().code(name, target)
    start, text = text_section(good)
    waits = [each for each in disassemble(target, text) if each.mnemonic.startswith("s_waitcnt")]
    unnoticed = []
    for wait in waits:
        at = start + wait.address
        code = good[:at] + struct.pack("<I", S_NOP) * (wait.size // 4) + good[at + wait.size :]
        catalogue = write_catalogue(tmp_path / str(wait.address), target, {name: code})
        executor = EmulatedExecutor(target, checks="all", catalogue=catalogue)
        planned = fault_of(batch, batch_exact, executor, plan=plan, lse=lse)
        if not (planned or any(fault_of(problem, exact, executor) for problem, exact in problems)):
            unnoticed.append(f"{wait.address:#x} {wait.text}")
    assert len(waits) >= 30
    assert len(unnoticed) <= len(waits) / 4, unnoticed
