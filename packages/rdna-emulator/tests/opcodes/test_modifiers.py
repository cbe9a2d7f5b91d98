"""Source modifiers, halves, clamp, and sources that are scalars or constants."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from opcodes import conversion_models, float_models, integer_models
from opcodes.cases import SLOTS, Array, Case
from opcodes.float_models import fma
from opcodes.instruction_runner import LANES, InstructionRunner, Words
from opcodes.values import NUMPY, Bits, assert_same, combinations, from_rows, to_rows, unsigned, width

SIGNS = {"": "{}", "n": "-{}", "a": "|{}|", "na": "-|{}|"}
HALF_KINDS = ("f16", "u16", "i16")
ALL_CASES = (*integer_models.CASES, *float_models.CASES, *conversion_models.CASES)
HALF_CASES = {case.name: case for case in ALL_CASES if set(HALF_KINDS) & {case.result, *case.sources}}
REGISTERS = {"f16": "v{}.l", "f32": "v{}", "f64": "v[{}:{}]"}


def named(kind: str, slot: int) -> str:
    return REGISTERS[kind].format(slot, slot + 1)


def signed(bits: Bits, kind: str, modifier: str) -> Bits:
    sign = unsigned(kind)(1 << (width(kind) - 1))
    if "a" in modifier:
        bits = bits & ~sign
    return bits ^ sign if "n" in modifier else bits


def high_operand(kind: str, slot: int) -> str:
    if kind in HALF_KINDS:
        return f"v{slot}.h"
    return f"v[{slot}:{slot + 1}]" if kind.endswith("64") else f"v{slot}"


def high_instruction(case: Case, base: int) -> str:
    """The case on the high halves, of registers from ``base`` on: from v128 on only the long encoding has them."""
    operands = [high_operand(case.result, base + 6)]
    operands += [high_operand(kind, base + 2 * k) for k, kind in enumerate(case.sources)]
    return f"{case.name} {', '.join(operands)}"


def high_kernel(case: Case) -> list[str]:
    there = [f"v_mov_b32_e32 v{160 + k}, v{32 + k}" for k in range(8)]
    back = ["v_mov_b32_e32 v38, v166", "v_mov_b32_e32 v39, v167"]
    return [*there, high_instruction(case, 160), *back]


CONSTANTS_32 = ["0", "1", "64", "-1", "-16", "0x12345678"]
FLOAT_CONSTANTS = ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels: dict[str, list[str]] = {}
    for kind in ("f16", "f32", "f64"):
        for modifiers in itertools.product(SIGNS, repeat=3):
            operands = [SIGNS[m].format(named(kind, slot)) for m, slot in zip(modifiers, SLOTS, strict=True)]
            kernels[f"fma_{kind}_{'_'.join(modifiers)}"] = [f"v_fma_{kind} {named(kind, 38)}, {', '.join(operands)}"]
        arguments = ", ".join(named(kind, slot) for slot in (38, 32, 34))
        kernels[f"clamp_{kind}"] = [f"v_add_{kind}_e64 {arguments} clamp"]
        if kind == "f64":
            kernels[f"clamp_{kind}"] = [f"v_add_{kind} {arguments} clamp"]
        for k, text in enumerate(FLOAT_CONSTANTS):
            constant = "0.15915494309189532" if kind == "f64" and k == 8 else text
            kernels[f"constant_{kind}_{k}"] = [f"v_add_{kind} {named(kind, 38)}, {constant}, {named(kind, 32)}"]
    kernels["clamp_high"] = ["v_add_f16_e64 v38.h, v32.h, v34.h clamp"]
    kernels["clamp_mix"] = ["v_cvt_f32_f16_e64 v38, v32.l clamp"]
    for name, case in HALF_CASES.items():
        kernels[f"high_{name}"] = [high_instruction(case, 32)]
        kernels[f"high_e64_{name}"] = high_kernel(case)
    for case in integer_models.SATURATING:
        operands = [high_operand(kind, slot) for kind, slot in zip(case.sources, SLOTS, strict=False)]
        suffix = "_e64" if case.name.endswith("_nc_u32") else ""
        kernels[f"clamp_{case.name}"] = [
            f"{case.name}{suffix} {high_operand(case.result, 38)}, {', '.join(operands)} clamp"
        ]
    for k, constant in enumerate(CONSTANTS_32):
        kernels[f"add_{k}"] = [f"v_add_nc_u32 v38, {constant}, v32"]
        kernels[f"mad_{k}"] = [f"v_mad_u32_u24 v38, v32, {constant}, v34"]
    kernels["scalar_f32"] = ["v_fma_f32 v38, s30, v32, -s31"]
    kernels["scalar_signs"] = ["v_fma_f32 v38, -s30, |s31|, v32"]
    kernels["scalar_same"] = ["v_fma_f32 v38, s30, s30, v32"]
    kernels["scalar_vcc"] = ["v_add_nc_u32 v38, vcc_lo, v32"]
    kernels["scalar_m0"] = ["s_mov_b32 m0, s30", "v_add_nc_u32 v38, m0, v32"]
    kernels["scalar_exec"] = ["v_add_nc_u32 v38, exec_lo, v32"]
    kernels["scalar_scc"] = ["s_cmp_eq_u32 s30, 1234", "v_add_nc_u32 v38, src_scc, v32"]
    kernels["scalar_null"] = ["v_add_nc_u32 v38, null, v32"]
    kernels["scalar_f64"] = ["v_add_f64 v[38:39], s[30:31], v[32:33]"]
    kernels["scalar_f64_sign"] = ["v_add_f64 v[38:39], -s[30:31], |v[32:33]|"]
    kernels["scalar_half"] = ["v_add_f16_e32 v38.l, s30, v32.l"]
    kernels["scalar_half_sign"] = ["v_fma_f16 v38.h, -s30, 1.0, v32.h"]
    kernels["scalar_shift"] = ["v_lshlrev_b64 v[38:39], s30, v[32:33]"]
    kernels["literal_f64"] = ["v_add_f64 v[38:39], 0x40590000, v[32:33]"]
    kernels["fmaak"] = ["v_fmaak_f32 v38, v32, v34, 0x41200000"]
    kernels["fmamk"] = ["v_fmamk_f32 v38, v32, 0x41200000, v34"]
    kernels["fmaak_scalar"] = ["v_fmaak_f32 v38, s30, v34, 0x41200000"]
    kernels["fmaak_f16"] = ["v_fmaak_f16 v38.l, v32.l, v34.h, 0x4900"]
    kernels["fmamk_f16"] = ["v_fmamk_f16 v38.h, v32.l, 0x4900, v34.l"]
    kernels["fmac"] = ["v_fmac_f32_e32 v38, v32, v34"]
    kernels["fmac_signs"] = ["v_fmac_f32_e64 v38, -v32, |v34|"]
    kernels["fmac_f16"] = ["v_fmac_f16_e32 v38.h, v32.l, v34.h"]
    kernels["fmac_dx9"] = ["v_fmac_dx9_zero_f32_e64 v38, v32, v34"]
    kernels["cvt_high"] = ["v_cvt_f16_f32_e64 v38.h, -v32"]
    return InstructionRunner(kernels, 8, "gfx1151", tmp_path_factory.mktemp("modifiers"))


def run(
    runner: InstructionRunner, name: str, sources: list[tuple[Bits, str]], s30: int = 0, s31: int = 0, vcc: int = 0
) -> Words:
    vectors = np.full(
        (len(sources[0][0]) // LANES, 8, LANES), 0x40A04200, np.uint32
    )  # 5.0078 in f32, 3 and 2.3125 in f16
    for k, (bits, kind) in enumerate(sources):
        vectors[:, 2 * k : 2 * k + 2] = to_rows(bits, kind)
    scalars = np.zeros((len(vectors), 8), np.uint32)
    scalars[:, 0] = 0xFFFFFFFF
    scalars[:, 1] = vcc
    scalars[:, 6], scalars[:, 7] = s30, s31
    return runner.run(name, vectors, scalars).vectors


def result_of(rows: Words, kind: str, high: bool = False) -> Bits:
    return from_rows(rows[:, 6:8], kind, high)


def as_f32(bits: int | Array) -> Array:
    return np.asarray(bits, np.uint32).view(np.float32)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("modifiers", list(itertools.product(SIGNS, repeat=3)), ids="_".join)
def test_signs(runner: InstructionRunner, kind: str, modifiers: tuple[str, str, str]) -> None:
    sources = [bits[-512:] for bits in combinations((kind,) * 3, seed=21, limit=512)]
    changed = [signed(bits, kind, m) for bits, m in zip(sources, modifiers, strict=True)]
    with np.errstate(all="ignore"):
        want = fma(*(bits.view(NUMPY[kind]) for bits in changed)).view(unsigned(kind))
    name = f"fma_{kind}_{'_'.join(modifiers)}"
    got = result_of(run(runner, name, [(bits, kind) for bits in sources]), kind)
    assert_same(got, want, kind, sources, name)


def clamped(values: Array) -> Array:
    return np.where(np.isnan(values), 0, np.clip(values, 0, 1)).astype(values.dtype)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_clamp(runner: InstructionRunner, kind: str) -> None:
    sources = combinations((kind, kind), seed=22)
    with np.errstate(all="ignore"):
        want = clamped(np.add(*(bits.view(NUMPY[kind]) for bits in sources))).view(unsigned(kind))
    got = result_of(run(runner, f"clamp_{kind}", [(bits, kind) for bits in sources]), kind)
    np.testing.assert_array_equal(
        got & ~unsigned(kind)(1 << (width(kind) - 1)), want & ~unsigned(kind)(1 << (width(kind) - 1))
    )


def test_clamp_of_a_high_half_keeps_the_low_one(runner: InstructionRunner) -> None:
    a = np.full(LANES, 0x4400_0000, np.uint32)
    rows = run(runner, "clamp_high", [(a, "u32"), (a, "u32")])
    np.testing.assert_array_equal(rows[:, 6], 0x3C00_4200)
    b = np.full(LANES, 0xC400, np.uint32)
    np.testing.assert_array_equal(run(runner, "clamp_mix", [(b, "u32")])[:, 6], 0)


@pytest.mark.parametrize("name", [case.name for case in integer_models.SATURATING])
def test_saturation(runner: InstructionRunner, name: str) -> None:
    case = next(case for case in integer_models.SATURATING if case.name == name)
    sources = combinations(case.sources, seed=23)
    wide = [
        np.asarray(bits.astype(np.uint64) << np.uint64(16), np.uint32) if kind in HALF_KINDS else bits
        for bits, kind in zip(sources, case.sources, strict=True)
    ]
    rows = run(runner, f"clamp_{name}", [(bits, "u32") for bits in wide])
    case.check(result_of(rows, case.result, high=case.result in HALF_KINDS), sources)


@pytest.mark.parametrize("form", ["high", "high_e64"])
@pytest.mark.parametrize("name", HALF_CASES)
def test_high_halves(runner: InstructionRunner, name: str, form: str) -> None:
    case = HALF_CASES[name]
    sources = combinations(case.sources, seed=24, limit=512)
    vectors = np.full((len(sources[0]) // LANES, 8, LANES), 0x5EED5EED, np.uint32)
    for k, (bits, kind) in enumerate(zip(sources, case.sources, strict=True)):
        vectors[:, 2 * k : 2 * k + 2] = to_rows(bits, kind, high=kind in HALF_KINDS)
    rows = runner.run(f"{form}_{name}", vectors).vectors
    half = case.result in HALF_KINDS
    case.check(result_of(rows, case.result, high=half), sources)
    if half:
        np.testing.assert_array_equal(rows[:, 6] & 0xFFFF, 0x5EED, err_msg="the low half changed")


@pytest.mark.parametrize("k", range(len(CONSTANTS_32)))
def test_integer_constants(runner: InstructionRunner, k: int) -> None:
    value = int(CONSTANTS_32[k], 0)
    a, b = combinations(("u32", "u32"), seed=25)
    got = result_of(run(runner, f"add_{k}", [(a, "u32")]), "u32")
    np.testing.assert_array_equal(got, ((a.astype(np.int64) + value) & 0xFFFFFFFF).astype(np.uint32))
    got = result_of(run(runner, f"mad_{k}", [(a, "u32"), (b, "u32")]), "u32")
    want = (a.astype(np.int64) & 0xFFFFFF) * (value & 0xFFFFFF) + b
    np.testing.assert_array_equal(got, (want & 0xFFFFFFFF).astype(np.uint32))


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("k", range(len(FLOAT_CONSTANTS)))
def test_float_constants(runner: InstructionRunner, k: int, kind: str) -> None:
    (bits,) = combinations((kind,), seed=26)
    # 1 / (2 pi) of the hardware is rounded down in f64.
    number = float.fromhex("0x1.45f306dc9c882p-3") if k == 8 else float(FLOAT_CONSTANTS[k])
    value = np.array(number).astype(NUMPY[kind])
    with np.errstate(all="ignore"):
        want = (bits.view(NUMPY[kind]) + value).astype(NUMPY[kind]).view(unsigned(kind))
    got = result_of(run(runner, f"constant_{kind}_{k}", [(bits, kind)]), kind)
    assert_same(got, want, kind, [bits], f"{FLOAT_CONSTANTS[k]} + x")


def test_scalar_sources(runner: InstructionRunner) -> None:
    x, y = 0x40490FDB, 0xC1200000
    (bits,) = combinations(("f32",), seed=27)
    a, sx, sy = as_f32(bits), np.full(len(bits), as_f32(x)), np.full(len(bits), as_f32(y))
    for name, want in {
        "scalar_f32": fma(sx, a, -sy),
        "scalar_signs": fma(-sx, np.abs(sy), a),
        "scalar_same": fma(sx, sx, a),
    }.items():
        got = result_of(run(runner, name, [(bits, "f32")], s30=x, s31=y), "f32")
        assert_same(got, want.view(np.uint32), "f32", [bits], name)


@pytest.mark.parametrize(
    ("name", "value"), [("vcc", 0x87654321), ("m0", 1234), ("exec", 0xFFFFFFFF), ("scc", 1), ("null", 0)]
)
def test_special_scalars(runner: InstructionRunner, name: str, value: int) -> None:
    (bits,) = combinations(("u32",), seed=28)
    got = result_of(run(runner, f"scalar_{name}", [(bits, "u32")], s30=1234, vcc=0x87654321), "u32")
    np.testing.assert_array_equal(got, ((bits.astype(np.int64) + value) & 0xFFFFFFFF).astype(np.uint32))


def test_scalar_pairs(runner: InstructionRunner) -> None:
    pair = np.array([1.0 / 3.0]).view(np.uint64)[0]
    low, high = int(pair) & 0xFFFFFFFF, int(pair) >> 32
    (bits,) = combinations(("f64",), seed=29)
    with np.errstate(all="ignore"):
        sums = {
            "scalar_f64": 1.0 / 3.0 + bits.view(np.float64),
            "scalar_f64_sign": np.abs(bits.view(np.float64)) - 1.0 / 3.0,
        }
        sums["literal_f64"] = bits.view(np.float64) + 100.0
    for name, want in sums.items():
        got = result_of(run(runner, name, [(bits, "f64")], s30=low, s31=high), "f64")
        assert_same(got, want.view(np.uint64), "f64", [bits], name)
    got = result_of(run(runner, "scalar_shift", [(bits, "u64")], s30=69), "u64")
    np.testing.assert_array_equal(got, bits << np.uint64(5))


def test_scalar_halves(runner: InstructionRunner) -> None:
    (bits,) = combinations(("f16",), seed=30)
    rows = run(runner, "scalar_half", [(bits, "f16")], s30=0x99993E00)
    with np.errstate(all="ignore"):
        want = bits.view(np.float16) + np.float16(1.5)
    assert_same(result_of(rows, "f16"), want.view(np.uint16), "f16", [bits], "1.5 + x")
    high = bits.astype(np.uint32) << np.uint32(16)
    rows = run(runner, "scalar_half_sign", [(high, "u32")], s30=0x99993E00)
    with np.errstate(all="ignore"):
        want = bits.view(np.float16) - np.float16(1.5)
    assert_same(result_of(rows, "f16", high=True), want.view(np.uint16), "f16", [bits], "x - 1.5")


def test_literals_of_fused_multiply_add(runner: InstructionRunner) -> None:
    a, b = (bits[:512] for bits in combinations(("f32", "f32"), seed=31))
    ten = np.full(len(a), np.float32(10))
    scalar = np.full(len(a), as_f32(0x40490FDB))
    for name, want in {
        "fmaak": fma(as_f32(a), as_f32(b), ten),
        "fmamk": fma(as_f32(a), ten, as_f32(b)),
        "fmaak_scalar": fma(scalar, as_f32(b), ten),
    }.items():
        got = result_of(run(runner, name, [(a, "f32"), (b, "f32")], s30=0x40490FDB), "f32")
        assert_same(got, want.view(np.uint32), "f32", [a, b], name)


def test_accumulation(runner: InstructionRunner) -> None:
    a, b = (bits[:512] for bits in combinations(("f32", "f32"), seed=32))
    old = np.full(len(a), as_f32(0x40A04200))
    for name, want in {
        "fmac": fma(as_f32(a), as_f32(b), old),
        "fmac_signs": fma(-as_f32(a), np.abs(as_f32(b)), old),
        "fmac_dx9": np.where((as_f32(a) == 0) | (as_f32(b) == 0), old, fma(as_f32(a), as_f32(b), old)),
    }.items():
        got = result_of(run(runner, name, [(a, "f32"), (b, "f32")]), "f32")
        assert_same(got, want.view(np.uint32), "f32", [a, b], name)


def test_halves_of_fused_multiply_add(runner: InstructionRunner) -> None:
    a, b = (bits[:512] for bits in combinations(("f16", "f16"), seed=33))
    swapped = b.astype(np.uint32) << np.uint32(16) | np.uint32(0x3555)
    x, y = a.view(np.float16), b.view(np.float16)
    ten = np.full(len(a), np.float16(10))
    old = np.full(len(a), np.uint16(0x40A0)).view(np.float16)
    third = np.full(len(a), np.uint16(0x3555)).view(np.float16)
    for name, high, want in (
        ("fmaak_f16", False, fma(x, y, ten)),
        ("fmamk_f16", True, fma(x, ten, third)),
        ("fmac_f16", True, fma(x, y, old)),
    ):
        rows = run(runner, name, [(a, "f16"), (swapped, "u32")])
        assert_same(result_of(rows, "f16", high), want.view(np.uint16), "f16", [a, b], name)
        untouched = rows[:, 6] & 0xFFFF if high else rows[:, 6] >> 16
        np.testing.assert_array_equal(untouched, 0x4200 if high else 0x40A0)


def test_conversion_into_the_high_half(runner: InstructionRunner) -> None:
    (bits,) = combinations(("f32",), seed=34)
    rows = run(runner, "cvt_high", [(bits, "f32")])
    with np.errstate(all="ignore"):
        want = (-as_f32(bits)).astype(np.float16).view(np.uint16)
    assert_same(result_of(rows, "f16", high=True), want, "f16", [bits], "v_cvt_f16_f32")
