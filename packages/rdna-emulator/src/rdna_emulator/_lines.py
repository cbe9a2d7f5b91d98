"""Source lines of code addresses, from an object's DWARF line tables."""

from __future__ import annotations

import bisect
import io
from typing import Any

from elftools.elf.elffile import ELFFile


class LineTable:
    """Finds ``file:line`` of a virtual address; empty for an object that was compiled without ``-g``."""

    def __init__(self, data: bytes) -> None:
        self._starts: list[int] = []
        self._lines: list[str | None] = []  # None: the end of a sequence
        try:
            elf = ELFFile(io.BytesIO(data))
            if not elf.has_dwarf_info():
                return
            dwarf = elf.get_dwarf_info()
            rows = [row for unit in dwarf.iter_CUs() for row in _rows(dwarf.line_program_for_CU(unit))]
        except Exception:  # a damaged table, on which the reader fails in any way, is as good as none
            return
        for address, line in sorted(rows, key=lambda row: (row[0], row[1] is not None)):
            self._starts.append(address)
            self._lines.append(line)

    def find(self, address: int) -> str | None:
        k = bisect.bisect_right(self._starts, address) - 1
        return self._lines[k] if k >= 0 else None


def _rows(program: Any) -> list[tuple[int, str | None]]:
    if program is None:
        return []
    files = program.header["file_entry"]
    first = 0 if program.header["version"] >= 5 else 1
    rows: list[tuple[int, str | None]] = []
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            rows.append((state.address, None))
        elif state.line:
            name = files[state.file - first].name.decode(errors="replace")
            rows.append((state.address, f"{name}:{state.line}"))
    return rows
