"""VOP3P: packed halves with every choice of halves, mixed-precision multiply-add, and dot products."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from opcodes.cases import Array
from opcodes.float_models import fma
from opcodes.instruction_runner import LANES, InstructionRunner, Words
from opcodes.packed_models import CLAMPED, PACKED, brain_to_f32, dot, fields
from opcodes.values import NUMPY, Bits, assert_same, combinations, from_rows, random_patterns, to_rows

HALVES = list(itertools.product((0, 1), repeat=4))  # op_sel and op_sel_hi of two sources
MIXED = list(itertools.product(("f", "l", "h"), repeat=3))  # f32, low half, high half
MIX_SIGNS = {"": "{}", "n": "-{}", "a": "|{}|"}
SIGNED = list(itertools.product((0, 1), repeat=2))
DOTS = {"v_dot4_i32_iu8": 8, "v_dot8_i32_iu4": 4}


def operands(count: int) -> str:
    return ", ".join(["v38", "v32", "v34", "v36"][: count + 1])


def bits_list(values: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, values)) + "]"


def mix_text(name: str, halves: tuple[str, ...], sign: str) -> str:
    sources = [MIX_SIGNS[sign].format(register) for register in ("v32", "v34", "v36")]
    select = bits_list(tuple(int(half == "h") for half in halves))
    select_hi = bits_list(tuple(int(half != "f") for half in halves))
    return f"{name} v38, {', '.join(sources)} op_sel:{select} op_sel_hi:{select_hi}"


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels = {name: [f"{name} {operands(count)}"] for name, (_, count, _) in PACKED.items()}
    kernels |= {f"clamp_{name}": [f"{name} {operands(count)} clamp"] for name, (_, count, _) in CLAMPED.items()}
    for a, b, c, d in HALVES:
        selection = f"op_sel:[{a},{b}] op_sel_hi:[{c},{d}]"
        kernels[f"add_{a}{b}{c}{d}"] = [f"v_pk_add_f16 v38, v32, v34 {selection} neg_lo:[{a},{d}] neg_hi:[{b},{c}]"]
        kernels[f"sub_{a}{b}{c}{d}"] = [f"v_pk_sub_u16 v38, v32, v34 {selection}"]
    kernels["pk_scalar"] = ["v_pk_add_u16 v38, s30, v32"]
    kernels["pk_scalar_low"] = ["v_pk_add_u16 v38, s30, v32 op_sel_hi:[0,1]"]
    kernels["pk_constant"] = ["v_pk_add_f16 v38, 1.0, v32 op_sel_hi:[0,1]"]
    kernels["pk_fmac"] = ["v_pk_fmac_f16 v38, v32, v34"]
    for halves in MIXED:
        for sign in MIX_SIGNS:
            kernels[f"mix_{''.join(halves)}_{sign}"] = [mix_text("v_fma_mix_f32", halves, sign)]
    kernels["mixlo"] = [mix_text("v_fma_mixlo_f16", ("f", "l", "h"), "")]
    kernels["mixhi"] = [mix_text("v_fma_mixhi_f16", ("f", "l", "h"), "")]
    kernels["mix_clamp"] = ["v_fma_mix_f32 v38, v32, v34, v36 clamp"]
    for name in ("v_dot2_f32_f16", "v_dot2_f32_bf16"):
        kernels[name] = [f"{name} v38, v32, v34, v36"]
        kernels[f"{name}_swapped"] = [f"{name} v38, v32, v34, v36 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0]"]
    kernels["v_dot2acc_f32_f16"] = ["v_dot2acc_f32_f16 v38, v32, v34"]
    kernels["v_dot2_f16_f16"] = ["v_dot2_f16_f16 v38.h, v32, v34, v36.l"]
    kernels["v_dot2_bf16_bf16"] = ["v_dot2_bf16_bf16 v38.h, v32, v34, v36.l"]
    for kind in ("f16", "bf16"):
        kernels[f"v_dot2_{kind}_{kind}_signs"] = [f"v_dot2_{kind}_{kind} v38.h, -v32, |v34|, -v36.l"]
    for name in DOTS:
        for first, second in SIGNED:
            kernels[f"{name}_{first}{second}"] = [f"{name} v38, v32, v34, v36 neg_lo:[{first},{second},0]"]
            kernels[f"{name}_{first}{second}_clamp"] = [f"{name} v38, v32, v34, v36 neg_lo:[{first},{second},0] clamp"]
    for name in ("v_dot4_u32_u8", "v_dot8_u32_u4"):
        kernels[name] = [f"{name} v38, v32, v34, v36"]
        kernels[f"{name}_clamp"] = [f"{name} v38, v32, v34, v36 clamp"]
    return InstructionRunner(kernels, 8, "gfx1151", tmp_path_factory.mktemp("packed"))


def words(pairs: Bits) -> Words:
    """[n, 2] halves as 32-bit words."""
    return np.ascontiguousarray(pairs).view(np.uint32).reshape(-1)


def run(runner: InstructionRunner, name: str, *sources: Words, s30: int = 0) -> Words:
    vectors = np.full((len(sources[0]) // LANES, 8, LANES), 0x40A04200, np.uint32)
    for k, bits in enumerate(sources):
        vectors[:, 2 * k : 2 * k + 2] = to_rows(bits, "u32")
    scalars = np.zeros((len(vectors), 8), np.uint32)
    scalars[:, 0], scalars[:, 6] = 0xFFFFFFFF, s30
    return from_rows(runner.run(name, vectors, scalars).vectors[:, 6:8], "u32")


def pairs_of(kind: str, count: int, seed: int) -> list[Bits]:
    """[n, 2] halves for each source; the high halves are the low ones in another order."""
    low = combinations((kind,) * count, seed, limit=1024)
    order = np.random.default_rng(seed).permutation(len(low[0]))
    return [np.stack([bits, bits[order]], axis=1) for bits in low]


def check_pairs(got: Words, want: Array, kind: str, sources: list[Bits], name: str) -> None:
    expected = np.ascontiguousarray(want.astype(NUMPY[kind])).view(np.uint16).reshape(-1)
    assert_same(got.view(np.uint16), expected, kind, [bits.reshape(-1) for bits in sources], name)


@pytest.mark.parametrize("name", PACKED)
def test_packed(runner: InstructionRunner, name: str) -> None:
    kind, count, model = PACKED[name]
    sources = pairs_of(kind, count, seed=41)
    with np.errstate(all="ignore"):
        want = model(*(pairs.view(NUMPY[kind]) for pairs in sources))
    check_pairs(run(runner, name, *map(words, sources)), want, kind, sources, name)


@pytest.mark.parametrize("name", CLAMPED)
def test_clamp(runner: InstructionRunner, name: str) -> None:
    kind, count, model = CLAMPED[name]
    sources = pairs_of(kind, count, seed=42)
    with np.errstate(all="ignore"):
        want = model(*(pairs.view(NUMPY[kind]) for pairs in sources)) + np.array(0, NUMPY[kind])
    got = run(runner, f"clamp_{name}", *map(words, sources))
    if kind == "f16":
        got = np.where(got.view(np.uint16) == 0x8000, np.uint16(0), got.view(np.uint16)).view(np.uint32)
    check_pairs(got, want, kind, sources, name)


@pytest.mark.parametrize("halves", HALVES, ids=lambda halves: "".join(map(str, halves)))
def test_choice_of_halves(runner: InstructionRunner, halves: tuple[int, int, int, int]) -> None:
    a, b, c, d = halves
    x, y = pairs_of("f16", 2, seed=43)
    left, right = x[:, [a, c]].copy(), y[:, [b, d]].copy()
    want = left - right
    got = run(runner, f"sub_{a}{b}{c}{d}", words(x), words(y))
    np.testing.assert_array_equal(got.view(np.uint16).reshape(-1, 2), want)
    signs = np.uint16(0x8000)
    left ^= np.array([a, b], np.uint16) * signs
    right ^= np.array([d, c], np.uint16) * signs
    with np.errstate(all="ignore"):
        total = left.view(np.float16) + right.view(np.float16)
    check_pairs(run(runner, f"add_{a}{b}{c}{d}", words(x), words(y)), total, "f16", [x, y], "v_pk_add_f16")


def test_scalars_and_constants(runner: InstructionRunner) -> None:
    (x,) = pairs_of("u16", 1, seed=44)
    pair = np.array([0x1234, 0xFFFF], np.uint16)
    got = run(runner, "pk_scalar", words(x), s30=0xFFFF1234).view(np.uint16).reshape(-1, 2)
    np.testing.assert_array_equal(got, x + pair)
    got = run(runner, "pk_scalar_low", words(x), s30=0xFFFF1234).view(np.uint16).reshape(-1, 2)
    np.testing.assert_array_equal(got, x + pair[0])
    (y,) = pairs_of("f16", 1, seed=45)
    with np.errstate(all="ignore"):
        want = y.view(np.float16) + np.float16(1)
    check_pairs(run(runner, "pk_constant", words(y)), want, "f16", [y], "1.0 + x")


def test_packed_accumulation(runner: InstructionRunner) -> None:
    x, y = pairs_of("f16", 2, seed=46)
    old = np.broadcast_to(np.array([0x4200, 0x40A0], np.uint16), x.shape)
    sources = [np.ascontiguousarray(pairs).reshape(-1).view(np.float16) for pairs in (x, y, old)]
    check_pairs(run(runner, "pk_fmac", words(x), words(y)), fma(*sources), "f16", [x, y], "v_pk_fmac_f16")


def mix_value(bits: Words, half: str, sign: str) -> Array:
    if half == "f":
        value = bits.view(np.float32)
    else:
        value = (bits >> np.uint32(16 if half == "h" else 0)).astype(np.uint16).view(np.float16).astype(np.float32)
    return {"": value, "n": -value, "a": np.abs(value)}[sign]


@pytest.mark.parametrize("sign", MIX_SIGNS)
@pytest.mark.parametrize("halves", MIXED, ids="".join)
def test_mixed_precision(runner: InstructionRunner, halves: tuple[str, str, str], sign: str) -> None:
    random = np.random.default_rng(47)
    sources = []
    for half in halves:
        bits = random_patterns("f32" if half == "f" else "f16", 512, random).astype(np.uint32)
        sources.append(bits << np.uint32(16) | np.uint32(0x3C00) if half == "h" else bits)
    want = fma(*(mix_value(bits, half, sign) for bits, half in zip(sources, halves, strict=True)))
    name = f"mix_{''.join(halves)}_{sign}"
    assert_same(run(runner, name, *sources), want.view(np.uint32), "f32", list(sources), name)


@pytest.mark.parametrize(("name", "high"), [("mixlo", False), ("mixhi", True)])
def test_mixed_precision_to_half(runner: InstructionRunner, name: str, high: bool) -> None:
    random = np.random.default_rng(48)
    a = random_patterns("f32", 512, random).astype(np.uint32)
    b, c = (random_patterns("f16", 512, random).astype(np.uint32) for _ in range(2))
    c <<= np.uint32(16)
    with np.errstate(all="ignore"):
        want = fma(mix_value(a, "f", ""), mix_value(b, "l", ""), mix_value(c, "h", "")).astype(np.float16)
    got = run(runner, name, a, b, c)
    half = (got >> np.uint32(16 if high else 0)).astype(np.uint16)
    assert_same(half, want.view(np.uint16), "f16", [a, b, c], name)
    np.testing.assert_array_equal(got & 0xFFFF if high else got >> 16, 0x4200 if high else 0x40A0)


def test_mixed_precision_clamp(runner: InstructionRunner) -> None:
    a, b, c = (np.full(LANES, np.float32(x)).view(np.uint32) for x in (2, 3, -9))
    np.testing.assert_array_equal(run(runner, "mix_clamp", a, b, c), 0)
    np.testing.assert_array_equal(run(runner, "mix_clamp", a, b, b).view(np.float32), 1)


def dot_sources(kind: str, seed: int) -> tuple[Bits, Bits, Array]:
    """Halves [n, 2] whose products have no rounding problem, and addends."""
    random = np.random.default_rng(seed)
    values = [random.uniform(-4, 4, (1024, 2)) for _ in range(2)]
    if kind == "f16":
        pairs = [value.astype(np.float16).view(np.uint16) for value in values]
    else:
        pairs = [(value.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16) for value in values]
    return pairs[0], pairs[1], random.uniform(-8, 8, 1024).astype(np.float32)


def wide(pairs: Bits, kind: str) -> Array:
    return pairs.view(np.float16) if kind == "f16" else brain_to_f32(pairs)


@pytest.mark.parametrize("name", ["v_dot2_f32_f16", "v_dot2_f32_bf16"])
@pytest.mark.parametrize("swapped", [False, True])
def test_dot2(runner: InstructionRunner, name: str, swapped: bool) -> None:
    kind = "f16" if name.endswith("_f16") else "bf16"
    a, b, c = dot_sources(kind, seed=49)
    left = wide(a, kind).astype(np.float64)
    if swapped:
        left = left[:, ::-1] * np.array([-1.0, 1.0])
    want = dot(left, wide(b, kind), c)
    got = run(runner, name + "_swapped" * swapped, words(a), words(b), c.view(np.uint32)).view(np.float32)
    np.testing.assert_allclose(got, want, rtol=3e-7, atol=3e-6)


def test_dot2_accumulation(runner: InstructionRunner) -> None:
    a, b, _ = dot_sources("f16", seed=50)
    old = np.full(len(a), np.uint32(0x40A04200)).view(np.float32)
    got = run(runner, "v_dot2acc_f32_f16", words(a), words(b)).view(np.float32)
    np.testing.assert_allclose(got, dot(wide(a, "f16"), wide(b, "f16"), old), rtol=3e-7, atol=3e-6)


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize(("kind", "tolerance"), [("f16", 2e-3), ("bf16", 1.6e-2)])
def test_dot2_of_halves(runner: InstructionRunner, kind: str, tolerance: float, signs: bool) -> None:
    a, b, c = dot_sources(kind, seed=51)
    addend = (
        c.astype(np.float16).view(np.uint16)
        if kind == "f16"
        else (c.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    )
    name = f"v_dot2_{kind}_{kind}" + "_signs" * signs
    got = run(runner, name, words(a), words(b), addend.astype(np.uint32))
    half = (got >> np.uint32(16)).astype(np.uint16)
    value = half.view(np.float16).astype(np.float32) if kind == "f16" else brain_to_f32(half)
    x, y, z = wide(a, kind), wide(b, kind), wide(addend, kind)
    want = dot(-x, np.abs(y), -z) if signs else dot(x, y, z)
    np.testing.assert_allclose(value, want, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(got & 0xFFFF, 0x4200)


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize("signs", SIGNED)
@pytest.mark.parametrize("name", DOTS)
def test_integer_dots(runner: InstructionRunner, name: str, signs: tuple[int, int], clamp: bool) -> None:
    a, b, c = combinations(("u32", "u32", "i32"), seed=52)
    products = fields(a, DOTS[name], bool(signs[0])) * fields(b, DOTS[name], bool(signs[1]))
    total = products.sum(axis=1) + c.view(np.int32)
    want = np.clip(total, -(2**31), 2**31 - 1) if clamp else total
    got = run(runner, f"{name}_{signs[0]}{signs[1]}" + "_clamp" * clamp, a, b, c)
    np.testing.assert_array_equal(got, (want & 0xFFFFFFFF).astype(np.uint32))


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize(("name", "width"), [("v_dot4_u32_u8", 8), ("v_dot8_u32_u4", 4)])
def test_unsigned_dots(runner: InstructionRunner, name: str, width: int, clamp: bool) -> None:
    a, b, c = combinations(("u32", "u32", "u32"), seed=53)
    total = (fields(a, width, False) * fields(b, width, False)).sum(axis=1) + c.astype(np.int64)
    want = np.minimum(total, 2**32 - 1) if clamp else total & 0xFFFFFFFF
    np.testing.assert_array_equal(run(runner, name + "_clamp" * clamp, a, b, c), want.astype(np.uint32))
