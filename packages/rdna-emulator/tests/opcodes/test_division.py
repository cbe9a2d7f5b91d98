"""The division sequences that compilers emit are correctly rounded, and the accuracy of what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from opcodes.cases import Array
from opcodes.float_models import TRANSCENDENTAL
from opcodes.instruction_runner import LANES, InstructionRunner, Words
from opcodes.values import (
    NUMPY,
    Bits,
    assert_same,
    combinations,
    from_rows,
    ordered,
    random_patterns,
    to_rows,
    unsigned,
)

# Numerator in v32, denominator in v34. The steps are those of Newton's method on the scaled operands.
F32 = """
v_div_scale_f32 v40, null, v34, v34, v32
v_div_scale_f32 v41, vcc_lo, v32, v34, v32
v_rcp_f32_e32 v42, v40
v_fma_f32 v43, -v40, v42, 1.0
v_fmac_f32_e32 v42, v43, v42
v_mul_f32_e32 v43, v41, v42
v_fma_f32 v44, -v40, v43, v41
v_fmac_f32_e32 v43, v44, v42
v_fma_f32 v40, -v40, v43, v41
v_div_fmas_f32 v40, v40, v42, v43
v_div_fixup_f32 v38, v40, v34, v32
"""
F64 = """
v_div_scale_f64 v[40:41], null, v[34:35], v[34:35], v[32:33]
v_rcp_f64_e32 v[42:43], v[40:41]
v_fma_f64 v[44:45], -v[40:41], v[42:43], 1.0
v_fma_f64 v[42:43], v[42:43], v[44:45], v[42:43]
v_fma_f64 v[44:45], -v[40:41], v[42:43], 1.0
v_fma_f64 v[42:43], v[42:43], v[44:45], v[42:43]
v_div_scale_f64 v[44:45], vcc_lo, v[32:33], v[34:35], v[32:33]
v_mul_f64 v[46:47], v[44:45], v[42:43]
v_fma_f64 v[40:41], -v[40:41], v[46:47], v[44:45]
v_div_fmas_f64 v[40:41], v[40:41], v[42:43], v[46:47]
v_div_fixup_f64 v[38:39], v[40:41], v[34:35], v[32:33]
"""
F16 = """
v_cvt_f32_f16_e32 v40, v34.l
v_cvt_f32_f16_e32 v41, v32.l
v_rcp_f32_e32 v40, v40
v_mul_f32_e32 v41, v41, v40
v_fma_mix_f32 v42, -v34, v41, v32 op_sel_hi:[1,0,1]
v_fmac_f32_e32 v41, v42, v40
v_fma_mix_f32 v42, -v34, v41, v32 op_sel_hi:[1,0,1]
v_mul_f32_e32 v40, v42, v40
v_and_b32_e32 v40, 0xff800000, v40
v_add_f32_e32 v40, v40, v41
v_cvt_f16_f32_e32 v40.l, v40
v_div_fixup_f16 v38.l, v40.l, v34.l, v32.l
"""
SEQUENCES = {"f32": F32, "f64": F64, "f16": F16}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels = {kind: text.split("\n")[1:-1] for kind, text in SEQUENCES.items()}
    kernels["trig_preop"] = [f"v_trig_preop_f64 v[{34 + 2 * k}:{35 + 2 * k}], v[32:33], {k}" for k in range(3)]
    for case in TRANSCENDENTAL:
        operand = {"f16": "v38.l, v32.l", "f32": "v38, v32", "f64": "v[38:39], v[32:33]"}[case.result]
        kernels[case.name] = [f"{case.name}_e32 {operand}"]
    return InstructionRunner(kernels, 8, "gfx1151", tmp_path_factory.mktemp("division"))


def run(runner: InstructionRunner, name: str, kind: str, sources: list[Bits]) -> Bits:
    vectors = np.zeros((len(sources[0]) // LANES, 8, LANES), np.uint32)
    for k, bits in enumerate(sources):
        vectors[:, 2 * k : 2 * k + 2] = to_rows(bits, kind)
    return from_rows(runner.run(name, vectors).vectors[:, 6:8], kind)


def dense(kind: str) -> list[Bits]:
    """Edge pairs, pairs of any exponents, and quotients near the smallest and the largest numbers."""
    random = np.random.default_rng(11)
    count = 1 << 14
    mantissa, limit = {"f16": (10, 31), "f32": (23, 255), "f64": (52, 2047)}[kind]
    any_pair = [random_patterns(kind, count, random) for _ in range(2)]
    exponents = random.integers(0, limit, count)
    distance = np.where(
        random.integers(0, 2, count) == 1,
        -(limit // 2) + random.integers(-30, 3, count),
        limit // 2 + random.integers(-3, 3, count),
    )
    others = np.clip(exponents - distance, 0, limit - 1)
    near = []
    for exponent in (exponents, others):
        bits = random_patterns(kind, count, random) & unsigned(kind)((1 << mantissa) - 1)
        near.append(bits | (exponent.astype(np.uint64) << np.uint64(mantissa)).astype(unsigned(kind)))
    edges = combinations((kind, kind), seed=12)
    return [np.concatenate(parts) for parts in zip(edges, any_pair, near, strict=True)]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_quotients_are_correctly_rounded(runner: InstructionRunner, kind: str) -> None:
    numerator, denominator = dense(kind)
    with np.errstate(all="ignore"):
        want = numerator.view(NUMPY[kind]) / denominator.view(NUMPY[kind])
    got = run(runner, kind, kind, [numerator, denominator])
    assert_same(got, want.view(unsigned(kind)), kind, [numerator, denominator], f"{kind} division")


@pytest.mark.parametrize("name", [case.name for case in TRANSCENDENTAL])
def test_accuracy(runner: InstructionRunner, name: str) -> None:
    case = next(case for case in TRANSCENDENTAL if case.name == name)
    random = np.random.default_rng(13)
    bits = [random_patterns(case.result, 1 << 14, random)]
    if case.result == "f16":
        bits.append(np.arange(1 << 16, dtype=np.uint32).astype(np.uint16))
    else:
        values = np.concatenate(
            [random.uniform(low, high, 1 << 13) for low, high in ((-130, 130), (0, 4), (0.9, 1.1), (-1, 1))]
        )
        bits.append(values.astype(NUMPY[case.result]).view(unsigned(case.result)))
    sources = [np.concatenate(bits)]
    case.check(run(runner, name, case.result, sources), sources)


def exact(runner: InstructionRunner, name: str, values: Array) -> Array:
    padded = np.resize(values.astype(np.float32), -(-len(values) // LANES) * LANES)
    return run(runner, name, "f32", [padded.view(np.uint32)]).view(np.float32)[: len(values)]


def test_powers_of_two_are_exact(runner: InstructionRunner) -> None:
    exponents = np.arange(-126, 128)
    powers = np.exp2(exponents.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(exact(runner, "v_exp_f32", exponents), powers)
    np.testing.assert_array_equal(exact(runner, "v_log_f32", powers), exponents)
    np.testing.assert_array_equal(
        exact(runner, "v_sqrt_f32", powers[::2]), np.exp2(exponents[::2] / 2.0).astype(np.float32)
    )


def test_quarter_turns_are_exact(runner: InstructionRunner) -> None:
    turns = np.arange(-64, 65) / 4
    quarters = np.arange(-64, 65) % 4
    np.testing.assert_array_equal(exact(runner, "v_sin_f32", turns), np.array([0.0, 1.0, 0.0, -1.0])[quarters])
    np.testing.assert_array_equal(exact(runner, "v_cos_f32", turns), np.array([1.0, 0.0, -1.0, 0.0])[quarters])


def test_exponential_rises(runner: InstructionRunner) -> None:
    values = np.sort(np.random.default_rng(14).uniform(-8, 8, 1 << 14)).astype(np.float32)
    result = exact(runner, "v_exp_f32", values)
    steps = np.diff(ordered(result.view(np.uint32)))
    assert steps.min() >= -1  # neighbours may each be off by half a unit


def test_two_over_pi_in_pieces(runner: InstructionRunner) -> None:
    bits = np.full(LANES, np.float64(1.0)).view(np.uint64)
    vectors = np.zeros((1, 8, LANES), np.uint32)
    vectors[:, 0:2] = to_rows(bits, "f64")
    result: Words = runner.run("trig_preop", vectors).vectors
    pieces = [from_rows(result[:, 2 + 2 * k : 4 + 2 * k], "f64").view(np.float64)[0] for k in range(3)]
    assert pieces[0] + pieces[1] == 2 / np.pi
    numerators = [int(piece * 2.0 ** (53 * (k + 1))) for k, piece in enumerate(pieces)]
    joined = (numerators[0] << 106) + (numerators[1] << 53) + numerators[2]
    # The first 159 binary places of 2 / pi.
    assert joined == 0x517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC
