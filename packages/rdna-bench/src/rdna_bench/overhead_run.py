"""What a warm `decode_attention` costs the host, and where the time goes.

The call runs through rdna-emulator's HIP runtime with launching switched off: everything is done that a call on a GPU
does, from the operator's arguments to the runtime's checks of the launch, and no kernel runs.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import rdna_emulator
from rdna_kernels import HipExecutor, decode_attention
from rdna_kernels.arrays import look
from rdna_kernels.executors.hip_library import HipLibrary
from rdna_registry import select

from rdna_bench.machine import Machine
from rdna_bench.timing import Timed, interleave

#: What a warm call may cost, in microseconds.
LIMIT_US = 15.0

NUM_Q_HEADS, NUM_KV_HEADS, HEAD_SIZE, NUM_SEQS, PAGE_SIZE = 32, 8, 128, 8, 16

WARM = "decode_attention"

_MANY_OUTPUTS = 1024  # more than the places that a prepared call remembers


@dataclass(frozen=True)
class Part:
    """Something that was timed: what it is, and whether it is a whole call, a part of the warm one, or neither."""

    name: str
    kind: str  # "call", "part", "array"
    timed: Timed

    @property
    def least(self) -> float:
        """The fastest round, microseconds."""
        return min(self.timed.microseconds)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"name": self.name, "kind": self.kind, "least_us": self.least, **asdict(self.timed.spread)}


class OverheadRun:
    """One run of ``rdna-bench overhead``; use in order: ``__init__``, ``run``."""

    def __init__(self, *, repeats: int = 50, limit_us: float = LIMIT_US) -> None:
        """Allocate everything and make every call once.

        Raises:
            ExecutorError: the emulated runtime has no device that kernels are built for.
        """
        self.repeats, self.limit_us = repeats, limit_us
        self.machine = Machine.here()
        path = str(rdna_emulator.hip_library())
        ctypes.CDLL(path).rdna_hip_launching(0)
        executor = HipExecutor(library=HipLibrary(path))
        self.runtime = executor.properties.runtime
        self.target = executor.target
        self.parts = _parts(executor)

    @property
    def warm(self) -> Part:
        """The call that the limit is for."""
        return self.parts[0]

    @property
    def rest(self) -> float:
        """Microseconds of the fastest warm call that no part of it accounts for."""
        return self.warm.least - sum(part.least for part in self.parts if part.kind == "part")

    @property
    def passed(self) -> bool:
        """Whether the fastest warm call keeps to the limit: slower ones were held up by others on the machine."""
        return self.warm.least <= self.limit_us

    def run(self, progress: Callable[[str, int, int], None]) -> None:
        """Time everything in turns; ``progress(stage, done, total)`` hears of it."""
        progress("timing", 0, self.repeats)
        for done in interleave([part.timed for part in self.parts], self.repeats):
            progress("timing", done, self.repeats)

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: times in microseconds a call."""
        return {
            "command": "overhead",
            "machine": asdict(self.machine),
            "target": self.target,
            "runtime": self.runtime,
            "repeats": self.repeats,
            "limit_us": self.limit_us,
            "passed": self.passed,
            "rest_us": self.rest,
            "parts": [part.to_dict() for part in self.parts],
        }


def _parts(executor: HipExecutor) -> list[Part]:
    entry = select(NUM_Q_HEADS, NUM_KV_HEADS, HEAD_SIZE, 1, PAGE_SIZE, 1, 0, "fp16", True, target=executor.target)
    (rows, width), _, counters = entry.scratch_shapes()
    q = executor.zeros((NUM_SEQS, NUM_Q_HEADS, HEAD_SIZE), "float16")
    out = executor.zeros(q.shape, "float16")
    cache = executor.zeros((NUM_SEQS, NUM_KV_HEADS, PAGE_SIZE, 2 * HEAD_SIZE), "float16")
    table = executor.zeros((NUM_SEQS, 4), "int32")
    lengths = executor.zeros((NUM_SEQS,), "int32")
    scratch = (
        executor.zeros((NUM_SEQS * rows, width), "float32"),
        executor.zeros((NUM_SEQS * rows,), "float32"),
        executor.zeros((NUM_SEQS * rows,), "float32"),
        executor.zeros((NUM_SEQS * counters,), "int32"),
    )
    inputs = (q, cache, table, lengths)
    arrays = (*inputs, out, *scratch)
    outputs = itertools.cycle([executor.zeros(q.shape, "float16") for _ in range(_MANY_OUTPUTS)])

    def warm() -> None:
        decode_attention(*inputs, out=out, scratch=scratch, executor=executor)

    def new_output() -> None:
        decode_attention(*inputs, out=next(outputs), scratch=scratch, executor=executor)

    def pooled() -> None:
        decode_attention(*inputs, out=out, executor=executor)

    def allocating() -> None:
        decode_attention(*inputs, scratch=scratch, executor=executor)

    warm()
    (found, prepared), *_ = executor.prepared.items()
    key: Any = found
    function = executor.build_function(prepared.call.build_name)
    addresses = [array.address for array in arrays[:5]]
    scratch_looks = tuple([look(array) for array in scratch])
    arguments = bytes(function.handle[1])
    grid, block = prepared.call.grid, prepared.call.block
    # As the operator remembers them; its own memory of addresses is cleared by the calls with new outputs.
    packed = {(*addresses, scratch_looks): arguments}
    parts = {
        "reading shapes and addresses of 9 arrays": _reader(arrays),
        "finding the prepared call": lambda: executor.prepared.get(tuple(key)),
        "finding the packed arguments": lambda: packed[(*addresses, scratch_looks)],
        "launching": lambda: executor.launch(function, grid, block, arguments, ()),
    }
    calls = {
        WARM: warm,
        "with an output at a new address": new_output,
        "with scratch from the executor's pool": pooled,
        "with a new output": allocating,
    }
    return [
        *(Part(name, "call", Timed(run)) for name, run in calls.items()),
        *(Part(name, "part", Timed(run)) for name, run in parts.items()),
        *(Part(f"9 {name}", "array", Timed(_reader(given))) for name, given in _other_arrays().items()),
    ]


def _reader(arrays: tuple[Any, ...]) -> Callable[[], object]:
    return lambda: [look(array) for array in arrays]


def _other_arrays() -> dict[str, tuple[Any, ...]]:
    shapes = [(NUM_SEQS, NUM_Q_HEADS, HEAD_SIZE)] * 9
    kinds: dict[str, tuple[Any, ...]] = {"NumPy arrays": tuple(np.zeros(shape, np.float16) for shape in shapes)}
    if importlib.util.find_spec("torch") is not None:
        import torch

        kinds["torch tensors"] = tuple(torch.zeros(shape, dtype=torch.float16) for shape in shapes)
    return kinds
