"""v_cmp and v_cmpx of every type, and the class tests: the mask, its inactive bits and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opcodes.cases import Array, register
from opcodes.float_models import signalling
from opcodes.instruction_runner import ALL, LANES, InstructionRunner, Words
from opcodes.values import EDGES, NUMPY, Bits, combinations, to_rows, unsigned, width

FLOATS = ("f16", "f32", "f64")
INTEGERS = ("i16", "u16", "i32", "u32", "i64", "u64")
Predicate = Callable[[Array, Array], Array]

ORDERED: dict[str, Predicate] = {
    "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
INTEGER_PREDICATES: dict[str, Predicate] = {**ORDERED, "ne": np.not_equal}
FLOAT_PREDICATES: dict[str, Predicate] = {
    **ORDERED,
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
    "f": lambda a, b: np.zeros(a.shape, bool),
    "t": lambda a, b: np.ones(a.shape, bool),
}
CONSTANT_TYPES = ("i32", "u32", "i64", "u64")

PREDICATES: dict[str, tuple[str, Predicate]] = {
    **{f"{name}_{kind}": (kind, INTEGER_PREDICATES[name]) for kind in INTEGERS for name in INTEGER_PREDICATES},
    **{f"{name}_{kind}": (kind, FLOAT_PREDICATES[name]) for kind in CONSTANT_TYPES for name in "ft"},
    **{f"{name}_{kind}": (kind, f) for kind in FLOATS for name, f in FLOAT_PREDICATES.items()},
}
FORMS = {"e32": "v_cmp_{0}_e32 vcc_lo, {1}", "e64": "v_cmp_{0}_e64 s27, {1}", "x": "v_cmpx_{0}_e32 {1}"}
PARTIAL = 0x7FFE5A01


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> InstructionRunner:
    kernels = {}
    for name, (kind, _) in PREDICATES.items():
        for form, text in FORMS.items():
            kernels[f"{name}_{form}"] = [text.format(name, f"{register(32, kind)}, {register(34, kind)}")]
    for kind in FLOATS:
        second = "v34.l" if kind == "f16" else "v34"
        kernels[f"class_{kind}_e64"] = [f"v_cmp_class_{kind}_e64 s27, {register(32, kind)}, {second}"]
        kernels[f"class_{kind}_x"] = [f"v_cmpx_class_{kind}_e32 {register(32, kind)}, {second}"]
    return InstructionRunner(kernels, 4, "gfx1151", tmp_path_factory.mktemp("comparisons"))


def as_masks(flags: Array, active: int) -> Words:
    """One mask for each 32 flags, inactive lanes cleared."""
    bits = flags.reshape(-1, LANES).astype(np.uint32) << np.arange(LANES, dtype=np.uint32)
    return np.asarray(bits.sum(axis=1, dtype=np.uint32) & np.uint32(active), np.uint32)


def scalars_of(blocks: int, active: int) -> Words:
    scalars = np.full((blocks, 8), 0xABCD1234, np.uint32)
    scalars[:, 0] = active
    return scalars


def rows_of(*sources: tuple[Bits, str]) -> Words:
    return np.concatenate([to_rows(bits, kind) for bits, kind in sources], axis=1)


@pytest.mark.parametrize("name", PREDICATES)
def test_mask(runner: InstructionRunner, name: str) -> None:
    kind, predicate = PREDICATES[name]
    sources = combinations((kind, kind), seed=3)
    values = [bits.view(NUMPY[kind]) for bits in sources]
    vectors = rows_of(*((bits, kind) for bits in sources))
    for active in (ALL, PARTIAL, 0):
        want = as_masks(predicate(*values), active)
        scalars = scalars_of(len(want), active)
        vcc_form = runner.run(f"{name}_e32", vectors, scalars)
        np.testing.assert_array_equal(vcc_form.vcc, want)
        scalar_form = runner.run(f"{name}_e64", vectors, scalars)
        np.testing.assert_array_equal(scalar_form.s27, want)
        np.testing.assert_array_equal(scalar_form.vcc, scalars[:, 1], err_msg="VCC changed")
        np.testing.assert_array_equal(scalar_form.exec, active, err_msg="EXEC changed")
        exec_form = runner.run(f"{name}_x", vectors, scalars)
        np.testing.assert_array_equal(exec_form.exec, want)
        np.testing.assert_array_equal(exec_form.vcc, scalars[:, 1], err_msg="VCC changed")


def class_of(bits: Bits, kind: str) -> Array:
    """Bit number of the class of each float."""
    value = bits.view(NUMPY[kind])
    mantissa, exponent = {"f16": (10, 31), "f32": (23, 255), "f64": (52, 2047)}[kind]
    biased = (bits >> bits.dtype.type(mantissa)).astype(np.int64) & exponent
    negative = np.signbit(value)
    normal = np.where(negative, 3, 8)
    number = np.where(biased == 0, np.where(value == 0, np.where(negative, 5, 6), np.where(negative, 4, 7)), normal)
    special = np.where(np.isnan(value), np.where(signalling(value), 0, 1), np.where(negative, 2, 9))
    return np.where(biased == exponent, special, number)


@pytest.mark.parametrize("kind", FLOATS)
def test_class(runner: InstructionRunner, kind: str) -> None:
    edges = EDGES[kind]
    wanted: list[Any] = [1 << k for k in range(10)] + [0, 0x3FF, 0x1F8, 0x207]
    count = -(-len(edges) * len(wanted) // LANES) * LANES
    bits = np.resize(np.repeat(edges, len(wanted)), count)
    classes = np.resize(np.tile(np.array(wanted, np.uint32), len(edges)), count)
    assert bits.dtype == unsigned(kind)
    assert width(kind) == bits.itemsize * 8
    vectors = rows_of((bits, kind), (classes, "u32"))
    want = as_masks(classes >> class_of(bits, kind).astype(np.uint32) & 1, PARTIAL)
    scalars = scalars_of(len(want), PARTIAL)
    np.testing.assert_array_equal(runner.run(f"class_{kind}_e64", vectors, scalars).s27, want)
    np.testing.assert_array_equal(runner.run(f"class_{kind}_x", vectors, scalars).exec, want)
