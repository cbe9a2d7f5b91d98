"""SALU operations against models of the ISA's definitions, over edge values and random ones."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from assembly import AssemblyKernel, assemble_code_object
from rdna_emulator import Device, Module
from scalar_models import COMPARE, EXEC_LOGIC, FLOAT, FLOAT_COMPARE, INTEGER, M32, M64, same_float, signed

OLD = 0xA5A5_5A5A_1234_5678  # the destination before
IMMEDIATES = (0, 1, 0x7FFF, 0x8000, 0xFFFF, 1234)
# A case is 8 dwords: a (2), b (2), SCC, old destination (2), EXEC; the result is 8: destination (2), SCC, EXEC.
KERNEL = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  s_lshl_b32 s8, s2, 5
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, s8
  s_addc_u32 s5, s5, 0
  s_add_u32 s6, s6, s8
  s_addc_u32 s7, s7, 0
  s_load_b256 s[16:23], s[4:5], 0x0
  s_waitcnt lgkmcnt(0)
  s_mov_b64 s[24:25], s[16:17]
  s_mov_b64 s[26:27], s[18:19]
  s_mov_b32 s28, s21
  s_mov_b32 s29, s22
  s_mov_b32 s30, s23
  s_mov_b32 exec_lo, s30
  s_cmp_lg_u32 s20, 0
  {instruction}
  s_cselect_b32 s31, 1, 0
  s_mov_b32 s30, exec_lo
  s_mov_b32 exec_lo, 1
  v_mov_b32_e32 v1, s28
  v_mov_b32_e32 v2, s29
  v_mov_b32_e32 v3, s31
  v_mov_b32_e32 v4, s30
  global_store_b128 v0, v[1:4], s[6:7]
"""


def _operand(first: int, bits: int) -> str:
    return f"s{first}" if bits == 32 else f"s[{first}:{first + 1}]"


def _integer_line(name: str) -> str:
    a, b, result, _ = INTEGER[name]
    operands = [_operand(28, result), _operand(24, a)] + ([_operand(26, b)] if b else [])
    return f"{name} {', '.join(operands)}"


LINES = {name: _integer_line(name) for name in INTEGER}
LINES |= {
    f"s_{name}_b{bits}": f"s_{name}_b{bits} {_operand(28, bits)}, {_operand(24, bits)}"
    for name in EXEC_LOGIC
    for bits in (32, 64)
}
LINES |= {name: f"{name} {_operand(24, a)}, {_operand(26, b)}" for name, (a, b, _) in COMPARE.items()}
KINDS = ("eq", "lg", "gt", "ge", "lt", "le")
for immediate in IMMEDIATES:
    for kind, sign in itertools.product(KINDS, "iu"):
        LINES[f"s_cmpk_{kind}_{sign}32 {immediate}"] = f"s_cmpk_{kind}_{sign}32 s24, {immediate:#x}"
    for operation in ("movk", "cmovk", "addk", "mulk"):
        LINES[f"s_{operation}_i32 {immediate}"] = f"s_{operation}_i32 s28, {immediate:#x}"
FLOAT_LINES = {name: f"{name} s28, s24{', s26' if sources == 2 else ''}" for name, (sources, _, _) in FLOAT.items()}
FLOAT_LINES |= {name: f"{name} s24, s26" for name in FLOAT_COMPARE}
FLOAT_LINES |= {
    "s_fmaak_f32": "s_fmaak_f32 s28, s24, s26, 0x3fc00000",
    "s_fmamk_f32": "s_fmamk_f32 s28, s24, 0x3fc00000, s26",
}

EDGES32 = (
    0,
    1,
    2,
    31,
    32,
    33,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    M32,
    0xFFFF,
    0x10000,
    0x00100008,
    0x200004,
    0x7F0005,
    0xDEADBEEF,
)
FLOAT_EDGES = (
    0, 0x80000000, 0x3F800000, 0xBF800000, 0x40490FDB, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFF812345,
    1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0x4F000000,
    0x4F800000, 0xCF000000, 0x477FE000, 0x477FF000, 0x477FEFFF, 0x33000000, 0x33000001, 0x38800000, 0x387FC000,
    0x3F801000, 0x3F803000, 0x4B000001,
)  # fmt: skip
HALF_EDGES = (
    0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x3800,
    0x3E00, 0x4100, 0x6400, 0x6401, 0x1234, 0x3C01,
)  # fmt: skip


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    lines = LINES | FLOAT_LINES
    kernels = [
        AssemblyKernel(_kernel_name(name), KERNEL.format(instruction=line), ("pointer", "pointer"))
        for name, line in lines.items()
    ]
    code = assemble_code_object(kernels, "gfx1151", tmp_path_factory.mktemp("scalar"))
    return Device("gfx1151", threads=1).load(code)


