"""Weights of a llama-architecture model as float32 matrices, laid out for one multiplication each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdna_bench.model_file import ModelFile, ModelFileError

Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of a llama-architecture model."""

    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_q_heads: int
    num_kv_heads: int
    head_size: int
    vocab_size: int
    context_length: int
    rope_base: float
    norm_epsilon: float

    @classmethod
    def from_file(cls, file: ModelFile) -> ModelConfig:
        """The sizes that ``file`` states.

        Raises:
            ModelFileError: the architecture is not llama, or heads and sizes do not fit together.
        """
        architecture = file.value("general.architecture", str)
        if architecture != "llama":
            raise ModelFileError(f"{file.path}: architecture {architecture!r} is not served: it must be 'llama'")
        hidden_size = file.value("llama.embedding_length", int)
        num_q_heads = file.value("llama.attention.head_count", int)
        config = cls(
            num_layers=file.value("llama.block_count", int),
            hidden_size=hidden_size,
            intermediate_size=file.value("llama.feed_forward_length", int),
            num_q_heads=num_q_heads,
            num_kv_heads=file.value("llama.attention.head_count_kv", int, num_q_heads),
            head_size=file.value("llama.rope.dimension_count", int, hidden_size // num_q_heads),
            vocab_size=file.value("llama.vocab_size", int),
            context_length=file.value("llama.context_length", int),
            rope_base=file.value("llama.rope.freq_base", float, 10000.0),
            norm_epsilon=file.value("llama.attention.layer_norm_rms_epsilon", float),
        )
        if config.num_q_heads % config.num_kv_heads or config.head_size * num_q_heads != hidden_size:
            raise ModelFileError(
                f"{file.path}: {config.num_q_heads} q heads, {config.num_kv_heads} kv heads and head size "
                f"{config.head_size} do not fit an embedding of {hidden_size}"
            )
        return config


@dataclass(frozen=True)
class LayerWeights:
    """One layer. Matrices are ``[outputs, inputs]``; those that share an input are stacked into one."""

    attention_norm: Float32  # [hidden]
    qkv: Float32  # [(num_q_heads + 2 * num_kv_heads) * head_size, hidden]
    attention_output: Float32  # [hidden, num_q_heads * head_size]
    mlp_norm: Float32  # [hidden]
    gate_up: Float32  # [2 * intermediate, hidden]
    down: Float32  # [hidden, intermediate]


@dataclass(frozen=True)
class Weights:
    """All weights of a model; ``unembedding`` is ``embedding`` itself where the model ties them."""

    config: ModelConfig
    embedding: Float32  # [vocab, hidden]
    layers: tuple[LayerWeights, ...]
    output_norm: Float32  # [hidden]
    unembedding: Float32  # [vocab, hidden]


def load_weights(file: ModelFile, progress: Callable[[int, int], None] | None = None) -> Weights:
    """Read and dequantize every weight of ``file``; ``progress(done, total)`` is called after each layer.

    Raises:
        ModelFileError: a tensor is missing or has an unexpected shape, or the model is not served.
    """
    config = ModelConfig.from_file(file)
    hidden, intermediate = config.hidden_size, config.intermediate_size
    q_size, kv_size = config.num_q_heads * config.head_size, config.num_kv_heads * config.head_size
    layers: list[LayerWeights] = []
    for index in range(config.num_layers):
        if progress is not None:
            progress(index, config.num_layers + 1)

        def matrix(name: str, rows: int, columns: int, prefix: str = f"blk.{index}.") -> Float32:
            return file.tensor(f"{prefix}{name}.weight", (rows, columns))

        def vector(name: str, prefix: str = f"blk.{index}.") -> Float32:
            return file.tensor(f"{prefix}{name}.weight", (hidden,))

        layers.append(
            LayerWeights(
                attention_norm=vector("attn_norm"),
                qkv=np.concatenate(
                    [
                        matrix("attn_q", q_size, hidden),
                        matrix("attn_k", kv_size, hidden),
                        matrix("attn_v", kv_size, hidden),
                    ]
                ),
                attention_output=matrix("attn_output", hidden, q_size),
                mlp_norm=vector("ffn_norm"),
                gate_up=np.concatenate(
                    [matrix("ffn_gate", intermediate, hidden), matrix("ffn_up", intermediate, hidden)]
                ),
                down=matrix("ffn_down", hidden, intermediate),
            )
        )
    if progress is not None:
        progress(config.num_layers, config.num_layers + 1)
    embedding = file.tensor("token_embd.weight", (config.vocab_size, hidden))
    tied = not file.has_tensor("output.weight")
    weights = Weights(
        config=config,
        embedding=embedding,
        layers=tuple(layers),
        output_norm=file.tensor("output_norm.weight", (hidden,)),
        unembedding=embedding if tied else file.tensor("output.weight", (config.vocab_size, hidden)),
    )
    if progress is not None:
        progress(config.num_layers + 1, config.num_layers + 1)
    return weights
