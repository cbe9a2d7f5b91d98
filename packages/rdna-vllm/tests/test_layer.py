from __future__ import annotations

from typing import Any

import pytest
from rdna_vllm import AttentionLayer, attention_layer

LLAMA: dict[str, Any] = {
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "hidden_size": 576,
    "torch_dtype": "bfloat16",
}


def test_a_plain_configuration() -> None:
    assert attention_layer(LLAMA) == AttentionLayer(9, 3, 64, "bfloat16")
    assert attention_layer(LLAMA, block_size=32, kv_cache_dtype="fp8") == AttentionLayer(
        9, 3, 64, "bfloat16", 32, "fp8"
    )


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"head_dim": 128}, "head_size", 128),
        ({"num_key_value_heads": None}, "num_kv_heads", 9),
        ({"dtype": "torch.float16"}, "dtype", "float16"),
        ({"sliding_window": 4096}, "sliding_window", 4096),
        ({"sliding_window": None}, "sliding_window", 0),
        ({"sliding_window": 4096, "use_sliding_window": False}, "sliding_window", 0),
        ({"attn_logit_softcapping": 50.0}, "logits_soft_cap", 50.0),
        ({"alibi": True}, "has_alibi", True),
        ({"model_type": "gpt_oss"}, "has_sinks", True),
        ({"text_config": {"head_dim": 256}}, "head_size", 256),
    ],
)
def test_what_else_a_configuration_says(changes: dict[str, Any], field: str, value: object) -> None:
    assert getattr(attention_layer({**LLAMA, **changes}), field) == value


def test_a_configuration_that_does_not_say_enough() -> None:
    with pytest.raises(ValueError, match="no num_attention_heads or n_head; its keys: hidden_size"):
        attention_layer({"hidden_size": 576})
    with pytest.raises(ValueError, match="no dtype or torch_dtype"):
        attention_layer({**LLAMA, "torch_dtype": None})
    with pytest.raises(ValueError, match="hidden_size 577 is no multiple of 9 heads"):
        attention_layer({**LLAMA, "hidden_size": 577})
