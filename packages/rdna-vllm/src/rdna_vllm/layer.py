"""What an attention layer asks for, read from a model's plain configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer and its cache, in vLLM's terms.

    ``block_size`` is the tokens of a cache page, ``sliding_window`` the keys that a token sees with itself included (0:
    all), ``logits_soft_cap`` 0.0 means none, ``kv_cache_dtype`` "auto" means that of the model. TypeError, by name, for
    what is no integer, number, text or truth value where one stands; values are judged by `why_not_served`.
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

    def __post_init__(self) -> None:
        for name in ("num_q_heads", "num_kv_heads", "head_size", "block_size", "sliding_window"):
            _require(name, getattr(self, name), int)
        for name in ("has_alibi", "has_sinks", "is_causal"):
            _require(name, getattr(self, name), bool)
        for name in ("dtype", "kv_cache_dtype"):
            _require(name, getattr(self, name), str)
        _require("logits_soft_cap", self.logits_soft_cap, float, int)


def attention_layer(config: Mapping[str, Any], *, block_size: int = 16, kv_cache_dtype: str = "auto") -> AttentionLayer:
    """The attention layer of a decoder model from the mapping in its ``config.json``; a nested ``text_config`` is used.

    ValueError where the configuration does not say how many heads there are, how large one is, or of which dtype, and
    for sizes that no layer has; TypeError for values of a wrong kind. Both name the key.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; it must be the mapping in a model's config.json")
    nested = config.get("text_config")
    if nested is not None and not isinstance(nested, Mapping):
        raise TypeError(f"text_config is {nested!r}; it must be a mapping")
    values: Mapping[str, Any] = {**config, **(nested or {})}
    num_q_heads = _size(values, "num_attention_heads", "n_head")
    if values.get("head_dim") is not None:
        head_size = _size(values, "head_dim")
    else:
        hidden = _size(values, "hidden_size", "n_embd")
        if hidden % num_q_heads:
            raise ValueError(f"hidden_size {hidden} is no multiple of {num_q_heads} heads, and head_dim is not given")
        head_size = hidden // num_q_heads
    has_window = _flag(values, "use_sliding_window", True) and values.get("sliding_window")
    has_kv_heads = values.get("num_key_value_heads") is not None
    return AttentionLayer(
        num_q_heads=num_q_heads,
        num_kv_heads=_size(values, "num_key_value_heads") if has_kv_heads else num_q_heads,
        head_size=head_size,
        dtype=str(_first(values, "dtype", "torch_dtype")[1]).removeprefix("torch."),
        block_size=block_size,
        kv_cache_dtype=kv_cache_dtype,
        sliding_window=_size(values, "sliding_window") if has_window else 0,
        logits_soft_cap=values.get("attn_logit_softcapping") or 0.0,
        has_alibi=_flag(values, "alibi", False),
        has_sinks=values.get("model_type") == "gpt_oss",
    )


def _first(values: Mapping[str, Any], *keys: str) -> tuple[str, Any]:
    for key in keys:
        if values.get(key) is not None:
            return key, values[key]
    listed = ", ".join(sorted(map(str, values))) or "none"
    raise ValueError(f"the configuration has no {' or '.join(keys)}; its keys: {listed}")


def _size(values: Mapping[str, Any], *keys: str) -> int:
    key, value = _first(values, *keys)
    _require(key, value, int)
    if value < 1:
        raise ValueError(f"{key} is {value}; it must be at least 1")
    return int(value)


def _flag(values: Mapping[str, Any], key: str, default: bool) -> bool:
    value = values.get(key)
    if value is None:
        return default
    _require(key, value, bool)
    return bool(value)


_KINDS = {int: "an integer", float: "a number", str: "a text", bool: "True or False"}


def _require(name: str, value: object, *kinds: type) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"{name} is {value!r}; it must be {_KINDS[kinds[0]]}")
