"""Which executor serves a call: the one that can reach the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from rdna_kernels.arrays import HOST, kind_of
from rdna_kernels.catalogue import Catalogue
from rdna_kernels.errors import ExecutorError
from rdna_kernels.executors.emulated import EmulatedExecutor
from rdna_kernels.executors.interface import Executor


@lru_cache(maxsize=1)
def default_emulated() -> EmulatedExecutor:
    """The emulated executor of the default target, made at the first call and shared."""
    return EmulatedExecutor()


def executor_for(arrays: Mapping[str, Any]) -> Executor:
    """The executor for named arrays: the emulated one when all are NumPy's.

    ExecutorError, naming what was found, what is built and what helps, for any other array.
    """
    for array in arrays.values():
        if not isinstance(array, np.ndarray):
            raise ExecutorError(_unreachable(arrays, "NumPy arrays", Catalogue.installed()))
    return default_emulated()


def executor_of(array: Any) -> Executor | None:
    """The executor of the place where an array lives, None where there is none for it."""
    if type(array) is np.ndarray or kind_of(array).place(array) == HOST:
        return default_emulated()
    return None


def require_reachable(executor: Executor, arrays: Mapping[str, Any]) -> None:
    """ExecutorError when an executor that the caller chose cannot reach one of the named arrays."""
    for array in arrays.values():
        if not executor.accepts(array):
            raise ExecutorError(_unreachable(arrays, f"{executor.name} {executor.target}", executor.catalogue))


def _unreachable(arrays: Mapping[str, Any], wanted: str, catalogue: Catalogue) -> str:
    found = ", ".join(f"{name}: {_place(array)}" for name, array in arrays.items())
    return (
        f"the arrays cannot be reached from one executor ({wanted}): {found}. There is one executor, 'emulated', for "
        f"NumPy arrays; kernels are built for {catalogue.built_targets}. Bring the arrays to the host first: "
        "numpy.asarray(x), or x.cpu().numpy() for a torch tensor (bfloat16 through ml_dtypes: "
        "x.cpu().view(torch.int16).numpy().view(ml_dtypes.bfloat16))"
    )


def _place(array: Any) -> str:
    kind = type(array)
    place = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    device = getattr(array, "device", None)
    return place if device is None else f"{place} on {device}"
