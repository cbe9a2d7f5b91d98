"""The cross of shapes that the kernels must get right, and a sample of it that covers every pair of values."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any

from problem import Problem, make_problem
from rdna_registry import SERVED_HEAD_SIZES

HEAD_SIZES = SERVED_HEAD_SIZES
DTYPES = ("float16", "bfloat16")
TOKENS = tuple(range(1, 9))
GQA = (1, 2, 3, 4, 6, 7, 8, 12, 16)
LENGTHS = ("1", "15", "16", "17", "page-1", "page", "page+1", "300", "1100")
WINDOWS = ("none", "S-page", "S-1", "S", "S+1")
BATCH = (False, True)
PAGES = (16, 48, 528)
SAMPLE_SEED = 22


@dataclass(frozen=True)
class Case:
    """One point of the cross."""

    head_size: int
    dtype: str
    tokens: int
    gqa: int
    length: str
    window: str
    batch: bool
    page_size: int

    def __str__(self) -> str:
        kind = "batch" if self.batch else "single"
        return (
            f"h{self.head_size}-{self.dtype}-M{self.tokens}-g{self.gqa}-S{self.length}-w{self.window}-{kind}"
            f"-p{self.page_size}"
        )

    def problem(self) -> Problem:
        """The case's arrays; a batch has a short, an empty and a slightly longer sequence beside it."""
        page = self.page_size
        length = {"page-1": page - 1, "page": page, "page+1": page + 1}.get(self.length) or int(self.length)
        window = {"none": 0, "S-page": length - page, "S-1": length - 1, "S": length, "S+1": length + 1}[self.window]
        return make_problem(
            [length, 1 + length // 3, 0, length + 7] if self.batch else [length],
            head_size=self.head_size,
            gqa=self.gqa,
            num_kv_heads=2 if self.gqa < 8 else 1,
            max_query_len=self.tokens,
            page_size=page,
            window=max(window, 1) if self.window != "none" else 0,
            dtype=self.dtype,
            layout="HND" if self.tokens % 2 else "NHD",
            seed=hash_of(str(self)),
        )


def hash_of(text: str) -> int:
    """A seed that is the same in every run."""
    return sum((index + 1) * ord(letter) for index, letter in enumerate(text))


def full_cross() -> list[Case]:
    """Every point."""
    axes: list[tuple[Any, ...]] = [HEAD_SIZES, DTYPES, TOKENS, GQA, LENGTHS, WINDOWS, BATCH]
    return [Case(*(*point, PAGES[index % len(PAGES)])) for index, point in enumerate(itertools.product(*axes))]


def sample() -> list[Case]:
    """Every (head size, dtype, tokens, gqa), with the other values drawn so that every pair of values occurs."""
    draw = random.Random(SAMPLE_SEED).choice
    return [
        Case(*point, length=draw(LENGTHS), window=draw(WINDOWS), batch=draw(BATCH), page_size=draw(PAGES))
        for point in itertools.product(HEAD_SIZES, DTYPES, TOKENS, GQA)
    ]
