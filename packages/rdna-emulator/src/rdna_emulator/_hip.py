"""The emulated HIP runtime: a shared library with the names of libamdhip64.so, and its header.

`RDNA_EMULATED_HIP` names another build of the library.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

from ._errors import EmulatorError

_NAME = "libamdhip64_emulated.so"


def hip_library() -> Path:
    """The shared library with HIP's names, to be opened or linked where a program wants ``libamdhip64.so``.

    The emulated machine is described by environment variables (see the package's README), which are read at the first
    call. Raises EmulatorError where the library is not installed.
    """
    forced = os.environ.get("RDNA_EMULATED_HIP", "")
    path = Path(forced) if forced else _installed(_NAME)
    if not path.is_file():
        raise EmulatorError(
            f"RDNA_EMULATED_HIP names {forced}, which is no file"
            if forced
            else f"{_NAME} is not installed; build the package (`uv sync`, or `pip install` of its folder)"
        )
    return path


def hip_include() -> Path:
    """The folder that holds ``hip/hip_runtime_api.h``, for a C compiler's -I.

    Raises EmulatorError where the header is not installed.
    """
    forced = os.environ.get("RDNA_EMULATED_HIP", "")
    path = Path(forced).with_name("include") if forced else _installed("include")
    if not (path / "hip" / "hip_runtime_api.h").is_file():
        raise EmulatorError(f"{path} holds no hip/hip_runtime_api.h; it is installed beside {_NAME}")
    return path


def _installed(name: str) -> Path:
    with resources.as_file(resources.files("rdna_emulator").joinpath("_core", name)) as path:
        return path
