from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rdna_kernels import Catalogue, KernelsError, decode_attention
from rdna_registry import TARGETS
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
        ({"has_sinks": True}, "attention sinks: no kernel has it"),
        ({"has_alibi": True}, "ALiBi: no kernel has it"),
        ({"logits_soft_cap": 50.0}, "a softcap of 50.0 on the logits: no kernel has it"),
        ({"is_causal": False}, "attention that is not causal: no kernel has it"),
        ({"kv_cache_dtype": "fp8"}, "a KV cache of fp8: the kernels read one of the model's own dtype"),
        ({"dtype": "float32"}, "float32"),
        ({"head_size": 72}, "head_size is 72"),
        ({"block_size": 24}, "page_size is 24"),
        ({"num_q_heads": 10}, "num_q_heads is 10"),
    ],
)
def test_the_one_reason_against_a_layer(changes: dict[str, Any], reason: str) -> None:
    [found] = why_not_served(replace(SMOLLM, **changes))
    assert reason in found


def test_every_reason_is_given() -> None:
    layer = replace(SMOLLM, has_alibi=True, kv_cache_dtype="octave_k3v4", head_size=72)
    assert len(why_not_served(layer)) == 3


def test_too_many_query_tokens_are_a_reason() -> None:
    [reason] = why_not_served(SMOLLM, query_len=128)
    assert "max_query_len is 128" in reason


def test_a_build_that_is_missing_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "manifest.json").write_text('{"compiler": "none", "builds": []}')
    monkeypatch.setattr(Catalogue, "installed", staticmethod(lambda: Catalogue(tmp_path)))
    [reason] = why_not_served(SMOLLM)
    assert "no kernel is built for gfx1151" in reason


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(ValueError, match="target is 'gfx900'"):
        why_not_served(SMOLLM, target="gfx900")


@pytest.mark.parametrize("head_size", [64, 72])
def test_the_operator_agrees(head_size: int) -> None:
    q = np.zeros((1, 9, head_size), np.float16)
    kv_cache = np.zeros((1, 3, 16, 2 * head_size), np.float16)
    layer = replace(SMOLLM, head_size=head_size)
    arguments = (q, kv_cache, np.zeros((1, 1), np.int32), np.ones(1, np.int32))
    if why_not_served(layer):
        with pytest.raises((KernelsError, ValueError)):
            decode_attention(*arguments)
    else:
        assert not decode_attention(*arguments).any()
