"""Packing of a kernel's arguments: one struct by value, laid out as C does."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from operator import itemgetter

_FORMATS = {"uint64_t": "Q", "int64_t": "q", "int32_t": "i", "uint32_t": "I", "float": "f"}


class Packer:
    """Packs values by name into the bytes of a C struct whose fields are `(name, C type, meaning)`.

    Pointers (`... *`) are 8 bytes; every field has its natural alignment and the struct that of its widest field.
    """

    def __init__(self, fields: Sequence[tuple[str, str, str]]) -> None:
        self.names = tuple(name for name, _, _ in fields)
        formats = ["Q" if c_type.rstrip().endswith("*") else _FORMATS[c_type] for _, c_type, _ in fields]
        widest = max(formats, key=struct.calcsize)
        # "@" aligns each field; the empty field at the end rounds the size up to the widest one's alignment.
        self._struct = struct.Struct("@" + "".join(formats) + f"0{widest}")
        self._in_order = itemgetter(*self.names)

    @property
    def size(self) -> int:
        """Bytes of the struct."""
        return self._struct.size

    def pack(self, values: Mapping[str, int | float]) -> bytes:
        """The struct's bytes. KeyError for a missing field, struct.error for a value that its type cannot hold."""
        return self._struct.pack(*self._in_order(values))
