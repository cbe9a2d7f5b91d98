"""Sizes and text of instructions against LLVM's disassembler, where one of version 22 or later is installed."""

from __future__ import annotations

import io
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from device_compiler import assemble, compile_hip
from elftools.elf.elffile import ELFFile
from opcode_table import NAMED_ONLY, TARGETS, encode, opcode_table
from rdna_emulator import disassemble

ONLY_THE_VENDORS = "flat_atomic_csub_u32"  # LLVM has its global form only
KERNELS = Path(__file__).with_name("decoder_kernels.hip")


def find_objdump() -> str | None:
    for name in ("llvm-objdump-22", "llvm-objdump"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            match = re.search(r"version (\d+)", version)
            if match and int(match[1]) >= 22:
                return path
    return None


OBJDUMP = find_objdump()
pytestmark = pytest.mark.skipif(OBJDUMP is None, reason="llvm-objdump 22 or later is not installed")


def their_listing(path: Path) -> dict[int, tuple[int, str]]:
    """Size and text of each instruction by its address."""
    assert OBJDUMP is not None
    command = [OBJDUMP, "-d", "--section=.text", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listing = {}
    for line in output.splitlines():
        match = re.match(r"\s+(.*?)\s*// ([0-9A-F]{12}): ([0-9A-F ]+?)(?: <.*>)?$", line)
        if match:
            listing[int(match[2], 16)] = (4 * len(match[3].split()), re.sub(r"\s+", " ", match[1]))
    return listing


def our_listing(target: str, code: bytes, address: int) -> dict[int, tuple[int, str]]:
    return {one.address: (one.size, one.text) for one in disassemble(target, code, address)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("option", ["-O0", "-O1", "-O3"])
def test_compiled_kernels(target: str, option: str, tmp_path: Path) -> None:
    image = compile_hip(KERNELS.read_text(encoding="utf-8"), target, tmp_path, option)
    path = tmp_path / "kernels.hsaco"
    path.write_bytes(image)
    section = ELFFile(io.BytesIO(image)).get_section_by_name(".text")
    ours = our_listing(target, section.data(), section["sh_addr"])
    assert ours == their_listing(path)
    assert len(ours) > 1500


@pytest.mark.parametrize("target", TARGETS)
def test_every_operation(target: str, tmp_path: Path) -> None:
    """One encoding of each row of the table."""
    rows = [row for row in opcode_table() if row.format not in NAMED_ONLY and row.mnemonic != ONLY_THE_VENDORS]
    words: list[int] = []
    for row in rows:
        words += accepted_by_llvm(encode(row), row.format, target)
    ours = our_listing(target, struct.pack(f"<{len(words)}I", *words), 0)
    assert ours == their_listing(assemble(words, target, tmp_path))


def accepted_by_llvm(words: list[int], form: str, target: str) -> list[int]:
    """LLVM takes an encoding for unknown when a field that the operation does not use is not zero."""
    if form not in ("ds", "flat", "global", "scratch"):
        return words
    first = disassemble(target, struct.pack(f"<{len(words)}I", *words))[0]
    named = " ".join(first.reads + first.writes)
    used = 0xFFFF0000 if form != "ds" else 0
    for register, field in (("4", 0xFF), ("8", 0xFF00), ("12", 0xFF0000), ("20", 0xFF000000)):
        if re.search(rf"\bv\[?{register}\b", named):
            used |= field
    if form != "ds" and not re.search(r"\bv\[?20\b", named):
        used &= 0x00FFFFFF
    in_global_data_share = re.match(r"ds_(gws|ordered|.*_gs_reg)", first.mnemonic)
    return [words[0] | (1 << 17 if in_global_data_share else 0), words[1] & used]
