"""Where `python -m rdna_kernels build` keeps what it builds: one folder for each state of the sources."""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path


def sources_folder() -> Path:
    """The folder of `csrc` and `cmake` that the wheel carries."""
    return Path(str(files("rdna_kernels") / "_sources"))  # in this order: an editable package has several folders


def cache_folder() -> Path:
    """The folder of all states, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rdna-kernels"


def user_folder(sources: Path | None = None) -> Path | None:
    """The folder for these sources and this version of the package, None where the sources are not installed."""
    sources = sources_folder() if sources is None else sources
    if not (sources / "csrc").is_dir():
        return None
    digest = hashlib.sha256()
    arguments = Path(__file__).with_name("decode_arguments.py")
    for file in (*sorted((sources / "csrc").rglob("*.h*")), sources / "cmake" / "device_flags.txt", arguments):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return cache_folder() / f"{version('rdna-kernels')}-{digest.hexdigest()[:16]}"
