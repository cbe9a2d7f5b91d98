"""DPP, permlane, reads and writes of single lanes, exchanges and relative moves."""

from __future__ import annotations

import numpy as np
import pytest

from opcodes.cases import Array
from opcodes.instruction_runner import ALL, LANES, InstructionRunner, Words

LANE = np.arange(LANES)
IN_ROW, ROW = LANE & 15, LANE & 16


def _shifted(distance: int) -> Array:
    """Lane of the same row, or -1."""
    source = IN_ROW + distance
    return np.where((source >= 0) & (source < 16), ROW + source, -1)


CONTROLS: dict[str, Array] = {
    "quad_perm:[0,1,2,3]": LANE,
    "quad_perm:[3,2,1,0]": LANE ^ 3,
    "quad_perm:[1,1,3,0]": (LANE & ~3) + np.array([1, 1, 3, 0])[LANE & 3],
    "row_mirror": ROW + 15 - IN_ROW,
    "row_half_mirror": LANE ^ 7,
    **{f"row_shl:{n}": _shifted(n) for n in range(1, 16)},
    **{f"row_shr:{n}": _shifted(-n) for n in range(1, 16)},
    **{f"row_ror:{n}": ROW + (IN_ROW - n) % 16 for n in range(1, 16)},
    **{f"row_share:{n}": ROW + n for n in range(16)},
    **{f"row_xmask:{n}": LANE ^ n for n in range(16)},
}
SELECTORS_8 = ([7, 6, 5, 4, 3, 2, 1, 0], [0, 0, 0, 0, 4, 4, 4, 4], [1, 2, 3, 4, 5, 6, 7, 0], [3, 1, 4, 1, 5, 2, 6, 5])
EXECS = (ALL, 0x0F0F5A5A, 0x80000001, 0)
MASKS = ((0xF, 0xF), (0x1, 0xF), (0x2, 0xF), (0x3, 0x5), (0xF, 0x8), (0x0, 0xF))


def dpp(control: str, bound: bool, inactive: bool, rows: int = 0xF, banks: int = 0xF) -> str:
    return f"{control} row_mask:{rows:#x} bank_mask:{banks:#x}{' bound_ctrl:1' * bound}{' fi:1' * inactive}"


def key(control: str, bound: bool, inactive: bool) -> str:
    letters = "".join(c if c.isalnum() else "_" for c in control)
    return f"{letters}_{int(bound)}{int(inactive)}"


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels: dict[str, list[str]] = {}
    for control in CONTROLS:
        for bound in (False, True):
            for inactive in (False, True):
                kernels[f"dpp_{key(control, bound, inactive)}"] = [
                    f"v_mov_b32_dpp v38, v32 {dpp(control, bound, inactive)}"
                ]
    for k, (rows, banks) in enumerate(MASKS):
        kernels[f"masks_{k}"] = [f"v_add_nc_u32_dpp v38, v32, v34 {dpp('row_ror:1', False, False, rows, banks)}"]
    for k, selectors in enumerate(SELECTORS_8):
        for fetch in (0, 1):
            kernels[f"dpp8_{k}_{fetch}"] = [f"v_mov_b32_dpp v38, v32 dpp8:{selectors}" + " fi:1" * fetch]
    whole = "row_mask:0xf bank_mask:0xf"
    kernels |= {
        "dpp_same": [f"v_add_nc_u32_dpp v32, v32, v32 row_ror:1 {whole}", "v_mov_b32_e32 v38, v32"],
        "dpp_signs": [f"v_sub_f32_dpp v38, -v32, |v34| row_xmask:1 {whole}"],
        "dpp_e64": [f"v_add_f32_e64_dpp v38, v32, s30 clamp row_share:3 {whole}"],
        "dpp_half": [f"v_add_f16_dpp v38.h, v32.h, v34.l row_shr:1 {whole} bound_ctrl:1"],
        "dpp_cmp": [f"v_cmp_gt_u32_dpp vcc_lo, v32, v34 row_shl:1 {whole}"],
        "dpp_cmpx": [f"v_cmpx_gt_u32_dpp v32, v34 row_xmask:2 {whole}"],
        "dpp_fmac": [f"v_fmac_f32_dpp v38, v32, v34 row_shr:2 {whole}"],
        "dpp_carry": [f"v_add_co_ci_u32_dpp v38, vcc_lo, v32, v34, vcc_lo row_ror:8 {whole}"],
        "dpp_dot": [f"v_dot2_f32_f16_e64_dpp v38, v32, v34, v36 row_mirror {whole}"],
        "dpp_half_mov": [f"v_mov_b16_dpp v38.h, v32.l row_xmask:1 {whole}"],
        "readlane": ["v_readlane_b32 s28, v32, s30"],
        "readlane_constant": ["v_readlane_b32 s28, v32, 17"],
        "readfirstlane": ["v_readfirstlane_b32 s28, v32"],
        "readlane_m0": ["s_mov_b32 m0, s30", "v_readlane_b32 s28, v32, m0"],
        "writelane": ["v_writelane_b32 v38, s31, s30"],
        "writelane_constant": ["v_writelane_b32 v38, -5, 9"],
        "swap": ["v_swap_b32 v38, v32"],
        "swap_half": ["v_swap_b16 v38.h, v32.l"],
        "swap_same": ["v_swap_b16 v32.h, v32.l"],
        "permlane64": ["v_permlane64_b32 v38, v32"],
        "movrels": ["s_mov_b32 m0, s30", "v_movrels_b32_e32 v38, v32"],
        "movreld": ["s_mov_b32 m0, s30", "v_movreld_b32_e32 v36, v32"],
        "movreld_scalar": ["s_mov_b32 m0, s30", "v_movreld_b32_e32 v36, s31"],
        "movrelsd": ["s_mov_b32 m0, s30", "v_movrelsd_b32_e32 v36, v32"],
        "movrelsd_2": ["s_mov_b32 m0, s30", "v_movrelsd_2_b32_e32 v34, v32"],
        "swaprel": ["s_mov_b32 m0, s30", "v_swaprel_b32 v34, v32"],
    }
    for name in ("permlane16", "permlanex16"):
        for fetch in (0, 1):
            for zero in (0, 1):
                kernels[f"{name}_{zero}{fetch}"] = [f"v_{name}_b32 v38, v32, s30, s31 op_sel:[{fetch},{zero}]"]
                kernels[f"{name}_{zero}{fetch}_over"] = [
                    f"v_{name}_b32 v32, v32, s30, s31 op_sel:[{fetch},{zero}]",
                    "v_mov_b32_e32 v38, v32",
                ]
    return InstructionRunner(kernels, 8, "gfx1151", tmp_path_factory.mktemp("lanes"))


