"""What the Triton kernels are compiled for, and for each a launch with the result that NumPy gives in float64."""

from __future__ import annotations

import ast
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from rdna_emulator import Kernel, Report

Array = npt.NDArray[Any]
OBJECTS = Path(__file__).with_name("triton_objects")
SOURCE = Path(__file__).with_name("triton_kernels.py")
TARGET = "gfx1151"


@dataclass(frozen=True)
class Configuration:
    """One compilation: ``arguments`` are (name, Triton type) in the kernel's order, ``constants`` the rest."""

    kernel: str
    arguments: dict[str, str]
    constants: dict[str, int]
    num_warps: int = 4
    aligned: tuple[str, ...] = ()  # sizes that are promised to be multiples of 16; pointers always are
    lines: bool = False  # keeps the line tables


CONFIGURATIONS = {
    "add": Configuration(
        "add", {"x": "*fp32", "y": "*fp32", "out": "*fp32", "size": "i32"}, {"block": 512}, lines=True
    ),
    "softmax": Configuration("softmax", {"x": "*fp16", "out": "*fp32", "columns": "i32"}, {"block": 1024}),
    "layer_norm": Configuration(
        "layer_norm",
        {
            "x": "*bf16",
            "weight": "*fp32",
            "bias": "*fp32",
            "out": "*fp32",
            "totals": "*fp32",
            "columns": "i32",
            "epsilon": "fp32",
        },
        {"block": 256},
        num_warps=2,
    ),
    **{
        f"matmul_{dtype}": Configuration(
            "matmul",
            {"a": f"*{dtype}", "b": f"*{dtype}", "c": f"*{out}", "rows": "i32", "columns": "i32", "depth": "i32"},
            {"block_rows": 32, "block_columns": 32, "block_depth": 32},
            num_warps=num_warps,
            aligned=aligned,
        )
        for dtype, out, num_warps, aligned in (
            ("fp16", "fp32", 4, ()),
            ("bf16", "bf16", 2, ("rows", "columns", "depth")),
        )
    },
    **{
        name: Configuration(
            "attention",
            {
                "q": f"*{dtype}",
                "k": f"*{dtype}",
                "v": f"*{dtype}",
                "out": f"*{dtype}",
                "tokens": "i32",
                "scale_log2": "fp32",
            },
            {"head_size": head_size, "block_rows": block, "block_keys": block},
            num_warps=num_warps,
        )
        for name, dtype, head_size, block, num_warps in (
            ("attention_fp16", "fp16", 64, 32, 2),
            ("attention_bf16", "bf16", 32, 32, 4),
            ("attention_spills", "bf16", 128, 64, 8),
        )
    },
    "matmul_int8": Configuration(
        "matmul_int8",
        {"a": "*i8", "b": "*i8", "scales": "*fp32", "c": "*fp32", "columns": "i32", "depth": "i32"},
        {"block_rows": 32, "block_columns": 32, "block_depth": 64},
        aligned=("columns", "depth"),
    ),
    "maths": Configuration("maths", {"x": "*fp32", "out": "*fp32", "size": "i32"}, {"block": 128}),
    "scan": Configuration(
        "scan", {"x": "*i32", "sums": "*i32", "ordered": "*i32", "largest": "*i32", "size": "i32"}, {"block": 256}
    ),
    "split_sum": Configuration(
        "split_sum",
        {"x": "*fp32", "partial": "*fp32", "counter": "*i32", "out": "*fp32", "size": "i32"},
        {"programs": 6, "block": 256},
    ),
}


@dataclass(frozen=True)
class Case:
    """A launch: arguments by name, and for each array written what it must hold, with tolerances."""

    grid: tuple[int, ...]
    values: dict[str, Any]
    expected: dict[str, Array]
    rtol: float = 0.0
    atol: float = 0.0

    def run(self, kernel: Kernel, configuration: Configuration, shared: int, **keywords: Any) -> Report:
        """Launches the kernel and compares; two null pointers for scratch memory follow Triton's arguments."""
        args = [*(self.values[name] for name in configuration.arguments), None, None]
        report = kernel.launch(self.grid, 32 * configuration.num_warps, args, dynamic_lds=shared, **keywords)
        for name, expected in self.expected.items():
            actual = self.values[name].astype(np.float64)
            np.testing.assert_allclose(actual, expected, self.rtol, self.atol, err_msg=name)
        return report


def _add(random: np.random.Generator) -> Case:
    x, y = random.standard_normal((2, 1300), np.float32)
    values = {"x": x, "y": y, "out": np.zeros_like(x), "size": np.int32(x.size)}
    return Case((3,), values, {"out": x.astype(np.float64) + y}, rtol=1e-7, atol=1e-7)


def _softmax(random: np.random.Generator) -> Case:
    x = (4 * random.standard_normal((5, 777))).astype(np.float16)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    values = {"x": x, "out": np.zeros(x.shape, np.float32), "columns": np.int32(777)}
    return Case((5,), values, {"out": powers / powers.sum(1, keepdims=True)}, rtol=2e-6)


def _layer_norm(random: np.random.Generator) -> Case:
    x = (3 * random.standard_normal((6, 200)) + 1).astype(ml_dtypes.bfloat16)
    weight, bias = random.standard_normal((2, 200), np.float32)
    exact = x.astype(np.float64)
    normalised = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    out, totals = np.zeros(x.shape, np.float32), np.zeros(200, np.float32)
    values: dict[str, Any] = {"x": x, "weight": weight, "bias": bias, "out": out, "totals": totals}
    values |= {"columns": np.int32(200), "epsilon": np.float32(1e-5)}
    return Case((6,), values, {"out": normalised * weight + bias, "totals": normalised.sum(0)}, atol=5e-6)


