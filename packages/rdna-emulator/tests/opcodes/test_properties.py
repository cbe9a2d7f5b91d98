"""Operands that hypothesis chooses, for every one-, two- and three-operand instruction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opcodes import conversion_models, float_models, integer_models
from opcodes.cases import Case, instruction
from opcodes.instruction_runner import LANES, InstructionRunner
from opcodes.values import EDGES, Bits, from_rows, to_rows, unsigned, width

CASES = {case.name: case for case in (*integer_models.CASES, *float_models.CASES, *conversion_models.CASES)}
ROWS = 8
OLD = 0x5EED5EED


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels = {name: [instruction(case)] for name, case in CASES.items()}
    return InstructionRunner(kernels, ROWS, "gfx1151", tmp_path_factory.mktemp("properties"))


def patterns(kind: str) -> st.SearchStrategy[Bits]:
    """One bit pattern a lane: an edge value, a neighbour of one, or anything."""
    top = (1 << width(kind)) - 1
    edges = st.sampled_from([int(bits) for bits in EDGES[kind]])
    near = st.builds(lambda edge, step: (edge + step) & top, edges, st.integers(-3, 3))
    lane = st.one_of(edges, near, st.integers(0, top))
    return st.lists(lane, min_size=LANES, max_size=LANES).map(lambda values: np.array(values, unsigned(kind)))


@st.composite
def executions(draw: st.DrawFn) -> tuple[Case, list[Bits], int]:
    case = CASES[draw(st.sampled_from(sorted(CASES)))]
    return case, [draw(patterns(kind)) for kind in case.sources], draw(st.integers(0, 0xFFFFFFFF))


@given(executions())
def test_any_operands(runner: InstructionRunner, execution: tuple[Case, list[Bits], int]) -> None:
    case, sources, active = execution
    vectors = np.full((1, ROWS, LANES), OLD, np.uint32)
    for k, (bits, kind) in enumerate(zip(sources, case.sources, strict=True)):
        vectors[:, 2 * k : 2 * k + 2] = to_rows(bits, kind)
    scalars = np.zeros((1, 8), np.uint32)
    scalars[0, 0] = active
    result = runner.run(case.name, vectors, scalars).vectors
    lanes = (active >> np.arange(LANES) & 1).astype(bool)
    old = from_rows(vectors[:, 6:8], case.result)
    got = from_rows(result[:, 6:8], case.result)
    np.testing.assert_array_equal(got[~lanes], old[~lanes])
    case.check(np.where(lanes, got, case.expected(sources)), sources)