def _kernel_name(name: str) -> str:
    return "k_" + name.replace(" ", "_")


Case = tuple[int, int, int, int, int]  # a, b, SCC, old destination, EXEC


def run(module: Module, name: str, cases: list[Case]) -> list[tuple[int, int, int]]:
    """Destination (64 bits), SCC and EXEC of each case."""
    data = np.zeros((len(cases), 8), np.uint32)
    for row, (a, b, scc, old, exec_mask) in zip(data, cases, strict=True):
        row[:] = [a & M32, a >> 32, b & M32, b >> 32, scc, old & M32, old >> 32, exec_mask]
    out = np.zeros_like(data)
    module[_kernel_name(name)].launch(len(cases), 32, [data, out])
    return [(int(row[0]) | int(row[1]) << 32, int(row[2]), int(row[3])) for row in out]


def integer_cases(a_bits: int, b_bits: int) -> list[Case]:
    generator = random.Random(5)
    wide = [*EDGES32, *(value << 32 for value in EDGES32[1:]), M64, 1 << 63, (1 << 63) - 1, 0x0123456789ABCDEF]
    a_values = wide if a_bits == 64 else EDGES32
    b_values = wide if b_bits == 64 else EDGES32
    pairs = [(a, b) for a in a_values for b in (b_values if b_bits else (0,))]
    pairs += [(generator.getrandbits(a_bits), generator.getrandbits(b_bits or 1)) for _ in range(200)]
    return [(a, b, k & 1, OLD, 0xF0F0F0F1) for k, (a, b) in enumerate(pairs)] + [
        (a, b, 1 - k % 2, OLD, 1) for k, (a, b) in enumerate(pairs)
    ]


@pytest.mark.parametrize("name", INTEGER)
def test_integer(module: Module, name: str) -> None:
    a_bits, b_bits, bits, model = INTEGER[name]
    cases = integer_cases(a_bits, b_bits)
    for case, found in zip(cases, run(module, name, cases), strict=True):
        a, b, scc, old, exec_mask = case
        result, new_scc = model(a, b, scc, old)
        expected = result if bits == 64 else result | old >> 32 << 32
        assert found == (expected, scc if new_scc is None else new_scc, exec_mask), [hex(value) for value in case]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", EXEC_LOGIC)
def test_exec_masks(module: Module, name: str, bits: int) -> None:
    masks = (0, 1, M32, 0x80000000, 0xF0F0F0F1, 0x12345678)
    cases = [(a, 0, k & 1, OLD, e) for k, (a, e) in enumerate(itertools.product(masks, masks))]
    for case, found in zip(cases, run(module, f"s_{name}_b{bits}", cases), strict=True):
        a, _, _, old, before = case
        after = EXEC_LOGIC[name](a, before) & ((1 << bits) - 1)
        kept = after if "wrexec" in name else before
        expected = (kept if bits == 64 else kept | old >> 32 << 32, int(after != 0), after & M32)
        assert found == expected, [hex(value) for value in case]


@pytest.mark.parametrize("name", COMPARE)
def test_compare(module: Module, name: str) -> None:
    a_bits, b_bits, condition = COMPARE[name]
    cases = integer_cases(a_bits, b_bits)
    for case, found in zip(cases, run(module, name, cases), strict=True):
        assert found == (OLD, int(condition(case[0], case[1])), case[4]), [hex(value) for value in case]


@pytest.mark.parametrize("immediate", IMMEDIATES)
def test_immediates(module: Module, immediate: int) -> None:
    cases = [(a, 0, k & 1, a | 5 << 32, 1) for k, a in enumerate(EDGES32)]
    for kind, sign in itertools.product(KINDS, "iu"):
        condition = COMPARE[f"s_cmp_{kind}_{sign}32"][2]
        against = signed(immediate, 16) & M32 if sign == "i" else immediate
        for case, found in zip(cases, run(module, f"s_cmpk_{kind}_{sign}32 {immediate}", cases), strict=True):
            assert found[1] == int(condition(case[0], against)), (kind, sign, hex(case[0]))
    value = signed(immediate, 16)
    for operation in ("movk", "cmovk", "addk", "mulk"):
        for case, found in zip(cases, run(module, f"s_{operation}_i32 {immediate}", cases), strict=True):
            old, scc = case[0], case[2]
            result = {
                "movk": value,
                "cmovk": value if scc else old,
                "addk": old + value,
                "mulk": old * value,
            }[operation] & M32
            carried = int(not -(1 << 31) <= signed(old) + value < 1 << 31) if operation == "addk" else scc
            assert found == (result | 5 << 32, carried, 1), (operation, hex(old))


