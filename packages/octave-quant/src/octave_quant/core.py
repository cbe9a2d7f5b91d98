"""The compiled core: the loops of `numpy_path` in C++, the same bytes, many times as fast. Loaded at first use."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octave_quant.formats import OctaveFormat
from octave_quant.rows import ELEMENTS, Rows
from octave_quant.signs import signs

NAME = "core"

_LIBRARY = "liboctave_quant.so"
_CPU_FEATURES = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
# A thread takes some 100 microseconds to start, the core about a millisecond for so many elements of K.
_ELEMENTS_PER_THREAD = 1 << 18


class _Format(ctypes.Structure):
    _fields_ = (
        ("signs", ctypes.c_void_p),
        ("head_size", ctypes.c_int32),
        ("wide", ctypes.c_int32),
        ("k_block", ctypes.c_int32),
        ("v_block", ctypes.c_int32),
        ("v_bits", ctypes.c_int32),
        ("slot_bytes", ctypes.c_int32),
    )


class _Rows(ctypes.Structure):
    _fields_ = (("first", ctypes.c_void_p), ("token_stride", ctypes.c_int64), ("head_stride", ctypes.c_int64))

    @classmethod
    def of(cls, array: NDArray[np.generic]) -> _Rows:
        return cls(array.ctypes.data, *array.strides[:2])


@functools.cache
def why_absent() -> str | None:
    """Why the core cannot be used; None if it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"the core is built for Linux on x86-64, not for {platform.system()} on {platform.machine()}"
    missing = sorted(_CPU_FEATURES - _cpu_features())
    if missing:
        return f"this CPU lacks {', '.join(missing)}; the core needs x86-64-v3 (Intel Haswell, AMD Zen, or newer)"
    if not resources.files("octave_quant").joinpath("_core", _LIBRARY).is_file():
        return f"{_LIBRARY} is not installed; build the package (`uv sync`, or `pip install` of its folder)"
    return None


def encode(
    key: Rows, value: Rows, fmt: OctaveFormat, out: NDArray[np.uint8], *, num_threads: int | None = None
) -> None:
    """As `numpy_path.encode`; ``num_threads``: as many as the work is worth and the process has CPU cores, or fewer."""
    element = ELEMENTS.index(key.element)

    def run(part: slice) -> None:
        tokens = out[part]
        rows = (_Rows.of(key.values[part]), _Rows.of(value.values[part]), _Rows.of(tokens))
        _library().octave_encode(_description(fmt)[0], element, *rows, *tokens.shape[:2])

    _share(run, out.shape[0], out.shape[1] * fmt.head_size, num_threads)


def decode(
    slots: NDArray[np.uint8],
    fmt: OctaveFormat,
    in_rotated_basis: bool,
    key: NDArray[np.float32],
    value: NDArray[np.float32],
    *,
    num_threads: int | None = None,
) -> None:
    """As `numpy_path.decode`; ``num_threads`` as for `encode`."""

    def run(part: slice) -> None:
        tokens = slots[part]
        rows = (_Rows.of(tokens), _Rows.of(key[part]), _Rows.of(value[part]))
        _library().octave_decode(_description(fmt)[0], in_rotated_basis, *rows, *tokens.shape[:2])

    _share(run, slots.shape[0], slots.shape[1] * fmt.head_size, num_threads)


def _share(run: Callable[[slice], None], tokens: int, elements_per_token: int, num_threads: int | None) -> None:
    """Calls ``run`` for all tokens, in equal parts, each on a thread: ctypes lets go of the interpreter's lock."""
    worth = tokens * elements_per_token // _ELEMENTS_PER_THREAD if num_threads is None else num_threads
    parts = max(1, min(worth, _available_cores(), tokens))
    if parts == 1:
        run(slice(0, tokens))
        return
    bounds = [tokens * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(run, map(slice, bounds[:-1], bounds[1:])))


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_features() -> frozenset[str]:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


@functools.cache
def _library() -> ctypes.CDLL:
    found = resources.files("octave_quant").joinpath("_core", _LIBRARY)
    with resources.as_file(found) as path:
        library = ctypes.CDLL(str(path))
    for function in (library.octave_encode, library.octave_decode):
        function.restype = None
        function.argtypes = (ctypes.POINTER(_Format), ctypes.c_int32, *[_Rows] * 3, ctypes.c_int64, ctypes.c_int64)
    return library


@functools.lru_cache(maxsize=64)
def _description(fmt: OctaveFormat) -> tuple[_Format, NDArray[np.float32]]:
    """The format as the core reads it, and the signs that it points to."""
    values = signs(fmt.head_size)
    sizes = (fmt.head_size, fmt.wide, fmt.k_rotation_block, fmt.v_rotation_block, fmt.v_bits, fmt.slot_bytes)
    return _Format(values.ctypes.data, *sizes), values
