"""What a code object says about its kernels' arguments: the metadata note of an AMDGPU ELF file.

The note holds msgpack (LLVM's "Code Object V3 Metadata" and later); the few kinds of values that it may hold are read
here, so that launching needs no further package.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

_NOTE_SEGMENT = 4
_METADATA_NOTE = 32


class KernelArgument(NamedTuple):
    """An argument that the caller passes: its name, kind ("by_value", "global_buffer"), offset and size in bytes."""

    name: str
    kind: str
    offset: int
    size: int


def kernel_arguments(code: bytes, kernel: str) -> tuple[KernelArgument, ...]:
    """The arguments of a kernel that its caller passes, in order.

    ValueError when the bytes are no code object, or hold no such kernel.
    """
    try:
        kernels = _metadata(code)["amdhsa.kernels"]
        found = {str(entry[".name"]): entry for entry in kernels}
        if kernel not in found:
            raise ValueError(f"the code object holds no kernel {kernel}, but: {', '.join(found) or 'none'}")
        return tuple(
            KernelArgument(
                str(entry.get(".name", "")), str(entry[".value_kind"]), int(entry[".offset"]), int(entry[".size"])
            )
            for entry in found[kernel].get(".args", ())
            if not str(entry[".value_kind"]).startswith("hidden_")
        )
    except (struct.error, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"the code object's metadata cannot be read: {error!r}") from error


def _metadata(code: bytes) -> dict[str, Any]:
    if code[:4] != b"\x7fELF":
        raise ValueError(f"not an ELF file: it begins with {code[:4].hex() or 'nothing'}")
    (segments,) = struct.unpack_from("<Q", code, 32)
    size, count = struct.unpack_from("<HH", code, 54)
    for number in range(count):
        kind, _, start, _, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", code, segments + number * size)
        if kind == _NOTE_SEGMENT:
            at = start
            while at + 12 <= start + length:
                name_size, note_size, note = struct.unpack_from("<III", code, at)
                content = at + 12 + (name_size + 3) // 4 * 4
                if note == _METADATA_NOTE and code[at + 12 : at + 12 + name_size].rstrip(b"\0") == b"AMDGPU":
                    value, _ = _value(code, content)
                    if isinstance(value, dict):
                        return value
                at = content + (note_size + 3) // 4 * 4
    raise ValueError("it has no AMDGPU metadata note")


# The first byte of a value: format of what follows it, by msgpack's specification.
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
_NUMBERS |= {0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_LISTS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


def _value(data: bytes, at: int) -> tuple[Any, int]:
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first < 0x90:
        return _map(data, at, first & 0xF)
    if first < 0xA0:
        return _list(data, at, first & 0xF)
    if first < 0xC0:
        return _text(data, at, first & 0x1F)
    if first >= 0xE0:
        return first - 256, at
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    for table, read in ((_NUMBERS, None), (_TEXTS, _text), (_LISTS, _list), (_MAPS, _map)):
        if first in table:
            (number,) = struct.unpack_from(table[first], data, at)
            at += struct.calcsize(table[first])
            return (number, at) if read is None else read(data, at, number)
    raise ValueError(f"the code object's metadata hold a value of msgpack type 0x{first:02x}, which none should")


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    if at + size > len(data):
        raise ValueError("the code object's metadata are truncated")
    return data[at : at + size].decode(), at + size


def _list(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    values = []
    for _ in range(count):
        value, at = _value(data, at)
        values.append(value)
    return values, at


def _map(data: bytes, at: int, count: int) -> tuple[dict[str, Any], int]:
    values = {}
    for _ in range(count):
        key, at = _value(data, at)
        values[str(key)], at = _value(data, at)
    return values, at
