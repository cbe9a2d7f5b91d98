"""Prefill look-ups: by a number of query tokens, and by what a whole batch is like."""

from __future__ import annotations

import bisect

import numpy as np
from numpy.typing import ArrayLike

from rdna_registry.arguments import INT32_MAX, ArgumentError, as_int
from rdna_registry.decode_variant import Layout, as_layout
from rdna_registry.dtypes import as_dtype
from rdna_registry.lengths import as_lengths, query_lengths
from rdna_registry.prefill_tables import PrefillShape, prefill_cells, prefill_entries
from rdna_registry.prefill_variant import PREFILL_MIN_M, PrefillVariant
from rdna_registry.remember import remembered

_Entries = tuple[tuple[PrefillVariant, ...], tuple[int, ...]]
_Answer = tuple[PrefillVariant | None, int]

_MOST_ANSWERS = 64
_answers: dict[tuple[object, ...], tuple[tuple[object, ...], _Answer]] = {}  # the last of each shape, with its batch


@remembered
def _entries(
    num_q_heads: int, num_kv_heads: int, head_size: int, page_size: int, layout: int, window: int, dtype: object
) -> _Entries:
    shape = _as_shape(num_q_heads, num_kv_heads, head_size, page_size, window)
    key = shape, as_dtype(dtype)
    entries = prefill_entries().get(key, ()) if as_layout(layout) == Layout.HND else ()
    return entries, tuple(entry.min_query_len for entry in entries)


@remembered
def _as_shape(num_q_heads: int, num_kv_heads: int, head_size: int, page_size: int, window: int) -> PrefillShape:
    shape = PrefillShape(
        as_int("num_q_heads", num_q_heads, 1),
        as_int("num_kv_heads", num_kv_heads, 1),
        as_int("head_size", head_size, 1),
        as_int("page_size", page_size, 1),
        as_int("window", window, 0),
    )
    if shape.num_q_heads % shape.num_kv_heads:
        raise ArgumentError("num_q_heads", shape.num_q_heads, f"a multiple of num_kv_heads = {shape.num_kv_heads}")
    return shape


def prefill_variants(
    num_q_heads: int, num_kv_heads: int, head_size: int, page_size: int, window: int, dtype: object
) -> tuple[PrefillVariant, ...]:
    """The tuned prefill entries of a shape, sorted by min_query_len; none where the tables have none."""
    return _entries(num_q_heads, num_kv_heads, head_size, page_size, Layout.HND, window, dtype)[0]


def prefill_variant_for(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    page_size: int,
    layout: int,
    window: int,
    dtype: object,
    num_tokens: int,
) -> PrefillVariant | None:
    """The tuned entry for a prefill of ``num_tokens`` query tokens.

    It is the one with the largest min_query_len that is not above ``num_tokens``, else the one with the smallest. None
    for layout NHD, for fewer than `PREFILL_MIN_M` tokens, and where the tables have no row of the shape.
    """
    entries, starts = _entries(num_q_heads, num_kv_heads, head_size, page_size, layout, window, dtype)
    if as_int("num_tokens", num_tokens, 0) < PREFILL_MIN_M or not entries:
        return None
    return entries[max(bisect.bisect_right(starts, num_tokens) - 1, 0)]


def prefill_batch_features(query_start_loc: ArrayLike, seq_lens: ArrayLike, window: int) -> tuple[float, float]:
    """Mean query tokens of a sequence, and mean keys of a query token, of a batch.

    Sequences without query tokens are left out. A token of a sequence with q query tokens and S keys (at least q) is
    taken to see S - q + (q + 1) / 2 keys, and ``window`` at most (0: no window); the mean is over tokens. A batch
    without query tokens gives zeros.
    """
    as_int("window", window, 0, INT32_MAX)
    queries, lengths = query_lengths(as_lengths("query_start_loc", query_start_loc), as_lengths("seq_lens", seq_lens))
    total = int(queries.sum())
    if not total:
        return 0.0, 0.0
    keys = np.maximum(lengths, queries) - queries + (queries + 1) / 2
    if window:
        keys = np.minimum(keys, window)
    return total / int(np.count_nonzero(queries)), float((queries * keys).sum() / total)


