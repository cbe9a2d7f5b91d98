"""Files that the user names: read as text, and tried for writing before the work begins."""

from __future__ import annotations

from pathlib import Path


def read_text(what: str, path: Path) -> str:
    """The text of a UTF-8 file, without its byte-order mark; ValueError, which begins with ``what``, for another."""
    if path.is_char_device():  # such as /dev/zero, which has no end
        raise ValueError(f"{what} is {path}, a device: name a text file")
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"{what} is {path}, which cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        byte = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise ValueError(f"{what} is {path}, which is no text in UTF-8 ({byte}): name a text file") from None


def require_writable(what: str, path: Path) -> None:
    """ValueError, which begins with ``what``, where no file can be put at ``path``; nothing stays of the trial."""
    folder = path.absolute().parent
    if path.exists() and not path.is_file():
        raise ValueError(f"{what} is {path}, which is no file: name one")
    if not folder.is_dir():
        raise ValueError(f"{what} is {path}; there is no folder {folder}: make it first, or name another file")
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise ValueError(f"{what} is {path}, which cannot be written ({error.strerror}): name another file") from None