def registers(seed: int) -> Words:
    return np.random.default_rng(seed).integers(0, 1 << 32, (1, 8, LANES), dtype=np.uint64).astype(np.uint32)


def run(
    runner: InstructionRunner, name: str, vectors: Words, active: int = ALL, s30: int = 0, s31: int = 0, vcc: int = 0
) -> tuple[Words, int, int, int]:
    """The registers [8, 32], EXEC, VCC and s28."""
    scalars = np.array([[active, vcc, 0, 0, 0, 0, s30, s31]], np.uint32)
    result = runner.run(name, vectors, scalars)
    return result.vectors[0], int(result.exec[0]), int(result.vcc[0]), int(result.s28[0])


def active_lanes(mask: int) -> Array:
    return (mask >> LANE & 1).astype(bool)


def exchanged(
    old: Words, values: Words, source: Array, active: int, bound: bool, inactive: bool
) -> tuple[Words, Array]:
    """What DPP and permlane give, ``old`` where nothing is written, and the lanes that are written."""
    available = source >= 0
    if not inactive:
        available = available & active_lanes(active)[np.maximum(source, 0)]
    moved = np.where(available, values[np.maximum(source, 0)], np.uint32(0))
    written = active_lanes(active) & (available | bound)
    return np.where(written, moved, old), written


@pytest.mark.parametrize("active", EXECS, ids=hex)
@pytest.mark.parametrize("control", CONTROLS)
def test_dpp(runner: InstructionRunner, control: str, active: int) -> None:
    vectors = registers(61)
    for bound in (False, True):
        for inactive in (False, True):
            got, exec_after, _, _ = run(runner, f"dpp_{key(control, bound, inactive)}", vectors, active)
            want, _ = exchanged(vectors[0, 6], vectors[0, 0], CONTROLS[control], active, bound, inactive)
            np.testing.assert_array_equal(got[6], want, err_msg=f"bound_ctrl {bound}, fi {inactive}")
            assert exec_after == active


@pytest.mark.parametrize("k", range(len(MASKS)))
def test_row_and_bank_masks(runner: InstructionRunner, k: int) -> None:
    rows, banks = MASKS[k]
    vectors = registers(62)
    allowed = (rows >> (LANE >> 4) & 1) & (banks >> (IN_ROW >> 2) & 1)
    got, exec_after, _, _ = run(runner, f"masks_{k}", vectors)
    total = vectors[0, 0][CONTROLS["row_ror:1"]] + vectors[0, 2]
    np.testing.assert_array_equal(got[6], np.where(allowed, total, vectors[0, 6]))
    assert exec_after == ALL


