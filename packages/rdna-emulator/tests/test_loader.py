"""Code objects: good ones from both compilers' conventions, and every way in which they can be bad."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembly import AssemblyKernel, assemble_code_object, link
from device_compiler import compile_hip, ziglang
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_library import TARGETS, code_object, kernel
from rdna_emulator import CodeObjectError, Device, EmulatorError, LaunchError, UnknownInstructionError, UnsupportedError

GOOD = """
  s_load_b64 s[2:3], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  v_mov_b32_e32 v1, 7
  s_waitcnt lgkmcnt(0)
  global_store_b32 v0, v1, s[2:3]
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    kernels = [AssemblyKernel("one", GOOD, ("pointer",)), AssemblyKernel("two", GOOD, ("pointer",))]
    return assemble_code_object(kernels, "gfx1151", tmp_path_factory.mktemp("good"))


def test_kernels_and_what_they_need(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "code.hsaco"
    path.write_bytes(good)
    device = Device("gfx1151", threads=1)
    for code in (good, bytearray(good), memoryview(good), path, str(path)):
        module = device.load(code)
        assert module.kernels == ("one", "two")
        assert [(a.kind, a.offset, a.size) for a in module["one"].arguments] == [("global_buffer", 0, 8)]
        assert module["one"].resources.vgprs == 64
        out = np.zeros(1, np.uint32)
        module["two"].launch(1, 1, [out])
        assert out[0] == 7
    with pytest.raises(KeyError, match="no kernel 'three'; the code object has one, two"):
        module["three"]
    with pytest.raises(FileNotFoundError):
        device.load(tmp_path / "absent.hsaco")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (None, "load takes a code object's bytes or its path, got NoneType"),
        (5, "load takes a code object's bytes or its path, got int"),
        ("a\0b", r"'a\\x00b' is no path of a code object"),
    ],
)
def test_what_load_does_not_take(code: Any, message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        Device("gfx1151", threads=1).load(code)


@pytest.mark.parametrize("target", TARGETS)
def test_resources_of_compiled_kernels(target: str) -> None:
    needs = kernel("reduce", target, "-O3").resources
    assert needs.lds_bytes == 1024
    assert needs.scratch_bytes == 0
    assert 0 < needs.vgprs <= 32
    assert needs.max_block == 256
    assert kernel("calls", target, "-O0").resources.dynamic_stack


def test_the_other_target_is_refused() -> None:
    for target, other in (TARGETS, TARGETS[::-1]):
        with pytest.raises(
            CodeObjectError, match=f"is for {other}, the device is {target}; compile it with --offload-arch={target}"
        ):
            Device(target, threads=1).load(code_object(other))


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "gfx90a"])
def test_objects_of_other_families_are_refused(target: str, tmp_path: Path) -> None:
    kernel_source = 'extern "C" __global__ void k(int* x) { *x = 1; }'
    code = compile_hip(kernel_source, target, tmp_path)
    with pytest.raises(CodeObjectError, match=f"is for {target}"):
        Device("gfx1151", threads=1).load(code)


def test_what_is_no_code_object() -> None:
    device = Device("gfx1151", threads=1)
    host = Path(str(ziglang() / "zig")).read_bytes()[:100000]
    for code, message in (
        (b"", "begins with nothing"),
        (b"hello, world" * 100, "not an ELF file: it begins with 68656c6c"),
        (b"\x7fELF", "truncated: 4 bytes"),
        (host, "not for AMDGPU"),
    ):
        with pytest.raises(CodeObjectError, match=message):
            device.load(code)


def test_truncation_anywhere(good: bytes) -> None:
    device = Device("gfx1151", threads=1)
    for length in range(0, len(good) - 1, 7):
        with pytest.raises(CodeObjectError):
            device.load(good[:length])


@settings(max_examples=200)
@given(st.data())
def test_damage_is_an_error_or_harmless(good: bytes, data: st.DataObject) -> None:
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        module = Device("gfx1151", threads=1).load(bytes(damaged))
        for name in module.kernels:
            module[name].launch(1, 1, [np.zeros(1, np.uint32)])
    except EmulatorError:
        pass


