"""Generate text with every attention of every layer through our kernels, and check it against NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdna_kernels import EmulatedExecutor

from rdna_bench.attention import AttentionRun, KernelAttention, VerifiedAttention
from rdna_bench.generation import MAX_QUERY_LEN, GreedyRun, first_difference
from rdna_bench.model_file import ModelFile
from rdna_bench.preflight import required_builds
from rdna_bench.reference import numpy_attention
from rdna_bench.tokenizer import ChatTokenizer
from rdna_bench.transformer import Transformer
from rdna_bench.weights import ModelConfig, load_weights

#: ``progress(stage, done, total)``: called as a stage advances.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class GenerateOptions:
    """What to generate and where; ``checks`` are those of the emulator."""

    prompt: str
    max_tokens: int = 40
    dtype: str = "fp16"
    target: str = "gfx1151"
    page_size: int = 16
    checks: tuple[str, ...] = ()
    verify: bool = False
    seed: int = 0
    model_path: Path | None = None


@dataclass(frozen=True)
class TokenComparison:
    """The tokens of a run against those of a run on NumPy attention; margins are of the two best logits."""

    equal: bool
    first_difference: int | None
    margin: float | None
    numpy_tokens: tuple[int, ...]
    numpy_text: str

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return {
            "equal": self.equal,
            "first_difference": self.first_difference,
            "margin": self.margin,
            "numpy_tokens": list(self.numpy_tokens),
            "numpy_text": self.numpy_text,
        }


class ModelRun(AttentionRun):
    """One prompt, from the file to the answer. Use in order: ``__init__``, ``load``, ``stream``, ``verify``."""

    def __init__(self, options: GenerateOptions, file: ModelFile | None = None) -> None:
        """Open the model (or take an open ``file``) and check everything that can be checked before the work begins.

        Raises:
            ModelFileError: there is no model file, or one that is not served.
            ValueError: the prompt is empty or too long, or no build serves the model with these options.
            rdna_kernels.MissingBuildError: a build is not installed for the target.
        """
        if not options.prompt.strip():
            raise ValueError("the prompt is empty: give the text that the model shall answer")
        if any("\ud800" <= character <= "\udfff" for character in options.prompt):
            raise ValueError(f"the prompt {options.prompt!r} is no valid UTF-8: give it in UTF-8")
        start = time.perf_counter()
        self.options = options
        self.file = file or ModelFile(options.model_path)
        self.config = ModelConfig.from_file(self.file)
        self.tokenizer = ChatTokenizer(self.file)
        self.prompt_tokens = self.tokenizer.encode_chat(options.prompt)
        longest = self.config.context_length - options.max_tokens
        if len(self.prompt_tokens) > longest:
            raise ValueError(
                f"the prompt is {len(self.prompt_tokens)} tokens long with its chat template; with "
                f"{options.max_tokens} tokens to generate, the model's context of {self.config.context_length} "
                f"leaves {max(longest, 0)}: shorten the prompt or lower --tokens"
            )
        chunks = {MAX_QUERY_LEN, len(self.prompt_tokens) % MAX_QUERY_LEN or MAX_QUERY_LEN, 1}
        self._builds = required_builds(
            num_q_heads=self.config.num_q_heads,
            num_kv_heads=self.config.num_kv_heads,
            head_size=self.config.head_size,
            query_lens=chunks,
            page_size=options.page_size,
            window=0,
            dtype=options.dtype,
            batch=False,
            target=options.target,
        )
        self.load_seconds = time.perf_counter() - start

    def load(self, progress: Progress = lambda stage, done, total: None, model: Transformer | None = None) -> None:
        """Read the weights (540 MB for SmolLM2-135M), or take those of ``model``, and open the executor."""
        start = time.perf_counter()
        self.model = model or Transformer(load_weights(self.file, lambda done, total: progress("weights", done, total)))
        executor = EmulatedExecutor(self.options.target, checks=self.options.checks, seed=self.options.seed)
        for build in self._builds:
            executor.build_function(build.name)  # loaded here, so that the launches' time is the launches'
        self._kernels = KernelAttention(executor)
        self._verified = VerifiedAttention(self._kernels, self.options.dtype) if self.options.verify else None
        self.run = GreedyRun(
            self.model,
            self._new_cache(),
            self._verified or self._kernels,
            end_of_text=self.tokenizer.end_of_text,
            uncounted_seconds=lambda: self._verified.comparison.seconds if self._verified else 0.0,
        )
        self.text = ""
        self.tokens: TokenComparison | None = None
        self.load_seconds += time.perf_counter() - start

    @property
    def passed(self) -> bool:
        """Whether nothing that was verified differs; True when nothing was to be verified."""
        if self.comparison is None:
            return True
        return self.comparison.passed and self.tokens is not None and self.tokens.equal

    def stream(self, progress: Progress = lambda stage, done, total: None) -> Iterator[str]:
        """Generate, yielding text as it is made.

        Raises:
            rdna_emulator.EmulatorError: a check has a finding, or the machine code did something that is not allowed.
        """
        total = len(self.prompt_tokens)
        steps = self.run.steps(
            self.prompt_tokens, self.options.max_tokens, lambda done: progress("prompt", done, total)
        )
        for _, text in self.tokenizer.stream(steps):
            progress("answer", len(self.run.tokens), self.options.max_tokens)
            if text:
                self.text += text
                yield text

    def verify(self, progress: Progress = lambda stage, done, total: None) -> None:
        """Generate again on NumPy attention, in the same chunks, and compare the tokens."""
        again = GreedyRun(self.model, self._new_cache(), numpy_attention, end_of_text=self.tokenizer.end_of_text)
        prompt = len(self.prompt_tokens)
        total = prompt + len(self.run.tokens)
        for _ in again.steps(self.prompt_tokens, self.options.max_tokens, lambda n: progress("verify", n, total)):
            progress("verify", prompt + len(again.tokens), total)
        difference = first_difference(self.run.tokens, again.tokens)
        self.tokens = TokenComparison(
            equal=difference is None,
            first_difference=difference,
            margin=None if difference is None else again.margins[difference],
            numpy_tokens=tuple(again.tokens),
            numpy_text=self.tokenizer.decode(again.tokens),
        )

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: times in seconds, sizes in bytes."""
        options, run = self.options, self.run
        result: dict[str, Any] = {
            "command": "generate",
            "model": self.file.name,
            "prompt": options.prompt,
            "text": self.text,
            "tokens": list(run.tokens),
            "finish": run.finish,
            "prompt_tokens": len(self.prompt_tokens),
            "generated_tokens": len(run.tokens),
            "target": options.target,
            "executor": EmulatedExecutor.name,
            "dtype": options.dtype,
            "page_size": options.page_size,
            "checks": list(options.checks),
            "seed": options.seed,
            "load_seconds": self.load_seconds,
            "prompt_seconds": run.prompt_seconds,
            "decode_seconds": run.decode_seconds,
            "tokens_per_second": run.tokens_per_second,
            **self.tally.to_dict(),
        }
        if self.comparison is not None:
            result["verify"] = {
                "passed": self.passed,
                "attention": self.comparison.to_dict(),
                "tokens": self.tokens.to_dict() if self.tokens else None,
            }
        return result

    def _new_cache(self) -> Any:
        return self.model.new_cache(self.options.page_size, self.options.dtype, self.options.seed)