@pytest.mark.parametrize("active", EXECS, ids=hex)
@pytest.mark.parametrize("k", range(len(SELECTORS_8)))
def test_dpp8(runner: InstructionRunner, k: int, active: int) -> None:
    vectors = registers(63)
    source = (LANE & ~7) + np.array(SELECTORS_8[k])[LANE & 7]
    for inactive in (0, 1):
        got, _, _, _ = run(runner, f"dpp8_{k}_{inactive}", vectors, active)
        want, _ = exchanged(vectors[0, 6], vectors[0, 0], source, active, True, bool(inactive))
        np.testing.assert_array_equal(got[6], want)


def test_dpp_reads_before_it_writes(runner: InstructionRunner) -> None:
    vectors = registers(64)
    got, _, _, _ = run(runner, "dpp_same", vectors)
    np.testing.assert_array_equal(got[6], vectors[0, 0][CONTROLS["row_ror:1"]] + vectors[0, 0])


def floats(seed: int) -> Words:
    return np.random.default_rng(seed).uniform(-2, 2, (1, 8, LANES)).astype(np.float32).view(np.uint32)


def test_dpp_with_modifiers(runner: InstructionRunner) -> None:
    vectors = floats(65)
    a, b, old = (vectors[0, k].view(np.float32) for k in (0, 2, 6))
    got, _, _, _ = run(runner, "dpp_signs", vectors)
    np.testing.assert_array_equal(got[6].view(np.float32), -a[LANE ^ 1] - np.abs(b))
    half = np.float32(0.5)
    got, _, _, _ = run(runner, "dpp_e64", vectors, s30=0x3F000000)
    np.testing.assert_array_equal(got[6].view(np.float32), np.clip(a[ROW + 3] + half, 0, 1))
    got, _, _, _ = run(runner, "dpp_fmac", vectors)
    source = CONTROLS["row_shr:2"]
    total = (a[source].astype(np.float64) * b + old).astype(np.float32)
    np.testing.assert_array_equal(got[6].view(np.float32), np.where(source >= 0, total, old))


def test_dpp_of_halves(runner: InstructionRunner) -> None:
    vectors = np.random.default_rng(66).uniform(-2, 2, (1, 8, 2 * LANES)).astype(np.float16).view(np.uint32)
    halves = vectors.view(np.float16).reshape(8, LANES, 2)
    got, _, _, _ = run(runner, "dpp_half", vectors)
    source = CONTROLS["row_shr:1"]
    moved = np.where(source >= 0, halves[0, source, 1], np.float16(0))
    result = got[6].view(np.float16).reshape(LANES, 2)
    np.testing.assert_array_equal(result[:, 1], moved + halves[2, :, 0])
    np.testing.assert_array_equal(result[:, 0], halves[6, :, 0])
    got, _, _, _ = run(runner, "dpp_half_mov", vectors)
    result = got[6].view(np.float16).reshape(LANES, 2)
    np.testing.assert_array_equal(result, np.stack([halves[6, :, 0], halves[0, LANE ^ 1, 0]], axis=1))
    got, _, _, _ = run(runner, "dpp_dot", vectors)
    products = halves[0, CONTROLS["row_mirror"]].astype(np.float64) * halves[2]
    want = products.sum(axis=1) + vectors[0, 4].view(np.float32)
    np.testing.assert_allclose(got[6].view(np.float32), want, rtol=1e-6, atol=1e-6)


def mask_of(flags: Array) -> int:
    return int((flags.astype(np.uint64) << LANE.astype(np.uint64)).sum())


@pytest.mark.parametrize("active", EXECS, ids=hex)
def test_dpp_of_comparisons(runner: InstructionRunner, active: int) -> None:
    vectors = registers(67)
    a, b = vectors[0, 0], vectors[0, 2]
    source = CONTROLS["row_shl:1"]
    _, written = exchanged(a, a, source, active, False, False)
    _, exec_after, vcc, _ = run(runner, "dpp_cmp", vectors, active, vcc=0x1234)
    assert vcc == mask_of((a[source] > b) & written)
    assert exec_after == active
    source = LANE ^ 2
    _, written = exchanged(a, a, source, active, False, False)
    _, exec_after, vcc, _ = run(runner, "dpp_cmpx", vectors, active, vcc=0x1234)
    assert exec_after == mask_of((a[source] > b) & written)
    assert vcc == 0x1234


def test_dpp_with_carry(runner: InstructionRunner) -> None:
    vectors = registers(68)
    carry = 0x0FF012AB
    total = vectors[0, 0][CONTROLS["row_ror:8"]].astype(np.uint64) + vectors[0, 2] + active_lanes(carry)
    got, _, vcc, _ = run(runner, "dpp_carry", vectors, vcc=carry)
    np.testing.assert_array_equal(got[6], total.astype(np.uint32))
    assert vcc == mask_of(total >> np.uint64(32))


