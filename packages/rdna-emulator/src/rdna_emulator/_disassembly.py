"""Text of gfx11 machine code, from the decoder that the emulator runs."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from rdna_emulator._library import core


@dataclass(frozen=True)
class Instruction:
    """One decoded instruction.

    ``address`` and ``size`` are in bytes. ``mnemonic`` is the operation without the suffix of its encoding, and empty
    for words that are no instruction. ``kind`` is its class, as in the counts of a launch. ``text`` is spelt like
    LLVM's disassembly. ``reads`` and ``writes`` name registers (``"v[4:5]"``, ``"v1.h"``, ``"vcc_lo"``); EXEC as the
    mask of a vector instruction is left out.
    """

    address: int
    size: int
    mnemonic: str
    kind: str
    text: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def disassemble(target: str, code: bytes, address: int = 0) -> list[Instruction]:
    """Decodes ``code`` (whole dwords of a text section) as machine code of ``target`` ("gfx1151" or "gfx1100").

    ``address`` is that of the first byte. Words that are no instruction are listed as ``.long`` and do not end the
    listing. Raises ``ValueError`` for an unknown target and for a length that is not a multiple of four.
    """
    library = core()
    function = library.rdna_decode_text
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64]
    text = read_text(function, target.encode(), code, len(code))
    return [_instruction(line, address) for line in text.splitlines()]


def read_text(function: Any, *arguments: object) -> str:
    """Calls a function of the core that stores a text in a buffer and returns its size, negative for an error's."""
    capacity = 1 << 12
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        size = function(*arguments, buffer, capacity)
        if abs(size) <= capacity:
            break
        capacity = abs(size)
    text = buffer.raw[: abs(size)].decode()
    if size < 0:
        raise ValueError(text)
    return text


def _instruction(line: str, base: int) -> Instruction:
    address, size, mnemonic, kind, text, reads, writes = line.split("\t")
    return Instruction(
        base + int(address), int(size), mnemonic, kind, text, tuple(reads.split()), tuple(writes.split())
    )
