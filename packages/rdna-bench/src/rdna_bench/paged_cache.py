"""A paged KV cache of one sequence that grows: shuffled pages, NaN wherever nothing was written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdna_bench.arrays import aligned_copy, aligned_empty, numpy_dtype

_FIRST_PAGES = 4


class PagedCache:
    """K and V of every layer in pages ``[num_pages, num_kv_heads, page_size, 2 * head_size]``, K then V.

    Pages are handed out in a random order, and fresh memory holds NaN: a kernel that reads a slot past the
    sequence's end, or a page of nobody, shows it in its output.
    """

    def __init__(
        self, *, num_layers: int, num_kv_heads: int, head_size: int, page_size: int, dtype: str, seed: int = 0
    ) -> None:
        """Make an empty cache of element type ``dtype`` ("fp16" or "bf16"); ``seed`` orders the pages."""
        self.page_size = page_size
        self.dtype = numpy_dtype(dtype)
        self._row = (num_kv_heads, page_size, 2 * head_size)
        self._head_size = head_size
        self._rng = np.random.default_rng(seed)
        self._layers = [aligned_empty((0, *self._row), self.dtype) for _ in range(num_layers)]
        self._free: list[int] = []
        self._pages: list[int] = []
        self._length = 0

    def __len__(self) -> int:
        """Tokens that the cache has room for: those written and those reserved last."""
        return self._length

    @property
    def num_pages(self) -> int:
        """Pages in memory, used or not."""
        return int(self._layers[0].shape[0])

    @property
    def seq_lens(self) -> NDArray[np.int32]:
        """``int32 [1]``: tokens of the sequence, the reserved ones included."""
        return aligned_copy(np.array([self._length]), np.int32)

    @property
    def block_table(self) -> NDArray[np.int32]:
        """``int32 [1, ceil(length / page_size)]``: no entry more than needed, so a read past it is out of bounds."""
        return aligned_copy(np.array([self._pages]), np.int32)

    def layer(self, index: int) -> NDArray[Any]:
        """The pages of layer ``index``, valid until the next ``reserve``."""
        return self._layers[index]

    def reserve(self, num_tokens: int) -> NDArray[np.intp]:
        """Make room for ``num_tokens`` more tokens and return their positions in the sequence."""
        start = self._length
        self._length += num_tokens
        while len(self._pages) * self.page_size < self._length:
            if not self._free:
                self._grow()
            self._pages.append(self._free.pop())
        return np.arange(start, self._length)

    def write(self, layer: int, positions: NDArray[np.intp], k: NDArray[Any], v: NDArray[Any]) -> None:
        """Round ``k`` and ``v`` ``[tokens, num_kv_heads, head_size]`` to the cache's dtype and store them."""
        pages = np.asarray(self._pages)[positions // self.page_size]
        slots = positions % self.page_size
        cache = self._layers[layer]
        cache[pages, :, slots, : self._head_size] = k.astype(self.dtype)
        cache[pages, :, slots, self._head_size :] = v.astype(self.dtype)

    def _grow(self) -> None:
        old = self.num_pages
        new = max(_FIRST_PAGES, 2 * old)
        for index, pages in enumerate(self._layers):
            grown = aligned_empty((new, *self._row), self.dtype)
            grown[:old] = pages
            grown[old:] = np.nan
            self._layers[index] = grown
        self._free = [int(page) for page in self._rng.permutation(np.arange(old, new))]
