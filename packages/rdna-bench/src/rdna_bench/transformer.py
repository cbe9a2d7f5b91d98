"""Forward pass of a llama-architecture model in NumPy float32, its attention left to the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it has no type hints

from rdna_bench.arrays import aligned_copy
from rdna_bench.paged_cache import PagedCache
from rdna_bench.weights import Float32, LayerWeights, Weights


class Attention(Protocol):
    """One attention call over a paged cache, with the meaning of ``reference.reference_attention``.

    ``q`` has the dtype of ``kv_cache``, and so has the result.
    """

    def __call__(
        self,
        q: NDArray[Any],
        kv_cache: NDArray[Any],
        block_table: NDArray[np.int32],
        seq_lens: NDArray[np.int32],
        max_query_len: int,
    ) -> NDArray[Any]: ...


#: ``attend(layer, q, k, v) -> heads``: causal attention of a whole sequence, each ``[tokens, heads, head_size]``.
WholeAttention = Callable[[int, Float32, Float32, Float32], Float32]

# Rows of a whole sequence that pass through a matrix at a time, so that what they become stays in a core's cache.
_ROWS = 256


class Transformer:
    """A loaded model; the sequence's state is in the cache that is passed to each call."""

    def __init__(self, weights: Weights) -> None:
        self.config = weights.config
        self._weights = weights
        half = self.config.head_size // 2
        self._blas = ThreadpoolController().select(user_api="blas")
        self._rope_frequencies = self.config.rope_base ** (-np.arange(half) / half)

    def new_cache(self, page_size: int, dtype: str, seed: int = 0) -> PagedCache:
        """An empty cache of this model's layers and heads."""
        return PagedCache(
            num_layers=self.config.num_layers,
            num_kv_heads=self.config.num_kv_heads,
            head_size=self.config.head_size,
            page_size=page_size,
            dtype=dtype,
            seed=seed,
        )

    def forward(self, tokens: Sequence[int], cache: PagedCache, attention: Attention) -> Float32:
        """Append ``tokens`` to the sequence in ``cache`` and return their last hidden states ``[tokens, hidden]``.

        Raises:
            ValueError: the sequence would grow past the model's context.
        """
        if len(cache) + len(tokens) > self.config.context_length:
            raise ValueError(
                f"{len(cache)} + {len(tokens)} tokens do not fit the model's context of {self.config.context_length}"
            )
        # A second BLAS thread saves a third of a step on an idle machine; on a busy one OpenBLAS's threads wait for
        # each other in a loop of yields, and a step takes up to 30 times as long.
        with self._blas.limit(limits=1):
            return self._forward(tokens, cache, attention)

    def _forward(self, tokens: Sequence[int], cache: PagedCache, attention: Attention) -> Float32:
        positions = cache.reserve(len(tokens))
        rotation = self._rotation(positions)
        block_table, seq_lens = cache.block_table, cache.seq_lens
        x = self._weights.embedding[np.asarray(tokens)]
        for index, layer in enumerate(self._weights.layers):
            q, k, v = self._project(layer, x, rotation)
            cache.write(index, positions, k, v)
            q = aligned_copy(q, cache.dtype)
            heads = attention(q, cache.layer(index), block_table, seq_lens, len(tokens))
            x = x + heads.astype(np.float32).reshape(len(tokens), -1) @ layer.attention_output.T
            x = x + self._mlp(layer, x)
        return self._norm(x, self._weights.output_norm)

    def logits(self, hidden: Float32) -> Float32:
        """Scores of every token of the vocabulary, ``[..., vocab]`` from ``[..., hidden]``."""
        with self._blas.limit(limits=1):
            return hidden @ self._weights.unembedding.T

    @contextmanager
    def one_blas_thread(self) -> Iterator[None]:
        """Keep BLAS to one thread in the whole process, for callers that work in threads of their own."""
        with self._blas.limit(limits=1):
            yield

    @property
    def unembedding(self) -> Float32:
        """``[vocab, hidden]``: logits are a hidden state times its transpose."""
        return self._weights.unembedding

    def output_weights(self, layer: int) -> Float32:
        """``[hidden, num_q_heads, head_size]``: what layer ``layer`` makes of its heads' outputs."""
        config = self.config
        return self._weights.layers[layer].attention_output.reshape(-1, config.num_q_heads, config.head_size)

    def whole(self, tokens: Sequence[int], attend: WholeAttention) -> Float32:
        """Last hidden states ``[tokens, hidden]`` of one sequence, computed layer by layer over all of its tokens.

        Unlike ``forward`` it leaves BLAS's threads as they are: several sequences may be computed in threads.

        Raises:
            ValueError: the sequence is longer than the model's context.
        """
        if len(tokens) > self.config.context_length:
            raise ValueError(f"{len(tokens)} tokens do not fit the model's context of {self.config.context_length}")
        rotation = self._rotation(np.arange(len(tokens)))
        x = self._weights.embedding[np.asarray(tokens)]
        # Caches elsewhere hold K in the order of the published weights: the pairs' first elements, then the second.
        halves = np.r_[0 : self.config.head_size : 2, 1 : self.config.head_size : 2]
        blocks = [slice(first, first + _ROWS) for first in range(0, len(tokens), _ROWS)]
        for index, layer in enumerate(self._weights.layers):
            projected = [self._project(layer, x[rows], rotation[rows]) for rows in blocks]
            q, k, v = (np.concatenate(parts) for parts in zip(*projected, strict=True))
            heads = attend(index, q[..., halves], k[..., halves], v).reshape(len(tokens), -1)
            for rows in blocks:
                x[rows] += heads[rows] @ layer.attention_output.T
                x[rows] += self._mlp(layer, x[rows])
        return self._norm(x, self._weights.output_norm)

    def _project(self, layer: LayerWeights, x: Float32, rotation: NDArray[np.complex64]) -> tuple[Float32, ...]:
        heads = self._norm(x, layer.attention_norm) @ layer.qkv.T
        heads = heads.reshape(len(x), -1, self.config.head_size)
        num_rotated = self.config.num_q_heads + self.config.num_kv_heads
        # GGUF stores llama's q and k rows with the two halves of a head interleaved (its converter permutes them), so
        # that a rotation pair is (2i, 2i + 1), one complex number.
        rotated = np.ascontiguousarray(heads[:, :num_rotated]).view(np.complex64) * rotation
        rows = rotated.view(np.float32)
        return rows[:, : self.config.num_q_heads], rows[:, self.config.num_q_heads :], heads[:, num_rotated:]

    def _mlp(self, layer: LayerWeights, x: Float32) -> Float32:
        gate_up = self._norm(x, layer.mlp_norm) @ layer.gate_up.T
        gate, up = gate_up[:, : self.config.intermediate_size], gate_up[:, self.config.intermediate_size :]
        # sigmoid(g) = (1 + tanh(g / 2)) / 2 does not overflow as exp(-g) does.
        activated: Float32 = gate * (0.5 + 0.5 * np.tanh(0.5 * gate)) * up
        return activated @ layer.down.T

    def _norm(self, x: Float32, weight: Float32) -> Float32:
        squares: Float32 = np.add.reduce(x * x, axis=-1, keepdims=True)
        normed: Float32 = x / np.sqrt(squares / x.shape[-1] + self.config.norm_epsilon) * weight
        return normed

    def _rotation(self, positions: NDArray[np.intp]) -> NDArray[np.complex64]:
        """``exp(i * position * frequency)``, ``[tokens, 1, head_size / 2]``, angles in float64."""
        angles = positions[:, None] * self._rope_frequencies
        rotation: NDArray[np.complex64] = np.exp(1j * angles).astype(np.complex64)[:, None]
        return rotation
