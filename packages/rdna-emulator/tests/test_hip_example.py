"""The example in C: built against the emulated runtime's header and library, it runs a code object with no GPU."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest
from device_compiler import compile_hip, ziglang
from rdna_emulator import hip_include, hip_library

EXAMPLE = Path(__file__).parents[1] / "examples" / "module_launch.c"
SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.mark.parametrize("target", ["gfx1151", "gfx1100"])
def test_the_example_runs(target: str, tmp_path: Path) -> None:
    (tmp_path / "saxpy.hsaco").write_bytes(compile_hip(SAXPY, target, tmp_path))
    library, program = hip_library(), tmp_path / "module_launch"
    command = [str(ziglang() / "zig"), "cc", "-target", f"{platform.machine()}-linux-gnu.2.28", "-Wall", "-Werror"]
    command += [f"-I{hip_include()}", str(EXAMPLE), str(library), f"-Wl,-rpath,{library.parent}", "-o", str(program)]
    subprocess.run(command, check=True)
    environment = os.environ | {"RDNA_EMULATED_DEVICES": target}
    done = subprocess.run(
        [str(program), "saxpy.hsaco"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].endswith(target)
    assert done.stdout.splitlines()[1] == f"sum {2 * sum(range(1000))}"
    environment["RDNA_EMULATED_DEVICES"] = "gfx1150"
    refused = subprocess.run(
        [str(program), "saxpy.hsaco"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "no kernel image is available" in refused.stderr
