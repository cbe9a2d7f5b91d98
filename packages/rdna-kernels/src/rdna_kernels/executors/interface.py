"""What an operator needs from the place where a kernel runs, and what every such place shares.

An executor is one device with the code objects for it. It knows which arrays it can reach, loads a code object once,
keeps the scratch memory, and launches. Everything that it does not share with the other executors is abstract here.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rdna_kernels.catalogue import Catalogue
from rdna_kernels.layout import Layout
from rdna_kernels.scratch import ScratchPool


@dataclass(frozen=True)
class DeviceProperties:
    """A device: its target ("gfx1151"), a name for people, its multiprocessors (WGPs) and LDS bytes a workgroup."""

    target: str
    name: str
    multiprocessors: int
    lds_bytes: int


@dataclass(frozen=True)
class Function:
    """A kernel that is ready to launch: its name and the executor's own handle."""

    name: str
    handle: Any


class Executor(ABC):
    """One device and the code objects for it. Threads may launch at once."""

    name: ClassVar[str]
    """How records and messages call this kind of executor."""

    def __init__(self, target: str, catalogue: Catalogue) -> None:
        self.target = target
        self.catalogue = catalogue
        self.scratch = ScratchPool(self)
        self._functions: dict[str, Function] = {}
        self._loading = threading.Lock()

    def build_function(self, build_name: str) -> Function:
        """The kernel of a build, whose code object is loaded at the first call.

        MissingBuildError when the catalogue lacks it, ExecutorError when the device refuses it.
        """
        function = self._functions.get(build_name)
        if function is None:
            with self._loading:
                function = self._functions.get(build_name)
                if function is None:
                    module = self.load(self.catalogue.code(build_name, self.target))
                    function = self._functions[build_name] = self.function(module, build_name)
        return function

    @property
    @abstractmethod
    def properties(self) -> DeviceProperties:
        """The device."""

    @abstractmethod
    def accepts(self, array: Any) -> bool:
        """Whether kernels on this device can reach the array."""

    @abstractmethod
    def layout(self, array: Any) -> Layout:
        """Shape, strides in bytes and dtype of an array."""

    @abstractmethod
    def address(self, array: Any) -> int:
        """The address of an array's first element, as a kernel sees it."""

    @abstractmethod
    def writable(self, array: Any) -> bool:
        """Whether a kernel may write to the array."""

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
