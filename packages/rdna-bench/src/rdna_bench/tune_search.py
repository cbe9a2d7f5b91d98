"""The search for a shape's best candidate: best first, with the roof as the bound of what is not measured yet."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rdna_registry import KernelVariant

from rdna_bench.decode_inputs import Measured
from rdna_bench.tune_space import Candidate

#: No context may take longer than this much of what it takes without tuning: it is what the model can hardly tell.
MOST_LOSS = 1.03

#: From so many tokens on, no context may issue more than this much of the instructions. Ever more waves and segments
#: with ever less work each look well to the model, where each waits for memory in full; there it is trusted least.
MOST_INSTRUCTIONS = 1.25
INSTRUCTIONS_FROM = 1024

#: Candidates whose times, of all contexts multiplied, are this close to the best are as good: of them, the one that
#: asks for the fewest bytes is taken. So a short call may take 1 % longer for it, and not 1 % for each context.
AS_GOOD = 1.01

#: Candidates that are measured in full.
FINALISTS = 12

Measure = Callable[[KernelVariant, int], Measured]


@dataclass(frozen=True)
class Tuned:
    """The best entry found, beside the one that the registry has without modelled rows; launches by context."""

    entry: KernelVariant
    launches: dict[int, Measured]
    before: KernelVariant
    launches_before: dict[int, Measured]

    @property
    def gains(self) -> dict[int, float]:
        """How much longer the registry's other choice is modelled to take, by context: 0.05 is 5 %."""
        return {
            context: self.launches_before[context].modelled_microseconds / launch.modelled_microseconds - 1
            for context, launch in self.launches.items()
        }

    @property
    def gain_percent(self) -> int:
        """The largest of the gains in percent, rounded down."""
        return math.floor(100 * max(self.gains.values()) + 1e-9)


def search(
    before: KernelVariant,
    candidates: Sequence[Candidate],
    contexts: Sequence[int],
    needed_bytes: Sequence[int],
    measure: Measure,
    most_instructions: Mapping[int, float] | None = None,
) -> Tuned:
    """The candidate of the least geometric mean of modelled times over the contexts, each of the same weight.

    ``needed_bytes`` are those of each context; no time can be below a launch and these bytes at the modelled memory's
    rate. Candidates that take more than `MOST_LOSS` of the time of ``before`` at a context are out, or issue more than
    `MOST_INSTRUCTIONS` of its instructions, or more than ``most_instructions`` of a context; of those within `AS_GOOD`
    of the best, the one that asks for the fewest bytes, then writes the fewest partials, then issues the fewest
    instructions wins. ``before`` itself takes part.
    """
    launches_before = {context: measure(before, context) for context in contexts}
    most = most_instructions or {}

    def allowed(launch: Measured, context: int) -> bool:
        few = launch.wave_instructions <= most.get(context, math.inf)
        return few and _allowed(launch, launches_before[context], context)

    base = [launch.modelled_microseconds for launch in launches_before.values()]
    floors = [_floor(launch, need) for launch, need in zip(launches_before.values(), needed_bytes, strict=True)]
    bounds = [math.log(min(floor / time, 1)) for floor, time in zip(floors, base, strict=True)]

    finalists = [(0.0, before, launches_before)]
    queue = [(sum(bounds), number, 0) for number in range(len(candidates))]
    heapq.heapify(queue)
    best = 0.0
    while queue and len(finalists) <= FINALISTS:
        bound, number, index = heapq.heappop(queue)
        if bound > best + math.log(AS_GOOD):
            break
        candidate = candidates[number]
        if index < len(contexts):
            launch = measure(candidate.with_segments(index), contexts[index])
            ratio = launch.modelled_microseconds / base[index]
            if allowed(launch, contexts[index]):
                heapq.heappush(queue, (bound - bounds[index] + math.log(ratio), number, index + 1))
            continue
        launches = {context: measure(candidate.entry, context) for context in contexts}
        ratios = [launch.modelled_microseconds / time for launch, time in zip(launches.values(), base, strict=True)]
        if all(allowed(launch, context) for context, launch in launches.items()):
            score = sum(map(math.log, ratios))
            finalists.append((score, candidate.entry, launches))
            best = min(best, score)

    as_good = [finalist for finalist in finalists if finalist[0] <= best + math.log(AS_GOOD)]
    _, entry, launches = min(as_good, key=lambda finalist: _costs(finalist[2], needed_bytes))
    return Tuned(entry, launches, before, launches_before)


def _allowed(launch: Measured, before: Measured, context: int) -> bool:
    if launch.modelled_microseconds > MOST_LOSS * before.modelled_microseconds:
        return False
    return context < INSTRUCTIONS_FROM or launch.wave_instructions <= MOST_INSTRUCTIONS * before.wave_instructions


def _floor(launch: Measured, needed: int) -> float:
    body = max(launch.modelled_compute_microseconds, launch.modelled_memory_microseconds)
    overhead = launch.modelled_microseconds - launch.merge_microseconds - body
    return overhead + launch.modelled_memory_microseconds * needed / (launch.touched_bytes + launch.partial_bytes)


def _costs(launches: dict[int, Measured], needed_bytes: Sequence[int]) -> tuple[float, int, int]:
    requested = sum(
        launch.requested_bytes / needed for launch, needed in zip(launches.values(), needed_bytes, strict=True)
    )
    return (
        round(requested, 3),
        sum(launch.partial_bytes for launch in launches.values()),
        sum(launch.wave_instructions for launch in launches.values()),
    )
