"""Reads the built code objects, refuses those that spill, and writes the manifest.

Run by CMakeLists.txt after the last object. The figures of a kernel are those of the compiler, from the object's
NT_AMDGPU_METADATA note (LLVM's AMDGPU usage guide, "Code Object Metadata").
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgpack
import rdna_registry
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import NoteSegment

NT_AMDGPU_METADATA = 32
SIMDS = 4  # of a work-group processor, which also has the LDS of two compute units
LDS_GRANULE = 1024
FEATURES_SUFFIX = "_features"  # of the second kernel's name, as in decode_arguments.py


class ObjectError(Exception):
    """A code object that the package must not hold."""


def waves_per_simd(target: rdna_registry.Target, vgprs: int, lds_bytes: int, waves: int) -> int:
    """Waves that the fullest SIMD of a work-group processor holds, where workgroups of ``waves`` waves fill it.

    Registers bound the waves of a SIMD, LDS the workgroups of the processor; a workgroup stays on one processor.
    """
    of_registers = target.waves_per_simd(vgprs)
    workgroups = of_registers * SIMDS // waves
    if lds_bytes:
        allocated = -(-lds_bytes // LDS_GRANULE) * LDS_GRANULE
        workgroups = min(workgroups, 2 * target.lds_bytes // allocated)
    return min(of_registers, -(-workgroups * waves // SIMDS))


def read_object(path: Path) -> dict[str, dict[str, Any]]:
    """The metadata of a code object's kernels by name, with the target of the object and the bytes of their code."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        notes = [
            note["n_descdata"]
            for segment in elf.iter_segments()
            if isinstance(segment, NoteSegment)
            for note in segment.iter_notes()
            if note["n_name"] == "AMDGPU" and note["n_type"] == NT_AMDGPU_METADATA
        ]
        if len(notes) != 1:
            raise ObjectError(f"{path.name} has {len(notes)} notes of AMDGPU metadata, not one")
        metadata = msgpack.unpackb(notes[0])
        sizes = {
            symbol.name: symbol["st_size"]
            for section in elf.iter_sections()
            if isinstance(section, SymbolTableSection)
            for symbol in section.iter_symbols()
        }
    target = metadata["amdhsa.target"].rsplit("-", 1)[-1]
    return {
        kernel[".name"]: {**kernel, "target": target, "code_bytes": sizes[kernel[".name"]]}
        for kernel in metadata["amdhsa.kernels"]
    }


def figures(build: dict[str, Any], kernel: dict[str, Any]) -> dict[str, int]:
    """What the manifest says of a kernel; ObjectError where it is not one of the build."""
    for what, found, expected in (
        ("target", kernel["target"], build["target"]),
        ("largest workgroup", kernel[".max_flat_workgroup_size"], 32 * build["configuration"]["waves"]),
    ):
        if found != expected:
            raise ObjectError(f"{build['name']} for {build['target']}: its {what} is {found}, not {expected}")
    target = rdna_registry.as_buildable(build["target"])
    lds_bytes = kernel[".group_segment_fixed_size"]
    if lds_bytes > target.lds_bytes:
        raise ObjectError(f"{build['name']} for {target.name}: {lds_bytes} bytes of LDS, {target.lds_bytes} allowed")
    return {
        "vgpr": kernel[".vgpr_count"],
        "sgpr": kernel[".sgpr_count"],
        "lds_bytes": lds_bytes,
        "scratch_bytes": kernel[".private_segment_fixed_size"],
        "vgpr_spills": kernel[".vgpr_spill_count"],
        "sgpr_spills": kernel[".sgpr_spill_count"],
        "waves_per_simd": waves_per_simd(target, kernel[".vgpr_count"], lds_bytes, build["configuration"]["waves"]),
        "code_bytes": kernel["code_bytes"],
    }


def entry(build: dict[str, Any], objects: Path, compiler: str) -> dict[str, Any]:
    """The manifest's entry of one build; ObjectError where the object is not the one that the build names."""
    kernels = read_object(objects / build["target"] / f"{build['name']}.hsaco")
    plain, featured = build["name"], build["name"] + FEATURES_SUFFIX
    if plain not in kernels or not kernels.keys() <= {plain, featured}:
        raise ObjectError(
            f"{plain} for {build['target']}: its object holds {', '.join(kernels) or 'no kernel'}; it may hold {plain} "
            f"and {featured}"
        )
    return {
        "name": plain,
        "operation": build["operation"],
        "configuration": build["configuration"],
        "target": build["target"],
        **figures(build, kernels[plain]),
        "compiler": compiler,
        "features_kernel": figures(build, kernels[featured]) if featured in kernels else None,
    }


def spilling(entries: list[dict[str, Any]]) -> list[str]:
    """One line for each kernel that keeps registers in memory."""
    text = "{name} for {target}: {vgpr_spills} VGPR and {sgpr_spills} SGPR spills, {scratch_bytes} bytes of scratch"
    kernels = []
    for found in entries:
        kernels.append(found)
        if found["features_kernel"]:
            kernels.append({**found, **found["features_kernel"], "name": found["name"] + FEATURES_SUFFIX})
    return [
        text.format_map(kernel)
        for kernel in kernels
        if kernel["vgpr_spills"] or kernel["sgpr_spills"] or kernel["scratch_bytes"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--builds", type=Path, required=True, help="builds.json of list_builds.py")
    parser.add_argument("--compiler", type=Path, required=True, help="the file that names the compiler")
    parser.add_argument("--objects", type=Path, required=True, help="the folder of <target>/<name>.hsaco")
    parser.add_argument("--out", type=Path, required=True, help="the manifest")
    options = parser.parse_args()
    compiler = options.compiler.read_text(encoding="utf-8").strip()
    builds = json.loads(options.builds.read_text(encoding="utf-8"))
    try:
        entries = [entry(build, options.objects, compiler) for build in builds]
    except ObjectError as error:
        sys.exit(str(error))
    if lines := spilling(entries):
        advice = "No build may spill: keep fewer values alive in its source, or take it out of rdna_registry's tables."
        sys.exit("\n".join([*lines, advice]))
    options.out.write_text(json.dumps({"compiler": compiler, "builds": entries}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
