"""Code that is no instruction, or none that the emulator executes, stops a launch only where it is reached."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from device_compiler import compile_hip
from elftools.elf.elffile import ELFFile
from rdna_emulator import Device, EmulatorError, UnknownInstructionError, UnsupportedError, disassemble

SOURCE = """
KERNEL fill(int* out) { out[__builtin_amdgcn_workitem_id_x()] = 7; }
KERNEL other(int* out) { out[__builtin_amdgcn_workitem_id_x()] = 9; }
"""
ENDPGM, NOP = 0xBFB00000, 0xBF800000


@pytest.fixture(scope="module", params=["gfx1151", "gfx1100"])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def image(target: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return compile_hip(SOURCE, target, tmp_path_factory.mktemp("traps"))


def patched(image: bytes, offset: int, words: Sequence[int]) -> bytes:
    """``image`` with ``words`` at a byte offset of its text section."""
    section = ELFFile(io.BytesIO(image)).get_section_by_name(".text")
    at = section["sh_offset"] + offset
    return image[:at] + struct.pack(f"<{len(words)}I", *words) + image[at + 4 * len(words) :]


def text_of(image: bytes) -> bytes:
    data = ELFFile(io.BytesIO(image)).get_section_by_name(".text").data()
    assert isinstance(data, bytes)
    return data


def last_endpgm(image: bytes, target: str) -> int:
    return max(one.address for one in disassemble(target, text_of(image)) if one.mnemonic == "s_endpgm")


def run(image: bytes, target: str, name: str = "fill") -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    out = np.zeros(64, np.int32)
    Device(target).load(image)[name].launch(1, 64, [out])
    return out


def failure(image: bytes, target: str, error: type[EmulatorError]) -> str:
    with pytest.raises(error) as info:
        run(image, target)
    return str(info.value)


def test_unpatched(image: bytes, target: str) -> None:
    assert (run(image, target) == 7).all()


def test_a_word_that_is_no_instruction(image: bytes, target: str) -> None:
    broken = patched(image, 0, [0xFFFFFFFF, NOP])
    message = failure(broken, target, UnknownInstructionError)
    assert "ffffffff" in message
    assert "text offset 0x0" in message
    assert "fill+0x0" in message
    assert target in message
    assert (run(broken, target, "other") == 9).all()  # it is not reached there


def test_scalar_floating_point_on_the_target_without_it(tmp_path: Path) -> None:
    image = compile_hip(SOURCE, "gfx1100", tmp_path)
    message = failure(patched(image, 0, [0xA0000201, NOP]), "gfx1100", UnknownInstructionError)  # s_add_f32
    assert "a0000201" in message
    assert "gfx1100" in message


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([0xF0000F00, 0x00030804], "image_load"),
        ([0xF800000F, 0x03020100], "exp"),
        ([0xD8020000, 0x00000000], "ds_add_u32"),  # of the global data share
        ([0xBF810000, NOP], "s_setkill"),
        ([0xD5030900, 0x0A020501], ""),  # a scaled result (omod)
    ],
)
def test_what_the_emulator_does_not_execute(image: bytes, target: str, words: list[int], name: str) -> None:
    message = failure(patched(image, 0, words), target, UnsupportedError)
    assert name in message
    assert "fill+0x0" in message


def test_branches_to_nowhere(image: bytes, target: str) -> None:
    outside = failure(patched(image, 0, [0xBFA07FFF, NOP]), target, UnknownInstructionError)
    assert "s_branch" in outside
    assert "outside the text section" in outside
    # Into the literal of an instruction of two words.
    middle = [0xBFA00001, 0xBE8000FF, 0x11223344, ENDPGM]
    assert "middle of an instruction" in failure(patched(image, 0, middle), target, UnknownInstructionError)
    # Not taken, it is harmless: s_cmp_eq_u32 0, 0 and s_cbranch_scc0.
    assert not run(patched(image, 0, [0xBF068080, 0xBFA17FFF, ENDPGM]), target).any()


def test_running_past_the_end(image: bytes, target: str) -> None:
    size, last = len(text_of(image)), last_endpgm(image, target)
    endless = patched(image, last, [NOP] * ((size - last) // 4))
    with pytest.raises(UnknownInstructionError, match=f"past the end of the text section at {size:#x}"):
        run(endless, target, "other")


def test_padding_traps_when_it_is_reached(image: bytes, target: str) -> None:
    end = last_endpgm(image, target)
    assert "s_code_end" in [one.mnemonic for one in disassemble(target, text_of(image))]
    with pytest.raises(UnknownInstructionError, match="padding"):
        run(patched(image, end, [NOP]), target, "other")
