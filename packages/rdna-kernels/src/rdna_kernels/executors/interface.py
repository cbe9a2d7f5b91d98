"""What an operator needs from the place where a kernel runs, and what every such place shares.

An executor is one device with the code objects for it. It knows which arrays it can reach, loads a code object once,
keeps the scratch memory, and launches. Everything that it does not share with the other executors is abstract here.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rdna_kernels.arrays import HOST, kind_of, look
from rdna_kernels.catalogue import Catalogue
from rdna_kernels.errors import ExecutorError, OutOfMemoryError
from rdna_kernels.layout import Layout
from rdna_kernels.scratch import ScratchPool

_MOST_PREPARED = 4096


@dataclass(frozen=True)
class DeviceProperties:
    """A device: its target ("gfx1151"), a name for people, its multiprocessors (WGPs) and LDS bytes a workgroup.

    `runtime` names what runs code on it, with its version.
    """

    target: str
    name: str
    multiprocessors: int
    lds_bytes: int
    runtime: str = ""


@dataclass(frozen=True)
class Function:
    """A kernel that is ready to launch: its name and the executor's own handle."""

    name: str
    handle: Any


class Executor(ABC):
    """One device and the code objects for it. Threads may launch at once."""

    name: ClassVar[str]
    """How records and messages call this kind of executor."""

    tracks_memory: ClassVar[bool] = True
    """Whether `launch` reads its `memory`; where it does not, operators pass it empty."""

    checks_values: bool = True
    """Whether operators ask `host_values` and check what stands in lengths, tables and counters."""

    place: str = HOST
    """Where the arrays live that kernels on this device can reach, in the words of `arrays`."""

    look = staticmethod(look)
    """An array's signature, equal for arrays of one layout, place and access, and its address; (None, 0) of None.

    What cannot be read has a signature too, or raises: operators then ask `accepts`."""

    def __init__(self, target: str, catalogue: Catalogue) -> None:
        self.target = target
        self.catalogue = catalogue
        self.scratch = ScratchPool(self)
        self.prepared: dict[Hashable, Any] = {}
        self._modules: dict[str, Any] = {}
        self._functions: dict[str, Function] = {}
        self._loading = threading.Lock()

    def build_function(self, build_name: str, suffix: str = "") -> Function:
        """The kernel of a build, whose code object is loaded at the first call; `suffix` names another one of it.

        MissingBuildError when the catalogue lacks it, ExecutorError, which names its file, when the device refuses it.
        """
        name = build_name + suffix
        function = self._functions.get(name)
        if function is None:
            with self._loading:
                function = self._functions.get(name)
                if function is None:
                    try:
                        function = self._functions[name] = self.function(self._module(build_name), name)
                    except OutOfMemoryError:
                        raise
                    except ExecutorError as error:
                        raise ExecutorError(f"{error}; {self.catalogue.mend(build_name, self.target)}") from error
        return function

    def _module(self, build_name: str) -> Any:
        module = self._modules.get(build_name)
        if module is None:
            module = self._modules[build_name] = self.load(self.catalogue.code(build_name, self.target))
        return module

    def remember(self, key: Hashable, prepared: Any) -> None:
        """Keep a call that has passed its checks in `prepared`; all others go when there are too many."""
        if len(self.prepared) >= _MOST_PREPARED:
            self.prepared.clear()
        self.prepared[key] = prepared

    def accepts(self, array: Any) -> bool:
        """Whether kernels on this device can reach the array."""
        return kind_of(array).place(array) == self.place

    def layout(self, array: Any) -> Layout:
        """Shape, strides in bytes and dtype of an array."""
        return kind_of(array).layout(array)

    def address(self, array: Any) -> int:
        """The address of an array's first element, as a kernel sees it."""
        return look(array)[1]

    def writable(self, array: Any) -> bool:
        """Whether a kernel may write to the array."""
        return kind_of(array).writable(array)

    def empty_beside(self, array: Any, shape: Sequence[int]) -> Any:
        """A new dense array of another one's library, dtype and place."""
        return self.empty(shape, array.dtype)

    def cut(self, array: Any, shape: tuple[int, ...]) -> Any:
        """The first elements of a dense array of scratch in a shape of no more elements."""
        return array[: shape[0]] if array.shape[1:] == shape[1:] else array[: math.prod(shape)].reshape(shape)

    def stream(self) -> Any:
        """The stream that a launch goes to when none is named; None where there are no streams."""
        return None

    def may_allocate(self, stream: Any, kept: bool) -> bool:
        """Whether memory may be allocated now, for this call or to be `kept` for later ones.

        Not while a graph is being captured on the stream, unless who allocates knows of it.
        """
        return True

    @property
    @abstractmethod
    def properties(self) -> DeviceProperties:
        """The device."""

    @abstractmethod
    def host_values(self, array: Any) -> np.ndarray[Any, Any] | None:
        """The array's values where the host can read them without waiting for a device, else None."""

    @abstractmethod
    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new dense array of any content; `dtype` is "float32", "int32" or a dtype of this executor's arrays."""

    @abstractmethod
    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new dense array of zeros."""

    @abstractmethod
    def load(self, code: bytes) -> Any:
        """Load a code object (ELF bytes) and return the executor's handle; ExecutorError when the device refuses it."""

    @abstractmethod
    def function(self, module: Any, name: str) -> Function:
        """A kernel of a loaded code object by its symbol; ExecutorError when there is none."""

    @abstractmethod
    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: int,
        arguments: bytes,
        memory: Sequence[tuple[str, Any]],
        stream: Any = None,
    ) -> Mapping[str, Any]:
        """Launch `grid` workgroups of `block` threads with one by-value struct of arguments.

        `memory` names the arrays that the struct's pointers point into. Returns what the executor counts about a launch
        (empty where it counts nothing).
        """
