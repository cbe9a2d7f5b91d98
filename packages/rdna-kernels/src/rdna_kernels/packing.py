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
        self._formats = formats
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

    def template(self, constants: Mapping[str, int | float]) -> Template:
        """A struct whose `constants` are filled in once; the other fields are given at each packing, in order."""
        return Template(self, constants)

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Names of the fields and their formats, as the struct module writes them."""
        return tuple(zip(self.names, self._formats, strict=True))


class Template:
    """The bytes of a struct with some of its fields left open; `names` are the open ones, in the struct's order."""

    def __init__(self, packer: Packer, constants: Mapping[str, int | float]) -> None:
        self.names = tuple(name for name in packer.names if name not in constants)
        self._bytes = packer.pack({**dict.fromkeys(self.names, 0), **constants})
        self._runs: list[tuple[struct.Struct, int, slice]] = []
        before, run, start, end, first = "@", "", 0, 0, 0
        for name, form in (*packer.fields, (None, "")):
            at = struct.calcsize(f"{before}0{form}") if form else end
            if name in self.names:
                if not run:
                    run, start = "=", at
                else:
                    run += "x" * (at - end)
                run += form
            elif run:
                count = sum(character != "x" for character in run[1:])
                self._runs.append((struct.Struct(run), start, slice(first, first + count)))
                run, first = "", first + count
            before += form
            end = struct.calcsize(before)

    def pack(self, values: Sequence[int | float]) -> bytes:
        """The struct's bytes with the open fields' values, in the order of `names`."""
        buffer = bytearray(self._bytes)
        for form, start, part in self._runs:
            form.pack_into(buffer, start, *values[part])
        return bytes(buffer)
