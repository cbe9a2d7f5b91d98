"""Moments of a model's queries, keys and values over a calibration text, from which variants of a format are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdna_bench.causal_attention import causal_attention
from rdna_bench.transformer import Transformer
from rdna_bench.weights import Float32

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class LayerMoments:
    """Moments of one layer over the calibration tokens but the first, each ``[num_kv_heads, ...]``.

    K is taken after RoPE, as it is stored. The first token is left out: attention rests on it whatever it is, and its
    key is far from all others.
    """

    k_mean: Float64  # [num_kv_heads, head_size]
    v_mean: Float64  # [num_kv_heads, head_size]
    k_covariance: Float64  # [num_kv_heads, head_size, head_size]
    v_covariance: Float64  # [num_kv_heads, head_size, head_size]
    q_moment: Float64  # [num_kv_heads, head_size, head_size]: mean of q q^T over the q heads of a KV head
    output_moment: Float64  # [num_kv_heads, head_size, head_size]: sum of W^T W of the output weights of those q heads


def collect(
    model: Transformer, tokens: Sequence[int], progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[LayerMoments, ...]:
    """The moments of every layer of ``model`` over ``tokens``, its cache unquantized; ``progress(done, total)``."""
    moments: list[LayerMoments] = []

    def attend(layer: int, q: Float32, k: Float32, v: Float32) -> Float32:
        moments.append(_layer_moments(model, layer, q, k, v))
        progress(layer + 1, model.config.num_layers)
        return causal_attention(q, k, v)

    model.whole(tokens, attend)
    return tuple(moments)


def _layer_moments(model: Transformer, layer: int, q: Float32, k: Float32, v: Float32) -> LayerMoments:
    num_kv_heads = k.shape[1]
    keys, values = (x[1:].astype(np.float64).transpose(1, 0, 2) for x in (k, v))
    k_mean, v_mean = keys.mean(axis=1), values.mean(axis=1)
    queries, weights = (_by_kv_head(rows, num_kv_heads) for rows in (q[1:], model.output_weights(layer)))
    return LayerMoments(
        k_mean=k_mean,
        v_mean=v_mean,
        k_covariance=_moment(keys - k_mean[:, None]),
        v_covariance=_moment(values - v_mean[:, None]),
        q_moment=_moment(queries),
        output_moment=_moment(weights) * weights.shape[1],
    )


def _by_kv_head(rows: Float32, num_kv_heads: int) -> Float64:
    """``[n, num_q_heads, head_size]`` as ``[num_kv_heads, n * gqa, head_size]``."""
    groups = rows.astype(np.float64).reshape(len(rows), num_kv_heads, -1, rows.shape[-1])
    return groups.transpose(1, 0, 2, 3).reshape(num_kv_heads, -1, rows.shape[-1])


def _moment(rows: Float64) -> Float64:
    """Mean of ``x x^T`` over the rows x of each head."""
    moment: Float64 = rows.transpose(0, 2, 1) @ rows / rows.shape[1]
    return moment
