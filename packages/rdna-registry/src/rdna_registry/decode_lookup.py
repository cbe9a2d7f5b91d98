"""Decode look-ups: the tuned entry of a shape, an entry of any shape that a build serves, and why."""

from __future__ import annotations

import functools
from typing import NamedTuple

from rdna_registry.arguments import ArgumentError
from rdna_registry.builds import Build
from rdna_registry.decode_rule import derive
from rdna_registry.decode_tables import DecodeShape, as_shape, shape_of, tuned_entry, variants
from rdna_registry.decode_variant import MAX_QUERY_LEN, KernelVariant, Layout
from rdna_registry.remember import remembered
from rdna_registry.targets import DEFAULT_TARGET, Target, as_target

SERVED_HEAD_SIZES: tuple[int, ...] = (64, 128)
"""Head sizes that kernels are built for."""

MAX_GQA = 32
"""Most query heads of a kv head that `select` serves."""


class _Choice(NamedTuple):
    variant: KernelVariant
    provenance: str


@remembered
def variant_for(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    max_query_len: int,
    page_size: int,
    layout: int,
    window: int,
    dtype: object,
    batch: bool = False,
) -> KernelVariant | None:
    """The tuned entry of a shape, or None where the tables have none; they have layout HND only.

    ``window`` is in keys, 0 for full causal attention; ``dtype`` is whatever `as_dtype` takes. TypeError or ValueError,
    naming the argument, for what no shape can have; ``batch`` is a bool, Python's or NumPy's.
    """
    shape = as_shape(num_q_heads, num_kv_heads, head_size, max_query_len, page_size, layout, window, dtype, batch)
    entry = tuned_entry(shape)
    return None if entry is None else entry[0]


@remembered
def select(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    max_query_len: int,
    page_size: int,
    layout: int,
    window: int,
    dtype: object,
    batch: bool = False,
) -> KernelVariant:
    """An entry for a shape: the tuned one, else one derived from its tuned neighbours as `decode_rule.derive` says.

    The arguments are those of `variant_for`. ValueError, naming the argument, what was given and what is allowed, where
    no build serves the shape: head sizes outside `SERVED_HEAD_SIZES`, more than `MAX_QUERY_LEN` query tokens, more than
    `MAX_GQA` query heads to a kv head, pages that are no multiple of 16, layout NHD.
    """
    shape = as_shape(num_q_heads, num_kv_heads, head_size, max_query_len, page_size, layout, window, dtype, batch)
    return _choose(shape).variant


@remembered
def explain(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    max_query_len: int,
    page_size: int,
    layout: int,
    window: int,
    dtype: object,
    batch: bool = False,
) -> str:
    """A sentence on why `select` gives these arguments the entry that it gives, or why it gives none."""
    try:
        shape = as_shape(num_q_heads, num_kv_heads, head_size, max_query_len, page_size, layout, window, dtype, batch)
        choice = _choose(shape)
    except ValueError as error:
        return f"No entry: {error}."
    variant = choice.variant
    return f"{variant.name} (build {variant.build.name}) is {choice.provenance}."


@remembered
def provenance(variant: KernelVariant) -> str:
    """Where an entry comes from: ``tuned: ...`` with its table row, ``derived: ...`` with the rows that it was derived
    from, or ``given: ...`` for knobs that neither the tables nor the rule chose."""
    shape = shape_of(variant)
    entry = tuned_entry(shape)
    if entry is not None and entry[0] == variant:
        return f"tuned: {entry[1].origin}"
    try:
        choice = _choose(shape)
    except ValueError:
        choice = None
    if choice is not None and choice.variant == variant:
        return choice.provenance
    return "given: knobs chosen by the caller"


def _choose(shape: DecodeShape) -> _Choice:
    _check_served(shape)
    entry = tuned_entry(shape)
    if entry is not None:
        return _Choice(entry[0], f"tuned: {entry[1].origin}")
    derived = derive(shape)
    if derived is None:
        heads = f"{shape.num_q_heads} query heads on {shape.num_kv_heads} kv heads"
        raise ArgumentError("num_q_heads", shape.num_q_heads, f"a shape that a build of head size serves, not {heads}")
    origin = " and ".join(row.origin for row in derived.neighbours)
    return _Choice(derived.variant, f"derived: from {origin}")


def _check_served(shape: DecodeShape) -> None:
    if shape.layout != Layout.HND:
        raise ArgumentError("layout", int(shape.layout), "1 (HND)")
    if shape.head_size not in SERVED_HEAD_SIZES:
        raise ArgumentError("head_size", shape.head_size, ", ".join(map(str, SERVED_HEAD_SIZES)) + ", which are built")
    if shape.max_query_len > MAX_QUERY_LEN:
        raise ArgumentError("max_query_len", shape.max_query_len, f"1 to {MAX_QUERY_LEN}")
    if shape.page_size % 16:
        raise ArgumentError("page_size", shape.page_size, "a multiple of 16")
    if shape.gqa > MAX_GQA:
        most = MAX_GQA * shape.num_kv_heads
        raise ArgumentError("num_q_heads", shape.num_q_heads, f"at most {MAX_GQA} for each kv head, here {most}")


@functools.cache
def _builds(head_sizes: tuple[int, ...]) -> tuple[Build, ...]:
    # The rule derives entries for builds of tuned rows only, so these are all that `select` can ask for.
    found = {entry.build for entry in variants() if entry.head_size in head_sizes}
    return tuple(sorted(found, key=lambda build: tuple(build.configuration.values())))


def builds(target: str | Target = DEFAULT_TARGET, head_sizes: tuple[int, ...] = SERVED_HEAD_SIZES) -> tuple[Build, ...]:
    """The decode builds that a target needs: those of every entry, tuned or derived, of these head sizes."""
    as_target(target)
    return _builds(tuple(head_sizes))


def entries_of(build: Build) -> tuple[KernelVariant, ...]:
    """The tuned entries that a build serves."""
    return tuple(entry for entry in variants() if entry.build == build)
