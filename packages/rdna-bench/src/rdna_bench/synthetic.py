"""One decode call on random data: shuffled pages, NaN wherever no kernel may look."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdna_kernels import EmulatedExecutor

from rdna_bench.arrays import aligned_copy, aligned_empty, numpy_dtype
from rdna_bench.attention import AttentionRun, KernelAttention, VerifiedAttention
from rdna_bench.preflight import required_builds

_MOST_SEQUENCES = 65535  # workgroups along z
_MOST_KV_HEADS = 65535  # workgroups along y, where an entry has one row group

#: Largest KV cache that is made, in bytes.
MAX_CACHE_BYTES = 4 << 30

#: Pages of NaN among those in use, which no block table names.
_SPARE_PAGES = 3


@dataclass(frozen=True)
class DecodeShape:
    """Shape of a decode call; every sequence has ``context`` tokens, the ``max_query_len`` new ones included."""

    num_q_heads: int = 9
    num_kv_heads: int = 3
    head_size: int = 64
    max_query_len: int = 1
    context: int = 1024
    num_seqs: int = 1
    window: int = 0
    page_size: int = 16
    dtype: str = "fp16"

    @property
    def pages_per_seq(self) -> int:
        """Pages that one sequence fills, the last one perhaps in part."""
        return -(-self.context // self.page_size)

    @property
    def num_pages(self) -> int:
        """Pages of the cache, unused ones included."""
        return self.num_seqs * self.pages_per_seq + _SPARE_PAGES

    @property
    def cache_bytes(self) -> int:
        """Size of the cache."""
        return self.num_pages * self.num_kv_heads * self.page_size * 2 * self.head_size * 2


@dataclass(frozen=True)
class DecodeInputs:
    """Arrays of a decode call, shapes as in ``reference.reference_attention``."""

    q: NDArray[Any]
    kv_cache: NDArray[Any]
    block_table: NDArray[np.int32]
    seq_lens: NDArray[np.int32]


def make_inputs(shape: DecodeShape, seed: int) -> DecodeInputs:
    """Normal random Q, K and V; unused slots and pages hold NaN, and the block table is shuffled."""
    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(shape.dtype)
    rows = shape.num_seqs * shape.max_query_len
    q = aligned_copy(rng.standard_normal((rows, shape.num_q_heads, shape.head_size), np.float32), dtype)
    kv_cache = aligned_empty((shape.num_pages, shape.num_kv_heads, shape.page_size, 2 * shape.head_size), dtype)
    kv_cache[...] = np.nan
    pages = rng.permutation(shape.num_pages)[: shape.num_seqs * shape.pages_per_seq]
    block_table = aligned_copy(pages.reshape(shape.num_seqs, shape.pages_per_seq), np.int32)
    for seq_pages in block_table:
        for index, page in enumerate(seq_pages):
            used = min(shape.page_size, shape.context - index * shape.page_size)
            values = rng.standard_normal((shape.num_kv_heads, used, 2 * shape.head_size), np.float32)
            kv_cache[page, :, :used] = values
    seq_lens = aligned_copy(np.full(shape.num_seqs, shape.context), np.int32)
    return DecodeInputs(q, kv_cache, block_table, seq_lens)


class DecodeRun(AttentionRun):
    """One synthetic decode call; use in order: ``__init__``, ``run``."""

    def __init__(
        self, shape: DecodeShape, *, target: str, checks: tuple[str, ...] = (), verify: bool = False, seed: int = 0
    ) -> None:
        """Check that the shape can be served on ``target``.

        Raises:
            ValueError: no build serves the shape, its batch or its cache is too large.
            rdna_kernels.MissingBuildError: its build is not installed for ``target``.
        """
        if shape.num_seqs > _MOST_SEQUENCES:
            raise ValueError(f"num_seqs is {shape.num_seqs}; a launch takes 1 to {_MOST_SEQUENCES} sequences")
        if shape.num_kv_heads > _MOST_KV_HEADS:
            raise ValueError(f"num_kv_heads is {shape.num_kv_heads}; a launch takes 1 to {_MOST_KV_HEADS} kv heads")
        builds = required_builds(
            num_q_heads=shape.num_q_heads,
            num_kv_heads=shape.num_kv_heads,
            head_size=shape.head_size,
            query_lens=[shape.max_query_len],
            page_size=shape.page_size,
            window=shape.window,
            dtype=shape.dtype,
            batch=shape.num_seqs > 1,
            target=target,
        )
        if shape.cache_bytes > MAX_CACHE_BYTES:
            raise ValueError(
                f"the KV cache would take {shape.cache_bytes} bytes, at most {MAX_CACHE_BYTES} are allowed: "
                "lower --context, --num-seqs or --num-kv-heads"
            )
        self.shape, self.target, self.checks, self.seed = shape, target, checks, seed
        executor = EmulatedExecutor(target, checks=checks, seed=seed)
        for build in builds:
            executor.build_function(build.name)  # loaded here, so that the launch's time is the launch's
        self._kernels = KernelAttention(executor, shape.window)
        self._verified = VerifiedAttention(self._kernels, shape.dtype, shape.window) if verify else None

    @property
    def passed(self) -> bool:
        """Whether the output is within the tolerance; True when it was not to be verified."""
        return self.comparison is None or self.comparison.passed

    def run(self) -> None:
        """Make the inputs and launch once.

        Raises:
            rdna_emulator.EmulatorError: a check has a finding, or the machine code did something that is not allowed.
        """
        inputs = make_inputs(self.shape, self.seed)
        attention = self._verified or self._kernels
        attention(inputs.q, inputs.kv_cache, inputs.block_table, inputs.seq_lens, self.shape.max_query_len)

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: times in seconds, sizes in bytes."""
        result: dict[str, Any] = {
            "command": "decode",
            **asdict(self.shape),
            "target": self.target,
            "executor": EmulatedExecutor.name,
            "checks": list(self.checks),
            "seed": self.seed,
            **self.tally.to_dict(),
        }
        if self.comparison is not None:
            result["verify"] = self.comparison.to_dict()
        return result
