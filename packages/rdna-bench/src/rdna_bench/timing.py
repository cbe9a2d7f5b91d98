"""Times of several functions, taken turn by turn so that a machine's other work falls on all of them alike."""

from __future__ import annotations

import math
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

#: About as long for every function, for a busy machine interrupts longer samples more often.
_SAMPLE_SECONDS = 3e-4


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of a quantity over the rounds of a run."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of one value or more."""
        lower, median, upper = (float(quartile) for quartile in np.percentile(values, (25, 50, 75)))
        return cls(median, lower, upper)


@dataclass
class Timed:
    """A function that makes ``calls`` calls of what is measured, and the microseconds a call of each round."""

    run: Callable[[], object]
    calls: int = 1
    microseconds: list[float] = field(default_factory=list)
    _timer: timeit.Timer = field(init=False, repr=False)
    _loops: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        # What ran just before may have evicted what this function has remembered: its first loop is not timed.
        self._timer = timeit.Timer(self.run, setup=self.run)

    def sample(self) -> None:
        """Time one round."""
        if not self._loops:
            self._loops = math.ceil(_SAMPLE_SECONDS / min(self._timer.repeat(5, 1)))
        self.microseconds.append(self._timer.timeit(self._loops) * 1e6 / (self._loops * self.calls))

    @property
    def spread(self) -> Spread:
        """Microseconds of a call."""
        return Spread.of(self.microseconds)


def interleave(timed: Sequence[Timed], rounds: int) -> Iterator[int]:
    """Sample each function once a round, every second round in the reverse order; gives each round's number when it is
    over."""
    for number in range(rounds):
        for item in timed[:: -1 if number % 2 else 1]:
            item.sample()
        yield number + 1


def ratio(numerator: Timed, denominator: Timed) -> Spread:
    """Spread of the quotient of two functions' times, each round by itself."""
    return Spread.of([one / other for one, other in zip(numerator.microseconds, denominator.microseconds, strict=True)])