def float_cases(name: str) -> list[Case]:
    generator = random.Random(6)
    half = (name.endswith("f16") and "cvt_f16" not in name and "pk" not in name) or name == "s_cvt_hi_f32_f16"
    values = [*(h | 0x5A5A0000 for h in HALF_EDGES)] if half else list(FLOAT_EDGES)
    if name == "s_cvt_hi_f32_f16":
        values = [h << 16 | 0x1234 for h in HALF_EDGES]
    if name in ("s_cvt_f32_i32", "s_cvt_f32_u32"):
        values = [*EDGES32, 0x01000001, 0x01000003, 0x7FFFFFC0, 0xFFFFFF80, 0xFFFFFF7F]
    olds = [0, 0x3F800000, 0xBF800001, 0x7F800000] if not half else [0, 0x3C00, 0xBC01, 0x7C00]
    cases = [(a, b, 0, olds[k % 4], 1) for k, (a, b) in enumerate(itertools.product(values, values))]
    return cases + [
        (generator.getrandbits(32), generator.getrandbits(32), 1, generator.getrandbits(32), 1) for _ in range(500)
    ]


@pytest.mark.parametrize("name", FLOAT)
def test_float(module: Module, name: str) -> None:
    _, half, model = FLOAT[name]
    cases = float_cases(name)
    exact = name in ("s_cvt_i32_f32", "s_cvt_u32_f32")
    for case, found in zip(cases, run(module, name, cases), strict=True):
        expected, result = model(case[0], case[1], case[3]), found[0] & M32
        if name == "s_cvt_pk_rtz_f16_f32":
            good = all(same_float(result >> n & 0xFFFF, expected >> n & 0xFFFF, True) for n in (0, 16))
        else:
            good = result == expected if exact else same_float(result, expected, half)
        assert good, ([hex(value) for value in case], hex(result), hex(expected))
        assert found[1] == case[2]


def test_float_with_constants(module: Module) -> None:
    cases = float_cases("s_fmac_f32")
    fmac = FLOAT["s_fmac_f32"][2]
    constant = 0x3FC00000
    for case, found in zip(cases, run(module, "s_fmaak_f32", cases), strict=True):
        assert same_float(found[0] & M32, fmac(case[0], case[1], constant)), [hex(value) for value in case]
    for case, found in zip(cases, run(module, "s_fmamk_f32", cases), strict=True):
        assert same_float(found[0] & M32, fmac(case[0], constant, case[1])), [hex(value) for value in case]


@pytest.mark.parametrize("name", FLOAT_COMPARE)
def test_float_compare(module: Module, name: str) -> None:
    cases = float_cases(name)
    for case, found in zip(cases, run(module, name, cases), strict=True):
        assert found == (case[3], int(FLOAT_COMPARE[name][2](case[0], case[1])), 1), [hex(value) for value in case]


def test_status_sources(tmp_path: Path) -> None:
    # The assembler does not know src_vccz and src_execz of gfx11.
    lines = """
  s_load_b64 s[2:3], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  s_mov_b32 vcc_lo, 0
  .long 0xbe8400fb  // s_mov_b32 s4, src_vccz
  s_mov_b32 vcc_lo, 4
  .long 0x80058afb  // s_add_u32 s5, src_vccz, 10
  s_mov_b32 s8, exec_lo
  s_mov_b32 exec_lo, 0
  .long 0xbe8600fc  // s_mov_b32 s6, src_execz
  s_mov_b32 exec_lo, s8
  .long 0x8007fc94  // s_add_u32 s7, 20, src_execz
  s_cmp_eq_u32 s7, 20
  s_mov_b32 s9, src_scc
  v_mov_b32_e32 v1, s4
  v_mov_b32_e32 v2, s5
  v_mov_b32_e32 v3, s6
  v_mov_b32_e32 v4, s7
  v_mov_b32_e32 v5, s9
  s_waitcnt lgkmcnt(0)
  global_store_b128 v0, v[1:4], s[2:3]
  global_store_b32 v0, v5, s[2:3] offset:16
"""
    code = assemble_code_object([AssemblyKernel("k", lines, ("pointer",))], "gfx1151", tmp_path)
    out = np.zeros(5, np.uint32)
    Device("gfx1151", threads=1).load(code)["k"].launch(1, 32, [out])
    assert list(out) == [1, 10, 1, 20, 1]
