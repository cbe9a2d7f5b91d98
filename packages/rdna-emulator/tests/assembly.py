"""Code objects from assembly, for tests that need exact instructions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from device_compiler import ziglang

SIZES = {"pointer": 8, "i32": 4, "i64": 8}


@dataclass(frozen=True)
class AssemblyKernel:
    """Its waves begin with the arguments' address in s[0:1], the workgroup's number in s2 and the thread's in v0."""

    name: str
    lines: str
    arguments: tuple[str, ...] = ()
    lds_bytes: int = 0
    scratch_bytes: int = 0
    vgprs: int = 64
    block: int = 1024
    descriptor: str = ""  # further .amdhsa_ lines


def assemble_code_object(kernels: Iterable[AssemblyKernel], target: str, folder: Path) -> bytes:
    """The linked code object of the kernels."""
    parts = [f'.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n']
    notes = [f".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--{target}\namdhsa.kernels:\n"]
    for kernel in kernels:
        parts.append(_text(kernel))
        notes.append(_metadata(kernel))
    return link("".join([*parts, *notes, ".end_amdgpu_metadata\n"]), target, folder)


def link(source: str, target: str, folder: Path) -> bytes:
    """Assembles and links a whole source."""
    assembly, relocatable, linked = folder / "code.s", folder / "code.o", folder / "code.hsaco"
    assembly.write_text(source, encoding="utf-8")
    zig = str(ziglang() / "zig")
    compiler = [zig, "clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-nogpulib", "-c"]
    linker = [zig, "ld.lld", "-shared", "--no-undefined", "--build-id=none"]
    for command in ([*compiler, str(assembly), "-o", str(relocatable)], [*linker, str(relocatable), "-o", str(linked)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return linked.read_bytes()


def _text(kernel: AssemblyKernel) -> str:
    name = kernel.name
    return f"""
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{kernel.lines}
  s_endpgm
.size {name}, .-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_next_free_vgpr {kernel.vgprs}
  .amdhsa_next_free_sgpr 64
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
  .amdhsa_group_segment_fixed_size {kernel.lds_bytes}
  .amdhsa_private_segment_fixed_size {kernel.scratch_bytes}
  .amdhsa_enable_private_segment {int(kernel.scratch_bytes > 0)}
  {kernel.descriptor}
.end_amdhsa_kernel
"""


def _metadata(kernel: AssemblyKernel) -> str:
    offset = 0
    entries = []
    for kind in kernel.arguments:
        size = SIZES[kind]
        offset = (offset + size - 1) // size * size
        value_kind = "global_buffer, .address_space: global" if kind == "pointer" else "by_value"
        entries.append(f"      - {{.size: {size}, .offset: {offset}, .value_kind: {value_kind}}}\n")
        offset += size
    arguments = "".join(["    .args:\n", *entries]) if entries else ""
    return f"""  - .name: {kernel.name}
    .symbol: {kernel.name}.kd
    .kernarg_segment_size: {offset}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {kernel.lds_bytes}
    .private_segment_fixed_size: {kernel.scratch_bytes}
    .wavefront_size: 32
    .max_flat_workgroup_size: {kernel.block}
    .sgpr_count: 64
    .vgpr_count: {kernel.vgprs}
{arguments}"""
