"""The tuned entries of the registry as problems, and a sample of them that covers every pair of values."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable
from typing import Any

from problem import Problem, make_problem
from rdna_registry import KernelVariant, variants

_SHORT = (1, 15, 16, 17)


def features(entry: KernelVariant) -> frozenset[Hashable]:
    """The build of an entry, and every pair of values of its shape and of what kind of row it is."""
    values = {
        "head_size": entry.head_size,
        "gqa": entry.gqa,
        "num_kv_heads": entry.num_kv_heads,
        "max_query_len": entry.max_query_len,
        "page_size": entry.page_size,
        "window": entry.window,
        "row_groups": entry.row_groups,
        "dot_product": entry.dot_product,
        "dtype": entry.dtype,
        "batched": entry.batched,
    }
    return frozenset([entry.build, *itertools.combinations(values.items(), 2)])


@functools.cache
def sample() -> list[KernelVariant]:
    """Tuned entries that have, between them, all features that any has: the one that adds most comes next."""
    left = {entry: features(entry) for entry in variants()}
    missing = frozenset[Hashable]().union(*left.values())
    chosen = []
    while missing:
        best = max(left, key=lambda entry: len(left[entry] & missing))
        missing -= left.pop(best)
        chosen.append(best)
    return chosen


def problems(entry: KernelVariant) -> list[Problem]:
    """A batch with short, empty and long sequences, or single ones: short, about a page, and longer than the window.

    Which of the lengths around a page and of the short ones it is follows from the entry's name. The last one has every
    feature, which another kernel of the build serves.
    """
    page, draw = entry.page_size, sum(map(ord, entry.name))
    near_page = page - 1 + draw % 3
    long = entry.window + page + 5 if entry.window else max(2 * page, 1000) + draw % 64
    features: dict[str, Any] = {"sinks": True, "softcap": 20.0, "alibi": True}
    if entry.batched:
        plain = [_problem(entry, [_SHORT[draw % 4], 0, near_page, long])]
        return [*plain, _problem(entry, [near_page, _SHORT[draw % 4]], **features)]
    plain = [_problem(entry, [length]) for length in (_SHORT[draw % 4], near_page, long)]
    return [*plain, _problem(entry, [near_page + 16], **features)]


def _problem(entry: KernelVariant, lengths: list[int], **features: Any) -> Problem:
    return make_problem(
        lengths,
        head_size=entry.head_size,
        gqa=entry.gqa,
        num_kv_heads=entry.num_kv_heads,
        max_query_len=entry.max_query_len,
        page_size=entry.page_size,
        window=entry.window,
        dtype=entry.dtype.value,
        layout="HND" if entry.max_query_len % 2 else "NHD",
        seed=sum(map(ord, entry.name)),
        **features,
    )
