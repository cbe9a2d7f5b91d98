"""Code objects with one instruction taken out: the faults that the checks must notice."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile
from rdna_emulator import disassemble

S_NOP = 0xBF800000.to_bytes(4, "little")


@dataclass(frozen=True)
class Removal:
    """A code object in which ``text`` at ``address`` of the text section has become s_nop."""

    address: int
    text: str
    code: bytes


def removals(code: bytes, target: str, *mnemonics: str) -> Iterator[Removal]:
    """One code object for each instruction whose mnemonic is listed."""
    section = ELFFile(io.BytesIO(code)).get_section_by_name(".text")
    start = section["sh_offset"]
    for instruction in disassemble(target, section.data()):
        if instruction.mnemonic in mnemonics:
            at = start + instruction.address
            nops = S_NOP * (instruction.size // 4)
            yield Removal(instruction.address, instruction.text, code[:at] + nops + code[at + instruction.size :])
