"""What an operator needs to know of an array, whoever made it: NumPy, torch, or a GPU library.

torch is never imported here: a torch tensor can only be given by who has imported it.
"""

from __future__ import annotations

import reprlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import numpy as np

from rdna_kernels.dlpack import DLPACK_ROCM, read_dlpack
from rdna_kernels.layout import Layout

HOST = "cpu"
"""The place of arrays in the host's memory; those of GPUs are "hip:0", "hip:1", ... ."""

Look: TypeAlias = tuple[Hashable, int]
"""A signature and an address. Arrays of equal signatures have the same layout, place and access."""


class ArrayKind(ABC):
    """How arrays of one library are read."""

    @abstractmethod
    def look(self, array: Any) -> Look:
        """What a prepared call is found by, as cheaply as the library tells it."""

    @abstractmethod
    def layout(self, array: Any) -> Layout:
        """Shape, strides in bytes and dtype."""

    @abstractmethod
    def place(self, array: Any) -> str:
        """Where the array lives: HOST, "hip:<device>", or another text, which no executor reaches."""

    def writable(self, array: Any) -> bool:
        """Whether a kernel may write to the array."""
        return True


class _NumpyKind(ArrayKind):
    def look(self, array: Any) -> Look:
        return (array.shape, array.strides, array.dtype, array.flags.writeable), array.__array_interface__["data"][0]

    def layout(self, array: Any) -> Layout:
        return (array.shape, array.strides, array.dtype)

    def place(self, array: Any) -> str:
        return HOST

    def writable(self, array: Any) -> bool:
        return bool(array.flags.writeable)


class _TorchKind(ArrayKind):
    def look(self, array: Any) -> Look:
        return (array.shape, array.stride(), array.dtype, array.device), array.data_ptr()

    def layout(self, array: Any) -> Layout:
        item = array.element_size()
        return (tuple(array.shape), tuple(step * item for step in array.stride()), array.dtype)

    def place(self, array: Any) -> str:
        torch = sys.modules["torch"]
        device = array.device
        if array.layout is not torch.strided:
            return f"{device}, {array.layout}"
        if device.type == "cuda" and torch.version.hip:
            return f"hip:{device.index}"
        return HOST if device.type == "cpu" else str(device)


class _InterfaceKind(ArrayKind):
    """`__cuda_array_interface__`, which GPU libraries for ROCm give too; it does not name the device."""

    def look(self, array: Any) -> Look:
        face = array.__cuda_array_interface__
        address, read_only = face["data"]
        # The runtime knows whose memory it is; who frees and allocates on another device may get the same address.
        return (face["shape"], face.get("strides"), face["typestr"], read_only, self.place(array)), address

    def layout(self, array: Any) -> Layout:
        face = array.__cuda_array_interface__
        dtype = np.dtype(face["typestr"])
        if dtype.kind == "V":  # the interface has no bfloat16
            dtype = getattr(array, "dtype", dtype)
        shape = tuple(face["shape"])
        strides = face.get("strides")
        return (shape, dense_strides(shape, dtype.itemsize) if strides is None else tuple(strides), dtype)

    def place(self, array: Any) -> str:
        from rdna_kernels.executors.hip_library import hip_library

        device = hip_library().device_of(array.__cuda_array_interface__["data"][0])
        return "memory that the HIP runtime does not know" if device is None else f"hip:{device}"

    def writable(self, array: Any) -> bool:
        return not array.__cuda_array_interface__["data"][1]


class _DlpackKind(ArrayKind):
    def look(self, array: Any) -> Look:
        layout, address = read_dlpack(array)
        return (*layout, self.place(array)), address

    def layout(self, array: Any) -> Layout:
        return read_dlpack(array)[0]

    def place(self, array: Any) -> str:
        kind, number = array.__dlpack_device__()
        return f"hip:{int(number)}" if kind == DLPACK_ROCM else f"DLPack device {int(kind)}:{int(number)}"


class _UnknownKind(ArrayKind):
    """What is no array: it has a signature, so that the search for a prepared call misses and names it."""

    def look(self, array: Any) -> Look:
        return f"type {id(type(array))}", 0

    def layout(self, array: Any) -> Layout:
        raise TypeError(f"{type(array).__name__} is no array")

    def place(self, array: Any) -> str:
        return "not an array"


NUMPY = _NumpyKind()
TORCH = _TorchKind()
_INTERFACE = _InterfaceKind()
_DLPACK = _DlpackKind()
_UNKNOWN = _UnknownKind()

_KINDS: dict[type, ArrayKind] = {np.ndarray: NUMPY}


def kind_of(array: Any) -> ArrayKind:
    """How to read an array; remembered for its type."""
    kind = _KINDS.get(type(array))
    if kind is None:
        kind = _KINDS[type(array)] = _find_kind(array)
    return kind


def register_kind(array_type: type, kind: ArrayKind) -> None:
    """Make `kind` read the arrays of a type."""
    _KINDS[array_type] = kind


def is_tensor(array: Any) -> bool:
    """Whether an array is torch's."""
    return kind_of(array) is TORCH


def look(array: Any) -> Look:
    """The signature and address of an array; of None, (None, 0)."""
    return _LOOKS.get(type(array), _first_look)(array)


def why_no_array(given: Any) -> str | None:
    """What something is that no kernel could read wherever it lived; None of arrays of any library and place."""
    if _is_masked(given):
        return f"a {type(given).__name__}, and kernels read no mask; pass a plain array"
    # What names a device is an array there; NumPy's scalars name one too.
    if kind_of(given) is not _UNKNOWN or (hasattr(given, "device") and not isinstance(given, np.generic)):
        return None
    what = "None" if given is None else f"{reprlib.repr(given)} of type {type(given).__name__}"
    return f"{what}; it must be an array: NumPy's, a torch tensor, or one with __cuda_array_interface__ or DLPack"


def dense_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-contiguous array."""
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))[: len(shape)] if shape else ()


def host_array(array: Any) -> np.ndarray[Any, Any]:
    """An array of the host as NumPy's, over the same memory; elements that NumPy lacks come as integers."""
    if isinstance(array, np.ndarray):
        return array
    plain = array.detach()
    if str(plain.dtype) == "torch.bfloat16":
        plain = plain.view(sys.modules["torch"].int16)
    values: np.ndarray[Any, Any] = plain.numpy()
    return values


def _find_kind(array: Any) -> ArrayKind:
    torch = sys.modules.get("torch")
    if _is_masked(array):
        return _UNKNOWN
    if isinstance(array, np.ndarray):
        return NUMPY
    if torch is not None and isinstance(array, torch.Tensor):
        return TORCH
    if hasattr(array, "__cuda_array_interface__"):
        return _INTERFACE
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _DLPACK
    return _UNKNOWN


def _is_masked(given: Any) -> bool:
    masked_tensor = getattr(sys.modules.get("torch.masked"), "MaskedTensor", None)
    return isinstance(given, np.ma.MaskedArray) or (masked_tensor is not None and isinstance(given, masked_tensor))


_LOOKS: dict[type, Callable[[Any], Look]] = {np.ndarray: NUMPY.look, type(None): lambda array: (None, 0)}


def _first_look(array: Any) -> Look:
    kind = kind_of(array)
    _LOOKS[type(array)] = kind.look
    return kind.look(array)
