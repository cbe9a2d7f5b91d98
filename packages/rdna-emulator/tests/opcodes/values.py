"""Edge values of each operand type, and their arrangement over the lanes of test blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opcodes.instruction_runner import LANES, Words

Bits = NDArray[np.unsignedinteger]

_F32 = [
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x3F800000,
    0xBF800000, 0x3F000000, 0xBF000000, 0x3FC00000, 0xC0200000, 0x40490FDB, 0x3F7FFFFF, 0x3F800001, 0x4B000000,
    0x4B7FFFFF, 0xCB800001, 0x4F000000, 0xCF000000, 0x4F7FFFFF, 0x4F800000, 0x477FE000, 0x477FF000, 0x33800000,
    0x38800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0xFFA00000,
    0x1F800000, 0x5F800000, 0x43000000, 0xC2FE8000,
]  # fmt: skip
_F16 = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3800, 0xB800, 0x3E00, 0xC100,
    0x4248, 0x3BFF, 0x3C01, 0x6400, 0x67FF, 0xE800, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0xFD00,
    0x77FF, 0x7800, 0x3555, 0xB666,
]  # fmt: skip
_F64 = [
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000,
    0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000, 0x3FF8000000000000, 0xC004000000000000,
    0x400921FB54442D18, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000001, 0x41DFFFFFFFC00000, 0x41E0000000000000,
    0xC1E0000000200000, 0x41EFFFFFFFE00000, 0x41F0000000000000, 0x4330000000000001, 0x7FEFFFFFFFFFFFFF,
    0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000001,
    0x7FF0000000000001, 0x36A0000000000000, 0x380FFFFFFFFFFFFF,
]  # fmt: skip
_I32 = [
    0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 23, 24, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF,
    0x10000, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x1000000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF,
    0xFFFF8000, 0xFFFF7FFF, 0x12345678, 0xDEADBEEF, 0x55555555, 0xAAAAAAAA,
]  # fmt: skip
_I64 = [
    0, 1, 2, 31, 32, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF,
    0x8000000000000000, 0x8000000000000001, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF00000000,
    0xFFFFFFFF80000000, 0x123456789ABCDEF0,
]  # fmt: skip

EDGES: dict[str, Bits] = {
    "f32": np.array(_F32, np.uint32),
    "f16": np.array(_F16, np.uint16),
    "f64": np.array(_F64, np.uint64),
    "u32": np.array(_I32, np.uint32),
    "u64": np.array(_I64, np.uint64),
    "u16": np.array(sorted({v & 0xFFFF for v in _I32}), np.uint16),
}
for _signed in ("i32", "i64", "i16"):
    EDGES[_signed] = EDGES["u" + _signed[1:]]

NUMPY: dict[str, type[np.generic]] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "u16": np.uint16, "i16": np.int16,
    "u32": np.uint32, "i32": np.int32, "u64": np.uint64, "i64": np.int64, "2f16": np.uint32, "2u16": np.uint32,
}  # fmt: skip


def width(kind: str) -> int:
    """Bits of an operand type; a pair of halves has 32."""
    return 32 if kind[0] == "2" else int(kind[1:])


def unsigned(kind: str) -> type[np.unsignedinteger]:
    """The NumPy type of an operand's bit pattern."""
    types: dict[int, type[np.unsignedinteger]] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
    return types[width(kind)]


