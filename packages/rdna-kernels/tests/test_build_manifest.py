"""The two scripts of the build: what they list, what they read from code objects, and what they refuse."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from device_build import PACKAGE, compile_build
from rdna_registry import TARGETS, Build, as_target, builds

SCRIPTS = PACKAGE / "cmake"
LIST_BUILDS = runpy.run_path(str(SCRIPTS / "list_builds.py"))
WRITE_MANIFEST = runpy.run_path(str(SCRIPTS / "write_manifest.py"))
BUILD = Build.from_name("decode_h64_r16_w4_s0_p0_l0_d0_fp16")

KERNEL = """
#include "decode_arguments.h"
extern "C" __attribute__((global, amdgpu_flat_work_group_size(32 * RDNA_WAVES, 32 * RDNA_WAVES)))
void RDNA_KERNEL_NAME(DecodeArguments arguments) {{
  {body}
}}
"""
PLAIN = """
  __attribute__((shared)) static float lds[1280];
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  lds[lane] = lane;
  __builtin_amdgcn_s_barrier();
  reinterpret_cast<float*>(arguments.out)[lane] = lds[lane ^ 1];
"""
SCRATCH = """
  volatile int kept[8];
  kept[arguments.gqa & 7] = 1;
  reinterpret_cast<int*>(arguments.out)[0] = kept[arguments.window & 7];
"""


def run_writer(folder: Path, body: str, **changes: Any) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Compiles one kernel and runs write_manifest.py on it, with changes of what builds.json says of the build."""
    sources = folder / "csrc" / "decode"
    sources.mkdir(parents=True)
    (sources / "decode.hip").write_text(KERNEL.format(body=body))
    objects = compile_build(BUILD, "gfx1151", folder / "csrc", folder).folder
    listed = {"name": BUILD.name, "target": "gfx1151", "operation": "decode", "configuration": BUILD.configuration}
    (folder / "builds.json").write_text(json.dumps([{**listed, **changes}]))
    (folder / "compiler").write_text("a compiler, version 1\n")
    out = folder / "out.json"
    paths = {"--builds": folder / "builds.json", "--compiler": folder / "compiler", "--objects": objects, "--out": out}
    options = [str(part) for option in paths.items() for part in option]
    command = [sys.executable, str(SCRIPTS / "write_manifest.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False), out


def test_the_manifest_has_the_figures_of_the_object(tmp_path: Path) -> None:
    done, out = run_writer(tmp_path, PLAIN)
    assert done.returncode == 0, done.stderr
    manifest = json.loads(out.read_text())
    [entry] = manifest["builds"]
    assert manifest["compiler"] == entry["compiler"] == "a compiler, version 1"
    assert (entry["name"], entry["target"]) == (BUILD.name, "gfx1151")
    assert entry["configuration"] == BUILD.configuration
    assert entry["lds_bytes"] == 4 * 1280
    assert (entry["scratch_bytes"], entry["vgpr_spills"], entry["sgpr_spills"]) == (0, 0, 0)
    # 128 KiB of LDS hold 26 workgroups of 5 KiB, more than the 16 of 4 waves that the registers allow.
    assert entry["waves_per_simd"] == 16
    assert 0 < entry["vgpr"] < 24
    assert 16 < entry["code_bytes"] < 1024


def test_a_build_that_uses_scratch_fails_by_name(tmp_path: Path) -> None:
    done, out = run_writer(tmp_path, SCRATCH)
    assert done.returncode != 0
    assert f"{BUILD.name} for gfx1151: 0 VGPR and 0 SGPR spills, " in done.stderr
    assert " bytes of scratch\n" in done.stderr
    assert not out.exists()


def test_spills_fail_by_name() -> None:
    none = {"scratch_bytes": 0, "vgpr_spills": 0, "sgpr_spills": 0}
    entry = {"name": "a", "target": "gfx1151", **none, "features_kernel": none}
    found = WRITE_MANIFEST["spilling"](
        [
            entry,
            {**entry, "name": "b", "vgpr_spills": 3, "features_kernel": None},
            {**entry, "sgpr_spills": 2},
            {**entry, "features_kernel": {**none, "vgpr_spills": 1}},
        ]
    )
    assert [line.split(",")[0] for line in found] == [
        "b for gfx1151: 3 VGPR and 0 SGPR spills",
        "a for gfx1151: 0 VGPR and 2 SGPR spills",
        "a_features for gfx1151: 1 VGPR and 0 SGPR spills",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "gfx1100"}, "No such file"),
        ({"configuration": {**BUILD.configuration, "waves": 8}}, "its largest workgroup is 128, not 256"),
    ],
)
def test_an_object_that_is_not_the_build_fails_by_name(tmp_path: Path, changes: Any, message: str) -> None:
    done, out = run_writer(tmp_path, PLAIN, **changes)
    assert done.returncode != 0
    assert BUILD.name in done.stderr
    assert message in done.stderr
    assert not out.exists()


def test_an_object_of_another_target_is_refused(tmp_path: Path) -> None:
    run_writer(tmp_path, PLAIN)
    objects = tmp_path / "built"
    (objects / "gfx1151").rename(objects / "gfx1100")
    build = {"name": BUILD.name, "target": "gfx1100", "operation": "decode", "configuration": BUILD.configuration}
    with pytest.raises(WRITE_MANIFEST["ObjectError"], match="its target is gfx1151, not gfx1100"):
        WRITE_MANIFEST["entry"](build, objects, "a compiler")


@pytest.mark.parametrize(
    ("vgprs", "lds_bytes", "waves", "expected"),
    [
        (96, 0, 4, 16),  # 1536 registers hold 16 waves of 96
        (97, 0, 4, 12),  # given out by 24: 120 each
        (256, 0, 8, 4),  # 264 each: 5 waves a SIMD, 20 a processor, which are two workgroups of 8
        (24, 65536, 4, 2),  # two workgroups on a processor's 128 KiB
        (24, 43691, 8, 4),  # 43 KiB each: two fit, not three
        (24, 0, 32, 16),  # two workgroups of 32 waves
    ],
)
def test_occupancy(vgprs: int, lds_bytes: int, waves: int, expected: int) -> None:
    assert WRITE_MANIFEST["waves_per_simd"](as_target("gfx1151"), vgprs, lds_bytes, waves) == expected


def test_every_build_of_every_target_is_listed() -> None:
    listed = LIST_BUILDS["builds"]()
    assert [(build["target"], build["name"]) for build in listed] == [
        (target.name, build.name) for target in TARGETS for build in builds(target.name)
    ]
    build = builds("gfx1100")[0]
    *_, call = [line for line in LIST_BUILDS["cmake_calls"](listed).splitlines() if build.name in line]
    assert call.startswith(f"device_object(gfx1100 {build.name} decode/decode.hip RDNA_KERNEL_NAME={build.name} ")
    assert call.endswith(f"RDNA_BF16={build.dtype.code})")


def test_the_header_has_every_field_in_order() -> None:
    header = LIST_BUILDS["arguments_header"]([("a", "int64_t", "first"), ("b", "float", "second")], {"sinks": 4})
    assert "struct DecodeArguments {\n  int64_t a;  // first\n  float b;  // second\n};\n" in header
    assert "constexpr int kFeatureSinks = 4;" in header


def test_a_file_is_written_only_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    LIST_BUILDS["write"](path, "one")
    before = path.stat().st_mtime_ns
    LIST_BUILDS["write"](path, "one")
    assert path.stat().st_mtime_ns == before
    LIST_BUILDS["write"](path, "two")
    assert path.read_text() == "two"
