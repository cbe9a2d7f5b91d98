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


@pytest.mark.parametrize("config", [None, [("hidden_size", 576)], "config.json", 5], ids=str)
def test_what_is_no_configuration(config: Any) -> None:
    with pytest.raises(TypeError, match=f"config is a {type(config).__name__}; it must be the mapping"):
        attention_layer(config)
    if config is not None:
        with pytest.raises(TypeError, match=r"^text_config is .*; it must be a mapping"):
            attention_layer({**LLAMA, "text_config": config})


@pytest.mark.parametrize(
    "key", ["num_attention_heads", "num_key_value_heads", "hidden_size", "head_dim", "sliding_window"]
)
def test_sizes_that_no_layer_has_are_refused_by_their_keys(key: str) -> None:
    for value in ("9", True, 9.0, [9]):
        with pytest.raises(TypeError, match=f"^{key} is .*; it must be an integer"):
            attention_layer({**LLAMA, key: value})
    for value in (-1, 0):
        if (key, value) != ("sliding_window", 0):
            with pytest.raises(ValueError, match=f"^{key} is {value}; it must be at least 1"):
                attention_layer({**LLAMA, key: value})


@pytest.mark.parametrize("key", ["alibi", "use_sliding_window"])
def test_texts_and_numbers_are_no_truth_values(key: str) -> None:
    for value in ("no", 1):
        with pytest.raises(TypeError, match=f"^{key} is .*; it must be True or False"):
            attention_layer({**LLAMA, key: value})


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        *[
            ({name: value}, "an integer")
            for name in ("num_q_heads", "head_size", "block_size")
            for value in ("9", True)
        ],
        *[({name: None}, "an integer") for name in ("num_kv_heads", "sliding_window")],
        *[({name: "no"}, "True or False") for name in ("has_alibi", "has_sinks", "is_causal")],
        *[({name: 3}, "a text") for name in ("dtype", "kv_cache_dtype")],
        *[({"logits_soft_cap": value}, "a number") for value in ("3", True, None)],
    ],
    ids=str,
)
def test_fields_of_a_wrong_kind(changes: dict[str, Any], wanted: str) -> None:
    fields: dict[str, Any] = {"num_q_heads": 9, "num_kv_heads": 3, "head_size": 64, "dtype": "float16", **changes}
    [(name, value)] = changes.items()
    with pytest.raises(TypeError, match=f"^{name} is {value!r}; it must be {wanted}"):
        AttentionLayer(**fields)
