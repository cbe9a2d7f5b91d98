"""How many dimensions of a head rotary embedding turns, from a model's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from octave_quant.arguments import integer

_NESTED = ("text_config", "llm_config", "language_config")
_ROPE = ("rope_parameters", "rope_scaling")
_FACTORS = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent")
_SIZES = ("rotary_dim",)
_LATENT = ("kv_lora_rank", "qk_rope_head_dim")

# What a configuration that says nothing means, where it is not the whole head: the defaults of Hugging Face
# Transformers' configuration classes.
_FACTOR_OF_MODEL_TYPE = {
    "fuyu": 0.5,
    "glm": 0.5,
    "glm4": 0.5,
    "glm4_moe": 0.5,
    "gpt_neox": 0.25,
    "nemotron": 0.5,
    "persimmon": 0.5,
    "phi": 0.5,
    "qwen3_5": 0.25,
    "qwen3_5_moe": 0.25,
    "qwen3_5_moe_text": 0.25,
    "qwen3_5_text": 0.25,
    "qwen3_next": 0.25,
    "stablelm": 0.25,
}
_SIZE_OF_MODEL_TYPE = {"codegen": 64, "gptj": 64}
_WITHOUT_ROTARY = frozenset({"bloom", "gpt2", "gpt_bigcode", "mpt", "opt"})


class _Claim(NamedTuple):
    """A key that says how large the rotary part is."""

    key: str
    value: Any
    size: int
    layer_type: str | None


def rope_dim_from_config(config: Any, head_size: int, *, layer_type: str | None = None) -> int:
    """The leading dimensions of a head of ``head_size`` that rotary embedding turns; 0 where the model has none.

    config: a model's configuration, the mapping of its ``config.json`` or an object with the same attributes. It says
        the size as ``partial_rotary_factor``, ``rotary_pct``, ``rope_pct``, ``rotary_percent`` (of the head) or
        ``rotary_dim``, at the top, in ``rope_parameters`` (also for each layer type) or ``rope_scaling``, and each of
        these in a nested ``text_config``, ``llm_config`` or ``language_config``. Where it says nothing, the model type
        decides, and for other types the whole head turns.
    layer_type: which of the layer types is meant (``"full_attention"``), where ``rope_parameters`` tells them apart.

    ValueError where two keys contradict each other (both are named), where layer types differ and none is asked for,
    for sizes that no head has, and for latent attention (MLA), whose cache holds no heads. TypeError for values that
    are no numbers.
    """
    head_size = integer(head_size, "head_size")
    if not isinstance(config, Mapping) and not hasattr(config, "__dict__") and not hasattr(type(config), "__slots__"):
        raise TypeError(f"config is a {type(config).__name__}; it must be a mapping or an object with attributes")
    if layer_type is not None and not isinstance(layer_type, str):
        raise TypeError(f"layer_type is {layer_type!r}; it must be the name of a layer type, or None")
    if head_size < 1:
        raise ValueError(f"head_size is {head_size}; it must be at least 1")
    parts = list(_parts(config))
    for prefix, part in parts:
        for key in _LATENT:
            if _get(part, key):
                raise ValueError(
                    f"{prefix}{key} is {_get(part, key)}: multi-head latent attention caches one latent vector, "
                    "no heads, and has no octave format"
                )
    claims = [claim for prefix, part in parts for claim in _claims(prefix, part, head_size)]
    claims = _of_layer_type(claims, layer_type)
    for claim in claims[1:]:
        if claim.size != claims[0].size:
            raise ValueError(
                f"{claims[0].key} = {claims[0].value} and {claim.key} = {claim.value} contradict each other: "
                f"{claims[0].size} and {claim.size} rotary dimensions of {head_size}"
            )
    return claims[0].size if claims else _default(parts, head_size)


def _parts(config: Any) -> Iterator[tuple[str, Any]]:
    yield "", config
    for name in _NESTED:
        nested = _get(config, name)
        if nested is not None:
            yield f"{name}.", nested


def _get(part: Any, key: str) -> Any:
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)


def _claims(prefix: str, part: Any, head_size: int, layer_type: str | None = None) -> Iterator[_Claim]:
    for key in _FACTORS:
        if (factor := _get(part, key)) is not None:
            yield _Claim(f"{prefix}{key}", factor, _size_of_factor(f"{prefix}{key}", factor, head_size), layer_type)
    for key in _SIZES:
        if (size := _get(part, key)) is not None:
            yield _Claim(f"{prefix}{key}", size, _checked_size(f"{prefix}{key}", size, head_size), layer_type)
    for key in _ROPE:
        rope = _get(part, key)
        if not isinstance(rope, Mapping):
            continue
        yield from _claims(f"{prefix}{key}.", {name: rope.get(name) for name in (*_FACTORS, *_SIZES)}, head_size)
        for name, of_type in rope.items():
            if isinstance(of_type, Mapping):
                found = list(_claims(f"{prefix}{key}.{name}.", of_type, head_size, str(name)))
                yield from found or [_Claim(f"{prefix}{key}.{name}", "no factor", head_size, str(name))]


def _of_layer_type(claims: list[_Claim], layer_type: str | None) -> list[_Claim]:
    by_type: dict[str, _Claim] = {claim.layer_type: claim for claim in claims if claim.layer_type is not None}
    if layer_type is not None:
        if by_type and layer_type not in by_type:
            raise ValueError(f"layer_type is {layer_type!r}; the configuration has {', '.join(by_type)}")
        return [claim for claim in claims if claim.layer_type in (None, layer_type)]
    if len({claim.size for claim in by_type.values()}) > 1:
        sizes = ", ".join(f"{name} {claim.size}" for name, claim in by_type.items())
        raise ValueError(f"the layer types differ in rotary dimensions ({sizes}); say which with layer_type")
    return claims


def _size_of_factor(key: str, factor: Any, head_size: int) -> int:
    if isinstance(factor, bool) or not isinstance(factor, (int, float)):
        raise TypeError(f"{key} is {factor!r}; it must be a number")
    if not 0 <= factor <= 1:
        raise ValueError(f"{key} is {factor}; it must be from 0 to 1, a part of the head")
    return _checked_size(key, int(head_size * factor), head_size)


def _checked_size(key: str, size: Any, head_size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{key} is {size!r}; it must be an integer")
    if not 0 <= size <= head_size or size % 2:
        raise ValueError(f"{key} gives {size} rotary dimensions; they must be even and at most head_size ({head_size})")
    return size


def _default(parts: list[tuple[str, Any]], head_size: int) -> int:
    for prefix, part in reversed(parts):  # the nested configuration is the language model's
        if _get(part, "alibi"):
            return 0
        model_type = _get(part, "model_type")
        if model_type in _WITHOUT_ROTARY:
            return 0
        if model_type in _FACTOR_OF_MODEL_TYPE:
            return int(head_size * _FACTOR_OF_MODEL_TYPE[model_type])
        if model_type in _SIZE_OF_MODEL_TYPE:
            return _checked_size(f"{prefix}model_type {model_type}", _SIZE_OF_MODEL_TYPE[model_type], head_size)
    return head_size
