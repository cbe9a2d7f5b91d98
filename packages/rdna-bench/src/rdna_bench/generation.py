"""Greedy decoding: the prompt in chunks, then one token at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rdna_bench.paged_cache import PagedCache
from rdna_bench.transformer import Attention, Transformer
from rdna_bench.weights import Float32

#: Most query tokens of one decode call.
MAX_QUERY_LEN = 8


class GreedyRun:
    """One answer of a model. ``steps()`` yields its tokens; the attributes describe the run so far."""

    def __init__(
        self,
        model: Transformer,
        cache: PagedCache,
        attention: Attention,
        *,
        end_of_text: int,
        uncounted_seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Prepare a run on an empty ``cache``.

        ``uncounted_seconds()`` is the time so far that is no part of the run (a check inside ``attention``).
        """
        self._model = model
        self._cache = cache
        self._attention = attention
        self._end_of_text = end_of_text
        self._uncounted_seconds = uncounted_seconds
        self.tokens: list[int] = []
        self.margins: list[float] = []
        self.prompt_seconds = 0.0
        self.decode_seconds = 0.0
        self.decode_steps = 0
        self.finish = "token limit"

    @property
    def tokens_per_second(self) -> float:
        """Forward passes of one token a second; the prompt's chunks are no part of it."""
        return self.decode_steps / self.decode_seconds if self.decode_seconds else 0.0

    def steps(
        self, prompt: Sequence[int], max_tokens: int, on_prompt: Callable[[int], None] | None = None
    ) -> Iterator[int]:
        """Yield up to ``max_tokens`` tokens, the most likely one each time, and stop before the end-of-text token.

        ``on_prompt(done)`` is called after each chunk of the prompt with the prompt tokens done so far.
        """
        start = self._clock()
        for first in range(0, len(prompt), MAX_QUERY_LEN):
            chunk = prompt[first : first + MAX_QUERY_LEN]
            hidden = self._model.forward(chunk, self._cache, self._attention)
            if on_prompt is not None:
                on_prompt(first + len(chunk))
        self.prompt_seconds = self._clock() - start
        for index in range(max_tokens):
            if index:
                start = self._clock()
                hidden = self._model.forward(self.tokens[-1:], self._cache, self._attention)
                token = self._choose(hidden)
                self.decode_seconds += self._clock() - start
                self.decode_steps += 1
            else:
                token = self._choose(hidden)
            if token == self._end_of_text:
                self.finish = "end of text"
                return
            self.tokens.append(token)
            yield token

    def _choose(self, hidden: Float32) -> int:
        logits = self._model.logits(hidden[-1])
        second, first = np.partition(logits, -2)[-2:]
        self.margins.append(float(first - second))
        return int(np.argmax(logits))

    def _clock(self) -> float:
        return time.perf_counter() - self._uncounted_seconds()


def first_difference(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Index of the first token that differs (one list may end earlier), or None when the lists are equal."""
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return index
    return None if len(a) == len(b) else min(len(a), len(b))
