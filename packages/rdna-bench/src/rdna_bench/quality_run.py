"""A model's predictions with a quantized KV cache in place, against those with an unquantized one."""

from __future__ import annotations

import importlib.resources
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rdna_bench.cache_formats import CacheFormat
from rdna_bench.calibration import LayerMoments, collect
from rdna_bench.causal_attention import Distortion, causal_attention, distortion
from rdna_bench.files import read_text
from rdna_bench.machine import Machine
from rdna_bench.model_file import ModelFile
from rdna_bench.quality_formats import DEFAULT_FORMATS, base_of, make_format, needs_calibration, parse_formats
from rdna_bench.quality_result import FormatResult
from rdna_bench.token_scores import BlockBootstrap, ReferenceRows, TokenScores
from rdna_bench.tokenizer import ChatTokenizer
from rdna_bench.transformer import Transformer
from rdna_bench.weights import Float32, ModelConfig, load_weights

#: ``progress(stage, done, total)``: called as a stage advances, from any thread, one call at a time.
Progress = Callable[[str, int, int], None]

#: Tokens of a sequence, where the model's context allows it.
LONGEST_SEQUENCE = 4096
#: Tokens that the calibrated variants take their moments from.
CALIBRATION_TOKENS = 2048
# The distortion of a layer is measured on every n-th query, and logits are scored so many tokens at a time.
_SAMPLED_QUERY = 64
_SCORED_TOKENS = 256


@dataclass(frozen=True)
class QualityOptions:
    """What to measure; ``formats`` are names of `quality_formats`, ``text`` a UTF-8 file (ours where None)."""

    tokens: int = 8192
    skip: int = 0
    formats: tuple[str, ...] = DEFAULT_FORMATS
    seed: int = 0
    text: Path | None = None
    model_path: Path | None = None


