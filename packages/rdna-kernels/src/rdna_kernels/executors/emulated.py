"""The emulated executor: built code objects run on the CPU by rdna-emulator, for NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from rdna_registry import DEFAULT_TARGET, as_target

from rdna_kernels.catalogue import Catalogue
from rdna_kernels.errors import ArgumentError, ExecutorError
from rdna_kernels.executors.interface import DeviceProperties, Executor, Function
from rdna_kernels.layout import Layout


class EmulatedExecutor(Executor):
    """Runs the machine code of `target` on the CPU. Slow, exact, and able to check every access.

    `threads` (None: all cores), `checks` (names, or "all"), `schedule` (None or "random") and `seed` go to
    `rdna_emulator` as they are; a finding of a check raises its CheckError. `catalogue` holds the code objects, by
    default those that are installed. ArgumentError for an unknown target, ExecutorError without rdna-emulator.
    """

    name: ClassVar[str] = "emulated"

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        threads: int | None = None,
        checks: str | Iterable[str] = (),
        schedule: str | None = None,
        seed: int = 0,
        catalogue: Catalogue | None = None,
    ) -> None:
        try:
            listed = as_target(target)
        except ValueError as error:
            raise ArgumentError(str(error)) from None
        try:
            import rdna_emulator
        except ImportError as error:
            raise ExecutorError(
                f"NumPy arrays need the emulator, and rdna_emulator cannot be imported ({error}); install it with: pip "
                "install 'rdna-kernels[emulator]'"
            ) from error
        super().__init__(listed.name, catalogue or Catalogue.installed())
        self._refusal = rdna_emulator.CodeObjectError
        self._device = rdna_emulator.Device(listed.name, threads=threads)
        self._properties = DeviceProperties(
            listed.name, f"emulated {listed.name}", listed.multiprocessors, listed.lds_bytes
        )
        self.checks = checks if isinstance(checks, str) else tuple(checks)
        self.schedule = schedule
        self.seed = seed

    @property
    def properties(self) -> DeviceProperties:
        return self._properties

    def accepts(self, array: Any) -> bool:
        return isinstance(array, np.ndarray)

    def layout(self, array: Any) -> Layout:
        return (array.shape, array.strides, array.dtype)

    def address(self, array: Any) -> int:
        address: int = array.__array_interface__["data"][0]
        return address

    def writable(self, array: Any) -> bool:
        return bool(array.flags.writeable)

    def host_values(self, array: Any) -> np.ndarray[Any, Any] | None:
        values: np.ndarray[Any, Any] = array
        return values

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return _aligned(shape, dtype)

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        array = _aligned(shape, dtype)
        array.fill(0)
        return array

    def load(self, code: bytes) -> Any:
        try:
            return self._device.load(code)
        except self._refusal as error:
            raise ExecutorError(
                f"the emulated {self.target} refuses a code object of {self.catalogue.folder} ({error}); built "
                f"targets: {self.catalogue.built_targets}. Build again with `uv sync --reinstall-package rdna-kernels`"
            ) from error

    def function(self, module: Any, name: str) -> Function:
        if name not in module.kernels:
            raise ExecutorError(f"the code object of {name} holds no such kernel, but: {', '.join(module.kernels)}")
        return Function(name, module[name])

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: int,
        arguments: bytes,
        memory: Sequence[tuple[str, Any]],
        stream: Any = None,
    ) -> Mapping[str, Any]:
        if stream is not None:
            raise ArgumentError("the emulated executor has no streams: a launch ends before the call returns")
        report = function.handle.launch(
            grid,
            (block, 1, 1),
            [arguments],
            memory=memory,
            checks=self.checks,
            schedule=self.schedule,
            seed=self.seed,
        )
        counts: Mapping[str, Any] = report.counts
        return counts


def _aligned(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    # NumPy aligns to 16 bytes on common platforms without a promise; 128 (a memory line) keeps counts of lines stable.
    kind = np.dtype(dtype)
    size = kind.itemsize
    for length in shape:
        size *= length
    raw = np.empty(size + 128, np.uint8)
    start = -int(raw.__array_interface__["data"][0]) % 128
    array: np.ndarray[Any, Any] = raw[start : start + size].view(kind).reshape(shape)
    return array
