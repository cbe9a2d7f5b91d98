"""From Python values to a kernel's argument bytes and the memory that it may touch."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._code_object import Argument, KernelObject
from ._errors import LaunchError
from ._records import Span

_LINE = 128
Array = npt.NDArray[Any]
MemoryItem = Array | tuple[str, Array]


class Packer:
    """Fills the argument bytes of one kernel, whose layout is worked out once."""

    def __init__(self, kernel: KernelObject) -> None:
        self.kernel = kernel
        self.visible = tuple(a for a in kernel.arguments if not a.hidden)
        self.hidden = tuple(
            (argument.offset, *_HIDDEN[argument.kind]) for argument in kernel.arguments if argument.kind in _HIDDEN
        )
        for argument in kernel.arguments:
            if argument.hidden and argument.kind not in _HIDDEN and argument.kind not in _NULL:
                raise LaunchError(f"kernel {kernel.name} wants {argument.kind}, which the emulator does not give")
        self.size = kernel.argument_bytes
        self.names = tuple(a.name.encode() for a in self.visible)

    def pack(
        self,
        args: Sequence[object],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic_lds: int,
        memory: Iterable[MemoryItem],
    ) -> tuple[bytearray, list[Span]]:
        """The argument bytes and the spans of all arrays."""
        kernel = self.kernel
        if not isinstance(args, Sequence):
            raise LaunchError(f"args is a list or tuple of the arguments of {kernel.name}, got {type(args).__name__}")
        if len(args) != len(self.visible):
            listed = ", ".join(a.name for a in self.visible)
            raise LaunchError(f"kernel {kernel.name} takes {len(self.visible)} arguments ({listed}), got {len(args)}")
        data = bytearray(self.size)
        spans: list[Span] = []
        for argument, name, value in zip(self.visible, self.names, args, strict=True):
            if isinstance(value, np.ndarray):
                if argument.kind != "global_buffer":
                    raise LaunchError(
                        f"argument {argument.name!r} of {kernel.name} is {argument.size} bytes by value, got an array; "
                        "pass a NumPy scalar or bytes (and arrays that a structure points to as memory=[...])"
                    )
                address, span = _span(argument.name, name, value)
                if span is not None:
                    spans.append(span)
                struct.pack_into("<Q", data, argument.offset, address)
            else:
                data[argument.offset : argument.offset + argument.size] = _value(kernel.name, argument, value)
        if isinstance(memory, np.ndarray) or not isinstance(memory, Iterable):
            raise LaunchError(f"memory is a list of NumPy arrays or (name, array), got {type(memory).__name__}")
        for item in memory:
            name_text, array = item if isinstance(item, tuple) and len(item) == 2 else (f"memory {len(spans)}", item)
            if not isinstance(array, np.ndarray) or not isinstance(name_text, str):
                raise LaunchError(f"memory holds NumPy arrays or (name, array), got {_described(item)}")
            _, span = _span(name_text, name_text.encode(), array)
            if span is not None:
                spans.append(span)
        for offset, layout, make in self.hidden:
            struct.pack_into(layout, data, offset, make(grid, block, dynamic_lds))
        return data, spans


Dim3 = tuple[int, int, int]
_HIDDEN: dict[str, tuple[str, Callable[[Dim3, Dim3, int], int]]] = {
    "hidden_block_count_x": ("<I", lambda grid, block, lds: grid[0]),
    "hidden_block_count_y": ("<I", lambda grid, block, lds: grid[1]),
    "hidden_block_count_z": ("<I", lambda grid, block, lds: grid[2]),
    "hidden_group_size_x": ("<H", lambda grid, block, lds: block[0]),
    "hidden_group_size_y": ("<H", lambda grid, block, lds: block[1]),
    "hidden_group_size_z": ("<H", lambda grid, block, lds: block[2]),
    "hidden_grid_dims": ("<H", lambda grid, block, lds: _dimensions(grid, block)),
    "hidden_dynamic_lds_size": ("<I", lambda grid, block, lds: lds),
    "hidden_private_base": ("<I", lambda grid, block, lds: 0x20000),
    "hidden_shared_base": ("<I", lambda grid, block, lds: 0x10000),
}
# These stay zero: grids are whole workgroups that begin at 0, and there is no host service to call.
_NULL = frozenset(
    {
        "hidden_remainder_x",
        "hidden_remainder_y",
        "hidden_remainder_z",
        "hidden_global_offset_x",
        "hidden_global_offset_y",
        "hidden_global_offset_z",
        "hidden_none",
        "hidden_printf_buffer",
        "hidden_hostcall_buffer",
        "hidden_default_queue",
        "hidden_completion_action",
        "hidden_multigrid_sync_arg",
        "hidden_heap_v1",
        "hidden_queue_ptr",
    }
)


def _dimensions(grid: Dim3, block: Dim3) -> int:
    return 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1


def _span(label: str, name: bytes, array: Array) -> tuple[int, Span | None]:
    """The array's address, and the bytes that it can reach; None where it has no elements."""
    if array.dtype.hasobject:
        raise LaunchError(f"{label!r} has dtype {array.dtype}: a kernel cannot read Python objects")
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise LaunchError(f"{label!r} is a masked array, whose mask a kernel does not see; pass a plain one")
    if not array.dtype.isnative:
        raise LaunchError(f"{label!r} has dtype {array.dtype}, which is not of this machine's byte order")
    address: int = array.__array_interface__["data"][0]
    if array.size == 0:
        return address, None
    if array.flags.c_contiguous:
        low, high = address, address + array.nbytes
    else:
        low, high = np.lib.array_utils.byte_bounds(array)
    origin = low
    if array.base is not None and low % _LINE:  # a part that was aligned on purpose begins a line
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        origin = min(low, owner.__array_interface__["data"][0])
    return address, Span(low, high - low, origin, name, array.flags.writeable, 1, 0)


def _described(item: object) -> str:
    if isinstance(item, tuple):
        return f"({', '.join(type(part).__name__ for part in item)})"
    return type(item).__name__


def _value(kernel: str, argument: Argument, value: object) -> bytes:
    if isinstance(value, np.generic):
        data = value.tobytes()
    elif isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
    elif value is None and argument.kind == "global_buffer":
        data = bytes(argument.size)
    elif argument.kind == "global_buffer":
        raise LaunchError(
            f"argument {argument.name!r} of {kernel} is a pointer, got {type(value).__name__}; "
            "pass a NumPy array, or None for a null pointer"
        )
    else:
        raise LaunchError(
            f"argument {argument.name!r} of {kernel} is {argument.size} bytes by value, got "
            f"{type(value).__name__}; pass a NumPy scalar of its type, such as np.int32(3) or np.float32(1), or bytes"
        )
    if len(data) != argument.size:
        given = f"{value.dtype}" if isinstance(value, np.generic) else "bytes"
        raise LaunchError(
            f"argument {argument.name!r} of {kernel} has {argument.size} bytes, got {given} of {len(data)} bytes"
        )
    return data
