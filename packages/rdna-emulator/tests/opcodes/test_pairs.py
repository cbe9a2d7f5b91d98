"""VOPD: two operations in one instruction, both of which read before either writes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from opcodes.cases import Array
from opcodes.float_models import fma, maximum, minimum
from opcodes.instruction_runner import ALL, LANES, InstructionRunner, Words

# v_dual_OP vdst, src0, vsrc1: a function of both sources, of the old result and of VCC, on bit patterns.
Operation = Callable[[Words, Words, Words, Array], Words]


def _floats(f: Callable[..., Array]) -> Operation:
    def operation(a: Words, b: Words, old: Words, _: Array) -> Words:
        with np.errstate(all="ignore"):
            return np.asarray(f(a.view(np.float32), b.view(np.float32), old.view(np.float32)), np.float32).view(
                np.uint32
            )

    return operation


def _dot(a: Words, b: Words, old: Words, _: Array) -> Words:
    products = a.view(np.float16).astype(np.float64) * b.view(np.float16)
    return np.asarray(
        (products.reshape(-1, 2).sum(axis=1) + old.view(np.float32)).astype(np.float32).view(np.uint32), np.uint32
    )


OPERATIONS: dict[str, Operation] = {
    "fmac_f32": _floats(lambda a, b, old: fma(a, b, old)),
    "mul_f32": _floats(lambda a, b, _: a * b),
    "add_f32": _floats(lambda a, b, _: a + b),
    "sub_f32": _floats(lambda a, b, _: a - b),
    "subrev_f32": _floats(lambda a, b, _: b - a),
    "mul_dx9_zero_f32": _floats(lambda a, b, _: np.where((a == 0) | (b == 0), np.float32(0), a * b)),
    "max_f32": _floats(lambda a, b, _: maximum(a, b)),
    "min_f32": _floats(lambda a, b, _: minimum(a, b)),
    "cndmask_b32": lambda a, b, _, vcc: np.where(vcc, b, a),
    "mov_b32": lambda a, b, old, vcc: a,
    "dot2acc_f32_f16": _dot,
}
ONLY_SECOND: dict[str, Operation] = {
    "add_nc_u32": lambda a, b, old, vcc: a + b,
    "lshlrev_b32": lambda a, b, old, vcc: b << (a & np.uint32(31)),
    "and_b32": lambda a, b, old, vcc: a & b,
}
SECOND = {**OPERATIONS, **ONLY_SECOND}
VCC = 0x6C3A5500
# Registers of x and of y: result, sources. The banks of the sources differ, one result is even and the other odd.
FORMS = {
    "apart": ("v36", "v32", "v33", "v39", "v35", "v34"),
    "crossed": ("v32", "v33", "v34", "v33", "v32", "v35"),  # each reads what the other writes
    "chained": ("v34", "v32", "v33", "v37", "v34", "v35"),  # y reads what x writes
    "scalar": ("v36", "s30", "v33", "v39", "s31", "v34"),
}


def registers_of(x: str, y: str, form: str) -> tuple[str, ...]:
    """A pair may read two scalars, and VCC is one."""
    names = FORMS[form]
    return tuple("s30" if name == "s31" else name for name in names) if "cndmask_b32" in (x, y) else names


def half(name: str, result: str, first: str, second: str) -> str:
    return f"v_dual_{name} {result}, {first}" + ("" if name == "mov_b32" else f", {second}")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels = {}
    for x, y in itertools.product(OPERATIONS, SECOND):
        for form in FORMS:
            d, a, b, e, f, g = registers_of(x, y, form)
            kernels[f"{x}_{y}_{form}"] = [f"{half(x, d, a, b)} :: {half(y, e, f, g)}"]
    kernels["fmaak_fmamk"] = [
        "v_dual_fmaak_f32 v36, v32, v33, 0x41200000 :: v_dual_fmamk_f32 v39, v35, 0x41200000, v34"
    ]
    kernels["literals"] = ["v_dual_mov_b32 v36, 0x41200000 :: v_dual_add_f32 v39, 0x41200000, v34"]
    kernels["constants"] = ["v_dual_mov_b32 v36, -5 :: v_dual_mul_f32 v39, 0.5, v34"]
    return InstructionRunner(kernels, 8, "gfx1151", tmp_path_factory.mktemp("pairs"))


def registers(integers: bool) -> Words:
    """[8, 32]: halves that are floats and, taken together, floats as well; or any bit patterns."""
    random = np.random.default_rng(81)
    if integers:
        return random.integers(0, 1 << 32, (8, LANES), dtype=np.uint64).astype(np.uint32)
    halves = random.uniform(-2, 2, (8, 2 * LANES)).astype(np.float16)
    halves[:, ::8] = 0
    return halves.view(np.uint32)


def run(runner: InstructionRunner, name: str, vectors: Words, active: int) -> Words:
    scalars = np.array([[active, VCC, 0, 0, 0, 0, 0x3FC03E00, 7]], np.uint32)
    return np.asarray(runner.run(name, vectors[None], scalars).vectors[0], np.uint32)


def value(operand: str, vectors: Words) -> Words:
    if operand[0] == "s":
        return np.full(LANES, {"s30": 0x3FC03E00, "s31": 7}[operand], np.uint32)
    return np.asarray(vectors[int(operand[1:]) - 32], np.uint32)


def same(got: Words, want: Words, what: str) -> None:
    nans = np.isnan(got.view(np.float32)) & np.isnan(want.view(np.float32))
    if "dot2acc" in what:
        close = np.isclose(got.view(np.float32), want.view(np.float32), rtol=1e-6, atol=1e-6)
        assert (close | nans).all(), what
    else:
        np.testing.assert_array_equal(np.where(nans, 0, got), np.where(nans, 0, want), err_msg=what)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("y", SECOND)
@pytest.mark.parametrize("x", OPERATIONS)
def test_pairs(runner: InstructionRunner, x: str, y: str, form: str) -> None:
    d, a, b, e, f, g = registers_of(x, y, form)
    vectors = registers(integers=y in ONLY_SECOND and x in ("mov_b32", "cndmask_b32"))
    chosen = VCC >> np.arange(LANES) & 1
    results = {}
    for name, result, first, second in ((x, d, a, b), (y, e, f, g)):
        operation = SECOND[name]
        results[result] = operation(value(first, vectors), value(second, vectors), value(result, vectors), chosen)
    for active in (ALL, 0x0FFF0001):
        want = vectors.copy()
        lanes = active >> np.arange(LANES) & 1
        for result, bits in results.items():
            row = int(result[1:]) - 32
            want[row] = np.where(lanes, bits, vectors[row])
        got = run(runner, f"{x}_{y}_{form}", vectors, active)
        for row in range(8):
            name = x if f"v{row + 32}" == d else y
            same(got[row], want[row], f"v{row + 32} after {x} :: {y}, {form}, {name}")


def test_literals(runner: InstructionRunner) -> None:
    vectors = registers(integers=False)
    v = vectors.view(np.float32)
    ten = np.full(LANES, np.float32(10))
    got = run(runner, "fmaak_fmamk", vectors, ALL).view(np.float32)
    np.testing.assert_array_equal(got[4], fma(v[0], v[1], ten))
    np.testing.assert_array_equal(got[7], fma(v[3], ten, v[2]))
    got = run(runner, "literals", vectors, ALL).view(np.float32)
    np.testing.assert_array_equal(got[4], ten)
    np.testing.assert_array_equal(got[7], ten + v[2])
    got = run(runner, "constants", vectors, ALL).view(np.float32)
    np.testing.assert_array_equal(got[4].view(np.int32), -5)
    np.testing.assert_array_equal(got[7], v[2] * np.float32(0.5))
