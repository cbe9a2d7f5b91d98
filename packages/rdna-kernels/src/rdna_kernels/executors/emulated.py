"""The emulated executor: built code objects run on the CPU by rdna-emulator, for NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from rdna_registry import DEFAULT_TARGET, as_target

from rdna_kernels.arrays import host_array, is_tensor
from rdna_kernels.catalogue import Catalogue
from rdna_kernels.errors import ArgumentError, ExecutorError
from rdna_kernels.executors.interface import DeviceProperties, Executor, Function
from rdna_kernels.numbers_given import as_integer

_MOST_THREADS = 1024
_LARGEST_SEED = 2**64 - 1


class EmulatedExecutor(Executor):
    """Runs the machine code of `target` on the CPU. Slow, exact, and able to check every access.

    `threads` is 1 to 1024 (None: all cores); `checks` are names of `rdna_emulator.CHECKS`, or "all", and a finding
    raises `rdna_emulator.CheckError`; `schedule` None runs workgroups in order, "random" interleaves them the same way
    for the same `seed` (0 to 2**64 - 1). `measure=("model",)` adds the issue model's figures to a launch's counts, as
    "model"; they are modelled, not measured. `catalogue` holds the code objects, by default those that are installed.
    ArgumentError for values that are not allowed, ExecutorError without rdna-emulator.
    """

    name: ClassVar[str] = "emulated"

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        threads: SupportsIndex | None = None,
        checks: str | Iterable[str] = (),
        schedule: str | None = None,
        seed: SupportsIndex = 0,
        measure: Iterable[str] = (),
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
        number_of_threads = None if threads is None else _integer("threads", threads, 1, _MOST_THREADS)
        self.checks = _checks(checks, rdna_emulator.CHECKS)
        if schedule is not None and not (isinstance(schedule, str) and schedule == "random"):
            raise ArgumentError(f"schedule is {schedule!r}; it may be None or 'random'")
        self.schedule = schedule
        self.seed = _integer("seed", seed, 0, _LARGEST_SEED)
        self.measure = tuple(measure)
        if self.measure not in ((), ("model",)):
            raise ArgumentError(f"measure is {measure!r}; it may be empty or ('model',)")
        if catalogue is not None and not isinstance(catalogue, Catalogue):
            raise ArgumentError(
                f"catalogue is {catalogue!r}; it may be None (the installed code objects) or an rdna_kernels.Catalogue"
            )
        super().__init__(listed.name, Catalogue.installed() if catalogue is None else catalogue)
        self._refusal = rdna_emulator.CodeObjectError
        self._device = rdna_emulator.Device(listed.name, threads=number_of_threads)
        self._properties = DeviceProperties(
            listed.name,
            f"emulated {listed.name}",
            listed.multiprocessors,
            listed.lds_bytes,
            f"rdna-emulator {version('rdna-emulator')}",
        )

    @property
    def properties(self) -> DeviceProperties:
        return self._properties

    def host_values(self, array: Any) -> np.ndarray[Any, Any] | None:
        return host_array(array)

    def empty_beside(self, array: Any, shape: Sequence[int]) -> Any:
        return array.new_empty(shape) if is_tensor(array) else _aligned(shape, array.dtype)

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
                f"the emulated {self.target} refuses a code object: {error}; built targets: "
                f"{self.catalogue.built_targets}"
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
            memory=[(name, host_array(array)) for name, array in memory],
            checks=self.checks,
            schedule=self.schedule,
            seed=self.seed,
            measure=self.measure,
        )
        counts: Mapping[str, Any] = report.counts
        return {**counts, "model": report.model} if self.measure else counts


def _integer(what: str, value: SupportsIndex, low: int, high: int) -> int:
    try:
        number = as_integer(what, value)
    except ArgumentError:
        number = low - 1
    if not low <= number <= high:
        raise ArgumentError(f"{what} is {value!r}; it may be an integer from {low} to {high}")
    return number


def _checks(given: str | Iterable[str], known: Sequence[str]) -> str | tuple[str, ...]:
    allowed = f"'all', or names among {', '.join(known)}"
    if not isinstance(given, Iterable):
        raise ArgumentError(f"checks is {given!r}; it may be {allowed}")
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or name not in (*known, "all"):
            raise ArgumentError(f"checks holds {name!r}; it may be {allowed}")
    return given if isinstance(given, str) else names


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
