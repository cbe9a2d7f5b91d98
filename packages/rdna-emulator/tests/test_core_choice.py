"""Which core is loaded, and life across processes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from launch_library import code_object
from rdna_emulator import Device, EmulatorError, _library

V3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def test_the_cpu_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for flags, expected in ((V3, "v3"), (V4, "v4"), (V4 - {"avx512bw"}, "v3"), (V4 | {"amx_tile"}, "v4")):
        monkeypatch.setattr(_library, "_cpu_flags", lambda flags=flags: flags)
        assert _library._variant() == expected
    monkeypatch.setattr(_library, "_cpu_flags", lambda: V3 - {"avx2", "fma"})
    with pytest.raises(EmulatorError, match="this CPU lacks avx2, fma; the emulator needs x86-64-v3"):
        _library._variant()


def test_the_environment_forces_a_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for value, message in (
        ("v5", "RDNA_EMULATOR_CORE is 'v5'; it may be v3, v4, or the path of a library"),
        (str(tmp_path / "absent.so"), "which is no file"),
    ):
        monkeypatch.setenv("RDNA_EMULATOR_CORE", value)
        with pytest.raises(EmulatorError, match=message):
            _library.library_path()
    library = tmp_path / "library.so"
    library.touch()
    monkeypatch.setenv("RDNA_EMULATOR_CORE", str(library))
    assert _library.library_path() == library


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_can_launch_and_leave() -> None:
    device = Device("gfx1151", threads=3)
    saxpy = device.load(code_object("gfx1151"))["saxpy"]

    def run() -> bool:
        x, y = np.ones(2048, np.float32), np.ones(2048, np.float32)
        saxpy.launch(8, 256, [np.float32(2), x, y, np.int32(2048)])
        return bool((y == 3).all())

    assert run()
    child = os.fork()
    if child == 0:
        good = run()
        del saxpy, device
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run()
