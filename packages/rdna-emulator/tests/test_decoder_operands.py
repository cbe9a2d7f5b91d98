"""Registers of random encodings against tinygrad's decoder and operand tables: which, how many, read or written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_table import opcode_table, registers
from rdna_emulator import disassemble

instructions = pytest.importorskip("tinygrad.runtime.autogen.amd.rdna3.ins", reason="tinygrad is absent")

FORMATS = {
    "SOP1": "sop1", "SOP2": "sop2", "SOPC": "sopc", "SMEM": "smem", "VOP1": "vop1", "VOP2": "vop2", "VOPC": "vopc",
    "VOP3": "vop3", "VOP3SD": "vop3", "VOP3P": "vop3p", "DS": "ds", "FLAT": "flat", "GLOBAL": "global",
    "SCRATCH": "scratch", "MUBUF": "mubuf",
}  # fmt: skip
WRITTEN = {"vdst", "sdst", "sdata"}
# What the tables say of these is not comparable: the operand is a message's number; both registers are written; the
# result has another size than LLVM and the vendor's pseudocode say, or no operands are given.
NOT_COMPARED = re.compile(r"S_SENDMSG_RTN|V_SWAP|DS_CMPSTORE_RTN_[BF]64|.*ATOMIC_CMPSWAP|FLAT_ATOMIC_CSUB")
IMPLICIT = {"src_scc", "vcc_lo", "vcc_hi", "exec_lo", "exec_hi", "m0"}
# Scalar groups begin at multiples of four, and vector groups end inside the file.
SCALAR_REGISTERS = st.integers(0, 24).map(lambda number: 4 * number)
VECTOR_REGISTERS = st.integers(0, 240)
CONSTANTS = st.one_of(st.integers(128, 208), st.integers(240, 248))


def field_values(name: str, field: Any, form: str, operation: str) -> st.SearchStrategy[int]:
    kind = type(field).__name__
    if name in ("tfe", "omod"):
        return st.just(0)
    if name == "saddr" and form == "FLAT":
        return st.just(124)  # none: it has no such field
    if name == "src2" and ("CNDMASK" in operation or "CO_CI" in operation):
        return SCALAR_REGISTERS  # a mask
    if kind in ("SBaseField", "SRsrcField"):
        return st.integers(0, 24).map(lambda number: 4 * number // field._align)
    if kind == "SGPRField":
        return st.one_of(SCALAR_REGISTERS, st.just(124)) if name in ("saddr", "soffset") else SCALAR_REGISTERS
    if kind == "VGPRField":
        return VECTOR_REGISTERS
    if kind == "SSrcField":
        return st.one_of(SCALAR_REGISTERS, CONSTANTS)
    if kind == "SrcField":
        vectors = VECTOR_REGISTERS.map(lambda number: 256 + number)
        return vectors if form == "VOP3P" else st.one_of(SCALAR_REGISTERS, CONSTANTS, vectors)
    return st.integers(0, field.mask)


@st.composite
def encodings(draw: st.DrawFn, form: str) -> Any:
    """An instruction of tinygrad's class ``form`` whose operation is in our table and takes no literal."""
    cls = getattr(instructions, form)
    known = {row.opcode for row in opcode_table() if row.format == FORMATS[form]}
    raw, operation = 0, ""
    for name, field in sorted(cls._fields, key=lambda pair: pair[0] != "op"):
        if type(field).__name__ == "FixedBitField":
            value = field.default
        elif type(field).__name__ == "EnumBitField":
            members = [member for member in field.allowed or field._enum if not NOT_COMPARED.match(member.name)]
            allowed = sorted(member.value for member in members)
            if form not in ("VOP3", "VOP3SD"):
                allowed = [number for number in allowed if number in known]
            value = draw(st.sampled_from(allowed))
            operation = field._enum(value).name
        else:
            value = draw(field_values(name, field, form, operation))
        raw |= value << field.lo
    return cls.from_bytes(raw.to_bytes(cls._size(), "little"))


def register_names(register: Any, count: int, halved: bool) -> set[str]:
    offset = register.offset
    if offset >= 256:
        number = (offset - 256) & 0x7F if halved else offset - 256
        return {f"v{number + k}" for k in range(count)}
    if offset < 106:
        return {f"s{offset + k}" for k in range(count)}
    return set()


def expected(instruction: Any, form: str) -> tuple[set[str], set[str]]:
    """Registers that tinygrad's tables say are read and written."""
    reads: set[str] = set()
    writes: set[str] = set()
    name = instruction.op.name
    returns = "ATOMIC" not in name or instruction.glc
    for field in instruction.op_regs:
        attribute = "src0" if field == "vsrc0" and form == "VOP3" else field  # the name it has with DPP
        if not hasattr(instruction, attribute) or is_unused(field, instruction, form):
            continue
        halved = form in ("VOP1", "VOP2", "VOPC") and instruction.op_bits[field] == 16
        named = register_names(getattr(instruction, attribute), instruction.op_regs[field], halved)
        if field == "vdata":
            writes |= named if "STORE" not in name and returns else set()
            reads |= named if "LOAD" not in name else set()
        elif field in WRITTEN:
            writes |= named if returns else set()
        else:
            reads |= named
    return reads, writes


def is_unused(field: str, instruction: Any, form: str) -> bool:
    name = instruction.op.name
    if field == "addr" and form == "SCRATCH":
        return not instruction.sve
    if field == "vaddr":
        return not (instruction.offen or instruction.idxen)
    return (field == "vdst" and name.startswith("V_CMPX")) or (field == "sdata" and name.startswith("S_ATC_PROBE"))


@pytest.mark.parametrize("form", FORMATS)
def test_registers(form: str) -> None:
    @settings(max_examples=300, database=None)
    @given(encodings(form))
    def check(instruction: Any) -> None:
        first = disassemble("gfx1151", instruction.to_bytes())[0]
        assert first.mnemonic == re.sub(r"_e(32|64)$", "", instruction.op.name.lower())
        assert first.size == instruction.size()
        reads, writes = expected(instruction, form)
        our_reads, our_writes = registers(first.reads), registers(first.writes)
        assert reads <= our_reads, (first, reads)
        assert our_reads - reads <= writes | IMPLICIT, (first, reads)
        assert writes <= our_writes, (first, writes)
        assert our_writes - writes <= IMPLICIT, (first, writes)

    check()
