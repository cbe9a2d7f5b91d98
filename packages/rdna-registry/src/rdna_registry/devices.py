"""How wide a device is, and arrays on it: torch is used only for a torch device, and only then imported."""

from __future__ import annotations

import importlib
import sys
from typing import Any, TypeAlias

import numpy as np

from rdna_registry.arguments import ArgumentError
from rdna_registry.targets import TARGETS, Target, as_target

Device: TypeAlias = Any
"""A `Target` or its name, None (the host, with NumPy arrays), or a torch device or its name."""


def multiprocessors(device: Device) -> int:
    """Work-group processors of a device, as the driver counts them.

    A `Target` or its name gives the target's number; anything else is asked for its ``multi_processor_count`` or, as a
    torch device, through torch. ArgumentError for what has none.
    """
    if isinstance(device, Target) or (isinstance(device, str) and device in {target.name for target in TARGETS}):
        device = as_target(device)
    count = getattr(device, "multiprocessors" if isinstance(device, Target) else "multi_processor_count", None)
    if count is None and _is_gpu(device):
        count = _torch(device).cuda.get_device_properties(device).multi_processor_count
    if not isinstance(count, int) or count < 1:
        names = ", ".join(target.name for target in TARGETS)
        raise ArgumentError("device", device, f"a target ({names}), a GPU's torch device, or its properties")
    return count


def prefill_target_workgroups(device: Device) -> int:
    """Workgroups that a prefill plan aims at: 4 for each multiprocessor, one for each SIMD (80 on gfx1151)."""
    return 4 * multiprocessors(device)


def empty(shape: tuple[int, ...], device: Device) -> Any:
    """A float32 array of a shape, with whatever its memory holds: NumPy's where ``device`` is None, else torch's."""
    if device is None:
        return np.empty(shape, dtype=np.float32)
    torch = _torch(device)
    return torch.empty(shape, dtype=torch.float32, device=device)


def zeros(count: int, device: Device) -> Any:
    """An int32 array of ``count`` zeros: NumPy's where ``device`` is None, else torch's."""
    if device is None:
        return np.zeros(count, dtype=np.int32)
    torch = _torch(device)
    return torch.zeros(count, dtype=torch.int32, device=device)


def _is_gpu(device: Device) -> bool:
    return str(getattr(device, "type", device)).split(":")[0] == "cuda"


def _torch(device: Device) -> Any:
    """The module torch, which knows the device; ArgumentError where it is not there or does not."""
    allowed = "None for NumPy arrays, or a torch device or its name"
    if "torch" not in sys.modules and not isinstance(device, str):
        raise ArgumentError("device", device, allowed)
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise ArgumentError("device", device, "None for NumPy arrays, as torch is not installed") from None
    try:
        torch.device(device)
    except (RuntimeError, TypeError):
        raise ArgumentError("device", device, allowed) from None
    return torch
