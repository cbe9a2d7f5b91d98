"""Which executor serves a call: the one that can reach the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from rdna_kernels.arrays import HOST, kind_of, why_no_array
from rdna_kernels.catalogue import Catalogue
from rdna_kernels.errors import ArgumentError, ExecutorError
from rdna_kernels.executors.emulated import EmulatedExecutor
from rdna_kernels.executors.hip import default_hip
from rdna_kernels.executors.interface import Executor


@lru_cache(maxsize=1)
def default_emulated() -> EmulatedExecutor:
    """The emulated executor of the default target, made at the first call and shared."""
    return EmulatedExecutor()


def executor_of(array: Any) -> Executor | None:
    """The executor of the place where an array lives, None where there is none for it."""
    if type(array) is np.ndarray:
        return default_emulated()
    place = kind_of(array).place(array)
    if place == HOST:
        return default_emulated()
    return default_hip(int(place[4:])) if place.startswith("hip:") else None


def executor_for(arrays: Mapping[str, Any]) -> Executor:
    """The executor for named arrays: the emulated one when all are the host's, a GPU's when all are on that GPU.

    ExecutorError, naming what was found, what is built and what helps, for any others; ArgumentError for what is no
    array at all.
    """
    _require_arrays(arrays)
    executor = executor_of(next(iter(arrays.values())))
    if executor is None:
        raise ExecutorError(_unreachable(arrays, "one of the host or of a ROCm device", Catalogue.installed()))
    require_reachable(executor, arrays)
    return executor


def require_reachable(executor: Executor, arrays: Mapping[str, Any]) -> None:
    """ExecutorError when an executor cannot reach one of the named arrays, ArgumentError when one is no array."""
    _require_arrays(arrays)
    for array in arrays.values():
        if not executor.accepts(array):
            raise ExecutorError(
                _unreachable(arrays, f"{executor.name}, {executor.properties.name}", executor.catalogue)
            )


def _require_arrays(arrays: Mapping[str, Any]) -> None:
    for name, array in arrays.items():
        given = why_no_array(array)
        if given is not None:
            raise ArgumentError(f"{name} is {given}")


def _unreachable(arrays: Mapping[str, Any], wanted: str, catalogue: Catalogue) -> str:
    found = ", ".join(f"{name}: {_described(array)}" for name, array in arrays.items())
    places = {kind_of(array).place(array) for array in arrays.values()}
    mixed = "They live in different places: move them to one device. " if len(places) > 1 else ""
    return (
        f"the arrays cannot be reached from one executor ({wanted}): {found}. {mixed}NumPy arrays and CPU tensors run "
        f"emulated, tensors and arrays of a ROCm device on that GPU; kernels are built for {catalogue.built_targets}. "
        "To run emulated bring the arrays to the host: x.cpu() for a torch tensor, numpy.asarray(x) for others"
    )


def _described(array: Any) -> str:
    kind = type(array)
    text = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    device = getattr(array, "device", None)
    if isinstance(array, np.ndarray) or device is None:
        return text
    return f"{text} on {device}" if not isinstance(device, int) else f"{text} on hip:{device}"