def test_a_relocatable_object_is_refused(tmp_path: Path) -> None:
    assemble_code_object([AssemblyKernel("one", GOOD, ("pointer",))], "gfx1151", tmp_path)
    with pytest.raises(CodeObjectError, match="relocatable"):
        Device("gfx1151", threads=1).load((tmp_path / "code.o").read_bytes())


def test_no_metadata(tmp_path: Path) -> None:
    source = '.amdgcn_target "amdgcn-amd-amdhsa--gfx1151"\n.text\n.globl f\nf:\n s_endpgm\n'
    with pytest.raises(CodeObjectError, match="no metadata note"):
        Device("gfx1151", threads=1).load(link(source, "gfx1151", tmp_path))


def test_another_operating_system(good: bytes) -> None:
    other = bytearray(good)
    other[7] = 65
    with pytest.raises(CodeObjectError, match="OS ABI 65"):
        Device("gfx1151", threads=1).load(bytes(other))


def test_an_unknown_instruction_traps_only_where_it_is_reached(tmp_path: Path) -> None:
    lines = GOOD + "  s_endpgm\n  .long 0xf7ffffff\n"
    device = Device("gfx1151", threads=1)
    kernels = [
        AssemblyKernel("after", lines, ("pointer",)),
        AssemblyKernel("reached", GOOD + "  .long 0xf7ffffff\n", ("pointer",)),
        AssemblyKernel("padding", GOOD + "  s_code_end\n", ("pointer",)),
        AssemblyKernel("fallthrough", GOOD + "  s_branch 0x7fff\n", ("pointer",)),
    ]
    module = device.load(assemble_code_object(kernels, "gfx1151", tmp_path))
    out = np.zeros(1, np.uint32)
    module["after"].launch(1, 32, [out])
    assert out[0] == 7
    with pytest.raises(
        UnknownInstructionError,
        match=r"f7ffffff[\s\S]*in kernel reached, workgroup .* pc 0x[0-9a-f]+ \(reached\+0x1c\)",
    ):
        module["reached"].launch(1, 32, [out])
    with pytest.raises(UnknownInstructionError, match="padding"):
        module["padding"].launch(1, 32, [out])
    with pytest.raises(UnknownInstructionError, match="branches outside the text"):
        module["fallthrough"].launch(1, 32, [out])


def test_an_instruction_that_is_not_executed_names_itself(tmp_path: Path) -> None:
    lines = GOOD + "  image_load v[0:3], v[0:1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D\n"
    code = assemble_code_object([AssemblyKernel("image", lines, ("pointer",))], "gfx1151", tmp_path)
    with pytest.raises(UnsupportedError, match="image_load"):
        Device("gfx1151", threads=1).load(code)["image"].launch(1, 32, [np.zeros(1, np.uint32)])


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        (".amdhsa_float_denorm_mode_16_64 0", "FLOAT_MODE 0x30"),
        (".amdhsa_float_round_mode_32 3", "FLOAT_MODE 0xf3"),
        (".amdhsa_fp16_overflow 1", "FP16_OVFL"),
    ],
)
def test_modes_that_are_not_executed(descriptor: str, message: str, tmp_path: Path) -> None:
    code = assemble_code_object(
        [AssemblyKernel("mode", GOOD, ("pointer",), descriptor=descriptor)], "gfx1151", tmp_path
    )
    with pytest.raises(LaunchError, match=message):
        Device("gfx1151", threads=1).load(code)["mode"].launch(1, 32, [np.zeros(1, np.uint32)])


def test_waves_of_64_are_refused(tmp_path: Path) -> None:
    code = compile_hip(
        'extern "C" __global__ void k(int* x) { *x = 1; }', "gfx1151", tmp_path, "-O3", "-mwavefrontsize64"
    )
    with pytest.raises(LaunchError, match="waves of 64 lanes"):
        Device("gfx1151", threads=1).load(code)["k"].launch(1, 64, [np.zeros(1, np.int32)])


