"""Decode look-ups: the tuned entry of a shape, an entry of any shape that a build serves, and why."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

from rdna_registry.arguments import INT32_MAX, MAX_HEADS, ArgumentError, as_bool, as_int
from rdna_registry.builds import HEAD_SIZE_STEP, Build
from rdna_registry.decode_builds import BUILDABLE_HEAD_SIZES, SERVED_HEAD_SIZES, builds_of, nearest_head_size
from rdna_registry.decode_modelled import MODEL_RANKS, clear_row
from rdna_registry.decode_rule import Derived, derive
from rdna_registry.decode_tables import DecodeShape, TunedRow, as_shape, shape_of, tuned_entry, variants
from rdna_registry.decode_variant import MAX_QUERY_LEN, KernelVariant, Layout
from rdna_registry.remember import remembered
from rdna_registry.targets import DEFAULT_TARGET, Target, as_buildable, as_target

MAX_GQA = 32
"""Most query heads of a kv head that `select` serves."""

PAGE_STEP = 16
"""A page that `select` serves is a multiple of it."""


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
    *,
    target: str | Target = DEFAULT_TARGET,
    modelled: bool = True,
) -> KernelVariant:
    """An entry for a shape: a modelled one of clear gain, else the tuned one, else one derived as `decode_rule` says.

    A modelled row (`decode_modelled`) was tuned with the emulator's issue model on our kernels, for one sequence on one
    ``target``: that of the GPU, such as "gfx1151". It goes first where the other choice is modelled to take at least
    `decode_modelled.CLEAR_GAIN_PERCENT` longer at some length, for published rows were tuned on a GPU but for another
    kernel. ``modelled`` False leaves these rows out.

    A tuned dot-product entry is not chosen, for its segments were tuned for a workgroup for each q head, and it runs
    with one for each kv head (`KernelVariant.build`): the derived entry has more. Who asks for it by `variant_for` can
    run it.

    The arguments are those of `variant_for`. ValueError, naming the argument, what was given, what is allowed and the
    nearest build, where none serves the shape: head sizes outside `BUILDABLE_HEAD_SIZES`, more than `MAX_QUERY_LEN`
    query tokens, more than `MAX_GQA` query heads to a kv head, pages that are no multiple of 16, layout NHD. The build
    of a head size outside `SERVED_HEAD_SIZES` exists only where someone has made it.
    """
    shape = as_shape(num_q_heads, num_kv_heads, head_size, max_query_len, page_size, layout, window, dtype, batch)
    name = as_buildable(target).name
    return _choose(shape, name if as_bool("modelled", modelled) else None).variant


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
    *,
    target: str | Target = DEFAULT_TARGET,
) -> str:
    """A sentence on why `select` gives these arguments the entry that it gives, or why it gives none."""
    try:
        shape = as_shape(num_q_heads, num_kv_heads, head_size, max_query_len, page_size, layout, window, dtype, batch)
        choice = _choose(shape, as_buildable(target).name)
    except ValueError as error:
        return f"No entry: {error}."
    variant = choice.variant
    sentence = f"{variant.name} (build {variant.build.name}) is {choice.provenance}."
    if shape.head_size in SERVED_HEAD_SIZES:
        return sentence
    return f"{sentence} Builds of head size {shape.head_size} are made on request."


@remembered
def provenance(variant: KernelVariant, target: str | Target = DEFAULT_TARGET) -> str:
    """Where an entry comes from: ``tuned: ...`` with its published row, ``modelled: ...`` with its row and how well the
    model ranks, ``derived: ...`` with the rows that it was derived from, or ``given: ...`` for knobs that neither the
    tables nor the rule chose for ``target``."""
    shape, name = shape_of(variant), as_buildable(target).name
    entry = tuned_entry(shape)
    if entry is not None and entry[0] == variant:
        return _tuned_origin(*entry)
    try:
        choices = [_choose(shape, name), _choose(shape, None)]
    except ValueError:
        choices = []
    for choice in choices:
        if choice.variant == variant:
            return choice.provenance
    return "given: knobs chosen by the caller"


def _choose(shape: DecodeShape, modelled_for: str | None) -> _Choice:
    refused = _refusal(shape)
    if refused is not None:
        argument, given, allowed = refused
        raise ArgumentError(argument, given, f"{allowed}; {_nearest(shape, modelled_for)}")
    return _served(shape, modelled_for)


def _served(shape: DecodeShape, modelled_for: str | None) -> _Choice:
    row = None if modelled_for is None else clear_row(shape, modelled_for)
    if row is not None and row.variant.build in builds_of(shape.head_size):
        ranks = ", ".join(f"{rank:.2f} at {context}" for context, rank in MODEL_RANKS.items())
        note = f"the model's ranks agree with published times to {ranks} tokens (Spearman)"
        return _Choice(dataclasses.replace(row.variant, dtype=shape.dtype), f"modelled: {row.origin}; {note}")
    entry = tuned_entry(shape)
    if entry is not None and not entry[0].dot_product and entry[0].build in builds_of(shape.head_size):
        return _Choice(entry[0], _tuned_origin(*entry))
    derived = derive(shape, modelled_for)
    if derived is None:
        raise RuntimeError(f"the rule has no entry for {shape}, which its builds should serve")
    return _Choice(derived.variant, _origin(shape, derived))


def _tuned_origin(variant: KernelVariant, row: TunedRow) -> str:
    note = " (for the dot-product form, run by the matrix form)" if variant.dot_product else ""
    return f"tuned: {row.origin}{note}"


def _origin(shape: DecodeShape, derived: Derived) -> str:
    tuned = derived.nearest.variant
    differences = []
    if tuned.head_size != shape.head_size:
        differences.append(f"head size {tuned.head_size}")
    if tuned.max_query_len != shape.max_query_len:
        differences.append(f"{tuned.max_query_len} query tokens")
    suffix = f" (of {' and '.join(differences)}, the nearest)" if differences else ""
    entry = tuned_entry(shape)
    note = ""
    if entry is not None and entry[0].dot_product:
        note = f"; the row of this shape, {entry[1].origin}, is for the dot-product form, whose knobs are not taken"
    return f"derived: from {' and '.join(row.origin for row in derived.neighbours)}{suffix}{note}"


def _refusal(shape: DecodeShape) -> tuple[str, int, str] | None:
    """The first argument that no build serves, its value, and what is allowed."""
    if shape.layout != Layout.HND:
        return "layout", int(shape.layout), "1 (HND)"
    if shape.head_size not in BUILDABLE_HEAD_SIZES:
        rows = "for rows are loaded 16 bytes at a time"
        return "head_size", shape.head_size, f"a multiple of {HEAD_SIZE_STEP} up to {BUILDABLE_HEAD_SIZES[-1]}, {rows}"
    if shape.max_query_len > MAX_QUERY_LEN:
        return "max_query_len", shape.max_query_len, f"1 to {MAX_QUERY_LEN}"
    if shape.page_size % PAGE_STEP:
        return "page_size", shape.page_size, f"a multiple of {PAGE_STEP}"
    if shape.gqa > MAX_GQA:
        most = MAX_GQA * shape.num_kv_heads
        return "num_q_heads", shape.num_q_heads, f"at most {MAX_GQA} for each kv head, here {most}"
    limits = (("num_q_heads", 1, MAX_HEADS), ("num_kv_heads", 1, MAX_HEADS), ("page_size", PAGE_STEP, INT32_MAX))
    for argument, least, most in (*limits, ("window", 0, INT32_MAX)):
        if getattr(shape, argument) > most:
            return argument, getattr(shape, argument), f"{least} to {most}"
    return None


def _nearest(shape: DecodeShape, modelled_for: str | None) -> str:
    """The build that serves the shape with each argument at its nearest served value, and which arguments those are."""
    gqa = min(shape.gqa, MAX_GQA)
    num_kv_heads = min(shape.num_kv_heads, MAX_HEADS // gqa)
    nearest = shape._replace(
        num_q_heads=gqa * num_kv_heads,
        num_kv_heads=num_kv_heads,
        head_size=nearest_head_size(shape.head_size, SERVED_HEAD_SIZES),
        max_query_len=min(shape.max_query_len, MAX_QUERY_LEN),
        page_size=min(-(-shape.page_size // PAGE_STEP), INT32_MAX // PAGE_STEP) * PAGE_STEP,
        layout=Layout.HND,
        window=min(shape.window, INT32_MAX),
    )
    changes = (field for field in shape._fields if getattr(shape, field) != getattr(nearest, field))
    values = ", ".join(f"{field} = {int(getattr(nearest, field))}" for field in changes)
    return f"the nearest build is {_served(nearest, modelled_for).variant.build.name}, for {values}"


@functools.cache
def _builds(head_sizes: tuple[int, ...]) -> tuple[Build, ...]:
    found = {build for head_size in head_sizes for build in builds_of(head_size)}
    return tuple(sorted(found, key=lambda build: tuple(build.configuration.values())))


def builds(target: str | Target = DEFAULT_TARGET, head_sizes: tuple[int, ...] = SERVED_HEAD_SIZES) -> tuple[Build, ...]:
    """The decode builds that a target needs: those of every entry, tuned or derived, of these head sizes.

    None for a head size that no kernel has; TypeError for one that is no integer, ArgumentError for other targets.
    """
    as_target(target)
    return _builds(tuple([as_int("head_sizes", size, 1) for size in head_sizes]))


def entries_of(build: Build) -> tuple[KernelVariant, ...]:
    """The tuned entries that a build serves; builds that only derived entries use have none."""
    return tuple(entry for entry in variants() if entry.build == build)
