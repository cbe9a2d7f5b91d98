"""What an attention layer asks for, read from a model's plain configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer and its cache, in vLLM's terms.

    ``block_size`` is the tokens of a cache page, ``sliding_window`` the keys that a token sees with itself included (0:
    all), ``logits_soft_cap`` 0.0 means none, ``kv_cache_dtype`` "auto" means that of the model.
    """

    num_q_heads: int
    num_kv_heads: int
    head_size: int
    dtype: str
    block_size: int = 16
    kv_cache_dtype: str = "auto"
    sliding_window: int = 0
    logits_soft_cap: float = 0.0
    has_alibi: bool = False
    has_sinks: bool = False
    is_causal: bool = True


def attention_layer(config: Mapping[str, Any], *, block_size: int = 16, kv_cache_dtype: str = "auto") -> AttentionLayer:
    """The attention layer of a decoder model from the mapping in its ``config.json``; a nested ``text_config`` is used.

    ValueError where the configuration does not say how many heads there are, how large one is, or of which dtype.
    """
    nested = config.get("text_config")
    values: Mapping[str, Any] = {**config, **nested} if isinstance(nested, Mapping) else config
    num_q_heads = _first(values, "num_attention_heads", "n_head")
    head_size = values.get("head_dim")
    if head_size is None:
        hidden = _first(values, "hidden_size", "n_embd")
        if hidden % num_q_heads:
            raise ValueError(f"hidden_size {hidden} is no multiple of {num_q_heads} heads, and head_dim is not given")
        head_size = hidden // num_q_heads
    window = values.get("sliding_window") if values.get("use_sliding_window", True) else None
    return AttentionLayer(
        num_q_heads=num_q_heads,
        num_kv_heads=values.get("num_key_value_heads") or num_q_heads,
        head_size=head_size,
        dtype=str(_first(values, "dtype", "torch_dtype")).removeprefix("torch."),
        block_size=block_size,
        kv_cache_dtype=kv_cache_dtype,
        sliding_window=window or 0,
        logits_soft_cap=values.get("attn_logit_softcapping") or 0.0,
        has_alibi=bool(values.get("alibi")),
        has_sinks=values.get("model_type") == "gpt_oss",
    )


def _first(values: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        if values.get(key) is not None:
            return values[key]
    raise ValueError(f"the configuration has no {' or '.join(keys)}; its keys: {', '.join(sorted(values)) or 'none'}")
