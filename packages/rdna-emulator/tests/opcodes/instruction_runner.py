"""Runs single instructions on the emulator: one kernel each, which loads registers, executes and stores them.

A kernel has one wave a workgroup, and each workgroup a block of its own in the input and output arrays. ``rows``
vector registers from v32 on are loaded and stored; by convention the sources are v[32:33], v[34:35] and v[36:37] and
the result is v[38:39]. Scalars: s24 goes to EXEC, s25 to VCC, s26 is a mask to be read, s27, s28 and s29 are results,
s30 and s31 are values to be read.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from device_compiler import ziglang
from numpy.typing import NDArray
from rdna_emulator import Device

LANES = 32
FIRST = 32  # the first vector register that is loaded
SCALARS = 8  # s24 to s31
ALL = 0xFFFFFFFF
Words = NDArray[np.uint32]

_MIDDLE = 2048  # offsets are from -4096 to 4095

_KERNEL = """
.globl {name}
.p2align 8
.type {name},@function
{name}:
  s_load_b128 s[4:7], s[0:1], 0x0
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v0, 2, v0
  s_mul_i32 s8, s2, {input_bytes}
  s_mul_i32 s9, s2, {output_bytes}
  s_waitcnt lgkmcnt(0)
  s_addk_i32 s8, {middle}
  s_addk_i32 s9, {middle}
  s_add_u32 s4, s4, s8
  s_addc_u32 s5, s5, 0
  s_add_u32 s6, s6, s9
  s_addc_u32 s7, s7, 0
  s_load_b256 s[24:31], s[4:5], {scalar_offset}
{loads}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_mov_b32 vcc_lo, s25
  s_mov_b32 exec_lo, s24
{lines}
  s_mov_b32 s10, exec_lo
  s_mov_b32 exec_lo, -1
  v_mov_b32_e32 v1, 0
  v_writelane_b32 v1, s10, 0
  v_writelane_b32 v1, vcc_lo, 1
  v_writelane_b32 v1, s27, 2
  v_writelane_b32 v1, s28, 3
  v_writelane_b32 v1, s29, 4
{stores}
  s_endpgm
.size {name}, .-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_next_free_vgpr 192
  .amdhsa_next_free_sgpr 40
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_wavefront_size32 1
  .amdhsa_kernarg_size 16
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
.text
"""

_METADATA = """
  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .max_flat_workgroup_size: 32
    .sgpr_count: 40
    .vgpr_count: 192
    .args:
      - {{.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}}
"""


@dataclass(frozen=True)
class Results:
    """What a kernel left: vectors [blocks, rows, 32]; the scalars EXEC, VCC, s27, s28 and s29, [blocks] each."""

    vectors: Words
    exec: Words
    vcc: Words
    s27: Words
    s28: Words
    s29: Words


def assemble_kernels(kernels: Mapping[str, Sequence[str]], rows: int, target: str, folder: Path) -> bytes:
    """The code object with one kernel for each item: its name and the instructions that it runs."""
    parts = [f'.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n.text\n']
    notes = []
    for name, lines in kernels.items():
        loads = (f"  global_load_b32 v{FIRST + r}, v0, s[4:5] offset:{128 * r - _MIDDLE}" for r in range(rows))
        stores = (f"  global_store_b32 v0, v{FIRST + r}, s[6:7] offset:{128 * r - _MIDDLE}" for r in range(rows))
        parts.append(
            _KERNEL.format(
                name=name,
                input_bytes=128 * (rows + 1),
                output_bytes=128 * (rows + 1),
                scalar_offset=128 * rows - _MIDDLE,
                middle=_MIDDLE,
                loads="\n".join(loads),
                stores="\n".join([*stores, f"  global_store_b32 v0, v1, s[6:7] offset:{128 * rows - _MIDDLE}"]),
                lines="\n".join(f"  {line}" for line in lines),
            )
        )
        notes.append(_METADATA.format(name=name))
    parts.append(f".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--{target}\n")
    parts.append("amdhsa.kernels:" + "".join(notes) + ".end_amdgpu_metadata\n")
    source, relocatable, linked = folder / "kernels.s", folder / "kernels.o", folder / "kernels.hsaco"
    source.write_text("".join(parts), encoding="utf-8")
    zig = str(ziglang() / "zig")
    for command in (
        [zig, "clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-c", str(source), "-o", str(relocatable)],
        [zig, "ld.lld", "-shared", "--no-undefined", "--build-id=none", str(relocatable), "-o", str(linked)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return linked.read_bytes()


class InstructionRunner:
    """The kernels of ``assemble_kernels`` on a device."""

    def __init__(self, kernels: Mapping[str, Sequence[str]], rows: int, target: str, folder: Path) -> None:
        self.rows = rows
        self.module = Device(target, threads=1).load(assemble_kernels(kernels, rows, target, folder))

    def run(
        self, name: str, vectors: Words, scalars: Words | None = None, schedule: Literal["random"] | None = None
    ) -> Results:
        """Runs one kernel on ``vectors`` [blocks, rows, 32] and ``scalars`` [blocks, 8], which are s24 to s31.

        Without ``scalars`` all lanes are active.
        """
        blocks = vectors.shape[0]
        if vectors.shape != (blocks, self.rows, LANES):
            raise ValueError(f"vectors are {vectors.shape}, they have to be (blocks, {self.rows}, {LANES})")
        data = np.zeros((blocks, self.rows + 1, LANES), np.uint32)
        data[:, : self.rows] = vectors
        data[:, self.rows, 0] = ALL
        if scalars is not None:
            data[:, self.rows, :SCALARS] = scalars
        out = np.zeros((blocks, self.rows + 1, LANES), np.uint32)
        self.module[name].launch(blocks, LANES, [data, out], schedule=schedule)
        last = out[:, self.rows]
        return Results(out[:, : self.rows], *(last[:, k].copy() for k in range(5)))
