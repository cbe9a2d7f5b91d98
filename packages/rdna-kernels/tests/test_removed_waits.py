"""The machine code with a wait taken out: the checks must notice, or the kernels are not checked for missing waits."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from fake_catalogue import write_catalogue
from problem import Problem
from rdna_emulator import disassemble
from rdna_kernels import Catalogue, EmulatedExecutor
from rdna_kernels.decode_arguments import FEATURES_SUFFIX
from rdna_registry import DEFAULT_TARGET, KernelVariant
from verdict import fault_of, knobs, make, pinned, plan_of, segments_of

S_NOP = 0xBF800000

# One build: 8 rows or fewer and more of them, segments to merge, and more than 32 tiles a wave.
SHAPES: tuple[dict[str, Any], ...] = (
    {"lengths": [1100, 40], "gqa": 4, "max_query_len": 2, "page_size": 32, "knobs": knobs(4, segments=6, least=2)},
    {"lengths": [1100, 40], "gqa": 6, "max_query_len": 2, "page_size": 32, "knobs": knobs(4, segments=6, least=2)},
    {
        "lengths": [4300],
        "gqa": 2,
        "max_query_len": 3,
        "page_size": 32,
        "num_kv_heads": 8,
        "knobs": knobs(4, segments=2),
    },
)

# Of the kernel with features: its two loops, and scores below and beyond the series of the cap.
FEATURES: tuple[dict[str, Any], ...] = (
    {"sinks": True},
    {"sinks": True, "softcap": 0.5, "alibi": True},
    {"softcap": 200.0},
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


def kernel_range(code: bytes, kernel: str) -> range:
    """Offsets of a kernel's instructions in the ELF file."""
    elf = ELFFile(io.BytesIO(code))
    [symbol] = elf.get_section_by_name(".symtab").get_symbol_by_name(kernel)
    section = elf.get_section(symbol["st_shndx"])
    first = symbol["st_value"] - section["sh_addr"] + section["sh_offset"]
    return range(first, first + symbol["st_size"])


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("featured", [False, True], ids=["plain", "features"])
def test_most_waits_are_missed(target: str, featured: bool, tmp_path: Path) -> None:
    """Not all are: some stand where paths meet, for what only the other path has loaded."""
    shapes = [shape | features for features in (FEATURES if featured else ({},)) for shape in SHAPES]
    problems = [(*make(shape), shape) for shape in shapes]
    calls = [(problem, exact, options(problem, pinned(problem, shape), featured)) for problem, exact, shape in problems]
    (name,) = {call["variant"].build.name for _, _, call in calls}
    good = Catalogue.installed().code(name, target)
    start, text = text_section(good)
    kernel = kernel_range(good, name + (FEATURES_SUFFIX if featured else ""))
    waits = [
        each
        for each in disassemble(target, text)
        if each.mnemonic.startswith("s_waitcnt") and start + each.address in kernel
    ]
    unnoticed = []
    for wait in waits:
        at = start + wait.address
        code = good[:at] + struct.pack("<I", S_NOP) * (wait.size // 4) + good[at + wait.size :]
        catalogue = write_catalogue(tmp_path / str(wait.address), target, {name: code})
        executor = EmulatedExecutor(target, checks="all", catalogue=catalogue)
        if not any(fault_of(problem, exact, executor, **call) for problem, exact, call in calls):
            unnoticed.append(f"{wait.address:#x} {wait.text}")
    assert len(waits) >= 30
    assert len(unnoticed) <= len(waits) / 4, unnoticed


def test_the_shapes_are_what_they_are_for() -> None:
    entries = [pinned(make(shape)[0], shape) for shape in SHAPES]
    assert {entry.rows_per_group > 8 for entry in entries} == {False, True}
    longest = [max(shape["lengths"]) for shape in SHAPES]
    segments = [segments_of(entry, length) for entry, length in zip(entries, longest, strict=True)]
    assert max(segments) > 1
    blocks = [length / entry.build.key_block for entry, length in zip(entries, longest, strict=True)]
    assert max(count / parts for count, parts in zip(blocks, segments, strict=True)) > 32


def options(problem: Problem, entry: KernelVariant, featured: bool) -> dict[str, Any]:
    """The entry; a work list and a log-sum-exp, too, where sinks are."""
    if problem.sinks is None or not featured:
        return {"variant": entry}
    plan = plan_of(problem, 64, entry=entry)
    return {"variant": entry, "plan": plan, "lse": np.zeros(problem.q.shape[:2], np.float32)}
