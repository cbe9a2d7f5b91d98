"""octave-quant's two paths, timed in one interleaved run with a plain NumPy and a torch transcription of the format."""

from __future__ import annotations

import functools
import gc
import importlib.util
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from octave_quant import CACHE_DTYPES, OctaveFormat, core, numpy_path, path
from octave_quant.path import Path
from octave_quant.rows import Rows

from rdna_bench.machine import Machine
from rdna_bench.plain_octave import dequantize_plainly, quantize_plainly
from rdna_bench.timing import Timed, interleave, ratio

FORMATS = tuple(CACHE_DTYPES)
PLAIN, NUMPY, CORE, TORCH = "plain", "numpy", "core", "torch"


@dataclass(frozen=True)
class OctaveShape:
    """What is quantized: ``tokens`` x ``heads`` vectors of K and as many of V, in fp16."""

    tokens: int = 4096
    heads: int = 8
    head_size: int = 256
    rope_dim: int = 64
    cache_dtype: str = "octave_k3v4"


@dataclass(frozen=True)
class Contender:
    """One implementation: its two timed functions, and the most bytes that each held at once beyond its arguments, the
    result included (None where it cannot be seen)."""

    quantize: Timed
    dequantize: Timed
    quantize_bytes: int | None
    dequantize_bytes: int | None


class OctaveRun:
    """One run of everything that ``rdna-bench octave`` measures; use in order: ``__init__``, ``run``."""

    def __init__(self, shape: OctaveShape, *, repeats: int = 5, seed: int = 0) -> None:
        """Draw the vectors, run each implementation once, and compare its results with those of the transcription.

        Raises:
            ValueError: the shape is against the rules of the format.
        """
        self.shape, self.repeats, self.seed = shape, repeats, seed
        self.format = OctaveFormat.from_cache_dtype(shape.cache_dtype, shape.head_size, shape.rope_dim)
        self.machine = Machine.here()
        self.active_path, self.why_no_core = path.active().NAME, core.why_absent()
        rng = np.random.default_rng(seed)
        size = (2, shape.tokens, shape.heads, shape.head_size)
        self._key, self._value = rng.standard_normal(size, np.float32).astype(np.float16)
        self._slots = quantize_plainly(self._key, self._value, self.format)
        self._numpy_slots = _quantize_on(numpy_path, self._key, self._value, self.format)
        self.slots_off_plain = int((self._numpy_slots != self._slots).any(axis=-1).sum())
        self.paths_equal = True
        self.contenders = self._contenders()

    @property
    def passed(self) -> bool:
        """Whether the core gave the bytes of the NumPy path (where there is one), and back the same vectors."""
        return self.paths_equal

    @property
    def input_bytes(self) -> int:
        """Bytes of K and V, of which memory is counted in multiples."""
        return int(self._key.nbytes + self._value.nbytes)

    def run(self, progress: Callable[[str, int, int], None]) -> None:
        """Time everything in turns; ``progress(stage, done, total)`` hears of it."""
        timed = [timed for one in self.contenders.values() for timed in (one.quantize, one.dequantize)]
        progress("timing", 0, self.repeats)
        for done in interleave(timed, self.repeats):
            progress("timing", done, self.repeats)

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: times in microseconds a call, times and ratios with median and quartiles
        ("lower", "upper"), memory in bytes."""
        return {
            "command": "octave",
            "machine": asdict(self.machine),
            **asdict(self.shape),
            "repeats": self.repeats,
            "seed": self.seed,
            "passed": self.passed,
            "path": self.active_path,
            "why_no_core": self.why_no_core,
            "slots": self._slots.shape[0] * self._slots.shape[1],
            "slots_off_plain": self.slots_off_plain,
            "input_bytes": self.input_bytes,
            "implementations": {name: self._figures(one) for name, one in self.contenders.items()},
        }

    def _figures(self, one: Contender) -> dict[str, Any]:
        plain = self.contenders[PLAIN]
        return {
            "quantize_us": asdict(one.quantize.spread),
            "dequantize_us": asdict(one.dequantize.spread),
            "quantize_plain_over_this": asdict(ratio(plain.quantize, one.quantize)),
            "dequantize_plain_over_this": asdict(ratio(plain.dequantize, one.dequantize)),
            "quantize_bytes": one.quantize_bytes,
            "dequantize_bytes": one.dequantize_bytes,
        }

    def _contenders(self) -> dict[str, Contender]:
        key, value, slots, fmt = self._key, self._value, self._slots, self.format
        found = {PLAIN: _contender(lambda: quantize_plainly(key, value, fmt), lambda: dequantize_plainly(slots, fmt))}
        paths: list[Path] = [numpy_path] if self.why_no_core else [numpy_path, core]
        expected = _dequantize_on(numpy_path, slots, fmt)
        for each in paths:
            self.paths_equal &= np.array_equal(_quantize_on(each, key, value, fmt), self._numpy_slots)
            self.paths_equal &= all(map(np.array_equal, _dequantize_on(each, slots, fmt), expected))
            found[each.NAME] = _contender(
                functools.partial(_quantize_on, each, key, value, fmt),
                functools.partial(_dequantize_on, each, slots, fmt),
            )
        if importlib.util.find_spec("torch") is not None:
            found |= _torch_contenders(key, value, slots, fmt)
        return found


def _quantize_on(
    on: Path, key: NDArray[np.float16], value: NDArray[np.float16], fmt: OctaveFormat
) -> NDArray[np.uint8]:
    slots = np.empty((*key.shape[:2], fmt.slot_bytes), np.uint8)
    on.encode(Rows(key, "float16"), Rows(value, "float16"), fmt, slots)
    return slots


def _dequantize_on(on: Path, slots: NDArray[np.uint8], fmt: OctaveFormat) -> tuple[NDArray[np.float32], ...]:
    key, value = (np.empty((*slots.shape[:2], fmt.head_size), np.float32) for _ in range(2))
    on.decode(slots, fmt, False, key, value)
    return key, value


def _contender(quantize: Callable[[], object], dequantize: Callable[[], object]) -> Contender:
    return Contender(Timed(quantize), Timed(dequantize), _peak(quantize), _peak(dequantize))


def _peak(call: Callable[[], object]) -> int:
    """The most bytes of arrays that a call holds at once, its result included."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _torch_contenders(
    key: NDArray[np.float16], value: NDArray[np.float16], slots: NDArray[np.uint8], fmt: OctaveFormat
) -> dict[str, Contender]:
    """torch on one thread and on as many as it takes by itself: more are slower on a busy machine."""
    import torch

    from rdna_bench.torch_octave import dequantize_in_torch, quantize_in_torch

    tensors = torch.from_numpy(key), torch.from_numpy(value)
    packed = torch.from_numpy(slots)

    def on_threads(number: int, call: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            torch.set_num_threads(number)
            return call()

        return run

    found = {}
    for number in sorted({1, torch.get_num_threads()}):
        quantize = on_threads(number, lambda: quantize_in_torch(*tensors, fmt))
        dequantize = on_threads(number, lambda: dequantize_in_torch(packed, fmt))
        found[f"{TORCH}, {number} thread" + "s" * (number > 1)] = Contender(
            Timed(quantize), Timed(dequantize), None, None
        )
    return found
