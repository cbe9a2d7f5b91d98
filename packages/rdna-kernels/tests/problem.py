"""Decode problems with hostile surroundings: garbage wherever a kernel must not look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from oracle import TOLERANCE, reference, relative_error
from rdna_kernels import Executor, decode_attention

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
GARBAGE_IDS = (-1, 2**31 - 1, -(2**31), 1_000_000)


@dataclass
class Problem:
    """The arguments of one decode call, and how far an answer is from the exact one."""

    q: Array
    kv_cache: Array
    block_table: Array
    seq_lens: Array
    max_query_len: int
    window: int
    scale: float | None = None
    sinks: Array | None = None
    softcap: float = 0.0
    alibi_slopes: Array | None = None

    @property
    def tolerance(self) -> float:
        """Largest relative error allowed."""
        return TOLERANCE[self.q.dtype.name]

    def exact(self) -> Array:
        """The float64 answer."""
        return self.exact_with_lse()[0]

    def exact_with_lse(self) -> tuple[Array, Array]:
        """The float64 answer and the logarithms of the sums that its weights were divided by."""
        return reference(
            self.q,
            self.kv_cache,
            self.block_table,
            self.seq_lens,
            max_query_len=self.max_query_len,
            scale=self.scale,
            window=self.window,
            sinks=self.sinks,
            softcap=self.softcap,
            alibi_slopes=self.alibi_slopes,
        )

    def run(self, executor: Executor | None, **options: Any) -> Array:
        """The kernel's answer, in an array that held NaN before."""
        options.setdefault("out", nan_filled(self.q.shape, self.q.dtype))
        got: Array = decode_attention(
            self.q,
            self.kv_cache,
            self.block_table,
            self.seq_lens,
            max_query_len=self.max_query_len,
            scale=self.scale,
            window=self.window,
            sinks=self.sinks,
            softcap=self.softcap,
            alibi_slopes=self.alibi_slopes,
            executor=executor,
            **options,
        )
        return got

    def error(self, executor: Executor, **options: Any) -> float:
        """The relative error of the kernel's answer."""
        return relative_error(self.run(executor, **options), self.exact())


def nan_filled(shape: Sequence[int], dtype: Any) -> Array:
    """A dense array of NaN."""
    return np.full(shape, np.nan, dtype)


def make_problem(
    lengths: Sequence[int],
    *,
    head_size: int = 64,
    gqa: int = 4,
    num_kv_heads: int = 2,
    max_query_len: int = 1,
    page_size: int = 16,
    window: int = 0,
    dtype: str = "float16",
    layout: str = "HND",
    garbage: str = "both",
    extra_columns: int = 2,
    scale: float | None = None,
    sinks: bool = False,
    softcap: float = 0.0,
    alibi: bool = False,
    seed: int = 0,
) -> Problem:
    """A random problem with shuffled pages.

    Garbage stands in every slot of the cache that no token of a sequence sees (unused slots of last pages, pages of
    nobody, pages wholly before the window): NaN in K, in V or in "both" of them. `extra_columns` of garbage ids follow
    the last column that the longest sequence needs, and fill the rest of shorter rows. `sinks` are drawn around the
    size of the other logits, `alibi` has the slopes of its paper, 2^(-8i/n) for the head i of n.
    """
    random = np.random.default_rng(seed)
    kind = DTYPES[dtype]
    pages_of = [-(-length // page_size) for length in lengths]
    num_pages = sum(pages_of) + 3
    ids = random.permutation(num_pages)[: sum(pages_of)].astype(np.int32)
    cache = random.standard_normal((num_pages, num_kv_heads, page_size, 2 * head_size), np.float32).astype(kind)
    block_table = random.choice(np.array(GARBAGE_IDS, np.int32), (len(lengths), max([*pages_of, 0]) + extra_columns))
    unseen = np.ones((num_pages, page_size), bool)
    for sequence, (length, pages) in enumerate(zip(lengths, pages_of, strict=True)):
        block_table[sequence, :pages] = own = ids[sum(pages_of[:sequence]) :][:pages]
        first_token = max(length - max_query_len, 0)
        first_key = max(0, first_token - window + 1) if window else 0
        positions = np.arange(first_key // page_size * page_size, length)
        unseen[own[positions // page_size], positions % page_size] = False
    parts = {"key": slice(None, head_size), "value": slice(head_size, None), "both": slice(None)}
    cache.transpose(0, 2, 1, 3)[unseen, :, parts[garbage]] = np.nan
    if layout == "NHD":
        cache = np.ascontiguousarray(cache.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    rows, heads = len(lengths) * max_query_len, num_kv_heads * gqa
    return Problem(
        q=random.standard_normal((rows, heads, head_size), np.float32).astype(kind),
        kv_cache=cache,
        block_table=block_table,
        seq_lens=np.array(lengths, np.int32),
        max_query_len=max_query_len,
        window=window,
        scale=scale,
        sinks=random.normal(0, 4, heads).astype(np.float32) if sinks else None,
        softcap=softcap,
        alibi_slopes=(2.0 ** (-8 * np.arange(1, heads + 1) / heads)).astype(np.float32) if alibi else None,
    )
