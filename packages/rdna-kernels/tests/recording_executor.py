"""An executor that launches nothing and remembers what it was asked to launch."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rdna_kernels import Catalogue, Executor
from rdna_kernels.decode_arguments import DECODE_ARGUMENTS
from rdna_kernels.executors.interface import DeviceProperties, Function


class RecordingExecutor(Executor):
    """Takes NumPy arrays. `launches` holds what each launch was given; `fail` makes launches raise."""

    name = "recording"

    def __init__(self, catalogue: Catalogue, target: str = "gfx1151") -> None:
        super().__init__(target, catalogue)
        self.launches: list[dict[str, Any]] = []
        self.loads = 0
        self.made: list[np.ndarray[Any, Any]] = []
        self.fail = False

    @property
    def properties(self) -> DeviceProperties:
        return DeviceProperties(self.target, "recording", 1, 65536, "none")

    def host_values(self, array: Any) -> np.ndarray[Any, Any] | None:
        return np.asarray(array)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return self.zeros(shape, dtype)

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        self.made.append(np.zeros(tuple(shape), dtype))
        return self.made[-1]

    def load(self, code: bytes) -> Any:
        self.loads += 1
        return code

    def function(self, module: Any, name: str) -> Function:
        return Function(name, module)

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: int,
        arguments: bytes,
        memory: Sequence[tuple[str, Any]],
        stream: Any = None,
    ) -> Mapping[str, Any]:
        if self.fail:
            raise RuntimeError("the launch failed")
        self.launches.append(
            {
                "name": function.name,
                "grid": grid,
                "block": block,
                "arguments": unpack(arguments),
                "memory": list(memory),
            }
        )
        return {"wave_instructions": 0}


def unpack(arguments: bytes) -> dict[str, int | float]:
    """The fields of the decode kernel's argument struct, by name."""
    codes = {"int64_t": "q", "uint32_t": "I", "int32_t": "i", "float": "f"}
    form = "".join("Q" if "*" in kind else codes[kind] for _, kind, _ in DECODE_ARGUMENTS)
    values = struct.unpack_from("@" + form, arguments)
    return dict(zip((name for name, _, _ in DECODE_ARGUMENTS), values, strict=True))
