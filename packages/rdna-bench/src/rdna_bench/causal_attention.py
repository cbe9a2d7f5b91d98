"""Causal attention of one whole sequence in float32 NumPy, and what a changed cache does to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdna_bench.weights import Float32

# Queries that share one score matrix; with all q heads of a KV head it stays within a core's cache on short contexts.
_QUERIES = 128


def causal_attention(q: Float32, k: Float32, v: Float32) -> Float32:
    """Softmax attention in which token t sees the keys 0 to t; scores are scaled by ``1 / sqrt(head_size)``.

    Args:
        q: ``[tokens, num_q_heads, head_size]``.
        k, v: ``[tokens, num_kv_heads, head_size]``; the q heads of a KV head follow each other.

    Returns:
        float32 of the shape of ``q``.
    """
    tokens, num_q_heads, head_size = q.shape
    num_kv_heads = k.shape[1]
    gqa = num_q_heads // num_kv_heads
    scaled = (q * np.float32(1 / math.sqrt(head_size))).reshape(tokens, num_kv_heads, gqa, head_size)
    out = np.empty((tokens, num_kv_heads, gqa, head_size), np.float32)
    keys, values = np.ascontiguousarray(k.transpose(1, 2, 0)), np.ascontiguousarray(v.transpose(1, 0, 2))
    for first in range(0, tokens, _QUERIES):
        end = min(first + _QUERIES, tokens)
        later = np.triu(np.ones((end - first, end - first), np.bool_), 1)
        for head in range(num_kv_heads):
            rows = scaled[first:end, head].transpose(1, 0, 2).reshape(-1, head_size)
            scores = (rows @ keys[head, :, :end]).reshape(gqa, end - first, end)
            scores[:, :, first:end][:, later] = -np.inf
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            sums = scores.sum(axis=-1, keepdims=True)
            heads = (scores.reshape(-1, end) @ values[head, :end]).reshape(gqa, end - first, head_size) / sums
            out[first:end, head] = heads.transpose(1, 0, 2)
    return out.reshape(q.shape)


@dataclass
class Distortion:
    """What a cache adds to the attention of one layer, given the same queries, keys and values; sums over samples.

    ``output_error`` is ``|out_hat - out| / |out|`` over all sampled outputs together. ``score_slope`` is the slope of
    the regression of the changed scores on the true ones, each query's scores less their mean over the keys that it
    sees (which the softmax does not notice).
    """

    error: float = 0.0
    output: float = 0.0
    product: float = 0.0
    square: float = 0.0

    @property
    def output_error(self) -> float:
        """Relative, 0 when nothing was sampled."""
        return math.sqrt(self.error / self.output) if self.output else 0.0

    @property
    def score_slope(self) -> float:
        """1 when nothing was sampled."""
        return self.product / self.square if self.square else 1.0

    def __add__(self, other: Distortion) -> Distortion:
        return Distortion(
            self.error + other.error,
            self.output + other.output,
            self.product + other.product,
            self.square + other.square,
        )


def distortion(
    q: Float32, true: tuple[Float32, Float32], stored: tuple[Float32, Float32], queries: NDArray[np.intp]
) -> Distortion:
    """Compare the attention of the tokens ``queries`` over the ``true`` K and V with that over the ``stored`` ones."""
    _, num_q_heads, head_size = q.shape
    num_kv_heads = true[0].shape[1]
    gqa = num_q_heads // num_kv_heads
    end = int(queries.max()) + 1
    seen = np.arange(end) <= queries[:, None]
    count = seen.sum(axis=1, dtype=np.float32)[:, None]
    result = Distortion()
    for head in range(num_q_heads):
        rows = q[queries, head] / np.float32(math.sqrt(head_size))
        outputs, centred = [], []
        for k, v in (true, stored):
            scores = rows @ k[:end, head // gqa].T
            centred.append(np.where(seen, scores - (scores * seen).sum(axis=1, keepdims=True) / count, 0))
            scores = np.where(seen, scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            outputs.append(weights / weights.sum(axis=1, keepdims=True) @ v[:end, head // gqa])
        result += Distortion(
            error=_dot(outputs[1] - outputs[0], outputs[1] - outputs[0]),
            output=_dot(outputs[0], outputs[0]),
            product=_dot(centred[0], centred[1]),
            square=_dot(centred[0], centred[0]),
        )
    return result


def _dot(a: Float32, b: Float32) -> float:
    return float(np.sum(a * b, dtype=np.float64))
