"""Every one-, two- and three-operand instruction over edge values, with whole and partial EXEC."""

from __future__ import annotations

import numpy as np
import pytest

from opcodes import conversion_models, float_models, integer_models
from opcodes.cases import Case, instruction
from opcodes.instruction_runner import LANES, InstructionRunner, Words
from opcodes.values import Bits, combinations, from_rows, to_rows

CASES = {case.name: case for case in (*integer_models.CASES, *float_models.CASES, *conversion_models.CASES)}
ROWS = 8


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels = {name: [instruction(case)] for name, case in CASES.items()}
    return InstructionRunner(kernels, ROWS, "gfx1151", tmp_path_factory.mktemp("arithmetic"))


def rows_of(case: Case, sources: list[Bits]) -> Words:
    """The registers of all blocks, the result's filled with a pattern."""
    vectors = np.full((len(sources[0]) // LANES, ROWS, LANES), 0x5EED5EED, np.uint32)
    for k, (bits, kind) in enumerate(zip(sources, case.sources, strict=True)):
        vectors[:, 2 * k : 2 * k + 2] = to_rows(bits, kind)
    return vectors


@pytest.mark.parametrize("name", CASES)
def test_edge_values(runner: InstructionRunner, name: str) -> None:
    case = CASES[name]
    sources = combinations(case.sources, seed=1)
    vectors = rows_of(case, sources)
    result = runner.run(name, vectors).vectors
    case.check(from_rows(result[:, 6:8], case.result), sources)
    np.testing.assert_array_equal(result[:, :6], vectors[:, :6], err_msg="a source changed")
    if case.result in ("f16", "i16", "u16"):
        np.testing.assert_array_equal(result[:, 6] >> 16, vectors[:, 6] >> 16, err_msg="the other half changed")
    if not case.result.endswith("64"):
        np.testing.assert_array_equal(result[:, 7], vectors[:, 7], err_msg="the next register changed")


@pytest.mark.parametrize("name", CASES)
def test_inactive_lanes_keep_their_values(runner: InstructionRunner, name: str) -> None:
    case = CASES[name]
    sources = [bits[: 4 * LANES] for bits in combinations(case.sources, seed=2)]
    vectors = rows_of(case, sources)
    masks = np.array([0x0000FFFF, 0x80000001, 0x5A5AA5A5, 0], np.uint32)
    scalars = np.zeros((4, 8), np.uint32)
    scalars[:, 0] = masks
    result = runner.run(name, vectors, scalars).vectors
    active = (masks[:, None] >> np.arange(LANES, dtype=np.uint32) & 1).astype(bool)
    full = runner.run(name, vectors).vectors
    want = np.where(active[:, None], full, vectors)
    np.testing.assert_array_equal(result, want)


def test_permutations_of_bytes(runner: InstructionRunner) -> None:
    """Every selector of v_perm_b32 that names bytes of the sources, without a constant or a sign."""
    case = CASES["v_perm_b32"]
    places = np.stack(np.meshgrid(*[np.arange(8)] * 4), axis=-1).reshape(-1, 4)
    selectors = (places << np.array([0, 8, 16, 24])).sum(axis=1).astype(np.uint32)
    high, low = np.random.default_rng(7).integers(0, 1 << 32, (2, len(selectors)), np.uint32)
    sources: list[Bits] = [high, low, selectors]
    result = runner.run(case.name, rows_of(case, sources)).vectors
    case.check(from_rows(result[:, 6:8], case.result), sources)


def test_sums_near_ties_of_f16(runner: InstructionRunner) -> None:
    """Products close to half a unit of the addend: a sum that is rounded to f32 on the way goes the wrong way."""
    random = np.random.default_rng(3)
    count = 1 << 12
    addend = random.uniform(0.5, 2, count).astype(np.float16)
    first = random.uniform(0.25, 4, count).astype(np.float16)
    second = (np.spacing(addend).astype(np.float64) / 2 / first).astype(np.float16)
    signs = random.choice([-1, 1], (3, count)).astype(np.float16)
    case = CASES["v_fma_f16"]
    sources = [(x * s).view(np.uint16) for x, s in zip((first, second, addend), signs, strict=True)]
    result = runner.run(case.name, rows_of(case, sources)).vectors
    case.check(from_rows(result[:, 6:8], case.result), sources)
