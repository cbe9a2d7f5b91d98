"""The opcode table against tinygrad's, made from the vendor's machine-readable ISA: numbers, names, side effects."""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest
from opcode_table import FORMATS, TARGETS, Row, bodies, encode, opcode_table
from rdna_emulator import Instruction, disassemble

enums = pytest.importorskip("tinygrad.runtime.autogen.amd.rdna3.enum", reason="tinygrad is absent")
pseudocode = pytest.importorskip("tinygrad.runtime.autogen.amd.rdna3.str_pcode")

TABLE = opcode_table()
# The vendor's tables list operations that LLVM does not have on gfx11.
ABSENT = re.compile(r"(global|scratch|buffer)_load_lds_.*|global_(load|store)_addtid_b32")


def bare(name: str) -> str:
    return re.sub(r"^v_(dual_)?|_e(32|64)$", "", name.lower())


def their_names(form: str) -> dict[int, str]:
    names = {member.value: bare(member.name) for member in enum_of(form)}
    if form == "vop3":
        names |= {member.value: bare(member.name) for member in enums.VOP3SDOp}
    return names


def enum_of(form: str) -> Any:
    return getattr(enums, f"{form.upper()}Op")


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "vop3"])
def test_opcodes_have_the_same_numbers_and_names(form: str) -> None:
    ours = {row.opcode: row.mnemonic.removeprefix("v_") for row in TABLE if row.format == form}
    theirs = {
        number: name for number, name in their_names(form).items() if number in ours or not ABSENT.fullmatch(name)
    }
    assert ours == theirs


def test_vop3_numbers() -> None:
    """VOP1, VOP2 and VOPC operations have VOP3 numbers that follow from their own."""
    offsets = {"vop3": 0, "vopc": 0, "vop2": 0x100, "vop1": 0x180}
    theirs = their_names("vop3")
    ours = {row.opcode + offsets[row.format]: row.mnemonic.removeprefix("v_") for row in TABLE if row.format in offsets}
    assert {number: ours.get(number) for number in theirs} == theirs


@pytest.mark.parametrize("form", ["sop1", "sop2", "sopc", "sopk", "sopp"])
def test_registers_that_the_encoding_does_not_name(form: str) -> None:
    """SCC, VCC, EXEC and M0 of scalar operations, from the pseudocode that the vendor's manual gives."""
    compared = 0
    for row in (row for row in TABLE if row.format == form):
        text = pseudocode.PCODE.get(enum_of(form)(row.opcode))
        if text is None or re.match(r"s_(min|max)_[iu]32", row.mnemonic):  # these use SCC as a temporary
            continue
        text = re.sub(r"//.*", "", text)
        instruction = decode(row)
        reads, writes = set(instruction.reads) - {"s10", "s[10:11]"}, set(instruction.writes)
        assert ("src_scc" in writes) == bool(re.search(r"\bSCC\s*=[^=]", text)), row.mnemonic
        assert ("src_scc" in reads) == bool(re.search(r"\bSCC\b(?!\s*=[^=])", text)), row.mnemonic
        assert ("exec_lo" in writes) == bool(re.search(r"\bEXEC(\.\w+)?\s*=[^=]", text)), row.mnemonic
        assert ("exec_lo" in reads) == bool(re.search(r"\bEXEC(\.\w+)?\b(?!\.)(?!\s*=[^=])|\bEXECZ", text)), (
            row.mnemonic
        )
        assert ("vcc_lo" in reads) == ("VCC" in text), row.mnemonic
        assert ("m0" in reads) == ("M0" in text), row.mnemonic
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_has_the_operations_of_its_mask(target: str) -> None:
    for row in TABLE:
        words = encode(row)
        first = disassemble(target, struct.pack(f"<{len(words)}I", *words))[0]
        mnemonic = "v_dual" if row.format == "vopd" else row.mnemonic
        expected = mnemonic if row.targets & TARGETS[target] else ""
        assert first.mnemonic == expected
        assert first.size == (4 * len(words) if expected else 4)


def test_only_gfx1151_has_scalar_floating_point() -> None:
    only = {row.mnemonic for row in TABLE if row.targets != sum(TARGETS.values())}
    assert {row.targets for row in TABLE if row.mnemonic in only} == {TARGETS["gfx1151"]}
    assert {"s_add_f32", "s_fmac_f32", "s_cvt_f32_u32", "s_trunc_f32", "s_cmp_lt_f32", "s_mul_f16"} <= only
    assert all(re.match(r"s_.*(f16|f32)", name) for name in only)


def test_every_body_is_an_operation_of_the_table() -> None:
    names = {row.mnemonic for row in TABLE}
    made_but_absent = re.compile(r"v_cmpx?_[ft]_[iu]16")  # the bodies of compares are made for every type alike
    unknown = {name.removesuffix(".clamp") for name in bodies()} - names
    assert not {name for name in unknown if not made_but_absent.fullmatch(name)}


def decode(row: Row) -> Instruction:
    words = encode(row)
    return disassemble("gfx1151", struct.pack(f"<{len(words)}I", *words))[0]