class QualityRun:
    """One text under several cache formats. Use in order: ``__init__``, ``run``, then ``results`` or ``to_dict``."""

    passed = True

    def __init__(self, options: QualityOptions, file: ModelFile | None = None) -> None:
        """Open the model (or take an open ``file``) and check everything that can be checked before the work begins.

        Raises:
            ModelFileError: there is no model file, or one that is not served.
            ValueError: a format is unknown or does not serve the model's heads, or the text is too short.
        """
        self.options = options
        self.format_names = parse_formats(options.formats)
        self.file = file or ModelFile(options.model_path)
        self.config = ModelConfig.from_file(self.file)
        self.formats: list[CacheFormat] = [
            make_format(name, self.config.head_size, lambda: self._moments) for name in self.format_names
        ]
        tokenizer = ChatTokenizer(self.file)
        text = _packaged("evaluation.txt") if options.text is None else read_text("--text", options.text)
        tokens = tokenizer.encode(text)
        if options.tokens < 2:
            raise ValueError(f"{options.tokens} tokens are asked for; a prediction needs 2 at least")
        if options.skip + options.tokens > len(tokens):
            raise ValueError(
                f"the text has {len(tokens)} tokens; {options.skip} to skip and {options.tokens} to read are more: "
                "lower --tokens or --skip, or name a longer --text"
            )
        tokens = tokens[options.skip : options.skip + options.tokens]
        longest = min(LONGEST_SEQUENCE, self.config.context_length)
        self.sequences = [tokens[first : first + longest] for first in range(0, len(tokens), longest)]
        if len(self.sequences[-1]) < 2:
            raise ValueError(
                f"{options.tokens} tokens leave one alone in a sequence of its own, sequences being {longest} tokens "
                "long: a prediction needs 2"
            )
        self._calibration = tokenizer.encode(_packaged("calibration.txt"))
        self._calibration = self._calibration[: min(CALIBRATION_TOKENS, self.config.context_length)]
        self._moments: tuple[LayerMoments, ...] = ()

    def run(self, progress: Progress = lambda stage, done, total: None, model: Transformer | None = None) -> None:
        """Read the weights, or take those of ``model``, and measure every format; sequences run in threads."""
        start = time.perf_counter()
        self.machine = Machine.here()
        self.model = model or Transformer(load_weights(self.file, lambda done, total: progress("weights", done, total)))
        with self.model.one_blas_thread(), ThreadPoolExecutor(self.machine.cores) as threads:
            if any(needs_calibration(name) for name in self.format_names):
                self._moments = collect(
                    self.model, self._calibration, lambda done, total: progress("calibration", done, total)
                )
            try:
                self._forward(threads, progress)
                self._score(threads, progress)
            except BaseException:  # an interrupted run waits for what runs, not for what has not begun
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        self.seconds = time.perf_counter() - start

    def _forward(self, threads: ThreadPoolExecutor, progress: Progress) -> None:
        """Last hidden states and distortions of each sequence, without a format first."""
        layers = self.config.num_layers
        counter = _Counter("forward", len(self.sequences) * (1 + len(self.formats)) * layers, progress)
        jobs: list[list[Future[tuple[Float32, list[Distortion]]]]] = [
            [threads.submit(self._sequence, sequence, kv_format, counter) for kv_format in (None, *self.formats)]
            for sequence in self.sequences
        ]
        done = [[job.result() for job in sequence] for sequence in jobs]
        self._hidden = [[hidden for hidden, _ in sequence] for sequence in done]
        self._distortions = [
            [sum((row[index][1][layer] for row in done), Distortion()) for layer in range(layers)]
            for index in range(1, 1 + len(self.formats))
        ]

    def _sequence(
        self, tokens: Sequence[int], kv_format: CacheFormat | None, counter: _Counter
    ) -> tuple[Float32, list[Distortion]]:
        distortions: list[Distortion] = []
        sampled = np.arange(len(tokens) - 1, 0, -_SAMPLED_QUERY)

        def attend(layer: int, q: Float32, k: Float32, v: Float32) -> Float32:
            read_k, read_v = (k, v) if kv_format is None else kv_format.store(layer, k, v)
            if kv_format is not None:
                distortions.append(distortion(q, (k, v), (read_k, read_v), sampled))
            heads = causal_attention(q, read_k, read_v)
            counter.step()
            return heads

        return self.model.whole(tokens, attend), distortions

    def _score(self, threads: ThreadPoolExecutor, progress: Progress) -> None:
        pieces = [
            (index, first)
            for index, sequence in enumerate(self.sequences)
            for first in range(0, len(sequence) - 1, _SCORED_TOKENS)
        ]
        counter = _Counter("scores", len(pieces), progress)
        scored = list(threads.map(lambda piece: self._score_piece(piece[0], piece[1], counter), pieces))
        self.reference_nll = np.concatenate([nll for nll, _ in scored])
        joined = [TokenScores.joined(parts) for parts in zip(*(scores for _, scores in scored), strict=True)]
        bootstrap = BlockBootstrap(len(self.reference_nll), self.options.seed)
        self.results: list[FormatResult] = []
        for index, name in enumerate(self.format_names):
            base = base_of(name)
            self.results.append(
                FormatResult(
                    name=name,
                    slot_bytes=self.formats[index].slot_bytes,
                    heads=self.config.num_layers * self.config.num_kv_heads,
                    scores=joined[index],
                    reference_nll=self.reference_nll,
                    distortions=self._distortions[index],
                    bootstrap=bootstrap,
                    base=None if base is None else self.results[self.format_names.index(base)],
                )
            )

    def _score_piece(self, index: int, first: int, counter: _Counter) -> tuple[Any, list[TokenScores]]:
        sequence = self.sequences[index]
        end = min(first + _SCORED_TOKENS, len(sequence) - 1)
        unembedding = self.model.unembedding.T
        reference, *others = self._hidden[index]
        rows = ReferenceRows(reference[first:end] @ unembedding, np.asarray(sequence[first + 1 : end + 1]))
        scores = [rows.score(hidden[first:end] @ unembedding) for hidden in others]
        counter.step()
        return rows.nll, scores

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: sizes in bytes, NLL and KL in nats a token."""
        nll = float(self.reference_nll.mean())
        return {
            "command": "quality",
            "model": self.file.name,
            "text": "evaluation.txt" if self.options.text is None else str(self.options.text),
            "tokens": self.options.tokens,
            "skip": self.options.skip,
            "sequences": [len(sequence) for sequence in self.sequences],
            "predictions": len(self.reference_nll),
            "calibration_tokens": len(self._calibration) if self._moments else 0,
            "seed": self.options.seed,
            "seconds": self.seconds,
            "machine": vars(self.machine),
            "reference": {"nll": nll, "perplexity": float(np.exp(nll))},
            "formats": [result.to_dict() for result in self.results],
        }


class _Counter:
    """Steps of a stage that several threads take."""

    def __init__(self, stage: str, total: int, progress: Progress) -> None:
        self._stage, self._total, self._progress = stage, total, progress
        self._done = 0
        self._lock = threading.Lock()

    def step(self) -> None:
        with self._lock:
            self._done += 1
            self._progress(self._stage, self._done, self._total)


def _packaged(name: str) -> str:
    return (importlib.resources.files("rdna_bench") / "texts" / name).read_text(encoding="utf-8")
