from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from octave_quant import rope_dim_from_config

# Shapes of real configurations: what says the rotary size, the head size, and that size.
CONFIGS: dict[str, tuple[dict[str, Any], int, int]] = {
    "Llama 3.1 8B": ({"model_type": "llama", "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3"}}, 128, 128),
    "SmolLM2 135M": ({"model_type": "llama", "rope_theta": 1e5, "rope_scaling": None}, 64, 64),
    "Qwen3 4B": ({"model_type": "qwen3", "head_dim": 128, "rope_scaling": None}, 128, 128),
    "Phi-2": ({"model_type": "phi", "partial_rotary_factor": 0.4}, 80, 32),
    "Phi-4-mini": (
        {"model_type": "phi3", "partial_rotary_factor": 0.75, "rope_scaling": {"type": "longrope"}},
        128,
        96,
    ),
    "StableLM 3B": ({"model_type": "stablelm", "partial_rotary_factor": 0.25}, 80, 20),
    "StableLM, first release": ({"model_type": "stablelm_epoch", "rope_pct": 0.25}, 80, 20),
    "Pythia 6.9B": ({"model_type": "gpt_neox", "rotary_pct": 0.25, "rotary_emb_base": 10000}, 128, 32),
    "GPT-J 6B": ({"model_type": "gptj", "rotary_dim": 64}, 256, 64),
    "CodeGen 350M": ({"model_type": "codegen", "rotary_dim": 32}, 64, 32),
    "GLM-4 9B": ({"model_type": "glm4", "partial_rotary_factor": 0.5}, 128, 64),
    "Nemotron": ({"model_type": "nemotron", "partial_rotary_factor": 0.5, "rope_percent": None}, 128, 64),
    "Persimmon 8B": ({"model_type": "persimmon", "partial_rotary_factor": 0.5}, 64, 32),
    "MiniMax-M2": ({"model_type": "minimax_m2", "rotary_dim": 64, "head_dim": 128}, 128, 64),
    "a default rotary_dim beside a factor": ({"rotary_dim": 64, "partial_rotary_factor": 0.5}, 128, 64),
    "Qwen3-Next": ({"model_type": "qwen3_next", "partial_rotary_factor": 0.25, "head_dim": 256}, 256, 64),
    "Qwen3.5 27B": (
        {
            "model_type": "qwen3_5",
            "text_config": {
                "model_type": "qwen3_5_text",
                "head_dim": 256,
                "rope_parameters": {
                    "rope_type": "default",
                    "partial_rotary_factor": 0.25,
                    "mrope_section": [11, 11, 10],
                },
            },
            "vision_config": {"partial_rotary_factor": 0.5},
        },
        256,
        64,
    ),
    "Gemma 3, a theta for each layer type": (
        {
            "model_type": "gemma3",
            "text_config": {
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "rope_theta": 1e6},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                }
            },
        },
        256,
        256,
    ),
    "InternVL, llm_config": ({"llm_config": {"model_type": "glm4", "partial_rotary_factor": 0.5}}, 128, 64),
    "GPT-2": ({"model_type": "gpt2"}, 64, 0),
    "Falcon with ALiBi": ({"model_type": "falcon", "alibi": True}, 64, 0),
    # The keys are left out where they have the class's default.
    "GPT-NeoX, default": ({"model_type": "gpt_neox"}, 96, 24),
    "StableLM, default": ({"model_type": "stablelm"}, 64, 16),
    "Qwen3.5, default": ({"text_config": {"model_type": "qwen3_5_text"}}, 256, 64),
    "GPT-J, default": ({"model_type": "gptj"}, 256, 64),
    "nothing known": ({}, 128, 128),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_real_configurations(name: str) -> None:
    config, head_size, rope_dim = CONFIGS[name]
    assert rope_dim_from_config(config, head_size) == rope_dim
    as_object = SimpleNamespace(**config)
    if "text_config" in config:
        as_object.text_config = SimpleNamespace(**config["text_config"])
    assert rope_dim_from_config(as_object, head_size) == rope_dim


LAYERS = {
    "rope_parameters": {
        "full_attention": {"rope_theta": 1e6, "partial_rotary_factor": 0.25},
        "sliding_attention": {"rope_theta": 1e4},
    }
}


def test_layer_types_that_differ() -> None:
    assert rope_dim_from_config(LAYERS, 512, layer_type="full_attention") == 128
    assert rope_dim_from_config(LAYERS, 256, layer_type="sliding_attention") == 256
    with pytest.raises(ValueError, match=r"differ in rotary dimensions \(full_attention 64, sliding_attention 256\)"):
        rope_dim_from_config(LAYERS, 256)
    with pytest.raises(ValueError, match="layer_type is 'global'; the configuration has full_attention, sliding_att"):
        rope_dim_from_config(LAYERS, 256, layer_type="global")
    assert rope_dim_from_config(CONFIGS["Phi-2"][0], 80, layer_type="full_attention") == 32


@pytest.mark.parametrize(
    ("config", "one", "other"),
    [
        ({"partial_rotary_factor": 0.5, "rotary_dim": 32}, "partial_rotary_factor = 0.5", "rotary_dim = 32"),
        ({"rotary_pct": 0.25, "partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5", "rotary_pct = 0.25"),
        (
            {"partial_rotary_factor": 1.0, "rope_parameters": {"partial_rotary_factor": 0.25}},
            "partial_rotary_factor = 1.0",
            "rope_parameters.partial_rotary_factor = 0.25",
        ),
        (
            {"rotary_dim": 64, "text_config": {"rope_parameters": {"partial_rotary_factor": 0.25}}},
            "rotary_dim = 64",
            "text_config.rope_parameters.partial_rotary_factor = 0.25",
        ),
    ],
)
def test_contradictions_name_both_keys(config: dict[str, Any], one: str, other: str) -> None:
    with pytest.raises(ValueError, match=f"^{one} and {other} contradict each other"):
        rope_dim_from_config(config, 128)


def test_latent_attention_is_refused_by_name() -> None:
    deepseek = {"model_type": "deepseek_v3", "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128}
    with pytest.raises(ValueError, match="kv_lora_rank is 512: multi-head latent attention"):
        rope_dim_from_config(deepseek, 192)
    with pytest.raises(ValueError, match=r"text_config\.qk_rope_head_dim is 64"):
        rope_dim_from_config({"text_config": {"qk_rope_head_dim": 64, "kv_lora_rank": None}}, 192)


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"partial_rotary_factor": 1.5}, ValueError, "partial_rotary_factor is 1.5; it must be from 0 to 1"),
        ({"partial_rotary_factor": "half"}, TypeError, "partial_rotary_factor is 'half'; it must be a number"),
        ({"rotary_dim": 256}, ValueError, r"rotary_dim gives 256 rotary dimensions; .* at most head_size \(128\)"),
        ({"rotary_dim": 33}, ValueError, "rotary_dim gives 33 rotary dimensions; they must be even"),
        ({"rotary_dim": 32.0}, TypeError, "rotary_dim is 32.0; it must be an integer"),
    ],
)
def test_sizes_that_no_head_has(config: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rope_dim_from_config(config, 128)


def test_head_sizes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="head_size is 0"):
        rope_dim_from_config({}, 0)
    with pytest.raises(TypeError, match="head_size is '64'"):
        rope_dim_from_config({}, "64")  # type: ignore[arg-type]  # wrong on purpose