def combinations(kinds: tuple[str, ...], seed: int, limit: int = 2048) -> list[Bits]:
    """Bit patterns for each source, equally many, a multiple of 32.

    All edge values of one source or pairs of two, random choices of edges for three; then random patterns.
    """
    random = np.random.default_rng(seed)
    edges = [EDGES[kind] for kind in kinds]
    columns: list[Bits]
    if len(kinds) == 1:
        columns = [edges[0]]
    elif len(kinds) == 2:
        columns = [np.repeat(edges[0], len(edges[1])), np.tile(edges[1], len(edges[0]))]
    else:
        columns = [random.choice(e, limit) for e in edges]
    count = -(-(len(columns[0]) + 256) // LANES) * LANES - len(columns[0])
    return [np.concatenate([c, random_patterns(k, count, random)]) for c, k in zip(columns, kinds, strict=True)]


def random_patterns(kind: str, count: int, random: np.random.Generator) -> Bits:
    """Random bit patterns; of floats half are near 1, so that sums cancel and roundings are ties."""
    bits = random.integers(0, 1 << width(kind), count, dtype=np.uint64)
    if kind[0] == "f":
        mantissa, bias = {"f16": (10, 15), "f32": (23, 127), "f64": (52, 1023)}[kind]
        near = random.integers(bias - 4, bias + 4, count, dtype=np.uint64) << np.uint64(mantissa)
        short = (bits & np.uint64(1)) << np.uint64(mantissa - 1) | (bits >> np.uint64(7)) & np.uint64(
            (1 << mantissa) - 1
        )
        signs = (bits >> np.uint64(3) & np.uint64(1)) << np.uint64(width(kind) - 1)
        bits = np.where(np.arange(count) % 2 == 0, bits, near | short | signs)
    return bits.astype(unsigned(kind))


def to_rows(bits: Bits, kind: str, high: bool = False, garbage: int = 0xA5C3) -> Words:
    """Blocks of two registers, [blocks, 2, 32], that hold ``bits``; the unused half or register holds garbage."""
    rows = np.full((len(bits) // LANES, 2, LANES), garbage << 16 | garbage, np.uint32)
    wide = bits.astype(np.uint64).reshape(-1, LANES)
    if width(kind) == 16:
        rows[:, 0] = (wide << np.uint64(16) | np.uint64(garbage) if high else wide | np.uint64(garbage << 16)).astype(
            np.uint32
        )
    else:
        rows[:, 0] = (wide & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        if width(kind) == 64:
            rows[:, 1] = (wide >> np.uint64(32)).astype(np.uint32)
    return rows


def from_rows(rows: Words, kind: str, high: bool = False) -> Bits:
    """The bit patterns in two registers of blocks, [blocks, 2, 32]."""
    first = rows[:, 0].reshape(-1)
    if width(kind) == 16:
        return (first >> np.uint32(16 if high else 0)).astype(np.uint16)
    if width(kind) == 32:
        return first.copy()
    return first.astype(np.uint64) | rows[:, 1].reshape(-1).astype(np.uint64) << np.uint64(32)


def is_nan(bits: Bits, kind: str) -> NDArray[np.bool_]:
    """Which patterns are NaN; none for integer types."""
    if kind[0] != "f":
        return np.zeros(bits.shape, bool)
    return np.isnan(bits.view(NUMPY[kind]))


def assert_same(got: Bits, want: Bits, kind: str, sources: list[Bits], what: str, ulps: int = 0) -> None:
    """Equality bit by bit; any NaN equals any NaN, and floats may differ by ``ulps`` units in the last place."""
    equal = (got == want) | (is_nan(got, kind) & is_nan(want, kind))
    if ulps:
        with np.errstate(over="ignore"):
            distance = np.abs(ordered(got) - ordered(want))
        equal |= (distance >= 0) & (distance <= ulps) & ~is_nan(got, kind) & ~is_nan(want, kind)
    if not equal.all():
        k = int(np.argmin(equal))
        digits = width(kind) // 4
        inputs = ", ".join(f"{int(s[k]):#x}" for s in sources)
        raise AssertionError(
            f"{what} of ({inputs}) gives {int(got[k]):#0{digits + 2}x}, the model says {int(want[k]):#0{digits + 2}x} "
            f"(lane {k % LANES}; {int((~equal).sum())} of {equal.size} lanes differ)"
        )


def ordered(bits: Bits) -> NDArray[np.int64]:
    """Floats as integers in their order, so that neighbours differ by 1; the two zeros are equal."""
    types: dict[int, type[np.signedinteger]] = {2: np.int16, 4: np.int32, 8: np.int64}
    signed = types[bits.itemsize]
    value = bits.view(signed).astype(np.int64)
    return np.where(value < 0, np.int64(np.iinfo(signed).min) - value, value)
