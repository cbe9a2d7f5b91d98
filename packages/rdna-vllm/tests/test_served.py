from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rdna_kernels import Catalogue, KernelsError, decode_attention
from rdna_registry import MAX_QUERY_LEN, PREFILL_MIN_M, TARGETS
from rdna_vllm import AttentionLayer, why_not_served

SMOLLM = AttentionLayer(9, 3, 64, "float16")


@pytest.mark.parametrize("target", [target.name for target in TARGETS])
@pytest.mark.parametrize("query_len", [1, 8])
def test_a_layer_that_is_served(target: str, query_len: int) -> None:
    for layer in (SMOLLM, replace(SMOLLM, dtype="bfloat16", head_size=128, sliding_window=512, block_size=784)):
        assert why_not_served(layer, query_len=query_len, target=target) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"logits_soft_cap": -50.0}, r"softcap is -50.0"),
        ({"logits_soft_cap": 1e9}, r"softcap is 1000000000.0"),
        ({"is_causal": False}, "attention that is not causal: no kernel has it"),
        ({"kv_cache_dtype": "fp8"}, "a KV cache of fp8: the kernels read one of the model's own dtype"),
        ({"dtype": "float32"}, "float32"),
        ({"head_size": 72}, "python -m rdna_kernels build --target gfx1151 --head-size 72"),
        ({"head_size": 520}, "head_size is 520"),
        ({"block_size": 24}, "page_size is 24"),
        ({"num_q_heads": 10}, "num_q_heads is 10"),
    ],
)
def test_the_one_reason_against_a_layer(changes: dict[str, Any], reason: str) -> None:
    [found] = why_not_served(replace(SMOLLM, **changes))
    assert reason in found


def test_every_reason_is_given() -> None:
    layer = replace(SMOLLM, is_causal=False, logits_soft_cap=1e9, kv_cache_dtype="octave_k3v4", block_size=24)
    assert len(why_not_served(layer)) == 4


def test_decode_steps_end_where_prefill_begins() -> None:
    assert MAX_QUERY_LEN + 1 == PREFILL_MIN_M
    assert why_not_served(SMOLLM, query_len=MAX_QUERY_LEN) == []
    [reason] = why_not_served(SMOLLM, query_len=PREFILL_MIN_M)
    assert f"max_query_len is {PREFILL_MIN_M}" in reason


def test_a_build_that_is_missing_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "manifest.json").write_text('{"compiler": "none", "builds": []}')
    monkeypatch.setattr(Catalogue, "installed", staticmethod(lambda: Catalogue(tmp_path)))
    [reason] = why_not_served(SMOLLM)
    assert "no kernel is built for gfx1151" in reason


@pytest.mark.parametrize("layer", [None, {"head_size": 64}], ids=str)
def test_what_is_no_layer(layer: Any) -> None:
    with pytest.raises(TypeError, match=f"layer is a {type(layer).__name__}; it must be an AttentionLayer"):
        why_not_served(layer)


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(ValueError, match="target is 'gfx900'"):
        why_not_served(SMOLLM, target="gfx900")


@pytest.mark.parametrize(
    "layer",
    [
        SMOLLM,
        replace(SMOLLM, block_size=24),
        replace(SMOLLM, logits_soft_cap=30.0),
        replace(SMOLLM, logits_soft_cap=-30.0),
        replace(SMOLLM, has_alibi=True),
        replace(SMOLLM, has_sinks=True, sliding_window=8),
        replace(SMOLLM, has_sinks=True, has_alibi=True, logits_soft_cap=50.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("query_len", [1, MAX_QUERY_LEN, PREFILL_MIN_M])
def test_the_operator_agrees(layer: AttentionLayer, query_len: int) -> None:
    heads, kv_heads, size = layer.num_q_heads, layer.num_kv_heads, layer.head_size
    pages = -(-PREFILL_MIN_M // layer.block_size)
    kv_cache = np.zeros((pages, kv_heads, layer.block_size, 2 * size), np.float16)
    kv_cache[..., size:] = 1
    lse = np.empty((query_len, heads), np.float32)

    def run() -> np.ndarray[Any, Any]:
        out: np.ndarray[Any, Any] = decode_attention(
            np.zeros((query_len, heads, size), np.float16),
            kv_cache,
            np.arange(pages, dtype=np.int32)[None],
            np.array([query_len], np.int32),
            max_query_len=query_len,
            window=layer.sliding_window,
            softcap=layer.logits_soft_cap,
            sinks=np.zeros(heads, np.float32) if layer.has_sinks else None,
            alibi_slopes=np.zeros(heads, np.float32) if layer.has_alibi else None,
            lse=lse,
        )
        return out

    if why_not_served(layer, query_len=query_len):
        with pytest.raises(KernelsError):
            run()
        return
    # All scores are 0, so a row's sum counts its keys and the sink, and its output is the keys' share of it.
    keys = np.arange(1, query_len + 1)
    keys = np.minimum(keys, layer.sliding_window) if layer.sliding_window else keys
    total = keys + int(layer.has_sinks)
    out = run()
    np.testing.assert_allclose(lse, np.log(total)[:, None].repeat(heads, 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out, np.broadcast_to((keys / total)[:, None, None], out.shape), rtol=1e-3)
