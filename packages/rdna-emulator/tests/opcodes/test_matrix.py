"""WMMA against float64: each half of the wave makes its rows from its own lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rdna_emulator import EmulatorError

from opcodes.cases import Array
from opcodes.instruction_runner import ALL, LANES, InstructionRunner, Words
from opcodes.packed_models import brain_to_f32, fields

# A in v[32:39], B in v[40:47], C in v[48:55], D in v[56:63].
A, B, C, D = "v[32:39]", "v[40:47]", "v[48:55]", "v[56:63]"
ROWS = 32
KERNELS = {
    "f32_f16": f"v_wmma_f32_16x16x16_f16 {D}, {A}, {B}, {C}",
    "f32_bf16": f"v_wmma_f32_16x16x16_bf16 {D}, {A}, {B}, {C}",
    "f32_f16_over_c": f"v_wmma_f32_16x16x16_f16 {C}, {A}, {B}, {C}",
    "f32_f16_zero": f"v_wmma_f32_16x16x16_f16 {D}, {A}, {B}, 0",
    "f32_f16_one": f"v_wmma_f32_16x16x16_f16 {D}, {A}, {B}, 1.0",
    "f32_f16_negative": f"v_wmma_f32_16x16x16_f16 {D}, {A}, {B}, {C} neg_lo:[1,0,0] neg_hi:[1,0,0]",
    "f32_f16_odd_negative": f"v_wmma_f32_16x16x16_f16 {D}, {A}, {B}, {C} neg_hi:[0,1,0]",
    "f32_f16_c_negative": f"v_wmma_f32_16x16x16_f16 {D}, {A}, {B}, {C} neg_lo:[0,0,1]",
    "f32_f16_shifted": f"v_wmma_f32_16x16x16_f16 v[52:59], {A}, {B}, {C}",
    "f16": f"v_wmma_f16_16x16x16_f16 {D}, {A}, {B}, {C}",
    "f16_high": f"v_wmma_f16_16x16x16_f16 {D}, {A}, {B}, {C} op_sel:[0,0,1]",
    "bf16": f"v_wmma_bf16_16x16x16_bf16 {D}, {A}, {B}, {C}",
    "bf16_high": f"v_wmma_bf16_16x16x16_bf16 {D}, {A}, {B}, {C} op_sel:[0,0,1]",
    "f16_one": f"v_wmma_f16_16x16x16_f16 {D}, {A}, {B}, 1.0 op_sel:[0,0,1]",
    **{
        f"i32_{kind}_{a}{b}{clamp}": f"v_wmma_i32_16x16x16_{kind} {D}, {registers}, {C} neg_lo:[{a},{b},0] {clamp}"
        for kind, registers in (("iu8", "v[32:35], v[40:43]"), ("iu4", "v[32:33], v[40:41]"))
        for a in (0, 1)
        for b in (0, 1)
        for clamp in ("", "clamp")
    },
}

WMMA = "v_wmma_f32_16x16x16_f16"
# Instructions that follow each other, where what was known of A or B may or may not hold for the second.
SEQUENCES = {
    "same": [f"{WMMA} {C}, {A}, {B}, {C}", f"{WMMA} {D}, {A}, {B}, {C}"],
    "same_after_nop": [f"{WMMA} {C}, {A}, {B}, {C}", "s_nop 0", f"{WMMA} {D}, {A}, {B}, {C}"],
    "negated": [f"{WMMA} {C}, {A}, {B}, {C}", f"{WMMA} {D}, {A}, {B}, {C} neg_lo:[1,0,0] neg_hi:[1,0,0]"],
    "negated_columns": [f"{WMMA} {C}, {A}, {B}, {C}", f"{WMMA} {D}, {A}, {B}, {C} neg_lo:[0,1,0] neg_hi:[0,1,0]"],
    "bfloat16": [f"{WMMA} {C}, {A}, {B}, {C}", f"v_wmma_f32_16x16x16_bf16 {D}, {A}, {B}, {C}"],
    "exchanged": [f"{WMMA} {C}, {A}, {B}, {C}", f"{WMMA} {D}, {B}, {A}, {C}"],
    "over_a": [f"{WMMA} {A}, {A}, {B}, {C}", f"{WMMA} {D}, {A}, {B}, {C}"],
    "over_end_of_a": [f"{WMMA} v[39:46], {A}, {B}, {C}", f"{WMMA} {D}, {A}, {B}, {C}"],
    "over_b": [f"{WMMA} {B}, {A}, {B}, {C}", f"{WMMA} {D}, {A}, {B}, {C}"],
    "a_moved": [f"{WMMA} {C}, {A}, {B}, {C}", "v_mov_b32 v35, v50", f"{WMMA} {D}, {A}, {B}, {C}"],
    "b_moved": [f"{WMMA} {C}, {A}, {B}, {C}", "v_mov_b32 v47, v50", f"{WMMA} {D}, {A}, {B}, {C}"],
    "two_before": [f"{WMMA} {C}, {A}, {B}, {C}", f"{WMMA} {D}, {B}, {A}, {C}", f"{WMMA} {D}, {A}, {B}, {C}"],
    "two_before_moved": [
        *(f"{WMMA} {C}, {A}, {B}, {C}", "v_mov_b32 v47, v50"),
        *(f"{WMMA} {D}, {B}, {A}, {C}", f"{WMMA} {D}, {A}, {B}, {C}"),
    ],
    "b_swapped": [f"{WMMA} {C}, {A}, {B}, {C}", "v_swap_b32 v50, v47", f"{WMMA} {D}, {A}, {B}, {C}"],
    "b_moved_in_a_pair": [
        f"{WMMA} {C}, {A}, {B}, {C}",
        "v_dual_mov_b32 v46, v51 :: v_dual_mov_b32 v47, v50",
        f"{WMMA} {D}, {A}, {B}, {C}",
    ],
    "b_chosen_by_m0": [
        *(f"{WMMA} {C}, {A}, {B}, {C}", "s_mov_b32 m0, 8", "v_movreld_b32 v39, v50"),
        f"{WMMA} {D}, {A}, {B}, {C}",
    ],
    # The second round of the loop comes to its instruction by another way than the first.
    "loop": [
        *(f"{WMMA} {C}, {A}, {B}, {C}", "s_mov_b32 s10, 3", "loop_over_b:"),
        *(f"{WMMA} {D}, {A}, {B}, {C}", "v_swap_b32 v47, v46", "s_sub_u32 s10, s10, 1", "s_cmp_lg_u32 s10, 0"),
        "s_cbranch_scc1 loop_over_b",
    ],
    "steady_loop": [
        *("s_mov_b32 s10, 20", "steady:", f"{WMMA} {D}, {A}, {B}, {C}"),
        *("s_sub_u32 s10, s10, 1", "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 steady"),
    ],
    "two_loops": [
        *("s_mov_b32 s10, 2", "one:", f"{WMMA} {D}, {A}, {B}, {C}"),
        *("s_sub_u32 s10, s10, 1", "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 one"),
        *("v_mov_b32 v47, v50", "s_mov_b32 s10, 2", "other:", f"{WMMA} {D}, {A}, {B}, {C}"),
        *("s_sub_u32 s10, s10, 1", "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 other"),
    ],
    # B stays the same in the inner loop, and is another one when the wave comes there again.
    "inner_loop": [
        *("s_mov_b32 s10, 2", "outer:", "s_mov_b32 s11, 2", "inner:", f"{WMMA} {D}, {A}, {B}, {C}"),
        *("s_sub_u32 s11, s11, 1", "s_cmp_lg_u32 s11, 0", "s_cbranch_scc1 inner"),
        *("v_mov_b32 v47, v50", "s_sub_u32 s10, s10, 1", "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 outer"),
    ],
    "entered_in_the_middle": [
        *("s_mov_b32 s10, 2", "outer_again:", "s_mov_b32 s11, 2", "s_branch middle"),
        *("inner_again:", "v_nop", "middle:", f"{WMMA} {D}, {A}, {B}, {C}"),
        *("s_sub_u32 s11, s11, 1", "s_cmp_lg_u32 s11, 0", "s_cbranch_scc1 inner_again"),
        *("v_mov_b32 v47, v50", "s_sub_u32 s10, s10, 1", "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 outer_again"),
    ],
    "left_by_a_jump": [
        *("s_mov_b32 s10, 3", "back:", "s_sub_u32 s10, s10, 1", f"{WMMA} {D}, {A}, {B}, {C}"),
        *("s_cmp_eq_u32 s10, 1", "s_cbranch_scc1 outside", "again:", "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 back"),
        *("s_branch done", "outside:", "v_mov_b32 v47, v50", "s_branch again", "done:"),
    ],
}
# In a code object of its own: where code jumps to addresses, nothing is known of loops.
JUMPS = {
    "back_by_an_address": [
        *("s_mov_b32 s10, 3", "s_getpc_b64 s[12:13]", "here:", "s_add_u32 s12, s12, inside-here"),
        *("s_addc_u32 s13, s13, 0", "next:", "s_sub_u32 s10, s10, 1", f"{WMMA} {D}, {A}, {B}, {C}"),
        *("s_cmp_eq_u32 s10, 1", "s_cbranch_scc1 beyond", "inside:", "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 next"),
        *("s_branch end", "beyond:", "v_mov_b32 v47, v50", "s_setpc_b64 s[12:13]", "end:"),
    ],
}
TWO_ROUNDS = [f"{WMMA} {D}, {A}, {B}, {C}", "v_mov_b32 v47, v50", f"{WMMA} {D}, {A}, {B}, {C}"]
# What a sequence comes to, where that is not what stands there.
MEANINGS = {
    "b_swapped": [f"{WMMA} {C}, {A}, {B}, {C}", "swap v50, v47", f"{WMMA} {D}, {A}, {B}, {C}"],
    "b_moved_in_a_pair": [
        *(f"{WMMA} {C}, {A}, {B}, {C}", "v_mov_b32 v46, v51", "v_mov_b32 v47, v50"),
        f"{WMMA} {D}, {A}, {B}, {C}",
    ],
    "b_chosen_by_m0": SEQUENCES["b_moved"],
    "loop": [SEQUENCES["b_moved"][0], *(SEQUENCES["b_moved"][2], "swap v47, v46") * 3],
    "steady_loop": TWO_ROUNDS[:1],
    "two_loops": TWO_ROUNDS,
    "back_by_an_address": TWO_ROUNDS,
    "inner_loop": [*TWO_ROUNDS, TWO_ROUNDS[1]],
    "entered_in_the_middle": [*TWO_ROUNDS, TWO_ROUNDS[1]],
    "left_by_a_jump": TWO_ROUNDS,
}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    return InstructionRunner(
        {name: [text] for name, text in KERNELS.items()} | SEQUENCES, ROWS, "gfx1151", tmp_path_factory.mktemp("matrix")
    )


@pytest.fixture(scope="module")
def jumping(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    return InstructionRunner(JUMPS, ROWS, "gfx1151", tmp_path_factory.mktemp("jumps"))


def run(runner: InstructionRunner, name: str, a: Words, b: Words, c: Words, active: int = ALL) -> Words:
    """All registers [32, 32] after the instruction."""
    vectors = np.full((1, ROWS, LANES), 0x12345678, np.uint32)
    for first, rows in ((0, a), (8, b), (16, c)):
        vectors[0, first : first + len(rows)] = rows
    scalars = np.zeros((1, 8), np.uint32)
    scalars[0, 0] = active
    return np.asarray(runner.run(name, vectors, scalars).vectors[0], np.uint32)


def product(a: Array, b: Array) -> Array:
    """[8, 32] in f64 from the values [lane, k] of A and B: element j of lane 16 h + c is the sum over k of
    A(lane 16 h + 2 j + h)[k] B(lane 16 h + c)[k]."""
    result = np.zeros((8, LANES))
    for lane in range(LANES):
        half = lane // 16
        for j in range(8):
            result[j, lane] = (a[16 * half + 2 * j + half].astype(np.float64) * b[lane].astype(np.float64)).sum()
    return result


def halves(values: Array, kind: str) -> tuple[Words, Array]:
    """Registers [8, 32] for values [lane, k], and the values after rounding."""
    if kind == "f16":
        bits = values.astype(np.float16).view(np.uint16)
        rounded: Array = bits.view(np.float16)
    else:
        bits = (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        rounded = brain_to_f32(bits)
    return np.ascontiguousarray(bits.reshape(LANES, 16)).view(np.uint32).T.copy(), rounded


def matrices(kind: str, equal_halves: bool, seed: int = 91, scale: float = 1.0) -> tuple[Words, Words, Array, Array]:
    random = np.random.default_rng(seed)
    a, b = (random.normal(0, scale, (LANES, 16)) for _ in range(2))
    if equal_halves:
        a[16:], b[16:] = a[:16], b[:16]
    a_rows, a_values = halves(a, kind)
    b_rows, b_values = halves(b, kind)
    return a_rows, b_rows, a_values, b_values


def addends(seed: int = 92) -> Array:
    return np.random.default_rng(seed).normal(0, 2, (8, LANES)).astype(np.float32)


def close(got: Array, want: Array, tolerance: float = 2e-7) -> None:
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("lanes", ["any", "equal halves", "repeated columns", "repeated factors"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_f32_results(runner: InstructionRunner, kind: str, lanes: str) -> None:
    a, b, a_values, b_values = matrices(kind, lanes != "any")
    c = addends()
    if lanes.startswith("repeated"):  # as where a kernel has four rows of a matrix and repeats the last one
        column = np.minimum(np.arange(16), 3)
        b, b_values = b[:, np.tile(column, 2)], b_values[np.tile(column, 2)]
        if lanes == "repeated columns":
            c = c[:, np.concatenate([column, 16 + column])]
    got = run(runner, f"f32_{kind}", a, b, c.view(np.uint32))
    close(got[24:].view(np.float32), product(a_values, b_values) + c)
    np.testing.assert_array_equal(got[:8], a)
    np.testing.assert_array_equal(got[8:16], b)
    np.testing.assert_array_equal(got[16:24], c.view(np.uint32))


@pytest.mark.parametrize("different", range(1, 17))
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_columns_that_repeat_in_runs(runner: InstructionRunner, kind: str, different: int) -> None:
    """So many different columns, each repeated some times, in halves that differ."""
    rng = np.random.default_rng(different)
    column = np.sort(np.concatenate([np.arange(different), rng.integers(0, different, 16 - different)]))
    lanes = np.concatenate([column, 16 + column])
    a, b, a_values, b_values = matrices(kind, False, seed=different)
    c = addends()[:, lanes]
    got = run(runner, f"f32_{kind}", a, b[:, lanes], c.view(np.uint32))
    close(got[24:].view(np.float32), product(a_values, b_values[lanes]) + c)


@pytest.mark.parametrize("first", range(2, 16))
@pytest.mark.parametrize("register", range(8))
def test_one_column_that_differs(runner: InstructionRunner, first: int, register: int) -> None:
    """Columns that repeat, but for one element of B or C in one lane."""
    a, b, a_values, b_values = matrices("f16", True, seed=100)
    repeated = np.tile(np.minimum(np.arange(16), 1), 2)
    b, b_values = b[:, repeated].copy(), b_values[repeated].copy()
    c = addends()[:, repeated].copy()
    b_values[first, 2 * register] += np.float16(1)
    changed, b_values = halves(b_values, "f16")
    got = run(runner, "f32_f16", a, changed, c.view(np.uint32))
    close(got[24:].view(np.float32), product(a_values, b_values) + c)
    c[register, 16 + first] += 1
    got = run(runner, "f32_f16", a, b, c.view(np.uint32))
    close(got[24:].view(np.float32), product(a_values, b.T.copy().view(np.float16)) + c)


def numbers(registers: Words, kind: str) -> Array:
    """The values [lane, k] that registers [8, 32] hold."""
    bits = np.ascontiguousarray(registers.T).view(np.uint16)
    return bits.view(np.float16) if kind == "f16" else brain_to_f32(bits)


@pytest.mark.filterwarnings("ignore:invalid value")  # results of f32 make any halves, NaN and Inf among them
@pytest.mark.parametrize("different", [1, 3, 4, 5, 8, 9, 16])
@pytest.mark.parametrize("name", [*SEQUENCES, *JUMPS])
def test_sequences(runner: InstructionRunner, jumping: InstructionRunner, name: str, different: int) -> None:
    """A and B of the second instruction are what the registers hold then."""
    column = np.random.default_rng(different).permutation(np.arange(16) % different)
    lanes = np.concatenate([column, 16 + column])
    a, b, *_ = matrices("f16", False, seed=different)
    c = addends()[:, lanes].view(np.uint32)
    model = np.concatenate([a, b[:, lanes], c, np.zeros_like(c)])
    got = run(jumping if name in JUMPS else runner, name, model[:8], model[8:16], model[16:24])
    for text in MEANINGS.get(name) or SEQUENCES[name]:
        opcode, operands = text.split(" ", 1)
        if opcode == "v_mov_b32":
            to, source = (int(register.strip()[1:]) - 32 for register in operands.split(","))
            model[to] = model[source]
        elif opcode == "swap":
            swapped = [int(register.strip()[1:]) - 32 for register in operands.split(",")]
            model[swapped] = model[swapped[::-1]]
        elif opcode != "s_nop":
            d, first, second, third = (int(part.split(":")[0]) - 32 for part in operands.split("v[")[1:])
            kind = "f16" if opcode == WMMA else "bf16"
            sign = -1 if "neg_lo" in operands else 1
            exact = sign * product(*(numbers(model[row : row + 8], kind) for row in (first, second)))
            model[d : d + 8] = (exact + model[third : third + 8].view(np.float32)).astype(np.float32).view(np.uint32)
    if name in ("over_a", "over_end_of_a", "over_b"):  # a last bit of these is another half: take those that were there
        inputs = np.concatenate([got[:16], model[16:]])
        exact = product(numbers(inputs[:8], "f16"), numbers(inputs[8:16], "f16"))
        model = np.concatenate([got[:16], c, (exact + c.view(np.float32)).astype(np.float32).view(np.uint32)])
        assert (got[:16] != np.concatenate([a, b[:, lanes]])).any()
    np.testing.assert_allclose(got[16:].view(np.float32), model[16:].view(np.float32), rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(got[:16], model[:16])


def test_waves_in_turns(runner: InstructionRunner) -> None:
    """Each wave has the B of its own registers, whichever ran before it."""
    blocks = 8
    inputs = [matrices("f16", False, seed=200 + block) for block in range(blocks)]
    vectors = np.zeros((blocks, ROWS, LANES), np.uint32)
    vectors[:, :8] = [a for a, *_ in inputs]
    vectors[:, 8:16] = [b for _, b, *_ in inputs]
    got = runner.run("steady_loop", vectors, schedule="random").vectors[:, 24:].view(np.float32)
    close(got, np.stack([product(a, b) for *_, a, b in inputs]))


def test_a_launch_after_another(runner: InstructionRunner) -> None:
    """Nothing of the B of an earlier launch is left, though its registers and loops are the same."""
    for seed in (300, 301):
        a, b, a_values, b_values = matrices("f16", False, seed=seed)
        got = run(runner, "steady_loop", a, b, np.zeros_like(a))
        close(got[24:].view(np.float32), product(a_values, b_values))


def test_the_whole_matrix(runner: InstructionRunner) -> None:
    a, b, a_values, b_values = matrices("f16", equal_halves=True, seed=93)
    got = run(runner, "f32_f16_zero", a, b, addends().view(np.uint32))[24:].view(np.float32)
    matrix = np.zeros((16, 16), np.float32)
    for half in range(2):
        matrix[half::2] = got[:, 16 * half : 16 * half + 16]
    close(matrix, a_values[:16].astype(np.float64) @ b_values[:16].astype(np.float64).T)


def test_rounding_is_once(runner: InstructionRunner) -> None:
    """Large products that cancel, and small ones that a sum in f32 would lose."""
    a_values = np.zeros((LANES, 16))
    a_values[:] = [256, 2.0**-10, -256, 2.0**-12] * 4
    b_values = np.zeros((LANES, 16))
    b_values[:] = [256, 2.0**-10, 256, 2.0**-12] * 4
    a, _ = halves(a_values, "f16")
    b, _ = halves(b_values, "f16")
    got = run(runner, "f32_f16_zero", a, b, addends().view(np.uint32))[24:].view(np.float32)
    np.testing.assert_array_equal(got, np.float32(4 * (2.0**-20 + 2.0**-24)))


def test_special_values(runner: InstructionRunner) -> None:
    a, b, a_values, b_values = matrices("f16", equal_halves=False, seed=94)
    a_values[4, 3], a_values[17, 0], b_values[20, 5] = np.inf, np.nan, np.inf
    a, _ = halves(a_values, "f16")
    b, _ = halves(b_values, "f16")
    c = addends()
    got = run(runner, "f32_f16", a, b, c.view(np.uint32))[24:].view(np.float32)
    with np.errstate(invalid="ignore"):
        want = product(a_values, b_values) + c
    close(got, want)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("f32_f16_zero", lambda p, q, c: p),
        ("f32_f16_one", lambda p, q, c: p + 1),
        ("f32_f16_negative", lambda p, q, c: c - p),
        ("f32_f16_odd_negative", lambda p, q, c: q + c),
        ("f32_f16_c_negative", lambda p, q, c: p - c),
    ],
)
def test_modifiers_and_constants(
    runner: InstructionRunner, name: str, change: Callable[[Array, Array, Array], Array]
) -> None:
    a, b, a_values, b_values = matrices("f16", equal_halves=False, seed=95)
    c = addends()
    alternating = b_values * np.array([1.0, -1.0] * 8)
    got = run(runner, name, a, b, c.view(np.uint32))[24:].view(np.float32)
    close(got, change(product(a_values, b_values), product(a_values, alternating), c))


def test_result_over_the_addends(runner: InstructionRunner) -> None:
    a, b, a_values, b_values = matrices("f16", equal_halves=False, seed=96)
    c = addends()
    want = product(a_values, b_values) + c
    close(run(runner, "f32_f16_over_c", a, b, c.view(np.uint32))[16:24].view(np.float32), want)
    close(run(runner, "f32_f16_shifted", a, b, c.view(np.uint32))[20:28].view(np.float32), want)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("high", [False, True])
def test_half_results(runner: InstructionRunner, kind: str, high: bool) -> None:
    a, b, a_values, b_values = matrices(kind, equal_halves=False, seed=97)
    c_values = addends()
    bits = (
        c_values.astype(np.float16).view(np.uint16)
        if kind == "f16"
        else (c_values.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    )
    wide = bits.astype(np.uint32)
    c = wide << np.uint32(16) | np.uint32(0x9999) if high else wide | np.uint32(0x99990000)
    got = run(runner, kind + "_high" * high, a, b, c)[24:]
    half = (got >> np.uint32(16 if high else 0)).astype(np.uint16)
    other = got & 0xFFFF if high else got >> np.uint32(16)
    np.testing.assert_array_equal(other, 0x5678 if high else 0x1234)
    addend = bits.view(np.float16).astype(np.float64) if kind == "f16" else brain_to_f32(bits).astype(np.float64)
    want = product(a_values, b_values) + addend
    if kind == "f16":
        np.testing.assert_array_equal(half.view(np.float16), want.astype(np.float16))
    else:
        close(brain_to_f32(half), want, tolerance=2.0**-8)
        distance = np.abs(brain_to_f32(half) - want)
        step = np.exp2(np.floor(np.log2(np.abs(want))) - 7)
        assert (distance <= step * 0.5000001).all()  # the nearest bfloat16


def test_half_constant(runner: InstructionRunner) -> None:
    a, b, a_values, b_values = matrices("f16", equal_halves=False, seed=98)
    got = run(runner, "f16_one", a, b, addends().view(np.uint32))[24:]
    want = (product(a_values, b_values) + 1).astype(np.float16)
    np.testing.assert_array_equal((got >> np.uint32(16)).astype(np.uint16).view(np.float16), want)


@pytest.mark.parametrize("clamp", ["", "clamp"])
@pytest.mark.parametrize("signs", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("kind", ["iu8", "iu4"])
def test_integers(runner: InstructionRunner, kind: str, signs: tuple[int, int], clamp: str) -> None:
    width = int(kind[2:])
    random = np.random.default_rng(99)
    a, b = (random.integers(0, 1 << 32, (16 * width // 32, LANES), dtype=np.uint64).astype(np.uint32) for _ in range(2))
    a[:, 3] = b[:, 3] = 0xFFFFFFFF  # the largest products
    a[:, 6] = b[:, 7] = 0x80808080 if width == 8 else 0x88888888
    c = random.integers(0, 1 << 32, (8, LANES), dtype=np.uint64).astype(np.uint32)
    c[1], c[2] = 0x7FFFFFF0, 0x80000010
    values = [
        np.concatenate([fields(row, width, bool(signed)) for row in rows], axis=1)
        for rows, signed in ((a, signs[0]), (b, signs[1]))
    ]
    total = product(*values).astype(np.int64) + c.view(np.int32)
    want = np.clip(total, -(2**31), 2**31 - 1) if clamp else total
    got = run(runner, f"i32_{kind}_{signs[0]}{signs[1]}{clamp}", a, b, c)[24:]
    np.testing.assert_array_equal(got, (want & 0xFFFFFFFF).astype(np.uint32))


def test_all_lanes_have_to_be_active(runner: InstructionRunner) -> None:
    a, b, _, _ = matrices("f16", equal_halves=True)
    with pytest.raises(EmulatorError, match="32 lanes"):
        run(runner, "f32_f16", a, b, addends().view(np.uint32), active=0x7FFFFFFF)
