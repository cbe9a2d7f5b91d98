"""Instructions with a lane mask as a second result or as a source, and the multiply-adds of 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from opcodes.cases import Array
from opcodes.instruction_runner import LANES, InstructionRunner, Words
from opcodes.values import combinations, from_rows, to_rows

CARRY_IN, ACTIVE = 0xDA5A3C3D, 0xFFF0FF0F
KERNELS = {
    "add": ["v_add_co_u32 v38, s27, v32, v34"],
    "sub": ["v_sub_co_u32 v38, s27, v32, v34"],
    "subrev": ["v_subrev_co_u32 v38, s27, v32, v34"],
    "add_ci": ["v_add_co_ci_u32_e64 v38, s27, v32, v34, s26"],
    "sub_ci": ["v_sub_co_ci_u32_e64 v38, s27, v32, v34, s26"],
    "subrev_ci": ["v_subrev_co_ci_u32_e64 v38, s27, v32, v34, s26"],
    "add_ci_vcc": [
        "s_mov_b32 vcc_lo, s26",
        "v_add_co_ci_u32_e32 v38, vcc_lo, v32, v34, vcc_lo",
        "s_mov_b32 s27, vcc_lo",
    ],
    "mad_u64_u32": ["v_mad_u64_u32 v[38:39], s27, v32, v34, v[36:37]"],
    "mad_i64_i32": ["v_mad_i64_i32 v[38:39], s27, v32, v34, v[36:37]"],
    "cndmask_b32": ["v_cndmask_b32_e64 v38, v32, v34, s26"],
    "cndmask_vcc": ["s_mov_b32 vcc_lo, s26", "v_cndmask_b32_e32 v38, v32, v34, vcc_lo"],
    "cndmask_signs": ["v_cndmask_b32_e64 v38, -v32, |v34|, s26"],
    "cndmask_b16": ["v_cndmask_b16 v38.h, v32.l, v34.h, s26"],
    "add_in_place": ["v_mov_b32_e32 v38, v32", "v_add_co_u32 v38, s27, v38, v38"],
}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    return InstructionRunner(KERNELS, 8, "gfx1151", tmp_path_factory.mktemp("carries"))


def scalars_of(blocks: int) -> Words:
    scalars = np.zeros((blocks, 8), np.uint32)
    scalars[:, 0] = ACTIVE
    scalars[:, 2] = CARRY_IN
    return scalars


def lanes_of(mask: int, count: int) -> Array:
    return np.tile(mask >> np.arange(LANES) & 1, count // LANES)


def masks(flags: Array) -> Words:
    shifted = flags.reshape(-1, LANES).astype(np.uint32) << np.arange(LANES, dtype=np.uint32)
    return np.asarray(shifted.sum(axis=1, dtype=np.uint32) & np.uint32(ACTIVE), np.uint32)


def blocks_of(*sources: tuple[Array, str]) -> Words:
    vectors = np.full((len(sources[0][0]) // LANES, 8, LANES), 0x77777777, np.uint32)
    for k, (bits, kind) in enumerate(sources):
        vectors[:, 2 * k : 2 * k + 2] = to_rows(bits, kind)
    return vectors


def in_active_lanes(values: Array) -> Array:
    return np.asarray(values[lanes_of(ACTIVE, len(values)).astype(bool)])


@pytest.mark.parametrize("name", ["add", "sub", "subrev", "add_ci", "sub_ci", "subrev_ci", "add_ci_vcc"])
def test_carry(runner: InstructionRunner, name: str) -> None:
    a, b = combinations(("u32", "u32"), seed=4)
    carry = lanes_of(CARRY_IN, len(a)) if "_ci" in name else 0
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    operation = name.split("_")[0]
    exact = {"add": wide_a + wide_b + carry, "sub": wide_a - wide_b - carry, "subrev": wide_b - wide_a - carry}[
        operation
    ]
    result = runner.run(name, blocks_of((a, "u32"), (b, "u32")), scalars_of(len(a) // LANES))
    got = from_rows(result.vectors[:, 6:8], "u32")
    np.testing.assert_array_equal(in_active_lanes(got), in_active_lanes(exact & 0xFFFFFFFF))
    np.testing.assert_array_equal(result.s27, masks((exact < 0) | (exact > 0xFFFFFFFF)))


def test_result_over_a_source(runner: InstructionRunner) -> None:
    (a,) = combinations(("u32",), seed=5)
    result = runner.run("add_in_place", blocks_of((a, "u32")), scalars_of(len(a) // LANES))
    np.testing.assert_array_equal(
        in_active_lanes(from_rows(result.vectors[:, 6:8], "u32")), in_active_lanes(a << np.uint32(1))
    )
    np.testing.assert_array_equal(result.s27, masks(a >> np.uint32(31)))


@pytest.mark.parametrize("name", ["mad_u64_u32", "mad_i64_i32"])
def test_wide_multiply_add(runner: InstructionRunner, name: str) -> None:
    signed = name == "mad_i64_i32"
    a, b, c = combinations(("u32", "u32", "u64"), seed=6, limit=1024)
    views = (a.view(np.int32), b.view(np.int32), c.view(np.int64)) if signed else (a, b, c)
    exact = [int(x) * int(y) + int(z) for x, y, z in zip(*views, strict=True)]
    result = runner.run(name, blocks_of((a, "u32"), (b, "u32"), (c, "u64")), scalars_of(len(a) // LANES))
    want = np.array([x & 0xFFFFFFFFFFFFFFFF for x in exact], np.uint64)
    np.testing.assert_array_equal(in_active_lanes(from_rows(result.vectors[:, 6:8], "u64")), in_active_lanes(want))
    np.testing.assert_array_equal(result.s27, masks(np.array([x >> 64 & 1 for x in exact])))


@pytest.mark.parametrize("name", ["cndmask_b32", "cndmask_vcc", "cndmask_signs"])
def test_selection(runner: InstructionRunner, name: str) -> None:
    a, b = combinations(("u32", "u32"), seed=7)
    no, yes = (a ^ np.uint32(0x80000000), b & np.uint32(0x7FFFFFFF)) if name == "cndmask_signs" else (a, b)
    want = np.where(lanes_of(CARRY_IN, len(a)), yes, no)
    result = runner.run(name, blocks_of((a, "u32"), (b, "u32")), scalars_of(len(a) // LANES))
    np.testing.assert_array_equal(in_active_lanes(from_rows(result.vectors[:, 6:8], "u32")), in_active_lanes(want))


def test_selection_of_halves(runner: InstructionRunner) -> None:
    a, b = combinations(("u32", "u32"), seed=8)
    want = np.where(lanes_of(CARRY_IN, len(a)), b >> np.uint32(16), a & np.uint32(0xFFFF))
    result = runner.run("cndmask_b16", blocks_of((a, "u32"), (b, "u32")), scalars_of(len(a) // LANES))
    got = from_rows(result.vectors[:, 6:8], "u32")
    np.testing.assert_array_equal(in_active_lanes(got >> np.uint32(16)), in_active_lanes(want))
    np.testing.assert_array_equal(got & np.uint32(0xFFFF), 0x7777)