@pytest.mark.parametrize("target", TARGETS)
def test_mode_and_hardware_registers(target: str, tmp_path: Path) -> None:
    store = "  s_waitcnt lgkmcnt(0)\n  v_mov_b32_e32 v0, 0\n  v_mov_b32_e32 v1, s4\n  global_store_b32 v0, v1, s[2:3]\n"
    load = "  s_load_b64 s[2:3], s[0:1], 0x0\n"

    def one(name: str, line: str) -> AssemblyKernel:
        return AssemblyKernel(name, load + line + store, ("pointer",))

    read_clock = "s_getreg_b32 {}, hwreg(HW_REG_SHADER_CYCLES)\n"
    same = "  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\n  s_denorm_mode 15\n  s_round_mode 0\n"
    kernels = [
        one("mode", "  s_getreg_b32 s4, hwreg(HW_REG_MODE, 0, 8)\n"),
        one("same", same + "  s_mov_b32 s4, 1\n"),
        one("clock", read_clock.format("s5") + read_clock.format("s4") + "  s_sub_u32 s4, s4, s5\n"),
        one("rounding", "  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3\n"),
        one("flushing", "  s_denorm_mode 0\n"),
        one("other", "  s_getreg_b32 s4, hwreg(HW_REG_STATUS)\n"),
        one("trap", "  s_trap 2\n"),
        one("message", "  s_sendmsg sendmsg(MSG_INTERRUPT)\n"),
        one("dealloc", "  s_mov_b32 s4, 1\n  s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)\n"),
    ]
    module = Device(target, threads=1).load(assemble_code_object(kernels, target, tmp_path))
    out = np.zeros(1, np.uint32)
    for name, expected in (("mode", 0xF0), ("same", 1), ("dealloc", 1)):
        module[name].launch(1, 32, [out])
        assert out[0] == expected
    module["clock"].launch(1, 32, [out])
    assert 0 < out[0] < 1 << 20
    for name, message in (
        ("rounding", "MODE is set to"),
        ("flushing", "MODE is set to"),
        ("other", "hardware register 2"),
        ("trap", "s_trap 2: the kernel stops itself"),
        ("message", "s_sendmsg 1"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            module[name].launch(1, 32, [out])


def test_relocations(tmp_path: Path) -> None:
    device = Device("gfx1151", threads=1)
    table = ".data\n.globl table\ntable:\n .quad value\n.globl value\nvalue:\n .long 42\n.long 0\n"
    lines = """
  s_load_b64 s[2:3], s[0:1], 0x0
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, table@rel32@lo+4
  s_addc_u32 s5, s5, table@rel32@hi+12
  s_load_b64 s[6:7], s[4:5], 0x0
  v_mov_b32_e32 v0, 0
  s_waitcnt lgkmcnt(0)
  s_load_b32 s8, s[6:7], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v1, s8
  global_store_b32 v0, v1, s[2:3]
"""
    with pytest.raises(RuntimeError, match="undefined symbol: table"):
        assemble_code_object([AssemblyKernel("k", lines, ("pointer",))], "gfx1151", tmp_path)
    source = (tmp_path / "code.s").read_text().replace(".text", ".hidden table\n.text", 1)
    code = link(source + table, "gfx1151", tmp_path)
    out = np.zeros(1, np.uint32)
    device.load(code)["k"].launch(1, 32, [out])
    assert out[0] == 42


def test_section_headers_past_the_end(good: bytes) -> None:
    damaged = bytearray(good)
    struct.pack_into("<Q", damaged, 40, 1 << 40)
    with pytest.raises(CodeObjectError, match="section header"):
        Device("gfx1151", threads=1).load(bytes(damaged))


def test_unknown_target_and_threads() -> None:
    with pytest.raises(ValueError, match="unknown target 'gfx9000'; the emulator knows gfx1151, gfx1100"):
        Device("gfx9000")
    with pytest.raises(ValueError, match="threads is 0"):
        Device("gfx1151", threads=0)


def test_code_is_what_the_file_holds(good: bytes) -> None:
    damaged = bytearray(good)
    (segments_at,) = struct.unpack_from("<Q", damaged, 32)
    (count,) = struct.unpack_from("<H", damaged, 56)
    for header in range(segments_at, segments_at + 56 * count, 56):
        kind, flags = struct.unpack_from("<II", damaged, header)
        if kind == 1 and flags & 1:
            struct.pack_into("<Q", damaged, header + 40, 1 << 29)  # its size in memory: 512 MiB of instructions
    out = np.zeros(1, np.uint32)
    Device("gfx1151", threads=1).load(bytes(damaged))["one"].launch(1, 32, [out])
    assert out[0] == 7
