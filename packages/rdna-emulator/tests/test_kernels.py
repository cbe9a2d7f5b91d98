"""Whole kernels against NumPy: optimised and -O0 code, both targets, both schedules, all checks."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from launch_library import TARGETS, kernel
from rdna_emulator import Report

Launch = Callable[..., Report]
WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "O3": (("-O3",), {}),
    "O0": (("-O0",), {}),
    "random": (("-O3",), {"schedule": "random", "seed": 5}),
    "O0-random": (("-O0",), {"schedule": "random", "seed": 6}),
    "checks": (("-O3",), {"checks": "all"}),
    "O0-checks": (("-O0",), {"checks": "all"}),
    "random-checks": (("-O3",), {"checks": "all", "schedule": "random", "seed": 7}),
}
RANDOM = np.random.default_rng(7)


@pytest.fixture(params=[f"{target}-{way}" for target in TARGETS for way in WAYS])
def launch(request: pytest.FixtureRequest) -> Launch:
    target, _, way = str(request.param).partition("-")
    options, keywords = WAYS[way]

    def run(name: str, grid: Any, block: Any, args: list[Any], **more: Any) -> Report:
        return kernel(name, target, *options).launch(grid, block, args, **{**keywords, **more})

    return run


def test_saxpy(launch: Launch) -> None:
    x, y = RANDOM.random((2, 5000), np.float32)
    expected = np.float32(2.5) * x + y
    launch("saxpy", 20, 256, [np.float32(2.5), x, y, np.int32(5000)])
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_reduce(launch: Launch) -> None:
    x = RANDOM.integers(0, 100, 20000).astype(np.float32)
    out = np.zeros(8, np.float32)
    launch("reduce", 8, 256, [x, out, np.int32(20000)])
    owner = np.arange(20000) // 256 % 8
    np.testing.assert_array_equal(out, [x[owner == group].sum() for group in range(8)])


def test_histogram(launch: Launch) -> None:
    x = RANDOM.integers(0, 1 << 30, 20000).astype(np.uint32)
    bins = np.zeros(64, np.uint32)
    launch("histogram", 8, 256, [x, bins, np.int32(x.size)])
    np.testing.assert_array_equal(bins, np.bincount(x & 63, minlength=64))


def test_scan(launch: Launch) -> None:
    x = RANDOM.integers(-1000, 1000, (3, 256)).astype(np.int32)
    y = np.zeros_like(x)
    launch("scan", 3, 256, [x, y])
    np.testing.assert_array_equal(y, np.cumsum(x, axis=1))


def test_matmul_with_blocks_of_two_dimensions(launch: Launch) -> None:
    a, b = RANDOM.integers(-8, 8, (2, 48, 48)).astype(np.float32)
    c = np.zeros_like(a)
    launch("matmul", (3, 3), (16, 16), [a, b, c, np.int32(48)])
    np.testing.assert_array_equal(c, a @ b)


def test_dynamic_lds(launch: Launch) -> None:
    x = RANDOM.random(200, np.float32)
    y = np.zeros_like(x)
    launch("reverse_in_dynamic_lds", 1, 200, [x, y, np.int32(200)], dynamic_lds=800)
    np.testing.assert_array_equal(y, x[::-1])


def test_structure_with_pointers(launch: Launch) -> None:
    x = RANDOM.random(300, np.float32)
    y = np.zeros((300, 3), np.float32)
    record = struct.pack("<QQqif", x.ctypes.data, y.ctypes.data, 3, 300, 2.0)
    report = launch("scale", 2, 256, [record], memory=[("x", x), y])
    np.testing.assert_array_equal(y, np.stack([x * 2, 0 * x, 0 * x], axis=1))
    assert set(report.counts["unique_lines_by_argument"]) == {"x", "memory 1"}


def test_global_atomics(launch: Launch) -> None:
    total, wide, largest, old = (
        np.zeros(1, np.float32),
        np.zeros(2, np.uint64),
        np.full(1, -5, np.int32),
        np.zeros(640, np.float32),
    )
    launch("global_atomics", 10, 64, [total, wide, largest, old])
    assert total[0] == 640
    assert list(wide) == [10 * (63 * 64 // 2) << 32, 3 * 640]
    assert largest[0] == 639
    np.testing.assert_array_equal(np.sort(old), np.arange(640))


def test_calls_recursion_and_tables(launch: Launch) -> None:
    out = np.zeros(64, np.int32)
    launch("calls", 1, 64, [out])
    table = [1, 1, 2, 3, 5, 8, 13, 21]
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13]
    np.testing.assert_array_equal(out, [fibonacci[t & 7] + table[2 * (t & 7) & 7] for t in range(64)])


def test_calls_through_pointers(launch: Launch) -> None:
    x = RANDOM.integers(-1000, 1000, 64).astype(np.int32)
    out = np.zeros(64, np.int32)
    launch("indirect_calls", 1, 64, [x, out, np.int32(0)])
    np.testing.assert_array_equal(out, 2 * x)
    launch("indirect_calls", 1, 64, [x, out, np.int32(1)])
    np.testing.assert_array_equal(out, x * x)


def test_integer_division(launch: Launch) -> None:
    a = RANDOM.integers(-(2**31), 2**31, 64).astype(np.int32)
    b = (RANDOM.integers(1, 2**31, 64) >> RANDOM.integers(0, 31, 64)).astype(np.int32) * RANDOM.choice(
        [-1, 1], 64
    ).astype(np.int32)
    b[b == 0] = 1
    quotient, remainder, wide = np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(64, np.uint64)
    launch("divide", 1, 64, [a, b, quotient, remainder, wide])
    expected = [int(abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(quotient, expected)
    np.testing.assert_array_equal(remainder, [int(x) - q * int(y) for x, q, y in zip(a, expected, b, strict=True)])
    unsigned = [(int(x) % 2**32 * 1000003) // ((int(y) | 1) % 2**32) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(wide, np.array(unsigned, np.uint64))


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (2**31 - 1, -3), (-(2**31), 10), (0, 5), (12345678, 1)])
def test_uniform_division(launch: Launch, a: int, b: int) -> None:
    out = np.zeros(2, np.int32)
    launch("uniform_divide", 1, 1, [np.int32(a), np.int32(b), out])
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    assert list(out) == [quotient, a - quotient * b]


def test_narrow_types(launch: Launch) -> None:
    a, c = RANDOM.integers(0, 256, 64).astype(np.uint8), RANDOM.integers(-30000, 30000, 64).astype(np.int16)
    e = RANDOM.standard_normal(64).astype(np.float16)
    b, d, f = np.zeros_like(a), np.zeros_like(c), np.zeros_like(e)
    launch("narrow", 1, 64, [a, b, c, d, e, f])
    np.testing.assert_array_equal(b, a + np.uint8(1))
    np.testing.assert_array_equal(d, c * np.int16(3))
    np.testing.assert_allclose(f, e * 2 + 1, rtol=2e-3, atol=1e-3)


def test_wide_types(launch: Launch) -> None:
    a = RANDOM.random((64, 4), np.float32)
    b = np.zeros_like(a)
    launch("wide", 1, 64, [a, b])
    np.testing.assert_array_equal(b, a[::-1])


@pytest.mark.parametrize(("choice", "expected"), [(0, 1163), (1, 1001), (2, 1000)])
def test_apertures(launch: Launch, choice: int, expected: int) -> None:
    out = np.zeros(128, np.int32)
    launch("apertures", 1, 64, [out, np.int32(choice)])
    step = {0: -np.arange(64), 1: np.arange(64) & 3, 2: np.zeros(64, int)}[choice]
    np.testing.assert_array_equal(out[:64], expected + step)
    np.testing.assert_array_equal(out[64:], 1000 if choice == 2 else 0)


@pytest.mark.parametrize(
    ("grid", "block"), [(5, 64), ((2, 3), (8, 4)), ((2, 1, 3), (3, 5, 7)), (1, 1), (1, (4, 4, 64))]
)
def test_ids_and_hidden_arguments(launch: Launch, grid: int | tuple[int, ...], block: int | tuple[int, ...]) -> None:
    grids = ((grid,) if isinstance(grid, int) else grid) + (1,) * (2 if isinstance(grid, int) else 3 - len(grid))
    blocks = ((block,) if isinstance(block, int) else block) + (1,) * (2 if isinstance(block, int) else 3 - len(block))
    threads, groups = int(np.prod(blocks)), int(np.prod(grids))
    out = np.zeros((groups, threads), np.uint32)
    launch("ids", grid, block, [out])
    item = np.arange(threads)
    x, y, z = item % blocks[0], item // blocks[0] % blocks[1], item // blocks[0] // blocks[1]
    np.testing.assert_array_equal(out, (x | y << 8 | z << 16)[None, :] | np.arange(groups)[:, None] << 24)
