"""Scratch arrays for launches: split-KV partials, and counters that every launch leaves zeroed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rdna_registry.arguments import ArgumentError, as_int
from rdna_registry.decode_variant import KernelVariant
from rdna_registry.devices import Device, empty, prefill_target_workgroups, zeros
from rdna_registry.prefill_variant import PrefillVariant


def make_scratch(variant: KernelVariant, device: Device, max_seqs: int = 0) -> tuple[Any, Any, Any, Any]:
    """Scratch of a decode entry: (acc, m, l, counters).

    acc is fp32 ``[rows, head_size]``, m and l are fp32 ``[rows]``, counters int32 ``[counters]``, with the numbers of
    `KernelVariant.scratch_shapes` times ``max_seqs`` (0: as for one sequence). The counters are zero, and stay so
    between launches. ``device`` None gives NumPy arrays, a torch device or its name torch tensors.
    """
    sequences = max(as_int("max_seqs", max_seqs, 0), 1)
    (rows, columns), _, counters = variant.scratch_shapes()
    rows *= sequences
    maxima, sums = empty((rows,), device), empty((rows,), device)
    return empty((rows, columns), device), maxima, sums, zeros(counters * sequences, device)


def make_prefill_scratch(
    variants: Iterable[PrefillVariant], device: Device, target_workgroups: int | None = None
) -> tuple[Any, Any, Any, Any]:
    """Scratch that serves any one of several prefill entries at a time: (acc, m, l, counters).

    acc is flat, fp32, of the most ``rows * head_size`` that one of them needs; m and l are fp32 ``[most rows]``;
    counters are int32 zeros, one for each (split tile, kv head). ``target_workgroups`` is what plans are made with, by
    default `prefill_target_workgroups` of the device; it must be given where ``device`` is None, for NumPy arrays.
    """
    entries = list(variants)
    if not entries:
        raise ArgumentError("variants", entries, "at least one variant")
    if target_workgroups is None:
        target_workgroups = prefill_target_workgroups(device)
    as_int("target_workgroups", target_workgroups, 1)
    rows = [2 * target_workgroups * entry.block_rows for entry in entries]
    elements = max(count * entry.head_size for count, entry in zip(rows, entries, strict=True))
    return (
        empty((elements,), device),
        empty((max(rows),), device),
        empty((max(rows),), device),
        zeros(target_workgroups, device),
    )
