"""Decode calls of one sequence, laid out so that the issue model says the same of them in every run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from rdna_kernels import EmulatedExecutor, LaunchRecord, decode_attention
from rdna_registry import KernelVariant, key_block, select

from rdna_bench.arrays import numpy_dtype
from rdna_bench.traffic import LINE_BYTES, NEEDED_ARGUMENTS, needed_bytes, requested_and_scratch

HND = 1

# The model's L0 cache is direct-mapped, so what evicts what depends on addresses: arrays stand in one arena, in order.
# The emulator puts a kernel's arguments at a multiple of 2^14, so the first lines of the arena are left to them.
_ARENA_ALIGNMENT = 1 << 16
_ARGUMENT_BYTES = 512
_ARRAY_ALIGNMENT = 256

#: The latency of L2, as published of a Radeon 8060S and as the model has it.
L2_MICROSECONDS = 0.105

_POOL_SIZE = 1 << 20

#: Most segments of an entry that can be measured, published, derived or tuned.
MOST_SEGMENTS = 32
ROW_TILE = 16


@dataclass(frozen=True)
class DecodeProblem:
    """The shape of a decode call of one sequence; ``window`` is in keys, 0 for none."""

    num_q_heads: int
    num_kv_heads: int
    head_size: int
    max_query_len: int
    window: int = 0
    page_size: int = 16
    dtype: str = "fp16"

    @property
    def name(self) -> str:
        """Heads, head size, new tokens, and window and page where they are not the usual ones."""
        window = f", window {self.window}" if self.window else ""
        page = f", pages of {self.page_size}" if self.page_size != 16 else ""
        return f"{self.num_q_heads}/{self.num_kv_heads} x {self.head_size}, {self.max_query_len} new{window}{page}"

    def entry(self, target: str, modelled: bool = True) -> KernelVariant:
        """The registry's entry, modelled rows left out or not; ValueError where no build serves the shape."""
        heads = self.num_q_heads, self.num_kv_heads, self.head_size
        call = (*heads, self.max_query_len, self.page_size, HND, self.window, self.dtype)
        return select(*call, target=target, modelled=modelled)

    def needed_bytes(self, context: int) -> int:
        """Bytes that no kernel can do without."""
        element = np.zeros((), numpy_dtype(self.dtype))
        q = np.broadcast_to(element, (self.max_query_len, self.num_q_heads, self.head_size))
        pages = -(-context // self.page_size)
        kv_cache = np.broadcast_to(element, (pages, self.num_kv_heads, self.page_size, 2 * self.head_size))
        return needed_bytes(q, kv_cache, np.array([context], np.int32), self.max_query_len, self.window)


@dataclass(frozen=True)
class Measured:
    """One launch: what it did, and what the issue model says of it. Sizes in bytes, times in microseconds."""

    build: str
    workgroups: int
    touched_bytes: int
    requested_bytes: int
    """Asked for by instructions, scratch left out."""
    scratch_bytes: int
    """Written to and read from partial results, maxima, sums and counters."""
    partial_bytes: int
    """Touched of partial results, maxima and sums."""
    wave_instructions: int
    wmma: int
    lds_cycles: int
    modelled_microseconds: float
    """The model's time and that of the merge."""
    merge_microseconds: float
    """What `merge_microseconds` adds for the merge of segments."""
    modelled_compute_microseconds: float
    modelled_memory_microseconds: float
    stall_cycles: dict[str, int]
    issue_cycles: int


def segments_of(entry: KernelVariant, context: int) -> int:
    """KV segments that the kernel makes of so many tokens."""
    return max(1, min(entry.max_segments, key_blocks(entry, context) // entry.min_segment_blocks))


def key_blocks(entry: KernelVariant, context: int) -> int:
    """Key blocks that the kernel's segment rule counts."""
    first_key = max(context - entry.max_query_len + 1 - entry.window, 0) if entry.window else 0
    block = key_block(entry)
    return -(-context // block) - first_key // block


def merge_microseconds(segments: int) -> float:
    """What the merge of segments adds to a modelled time.

    The model runs each workgroup by itself, and so not the wait of the last to arrive for its merge: its partial
    results go out, one atomic comes back, the others' come in, four segments in a round trip, each at L2's latency.
    With it the model ranks the published cells better at every context (`rdna_registry.decode_modelled.MODEL_RANKS`).
    """
    return 0.0 if segments == 1 else L2_MICROSECONDS * (2 + math.ceil(segments / 4))


def model_executor(target: str) -> EmulatedExecutor:
    """An executor with the issue model, on one thread: with more, the order in which workgroups reach memory first, and
    so the modelled time, is not the same in every run."""
    return EmulatedExecutor(target, threads=1, measure=("model",))


class DecodeInputs:
    """Random queries, a cache with shuffled pages, and everything else that a call of ``context`` tokens takes."""

    def __init__(self, problem: DecodeProblem, context: int, seed: int = 0) -> None:
        self.problem, self.context = problem, context
        dtype = numpy_dtype(problem.dtype)
        pages = -(-context // problem.page_size)
        heads = problem.max_query_len, problem.num_q_heads, problem.head_size
        # With a row group for each query row, the most there may be, every row is padded to a whole tile.
        self._most_rows = MOST_SEGMENTS * ROW_TILE * problem.num_q_heads * problem.max_query_len
        arrays = _arena(
            (heads, dtype),
            ((pages, problem.num_kv_heads, problem.page_size, 2 * problem.head_size), dtype),
            ((1, pages), np.int32),
            ((1,), np.int32),
            (heads, dtype),
            ((4 * problem.num_q_heads * problem.max_query_len,), np.int32),
            ((self._most_rows,), np.float32),
            ((self._most_rows,), np.float32),
            ((self._most_rows, problem.head_size), np.float32),
        )
        self.q, self.kv_cache, self.block_table, self.seq_lens, self.out, counters, maxima, sums, partials = arrays
        self._scratch = partials, maxima, sums, counters
        random = np.random.default_rng(seed)
        values = random.standard_normal(_POOL_SIZE, np.float32).astype(dtype)
        flat = self.kv_cache.reshape(-1)
        for first in range(0, flat.size, values.size):
            flat[first : first + values.size] = values[: flat.size - first]
        self.q[...] = np.resize(values[::-1], heads)
        self.block_table[...] = random.permutation(pages)
        self.seq_lens[...] = context
        counters[...] = 0

    def measure(self, executor: EmulatedExecutor, variant: KernelVariant) -> Measured:
        """Launch once, with a `model_executor`."""
        records: list[LaunchRecord] = []
        decode_attention(
            self.q,
            self.kv_cache,
            self.block_table,
            self.seq_lens,
            max_query_len=self.problem.max_query_len,
            window=self.problem.window,
            out=self.out,
            scratch=self._scratch,
            variant=variant,
            executor=executor,
            report=records,
        )
        [record] = records
        counts = record.counts
        lines, model = counts["unique_lines_by_argument"], counts["model"]
        requested, scratch = requested_and_scratch(counts)
        merge = merge_microseconds(segments_of(variant, self.context))
        return Measured(
            record.build,
            record.workgroups,
            LINE_BYTES * sum(lines[name] for name in NEEDED_ARGUMENTS),
            requested,
            scratch,
            LINE_BYTES * lines.get("partials", 0),
            counts["wave_instructions"],
            counts["wmma"],
            counts["lds_cycles"],
            model["microseconds"] + merge,
            merge,
            model["compute_microseconds"],
            model["memory_microseconds"],
            dict(model["stall_cycles"]),
            model["issue_cycles"],
        )


def _arena(*arrays: tuple[tuple[int, ...], DTypeLike]) -> list[NDArray[Any]]:
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in arrays]
    places = np.cumsum([_ARGUMENT_BYTES] + [-(-size // _ARRAY_ALIGNMENT) * _ARRAY_ALIGNMENT for size in sizes])
    buffer = np.empty(int(places[-1]) + _ARENA_ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % _ARENA_ALIGNMENT
    return [
        buffer[start + place : start + place + size].view(dtype).reshape(shape)
        for (shape, dtype), size, place in zip(arrays, sizes, places[:-1].tolist(), strict=True)
    ]
