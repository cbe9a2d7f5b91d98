"""Write a small random GGUF model of the llama architecture: 4 q heads on 2 kv heads of 64, byte tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter
from tokenizers.pre_tokenizers import ByteLevel

HIDDEN, INTERMEDIATE, LAYERS, Q_HEADS, KV_HEADS, HEAD = 256, 320, 2, 4, 2, 64
CONTEXT = 256
CONTROL = ["<|end|>", "<|user|>", "<|assistant|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def vocabulary() -> list[str]:
    """Control tokens, then one token for each byte, then one merged token."""
    return [*CONTROL, *sorted(ByteLevel.alphabet()), "th"]


def write_tiny_model(path: Path, seed: int = 0, **overrides: Any) -> Path:
    """Write the model to ``path``; ``overrides`` replace ``architecture``, ``pre`` or ``context``."""
    rng = np.random.default_rng(seed)
    tokens = vocabulary()
    writer = GGUFWriter(path, overrides.get("architecture", "llama"))
    writer.add_block_count(LAYERS)
    writer.add_context_length(overrides.get("context", CONTEXT))
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(Q_HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(overrides.get("pre", "smollm"))
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(CONTROL) + [1] * (len(tokens) - len(CONTROL)))
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(0)
    writer.add_chat_template(CHAT_TEMPLATE)

    def add(name: str, *shape: int) -> None:
        values = rng.standard_normal(shape, np.float32) / np.sqrt(shape[-1] if len(shape) > 1 else 1.0)
        writer.add_tensor(name, values.astype(np.float32))

    add("token_embd.weight", len(tokens), HIDDEN)
    add("output_norm.weight", HIDDEN)
    for layer in range(LAYERS):
        add(f"blk.{layer}.attn_norm.weight", HIDDEN)
        add(f"blk.{layer}.attn_q.weight", Q_HEADS * HEAD, HIDDEN)
        add(f"blk.{layer}.attn_k.weight", KV_HEADS * HEAD, HIDDEN)
        add(f"blk.{layer}.attn_v.weight", KV_HEADS * HEAD, HIDDEN)
        add(f"blk.{layer}.attn_output.weight", HIDDEN, Q_HEADS * HEAD)
        add(f"blk.{layer}.ffn_norm.weight", HIDDEN)
        add(f"blk.{layer}.ffn_gate.weight", INTERMEDIATE, HIDDEN)
        add(f"blk.{layer}.ffn_up.weight", INTERMEDIATE, HIDDEN)
        add(f"blk.{layer}.ffn_down.weight", HIDDEN, INTERMEDIATE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
