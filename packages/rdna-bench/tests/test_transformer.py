"""The forward pass against a plain one without cache or chunks, and against the real model's English."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_model
from numpy.typing import NDArray
from rdna_bench.generation import GreedyRun, first_difference
from rdna_bench.model_file import ModelFile
from rdna_bench.reference import numpy_attention
from rdna_bench.tokenizer import ChatTokenizer
from rdna_bench.transformer import Transformer
from rdna_bench.weights import load_weights

F64 = NDArray[np.float64]


def plain_forward(file: ModelFile, tokens: list[int]) -> F64:
    """Hidden states ``[tokens, hidden]`` in float64, rotation by halves on rows put back from GGUF's order."""
    hidden, head = tiny_model.HIDDEN, tiny_model.HEAD

    def tensor(name: str, *shape: int) -> F64:
        return file.tensor(name, shape).astype(np.float64)

    def norm(x: F64, name: str) -> F64:
        normed: F64 = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * tensor(name, hidden)
        return normed

    def rotate(x: F64) -> F64:
        # x [tokens, heads, head]; GGUF's rows 2i and 2i + 1 are the original rows i and i + head / 2.
        x = np.concatenate([x[..., 0::2], x[..., 1::2]], -1)
        angle = np.arange(len(x))[:, None] / 10000 ** (np.arange(head // 2) / (head // 2))
        cos, sin = (np.tile(f(angle), 2)[:, None] for f in (np.cos, np.sin))
        rotated: F64 = x * cos + np.concatenate([-x[..., head // 2 :], x[..., : head // 2]], -1) * sin
        return rotated

    n, q_heads, kv_heads = len(tokens), tiny_model.Q_HEADS, tiny_model.KV_HEADS
    x = tensor("token_embd.weight", len(tiny_model.vocabulary()), hidden)[tokens]
    for layer in range(tiny_model.LAYERS):
        prefix = f"blk.{layer}."
        normed = norm(x, prefix + "attn_norm.weight")
        q = rotate((normed @ tensor(prefix + "attn_q.weight", q_heads * head, hidden).T).reshape(n, q_heads, head))
        k = rotate((normed @ tensor(prefix + "attn_k.weight", kv_heads * head, hidden).T).reshape(n, kv_heads, head))
        v = (normed @ tensor(prefix + "attn_v.weight", kv_heads * head, hidden).T).reshape(n, kv_heads, head)
        k, v = (np.repeat(part, q_heads // kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(head)
        weights = np.exp(scores) * np.tri(n)
        weights /= weights.sum(-1, keepdims=True)
        heads = np.einsum("hqk,khd->qhd", weights, v).reshape(n, -1)
        x = x + heads @ tensor(prefix + "attn_output.weight", hidden, q_heads * head).T
        normed = norm(x, prefix + "ffn_norm.weight")
        gate = normed @ tensor(prefix + "ffn_gate.weight", tiny_model.INTERMEDIATE, hidden).T
        up = normed @ tensor(prefix + "ffn_up.weight", tiny_model.INTERMEDIATE, hidden).T
        x = (
            x
            + (gate / (1 + np.exp(-gate)) * up) @ tensor(prefix + "ffn_down.weight", hidden, tiny_model.INTERMEDIATE).T
        )
    return norm(x, "output_norm.weight")


def run(model: Transformer, chunks: list[list[int]], page_size: int = 16, dtype: str = "fp16", seed: int = 0) -> Any:
    """Hidden states of all tokens, fed in chunks."""
    cache = model.new_cache(page_size, dtype, seed)
    return np.concatenate([model.forward(chunk, cache, numpy_attention) for chunk in chunks])


@pytest.mark.parametrize(("dtype", "tolerance"), [("fp16", 4e-3), ("bf16", 4e-2)])
def test_matches_a_plain_forward_pass(tiny_path: Path, dtype: str, tolerance: float) -> None:
    file = ModelFile(tiny_path)
    tokens = np.random.default_rng(3).integers(0, 200, 40).tolist()
    got = run(Transformer(load_weights(file)), [tokens[:8], tokens[8:11], *([t] for t in tokens[11:])], 16, dtype)
    expected = plain_forward(file, tokens)
    assert np.abs(got - expected).max() < tolerance * np.abs(expected).max()


def test_pages_and_their_order_change_nothing(tiny_path: Path) -> None:
    model = Transformer(load_weights(ModelFile(tiny_path)))
    chunks = [[5, 6, 7, 8], *([t] for t in range(40))]
    expected = run(model, chunks)
    np.testing.assert_array_equal(run(model, chunks, page_size=32, seed=4), expected)


def test_context_is_bounded(tiny_path: Path) -> None:
    model = Transformer(load_weights(ModelFile(tiny_path)))
    cache = model.new_cache(16, "fp16")
    cache.reserve(tiny_model.CONTEXT)
    with pytest.raises(ValueError, match=r"256 \+ 1 tokens do not fit the model's context of 256"):
        model.forward([1], cache, numpy_attention)


def test_the_real_model_answers_in_english(model: Transformer, tokenizer: ChatTokenizer) -> None:
    greedy = GreedyRun(model, model.new_cache(16, "fp16"), numpy_attention, end_of_text=tokenizer.end_of_text)
    tokens = list(greedy.steps(tokenizer.encode_chat("What is the capital of France?"), 20))
    assert tokenizer.decode(tokens) == "The capital of France is Paris."
    assert greedy.finish == "end of text"
    assert greedy.decode_steps == len(tokens)
    assert len(greedy.margins) == len(tokens) + 1


def test_the_real_model_predicts_english(model: Transformer, tokenizer: ChatTokenizer) -> None:
    text = (
        "Water boils when its vapour pressure equals the pressure of the air around it. At sea level this happens "
        "at a temperature of one hundred degrees Celsius. On a high mountain the pressure of the air is lower, and "
        "so water boils at a lower temperature."
    )
    ids = [0, *tokenizer.encode(text)]  # <|endoftext|> stands before a text in training
    hidden = run(model, [ids[i : i + 8] for i in range(0, len(ids), 8)])
    logits = model.logits(hidden[:-1]).astype(np.float64)
    top = logits.max(-1)
    log_probability = logits[np.arange(len(ids) - 1), ids[1:]] - top - np.log(np.exp(logits - top[:, None]).sum(-1))
    # Wrong rotation pairs, a swapped gate or a lost norm cost several nats; an untrained model has 10.8.
    assert -log_probability.mean() < 2.8


def test_first_difference() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 5, 3]) == 1
    assert first_difference([1, 2], [1, 2, 3]) == 2