def _matmul(random: np.random.Generator, rows: int, columns: int, depth: int, dtype: Any, out: Any) -> Case:
    a = random.standard_normal((rows, depth)).astype(dtype)
    b = random.standard_normal((depth, columns)).astype(dtype)
    values: dict[str, Any] = {"a": a, "b": b, "c": np.zeros((rows, columns), out)}
    values |= {"rows": np.int32(rows), "columns": np.int32(columns), "depth": np.int32(depth)}
    tiles = -(-rows // 32) * -(-columns // 32)
    expected = {"c": a.astype(np.float64) @ b.astype(np.float64)}
    # One rounding to bfloat16 is at most 2^-8 of the value; float32 sums are far below both.
    return Case((tiles,), values, expected, rtol=2.0**-8 if out != np.float32 else 0, atol=1e-4)


def _attention(
    random: np.random.Generator, tokens: int, head_size: int, dtype: Any, atol: float, block: int = 32
) -> Case:
    q, k, v = random.standard_normal((3, 2, tokens, head_size)).astype(dtype)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / head_size**0.5
    scores[:, np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
    powers = np.exp(scores - scores.max(2, keepdims=True))
    expected = powers / powers.sum(2, keepdims=True) @ v.astype(np.float64)
    scale_log2 = np.float32(np.log2(np.e) / head_size**0.5)
    values = {"q": q, "k": k, "v": v, "out": np.zeros_like(q), "tokens": np.int32(tokens), "scale_log2": scale_log2}
    return Case((-(-tokens // block), 2), values, {"out": expected}, atol=atol)


def _matmul_int8(random: np.random.Generator) -> Case:
    a, b = random.integers(-128, 128, (64, 128)).astype(np.int8), random.integers(-128, 128, (128, 96)).astype(np.int8)
    scales = np.exp2(random.integers(-12, 0, 64)).astype(np.float32)
    values = {
        "a": a,
        "b": b,
        "scales": scales,
        "c": np.zeros((64, 96), np.float32),
        "columns": np.int32(96),
        "depth": np.int32(128),
    }
    return Case((2, 3), values, {"c": a.astype(np.float64) @ b.astype(np.float64) * scales[:, None]})


def _maths(random: np.random.Generator) -> Case:
    x = np.exp(random.uniform(-4, 3, 300)).astype(np.float32)
    exact = x.astype(np.float64)
    erf = np.array([math.erf(value) for value in exact])
    remainder = (x * np.float32(1000)).astype(np.int32) % np.arange(1, 301)
    rows: list[Any] = [np.exp(exact), np.log(exact), np.exp2(-exact), np.log2(exact), np.sqrt(exact), exact**-0.5]
    rows += [np.sin(exact), np.cos(exact), erf, 1 / (1 + np.exp(-exact)), remainder]
    values = {"x": x, "out": np.zeros((11, 300), np.float32), "size": np.int32(300)}
    return Case((3,), values, {"out": np.stack(rows)}, rtol=3e-6, atol=3e-6)


def _scan(random: np.random.Generator) -> Case:
    x = random.integers(-1000, 1000, (3, 251)).astype(np.int32)
    values: dict[str, Any] = {
        "x": x,
        "sums": np.zeros_like(x),
        "ordered": np.zeros_like(x),
        "largest": np.full(1, -5000, np.int32),
    }
    expected = {"sums": np.cumsum(x, 1), "ordered": np.sort(x, 1), "largest": x.max(keepdims=True)[0]}
    return Case((3,), values | {"size": np.int32(251)}, expected)


def _split_sum(random: np.random.Generator) -> Case:
    x = random.standard_normal(5000, np.float32)
    values: dict[str, Any] = {"x": x, "partial": np.zeros((6, 256), np.float32), "counter": np.zeros(1, np.int32)}
    values |= {"out": np.zeros(1, np.float32), "size": np.int32(5000)}
    expected = {"out": x.astype(np.float64).sum(keepdims=True), "counter": np.zeros(1)}
    return Case((6,), values, expected, atol=1e-3)


_CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "add": _add,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "matmul_fp16": lambda random: _matmul(random, 75, 70, 90, np.float16, np.float32),
    "matmul_bf16": lambda random: _matmul(random, 64, 96, 80, ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    "attention_fp16": lambda random: _attention(random, 75, 64, np.float16, 3e-3),
    "attention_bf16": lambda random: _attention(random, 64, 32, ml_dtypes.bfloat16, 2e-2),
    "attention_spills": lambda random: _attention(random, 100, 128, ml_dtypes.bfloat16, 2e-2, block=64),
    "matmul_int8": _matmul_int8,
    "maths": _maths,
    "scan": _scan,
    "split_sum": _split_sum,
}


def case(name: str) -> Case:
    """The launch of a configuration, with arrays of its own."""
    return _CASES[name](np.random.default_rng(11))


def metadata() -> dict[str, Any]:
    """What compile_triton.py wrote of the stored objects."""
    found: dict[str, Any] = json.loads((OBJECTS / "objects.json").read_text())
    return found


def source_of(kernel: str) -> str:
    """A kernel's text in triton_kernels.py, for which Triton need not be installed."""
    text = SOURCE.read_text()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            return ast.get_source_segment(text, node) or ""
    raise KeyError(f"{SOURCE.name} has no kernel {kernel}")


def fingerprint(name: str) -> str:
    """Of a configuration and its kernel's source: stored objects are stale where it differs."""
    configuration = CONFIGURATIONS[name]
    return hashlib.sha256(f"{configuration!r}\n{source_of(configuration.kernel)}".encode()).hexdigest()