def permlane_source(name: str, low: int, high: int) -> Array:
    selectors = (high << 32 | low) >> (4 * np.arange(16, dtype=np.uint64)).astype(object)
    in_row = np.array([int(s) & 15 for s in selectors])[IN_ROW]
    return np.asarray(in_row + (ROW ^ 16 if name == "permlanex16" else ROW))


@pytest.mark.parametrize("active", EXECS, ids=hex)
@pytest.mark.parametrize(("low", "high"), [(0x76543210, 0xFEDCBA98), (0x13579BDF, 0x02468ACE), (0, 0xFFFFFFFF)])
@pytest.mark.parametrize("name", ["permlane16", "permlanex16"])
def test_permlane(runner: InstructionRunner, name: str, low: int, high: int, active: int) -> None:
    vectors = registers(69)
    source = permlane_source(name, low, high)
    for bound in (0, 1):
        for inactive in (0, 1):
            got, _, _, _ = run(runner, f"{name}_{bound}{inactive}", vectors, active, low, high)
            want, _ = exchanged(vectors[0, 6], vectors[0, 0], source, active, bool(bound), bool(inactive))
            np.testing.assert_array_equal(got[6], want)
            over, _, _, _ = run(runner, f"{name}_{bound}{inactive}_over", vectors, active, low, high)
            want, _ = exchanged(vectors[0, 0], vectors[0, 0], source, active, bool(bound), bool(inactive))
            np.testing.assert_array_equal(over[0], want)


@pytest.mark.parametrize("active", EXECS, ids=hex)
def test_single_lanes(runner: InstructionRunner, active: int) -> None:
    vectors = registers(70)
    for lane in (0, 5, 31, 32 + 7):
        assert run(runner, "readlane", vectors, active, s30=lane)[3] == vectors[0, 0, lane % 32]
        assert run(runner, "readlane_m0", vectors, active, s30=lane)[3] == vectors[0, 0, lane % 32]
        got = run(runner, "writelane", vectors, active, s30=lane, s31=0xCAFE)[0]
        want = vectors[0].copy()
        want[6, lane % 32] = 0xCAFE
        np.testing.assert_array_equal(got, want)
    assert run(runner, "readlane_constant", vectors, active)[3] == vectors[0, 0, 17]
    first = int(np.argmax(active_lanes(active)))
    assert run(runner, "readfirstlane", vectors, active)[3] == vectors[0, 0, first]
    assert run(runner, "writelane_constant", vectors, active)[0][6, 9] == 0xFFFFFFFB


@pytest.mark.parametrize("active", EXECS, ids=hex)
def test_exchanges(runner: InstructionRunner, active: int) -> None:
    vectors = registers(71)
    lanes = active_lanes(active)
    a, d = vectors[0, 0], vectors[0, 6]
    got = run(runner, "swap", vectors, active)[0]
    np.testing.assert_array_equal(got[6], np.where(lanes, a, d))
    np.testing.assert_array_equal(got[0], np.where(lanes, d, a))
    got = run(runner, "swap_half", vectors, active)[0]
    np.testing.assert_array_equal(got[6], np.where(lanes, d & 0xFFFF | a << np.uint32(16), d))
    np.testing.assert_array_equal(got[0], np.where(lanes, a & 0xFFFF0000 | d >> np.uint32(16), a))
    got = run(runner, "swap_same", vectors, active)[0]
    np.testing.assert_array_equal(got[0], np.where(lanes, a << np.uint32(16) | a >> np.uint32(16), a))
    np.testing.assert_array_equal(run(runner, "permlane64", vectors, active)[0], vectors[0])


@pytest.mark.parametrize("active", EXECS, ids=hex)
@pytest.mark.parametrize(
    ("name", "m0", "target", "source"),
    [("movrels", 3, 6, 3), ("movreld", 2, 6, 0), ("movrelsd", 1, 5, 1), ("movrelsd_2", 3 | 1 << 16, 3, 3)],
)
def test_relative_moves(runner: InstructionRunner, name: str, m0: int, target: int, source: int, active: int) -> None:
    vectors = registers(72)
    want = vectors[0].copy()
    want[target] = np.where(active_lanes(active), vectors[0, source], vectors[0, target])
    np.testing.assert_array_equal(run(runner, name, vectors, active, s30=m0)[0], want)


def test_relative_exchange_and_scalar(runner: InstructionRunner) -> None:
    vectors = registers(73)
    want = vectors[0].copy()
    want[[3, 4]] = want[[4, 3]]
    np.testing.assert_array_equal(run(runner, "swaprel", vectors, s30=3 | 2 << 16)[0], want)
    want = vectors[0].copy()
    want[7] = 77
    np.testing.assert_array_equal(run(runner, "movreld_scalar", vectors, s30=3, s31=77)[0], want)
