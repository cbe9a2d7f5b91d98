"""Batches that the planners are measured on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Numbers of sequences that planning is timed for.
SIZES = (1, 8, 64, 256, 1024)

#: Steps that a batch is planned for in turns, so that no planner can answer from memory.
STEPS = 2

Lengths = NDArray[np.int32]


@dataclass(frozen=True)
class PrefillBatches:
    """One batch at `STEPS` steps in a row: from one to the next each sequence has a key more."""

    lengths: str
    query_start_loc: Lengths
    seq_lens: tuple[Lengths, ...]

    @property
    def sequences(self) -> int:
        """Sequences of the batch."""
        return len(self.query_start_loc) - 1


@dataclass(frozen=True)
class DecodeBatch:
    """Query tokens and keys of each sequence; the slots of a captured graph that no sequence uses have neither."""

    kind: str
    lengths: str
    query_lens: Lengths
    seq_lens: Lengths


#: The most query tokens and context tokens of a sequence, and the context that one sequence has instead.
_PREFILL_LENGTHS = {"short": (16, 400, None), "chunks": (64, 3000, None), "one long": (64, 3000, 131072)}


def prefill_batches(rng: np.random.Generator) -> list[PrefillBatches]:
    """Batches of each of `SIZES` and each kind of lengths, drawn uniformly up to the most of the kind."""
    batches = []
    for lengths, (most_queries, most_context, long) in _PREFILL_LENGTHS.items():
        for size in SIZES:
            queries = rng.integers(1, most_queries, size, endpoint=True)
            contexts = rng.integers(0, most_context, size, endpoint=True)
            if long is not None:
                contexts[rng.integers(size)] = long
            starts = np.concatenate([[0], np.cumsum(queries)]).astype(np.int32)
            steps = tuple((queries + contexts + step).astype(np.int32) for step in range(STEPS))
            batches.append(PrefillBatches(lengths, starts, steps))
    return batches


def decode_steps(rng: np.random.Generator) -> list[tuple[Lengths, tuple[Lengths, ...]]]:
    """Query tokens and, at `STEPS` steps, keys of ragged decode batches of each of `SIZES`."""
    batches = []
    for size in SIZES:
        seq_lens = _ragged(rng, size)
        steps = tuple((seq_lens + step).astype(np.int32) for step in range(STEPS))
        batches.append((np.ones(size, np.int32), steps))
    return batches


def balance_batches(rng: np.random.Generator) -> list[DecodeBatch]:
    """Ragged, uniform and padded decode batches."""
    batches = [
        _decode("uniform", f"{size} x {keys}", np.full(size, keys))
        for size, keys in ((1, 32768), (6, 8192), (16, 4096), (64, 2048))
    ]
    batches += [
        _decode("ragged", f"1 x {long}, {size - 1} x {keys}", np.array([*[keys] * (size - 1), long]))
        for size, long, keys in ((4, 32768, 1024), (16, 32768, 1024), (64, 131072, 512))
    ]
    batches += [_decode("ragged", f"{size} x 64-32768", _ragged(rng, size)) for size in (8, 32, 128)]
    for slots, used, keys in ((8, 1, 16384), (16, 3, 8192), (64, 9, 4096)):
        batches.append(_decode("padded", f"{used} x {keys} in {slots}", np.full(used, keys), slots))
    batches.append(_decode("padded", "20 x 64-32768 in 64", _ragged(rng, 20), 64))
    return batches


def _ragged(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    """Lengths from 64 to 32768 keys, as many in each octave."""
    return (2 ** rng.uniform(6, 15, size)).astype(np.int64)


def _decode(kind: str, lengths: str, seq_lens: NDArray[np.int64], slots: int = 0) -> DecodeBatch:
    padding = max(slots - len(seq_lens), 0)
    queries = np.ones(len(seq_lens), np.int32)
    return DecodeBatch(kind, lengths, np.pad(queries, (0, padding)), np.pad(seq_lens.astype(np.int32), (0, padding)))
