"""DS instructions: two addresses, atomics, exchange between lanes, and what bank conflicts cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from assembly import assemble_code_object
from lds_kernels import DS_ATOMICS, DS_RETURNING_ONLY, DWORDS, LDS_BYTES, lds_kernel, run_atomic
from numpy.typing import NDArray
from rdna_emulator import Device, MemoryFault, Module, Report

Words = NDArray[np.uint32]
LANES = np.arange(32)
ALL = 0xFFFFFFFF
RETURNING = {name.format("_rtn"): entry for name, entry in DS_ATOMICS.items()} | DS_RETURNING_ONLY
SILENT = {name.format(""): entry for name, entry in DS_ATOMICS.items()}
SWIZZLES: dict[str, tuple[int, Callable[[int], int]]] = {
    "reverse": (0x7C1F, lambda lane: lane ^ 31),
    "swap_1": (0x041F, lambda lane: lane ^ 1),
    "broadcast_in_8": (0x0018, lambda lane: lane & 0x18),
    "or": (0x0038, lambda lane: lane & 0x18 | 1),
    "quads": (0x801B, lambda lane: lane & ~3 | (3 - (lane & 3))),
    "rotate": (0xC060, lambda lane: (lane + 3) & 31),
    "rotate_back": (0xC460, lambda lane: (lane - 3) & 31),
    "fft": (0xE000, lambda lane: int(f"{lane:05b}"[::-1], 2)),
}


def _names(row: str, registers: int) -> str:
    first = int(row)
    return f"v{first}" if registers == 1 else f"v[{first}:{first + registers - 1}]"


def _instruction(name: str, bits: int, two: bool, returns: bool) -> str:
    registers = bits // 32
    operands = [_names("16", registers)] if returns else []
    operands += ["v1", _names("8", registers)] + ([_names("12", registers)] if two else [])
    return f"ds_{name} {', '.join(operands)} offset:16"


KERNELS = {
    **{f"ds_{name}": _instruction(name, bits, two, True) for name, (_, bits, two) in RETURNING.items()},
    **{f"ds_{name}": _instruction(name, bits, two, False) for name, (_, bits, two) in SILENT.items()},
    "load_2addr_b32": "ds_load_2addr_b32 v[16:17], v1 offset0:3 offset1:200",
    "load_2addr_b64": "ds_load_2addr_b64 v[16:19], v1 offset0:3 offset1:200",
    "load_2addr_stride64_b32": "ds_load_2addr_stride64_b32 v[16:17], v1 offset0:3 offset1:20",
    "load_2addr_stride64_b64": "ds_load_2addr_stride64_b64 v[16:19], v1 offset0:1 offset1:17",
    "store_2addr_b32": "ds_store_2addr_b32 v1, v8, v12 offset0:3 offset1:200",
    "store_2addr_b64": "ds_store_2addr_b64 v1, v[8:9], v[12:13] offset0:3 offset1:200",
    "store_2addr_stride64_b32": "ds_store_2addr_stride64_b32 v1, v8, v12 offset0:3 offset1:20",
    "store_2addr_stride64_b64": "ds_store_2addr_stride64_b64 v1, v[8:9], v[12:13] offset0:1 offset1:17",
    "exchange_2addr_b32": "ds_storexchg_2addr_rtn_b32 v[16:17], v1, v8, v12 offset0:3 offset1:200",
    "exchange_2addr_stride64_b64": "ds_storexchg_2addr_stride64_rtn_b64 v[16:19], v1, v[8:9], v[12:13] offset0:1 "
    "offset1:17",
    "bpermute": "ds_bpermute_b32 v16, v1, v8 offset:8",
    "permute": "ds_permute_b32 v16, v1, v8 offset:8",
    **{f"swizzle_{name}": f"ds_swizzle_b32 v16, v8 offset:{code:#x}" for name, (code, _) in SWIZZLES.items()},
    "load_b32": "ds_load_b32 v16, v1",
    "load_b64": "ds_load_b64 v[16:17], v1",
    "load_b128": "ds_load_b128 v[16:19], v1",
    "load_u8": "ds_load_u8 v16, v1",
    "store_b128": "ds_store_b128 v1, v[8:11]",
    "append": "s_mov_b32 m0, 0x100000\n  ds_append v16 offset:4",
    "consume": "s_mov_b32 m0, 0x100000\n  ds_consume v16 offset:4",
    "load_addtid": "s_mov_b32 m0, 256\n  ds_load_addtid_b32 v16 offset:4",
    "store_addtid": "s_mov_b32 m0, 256\n  ds_store_addtid_b32 v8 offset:4",
    "condxchg": "ds_condxchg32_rtn_b64 v[16:17], v1, v[8:9] offset:16",
    "nothing": "s_nop 0",
}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    kernels = [lds_kernel(name, instruction) for name, instruction in KERNELS.items()]
    return Device("gfx1151", threads=1).load(assemble_code_object(kernels, "gfx1151", tmp_path_factory.mktemp("lds")))


class Lds:
    """LDS before and after an instruction, what lanes gave and what they got."""

    def __init__(
        self, module: Module, name: str, addresses: NDArray[np.integer], mask: int = ALL, seed: int = 0
    ) -> None:
        random = np.random.default_rng(seed)
        self.before = random.integers(0, 1 << 32, DWORDS, np.uint32)
        self.data = random.integers(0, 1 << 32, (8, 32), np.uint32)
        self.prepare(name)
        self.after = self.before.copy()
        self.got = np.zeros((4, 32), np.uint32)
        arguments = [self.after, addresses.astype(np.uint32), self.data, np.array([mask], np.uint32), self.got]
        self.report: Report = module[name].launch(1, 32, arguments)

    def prepare(self, name: str) -> None:
        if name.endswith(("f32", "f64")):  # numbers that meet
            kind = np.float32 if name.endswith("f32") else np.float64
            self.before = np.resize(
                np.array([1.5, -2.0, 0.0, 1e30, -0.0, 3.25], kind), LDS_BYTES // kind().nbytes
            ).view(np.uint32)
            numbers = np.resize(np.array([-2.0, 1.5, 7.0, 0.0, 2.5], kind), 32)
            halves = numbers.view(np.uint32).reshape(32, -1).T
            self.data[: len(halves)] = halves
            self.data[4 : 4 + len(halves)] = np.roll(numbers, 1).view(np.uint32).reshape(32, -1).T
        else:  # some pairs are equal, some close
            self.before[:64] = np.resize([0, 1, 5, 0xFFFFFFFF, 0x80000000, 9, 5, 0], 64)
            self.data[0] = np.resize([5, 0, 3, 0x80000000, 1], 32)
            self.data[1] = np.resize([0, 1, 0xFFFFFFFF, 1], 32)
            self.data[4] = np.resize([1, 5, 0, 9], 32)
            self.data[5] = np.resize([0, 1], 32)


def _wide(low: Words, high: Words | None) -> list[int]:
    return [
        int(value)
        for value in (low.astype(np.uint64) | (0 if high is None else high.astype(np.uint64) << np.uint64(32)))
    ]


@pytest.mark.parametrize("mask", [ALL, 0, 0xF0F000F1])
@pytest.mark.parametrize("name", [*RETURNING, *SILENT])
def test_atomics(module: Module, name: str, mask: int) -> None:
    model, bits, _ = (RETURNING | SILENT)[name]
    size = bits // 8
    places = LANES * 5 % 23  # several lanes meet
    lds = Lds(module, f"ds_{name}", places * size, mask)
    memory = (
        [int(value) for value in lds.before[4:].view(f"u{size}")]
        if bits == 32
        else [int(value) for value in lds.before[4:].copy().view(np.uint64)]
    )
    second = _wide(lds.data[4], lds.data[5] if bits == 64 else None)
    data = _wide(lds.data[0], lds.data[1] if bits == 64 else None)
    old = run_atomic(model, bits, memory, [int(place) for place in places], data, second, mask)
    after = lds.after[4:].copy().view(f"u{size}")
    np.testing.assert_array_equal(after, np.array(memory, f"u{size}"))
    active = np.array([mask >> lane & 1 for lane in range(32)], bool)
    if name in RETURNING:
        got = np.array(_wide(lds.got[0], lds.got[1] if bits == 64 else None), np.uint64)
        np.testing.assert_array_equal(got[active], np.array(old, np.uint64)[active])
        assert set(lds.got[0, ~active]) <= {0x11111111}
    else:
        assert set(lds.got[0]) == {0x11111111}


@pytest.mark.parametrize(
    ("name", "size", "first", "second"),
    [
        ("2addr_b32", 4, 3, 200),
        ("2addr_b64", 8, 3, 200),
        ("2addr_stride64_b32", 4, 192, 1280),
        ("2addr_stride64_b64", 8, 64, 1088),
    ],
)
@pytest.mark.parametrize("mask", [ALL, 0x8001F00F])
def test_two_addresses(module: Module, name: str, size: int, first: int, second: int, mask: int) -> None:
    addresses = LANES * 20  # 4-byte aligned, as 8-byte elements may be
    active = [lane for lane in range(32) if mask >> lane & 1]
    words = size // 4
    loaded = Lds(module, f"load_{name}", addresses, mask)
    stored = Lds(module, f"store_{name}", addresses, mask)
    expected = stored.before.copy()
    for lane in active:
        for k, element in enumerate((first, second)):
            at = int(addresses[lane]) // 4 + element * words
            np.testing.assert_array_equal(loaded.got[k * words : (k + 1) * words, lane], loaded.before[at : at + words])
    for k, element in enumerate((first, second)):
        for lane in active:
            at = int(addresses[lane]) // 4 + element * words
            expected[at : at + words] = stored.data[4 * k : 4 * k + words, lane]
    np.testing.assert_array_equal(stored.after, expected)


@pytest.mark.parametrize(
    ("name", "words", "first", "second"),
    [("exchange_2addr_b32", 1, 3, 200), ("exchange_2addr_stride64_b64", 2, 64, 1088)],
)
def test_exchange_of_two_addresses(module: Module, name: str, words: int, first: int, second: int) -> None:
    addresses = LANES * 8 * words
    lds = Lds(module, name, addresses)
    expected = lds.before.copy()
    for lane in range(32):
        for k, element in enumerate((first, second)):
            at = int(addresses[lane]) // 4 + element * words
            np.testing.assert_array_equal(lds.got[k * words : (k + 1) * words, lane], lds.before[at : at + words])
            expected[at : at + words] = lds.data[4 * k : 4 * k + words, lane]
    np.testing.assert_array_equal(lds.after, expected)


@pytest.mark.parametrize("mask", [ALL, 0x0F0F3331])
def test_bpermute_and_permute(module: Module, mask: int) -> None:
    addresses = (LANES * 7 + 40) * 4 + 3  # the low bits and what is past 32 lanes do not count
    active = np.array([mask >> lane & 1 for lane in range(32)], bool)
    pulled = Lds(module, "bpermute", addresses, mask)
    source = (addresses + 8) // 4 % 32
    expected = np.where(active[source], pulled.data[0][source], 0)
    np.testing.assert_array_equal(pulled.got[0], np.where(active, expected, 0x11111111))
    pushed = Lds(module, "permute", addresses, mask)
    expected = np.zeros(32, np.uint32)
    for lane in LANES[active]:
        expected[source[lane]] = pushed.data[0, lane]
    np.testing.assert_array_equal(pushed.got[0], np.where(active, expected, 0x11111111))


@pytest.mark.parametrize("name", SWIZZLES)
def test_swizzle(module: Module, name: str) -> None:
    for mask in (ALL, 0x0FF00FF0):
        lds = Lds(module, f"swizzle_{name}", LANES, mask)
        for lane in range(32):
            source = SWIZZLES[name][1](lane)
            expected = 0x11111111 if not mask >> lane & 1 else lds.data[0, source] if mask >> source & 1 else 0
            assert lds.got[0, lane] == expected, (lane, source)


def test_counters_of_lanes(module: Module) -> None:
    for name, sign in (("append", 1), ("consume", -1)):
        lds = Lds(module, name, LANES, 0xFF00FF01)
        at = (16 + 4) // 4
        assert lds.after[at] == (int(lds.before[at]) + sign * 17) % (1 << 32)
        assert lds.got[0, 0] == lds.before[at]
        assert lds.got[0, 1] == 0x11111111


def test_address_from_the_lane_number(module: Module) -> None:
    loaded, stored = Lds(module, "load_addtid", LANES), Lds(module, "store_addtid", LANES)
    np.testing.assert_array_equal(loaded.got[0], loaded.before[65:97])
    np.testing.assert_array_equal(stored.after[65:97], stored.data[0])


def test_conditional_exchange(module: Module) -> None:
    lds = Lds(module, "condxchg", LANES * 8, seed=3)
    before, after = lds.before[4:68].reshape(32, 2), lds.after[4:68].reshape(32, 2)
    data = lds.data[:2].T
    np.testing.assert_array_equal(after, np.where(data >> 31, data & 0x7FFFFFFF, before))
    np.testing.assert_array_equal(lds.got[:2].T, before)


def test_a_base_may_be_negative_where_the_sum_is_inside(module: Module) -> None:
    addresses = (LANES.astype(np.int64) * 4 - 16) % (1 << 32)
    lds = Lds(module, "ds_add_rtn_u32", addresses)
    np.testing.assert_array_equal(lds.got[0], lds.before[:32])
    with pytest.raises(MemoryFault, match="LDS byte 4294967292"):
        Lds(module, "ds_add_rtn_u32", (addresses - 4) % (1 << 32))


def test_atomics_want_their_own_alignment(module: Module) -> None:
    with pytest.raises(MemoryFault, match="not a multiple of 8"):
        Lds(module, "ds_add_u64", LANES * 8 + 4)


def _cycles(module: Module, name: str, addresses: NDArray[np.integer], mask: int = ALL) -> tuple[int, int]:
    base = Lds(module, "nothing", addresses, mask).report.counts
    counts = Lds(module, name, addresses, mask).report.counts
    return counts["lds_cycles"] - base["lds_cycles"], counts["lds_cycles_minimum"] - base["lds_cycles_minimum"]


@pytest.mark.parametrize(
    ("name", "addresses", "cycles", "minimum"),
    [
        ("load_b32", LANES * 4, 1, 1),
        ("load_b32", LANES * 0, 1, 1),  # one dword for all
        ("load_b32", LANES * 128, 32, 1),  # one bank
        ("load_b32", LANES * 8, 2, 1),
        ("load_b32", LANES * 132, 1, 1),  # padded rows
        ("load_u8", LANES, 1, 1),
        ("load_u8", LANES * 4, 1, 1),
        ("load_b64", LANES * 8, 2, 2),
        ("load_b64", LANES * 16, 4, 2),
        ("load_b128", LANES * 16, 4, 4),
        ("load_b128", LANES * 32, 8, 4),
        ("load_b128", LANES * 144, 4, 4),  # an odd number of 16-byte units
        ("load_b128", LANES * 128, 32, 4),
        ("store_b128", LANES * 128, 32, 4),
        ("load_2addr_b32", LANES * 4, 2, 2),
        ("load_2addr_b64", LANES * 8, 4, 4),
        ("ds_add_u32", LANES * 4, 1, 1),
        ("ds_add_u32", LANES * 0, 32, 1),  # atomics on one dword go one by one
    ],
)
def test_bank_cycles(module: Module, name: str, addresses: NDArray[np.integer], cycles: int, minimum: int) -> None:
    assert _cycles(module, name, addresses) == (cycles, minimum)


def test_bank_cycles_of_active_lanes(module: Module) -> None:
    assert _cycles(module, "load_b128", LANES * 16, 0x000000FF) == (1, 1)
    assert _cycles(module, "load_b32", LANES * 128, 0x00000003) == (2, 1)
    assert _cycles(module, "load_b32", LANES * 128, 0) == (0, 0)
