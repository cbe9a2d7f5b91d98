"""HIP devices: what one is, whether it is served, and running something on it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rdna_registry import BUILDABLE_TARGETS, TARGETS

from rdna_kernels.catalogue import Catalogue
from rdna_kernels.errors import ArgumentError, ExecutorError
from rdna_kernels.executors.hip_library import HipLibrary
from rdna_kernels.executors.interface import DeviceProperties

OVERRIDE_VARIABLE = "HSA_OVERRIDE_GFX_VERSION"

# By their numbers in hipDeviceAttribute_t, which are the same in ROCm 6 and 7.
_MULTIPROCESSORS = 63
_LDS_BYTES = 74  # of a workgroup

_BUILDABLE = tuple(target.name for target in (*TARGETS, *BUILDABLE_TARGETS))
_OVERRIDDEN = ("gfx1103", "gfx1150", "gfx1152", "gfx1153")


@contextmanager
def on_device(library: HipLibrary, device: int) -> Iterator[None]:
    """Make a device the calling thread's for as long as the context lasts."""
    before = library.current_device()
    if before == device:
        yield
        return
    library.call("hipSetDevice", device)
    try:
        yield
    finally:
        library.call("hipSetDevice", before)


def device_properties(library: HipLibrary, device: Any) -> DeviceProperties:
    """What the runtime says of a device, by its number.

    ExecutorError when there is no device at all, ArgumentError when there is none of this number.
    """
    count = library.device_count()
    if not count:
        raise ExecutorError(
            f"the HIP runtime {library.version_text} ({library.path}) shows no device: check `rocminfo`, access to "
            "/dev/kfd and /dev/dri (groups render and video), and HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES; "
            "without a GPU, pass NumPy arrays or CPU tensors, which run emulated"
        )
    if isinstance(device, bool) or not isinstance(device, int) or not 0 <= device < count:
        raise ArgumentError(f"device is {device!r}; the HIP runtime shows devices 0 to {count - 1}")
    return DeviceProperties(
        target=library.device_target(device),
        name=library.device_name(device),
        multiprocessors=library.attribute(_MULTIPROCESSORS, device),
        lds_bytes=library.attribute(_LDS_BYTES, device),
        runtime=f"HIP {library.version_text}",
    )


def require_built(properties: DeviceProperties, device: int, catalogue: Catalogue) -> None:
    """ExecutorError when no kernel is built for exactly this device's target; families are never taken for equal."""
    target = properties.target
    if target in catalogue.targets:
        return
    if target in _BUILDABLE:
        help_text = f"build them with: python -m rdna_kernels build --target {target}"
    else:
        help_text = (
            f"there are no kernels for {target}, and those of another target are never run in their place; NumPy "
            "arrays and CPU tensors run emulated"
        )
    raise ExecutorError(
        f"HIP device {device} ({properties.name}) is a {target}; kernels are built for {catalogue.built_targets}. "
        f"{help_text[0].upper()}{help_text[1:]}"
    )


def warn_of_override(properties: DeviceProperties) -> None:
    """Warn that HSA_OVERRIDE_GFX_VERSION is set: then the target that the runtime reports may not be the GPU's."""
    version = os.environ.get(OVERRIDE_VARIABLE)
    if version:
        others = ", ".join(_OVERRIDDEN)
        warnings.warn(
            f"{OVERRIDE_VARIABLE} is {version}: the runtime reports {properties.target} whatever the GPU is, and its "
            f"kernels run on a GPU that they were not built for. {others} are served under their own names, without "
            f"the variable: unset it, then `python -m rdna_kernels build --target {_OVERRIDDEN[0]}` (or your GPU's)",
            RuntimeWarning,
            stacklevel=3,
        )
