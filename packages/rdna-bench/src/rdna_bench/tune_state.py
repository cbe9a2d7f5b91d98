"""What a tuning run has measured so far, in a file: a later run goes on from there, as far as the code is the same."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rdna_bench.decode_inputs import Measured


class TuneState:
    """A file of lines: the first says what was measured, each other has one launch.

    A line counts when it ends in a newline, and goes out in one write: a run that is killed in the middle of one loses
    that launch and nothing else. A launch is known by its entry's name, its context and its code object's digest.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        """Read ``path`` where it exists. ValueError where it is no such file, or of another header."""
        self.path = path
        self._known: dict[tuple[str, int, str], Measured] = {}
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error.strerror}): name another file") from None
        whole = content[: content.rfind(b"\n") + 1]
        if content and not whole:
            raise self._damaged(1)
        lines = whole.decode("utf-8", "replace").splitlines()
        if lines:
            self._check(self._parse(lines[0], 1), header)
        for number, line in enumerate(lines[1:], start=2):
            self._read(self._parse(line, number), number)
        if content != whole:
            os.truncate(path, len(whole))
        if not lines:
            self._append(header)

    def __len__(self) -> int:
        """Launches that the file holds."""
        return len(self._known)

    def get(self, variant: str, context: int, code: str) -> Measured | None:
        """The launch of an entry's name at a context with this code, or None."""
        return self._known.get((variant, context, code))

    def put(self, variant: str, context: int, code: str, measured: Measured) -> None:
        """Keep a launch."""
        self._append({"variant": variant, "context": context, "code": code, "measured": asdict(measured)})
        self._known[variant, context, code] = measured

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        finally:
            os.close(descriptor)

    def _read(self, entry: dict[str, Any], number: int) -> None:
        try:
            self._known[entry["variant"], entry["context"], entry["code"]] = Measured(**entry["measured"])
        except (KeyError, TypeError):
            raise self._damaged(number) from None
        numbers = (entry["measured"][name] for name in ("modelled_microseconds", "wave_instructions"))
        if not all(isinstance(value, (int, float)) for value in numbers):
            raise self._damaged(number)

    def _parse(self, line: str, number: int) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except ValueError:
            raise self._damaged(number) from None
        if not isinstance(entry, dict):
            raise self._damaged(number)
        return entry

    def _damaged(self, number: int) -> ValueError:
        return ValueError(f"{self.path} line {number} is no line of a tuning state: remove the file, or name another")

    def _check(self, found: dict[str, Any], header: dict[str, Any]) -> None:
        for name, value in header.items():
            if found.get(name) != value:
                raise ValueError(
                    f"{self.path} holds launches of {name} {found.get(name)!r}, this run is of {value!r}: remove the "
                    "file, or name another"
                )