def prefill_batch_cell(
    num_q_heads: int, num_kv_heads: int, head_size: int, page_size: int, window: int, mean_m: float, keys: float
) -> tuple[int, int] | None:
    """(min_query_len, head_group) of the tuned cell for a batch with these means, or None where a shape has no cells.

    The cells with the largest min_mean_m that is not above ``mean_m`` (else with the smallest) are looked at, and among
    them the one with the largest min_keys that is not above ``keys`` (else the smallest).
    """
    _check_mean("mean_m", mean_m)
    _check_mean("keys", keys)
    cells = prefill_cells().get(_as_shape(num_q_heads, num_kv_heads, head_size, page_size, window))
    if not cells:
        return None
    row = max((cell.min_mean_m for cell in cells if cell.min_mean_m <= mean_m), default=cells[0].min_mean_m)
    column = [cell for cell in cells if cell.min_mean_m == row]
    best = [cell for cell in column if cell.min_keys <= keys][-1:] or column[:1]
    return best[0].min_query_len, best[0].head_group


def _check_mean(argument: str, value: float) -> None:
    if not value >= 0:
        raise ArgumentError(argument, value, "0 and more")


def prefill_batch_variant_for(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    page_size: int,
    layout: int,
    window: int,
    dtype: object,
    query_start_loc: ArrayLike,
    seq_lens: ArrayLike,
) -> _Answer:
    """The tuned entry and the head group for a batch.

    They are those of its cell (see `prefill_batch_cell`); where the shape has no cells, the entry is that for all query
    tokens of the batch together, and at least `PREFILL_MIN_M`, and the head group 0. (None, 0) where the tables have no
    row of the shape, or the layout is NHD. The answer to a shape's last batch is kept for as long as the arrays
    hold the same.
    """
    key = num_q_heads, num_kv_heads, head_size, page_size, layout, window, dtype
    content = None
    if type(query_start_loc) is np.ndarray and type(seq_lens) is np.ndarray and query_start_loc.ndim == seq_lens.ndim:
        content = query_start_loc.tobytes(), seq_lens.tobytes(), query_start_loc.dtype, seq_lens.dtype, seq_lens.ndim
        try:
            found = _answers.get(key)
        except TypeError:  # a dtype that cannot be a key
            content = None
        else:
            if found is not None and found[0] == content:
                return found[1]
    answer = _answer(*key, query_start_loc, seq_lens)
    if content is not None:
        if len(_answers) >= _MOST_ANSWERS:
            _answers.clear()
        _answers[key] = content, answer
    return answer


def _answer(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    page_size: int,
    layout: int,
    window: int,
    dtype: object,
    query_start_loc: ArrayLike,
    seq_lens: ArrayLike,
) -> _Answer:
    starts, lengths = as_lengths("query_start_loc", query_start_loc), as_lengths("seq_lens", seq_lens)
    entries, _ = _entries(num_q_heads, num_kv_heads, head_size, page_size, layout, window, dtype)
    shape = _as_shape(num_q_heads, num_kv_heads, head_size, page_size, window)
    if entries and shape in prefill_cells():
        mean_m, keys = prefill_batch_features(starts, lengths, window)
        cell = prefill_batch_cell(*shape, mean_m, keys)
        for entry in entries:
            if cell is not None and entry.min_query_len == cell[0]:
                return entry, cell[1]
    queries, _ = query_lengths(starts, lengths)
    tokens = max(int(queries.sum()), PREFILL_MIN_M)
    return (
        prefill_variant_for(num_q_heads, num_kv_heads, head_size, page_size, layout, window, dtype, tokens),
        0,
    )
