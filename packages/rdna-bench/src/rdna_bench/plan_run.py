"""The planners and look-ups of rdna-registry, timed in one interleaved run, and how evenly they share decode work."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rdna_registry import (
    DType,
    KernelVariant,
    PrefillVariant,
    plan_decode,
    plan_prefill,
    prefill_batch_variant_for,
    prefill_target_workgroups,
    prefill_variant_for,
    prefill_variants,
    provenance,
    select,
    variant_for,
)

from rdna_bench.machine import Machine
from rdna_bench.plain_planner import plan_plainly
from rdna_bench.plan_balance import balance
from rdna_bench.plan_batches import Lengths, PrefillBatches, balance_batches, decode_steps, prefill_batches
from rdna_bench.timing import Timed, interleave, ratio

#: What is planned: the heads and head size of an 8-billion-parameter model.
NUM_Q_HEADS, NUM_KV_HEADS, HEAD_SIZE = 32, 8, 128

_HEADS = (NUM_Q_HEADS, NUM_KV_HEADS, HEAD_SIZE)
_PAGE_SIZE = 16
_HND = 1


@dataclass(frozen=True)
class PrefillCase:
    """A batch, the entries of its plans (fewest and most over the steps), and the functions timed on it.

    ``again`` plans a batch that has not changed since the last plan.
    """

    batches: PrefillBatches
    entries: tuple[int, int]
    split_tiles: int
    equal: bool
    plain: Timed
    planner: Timed
    again: Timed

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: times in microseconds a plan."""
        return {
            "sequences": self.batches.sequences,
            "lengths": self.batches.lengths,
            "entries_fewest": self.entries[0],
            "entries_most": self.entries[1],
            "split_tiles": self.split_tiles,
            "plans_equal": self.equal,
            "plain_us": asdict(self.plain.spread),
            "planner_us": asdict(self.planner.spread),
            "plain_over_planner": asdict(ratio(self.plain, self.planner)),
            "unchanged_us": asdict(self.again.spread),
        }


@dataclass(frozen=True)
class DecodeCase:
    """`plan_decode` on a ragged batch: of new lengths each time, and of the same ones."""

    sequences: int
    rows: int
    planner: Timed
    again: Timed

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: times in microseconds a plan."""
        return {
            "sequences": self.sequences,
            "rows": self.rows,
            "planner_us": asdict(self.planner.spread),
            "unchanged_us": asdict(self.again.spread),
        }


class PlanRun:
    """One run of everything that ``rdna-bench plan`` measures; use in order: ``__init__``, ``run``."""

    def __init__(self, *, target: str, window: int = 0, repeats: int = 50, seed: int = 0) -> None:
        """Plan every batch once by each planner.

        Raises:
            ValueError: ``window`` is none that the planners take.
        """
        self.target, self.window, self.repeats, self.seed = target, window, repeats, seed
        self.machine = Machine.here()
        self.target_workgroups = prefill_target_workgroups(target)
        rng = np.random.default_rng(seed)
        self.prefill_variant = _tuned_prefill_variant()
        self.decode_variant = select(*_HEADS, 1, _PAGE_SIZE, _HND, 0, DType.bf16, True, target=target)
        self.prefill = [self._prefill_case(batches) for batches in prefill_batches(rng)]
        self.decode = [self._decode_case(*steps) for steps in decode_steps(rng)]
        self.look_ups = look_ups(self.decode_variant)
        self.balance = [
            balance(batch, self.decode_variant, window, self.target_workgroups) for batch in balance_batches(rng)
        ]

    @property
    def passed(self) -> bool:
        """Whether the planner and the plain transcription gave the same plans for every batch."""
        return all(case.equal for case in self.prefill)

    def run(self, progress: Callable[[str, int, int], None]) -> None:
        """Time everything in turns; ``progress(stage, done, total)`` hears of it."""
        timed = [timed for case in self.prefill for timed in (case.plain, case.planner, case.again)]
        timed += [timed for case in self.decode for timed in (case.planner, case.again)]
        timed += self.look_ups.values()
        progress("timing", 0, self.repeats)
        for done in interleave(timed, self.repeats):
            progress("timing", done, self.repeats)

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: times in microseconds a call, work in key blocks, each time and ratio with its
        median and quartiles ("lower", "upper")."""
        return {
            "command": "plan",
            "machine": asdict(self.machine),
            "target": self.target,
            "target_workgroups": self.target_workgroups,
            "window": self.window,
            "repeats": self.repeats,
            "seed": self.seed,
            "passed": self.passed,
            "prefill_variant": self.prefill_variant.name,
            "prefill": [case.to_dict() for case in self.prefill],
            "decode_variant": self.decode_variant.name,
            "decode": [case.to_dict() for case in self.decode],
            "look_ups_us": {name: asdict(timed.spread) for name, timed in self.look_ups.items()},
            "decode_balance": [{**asdict(row), "ratio": row.ratio} for row in self.balance],
        }

    def _prefill_case(self, batches: PrefillBatches) -> PrefillCase:
        starts = batches.query_start_loc
        rest = (self.prefill_variant, self.window, self.target_workgroups)
        plans = [plan_prefill(starts, seq_lens, *rest) for seq_lens in batches.seq_lens]
        rivals = [plan_plainly(starts, seq_lens, *rest) for seq_lens in batches.seq_lens]
        entries = [len(plan) for plan, _ in plans]
        slots = plans[0][0][:, 3]

        def plan_all(planner: Callable[..., object]) -> None:
            for seq_lens in batches.seq_lens:
                planner(starts, seq_lens, *rest)

        return PrefillCase(
            batches,
            entries=(min(entries), max(entries)),
            split_tiles=len(np.unique(slots[slots >= 0])),
            equal=all(
                head_group == rival_group and np.array_equal(plan, rival)
                for (plan, head_group), (rival, rival_group) in zip(plans, rivals, strict=True)
            ),
            plain=Timed(functools.partial(plan_all, plan_plainly), len(batches.seq_lens)),
            planner=Timed(functools.partial(plan_all, plan_prefill), len(batches.seq_lens)),
            again=Timed(functools.partial(plan_prefill, starts, batches.seq_lens[0], *rest)),
        )

    def _decode_case(self, query_lens: Lengths, steps: Sequence[Lengths]) -> DecodeCase:
        rest = (self.decode_variant, self.window, self.target_workgroups)
        plan = plan_decode(query_lens, steps[0], *rest)

        def plan_all() -> None:
            for seq_lens in steps:
                plan_decode(query_lens, seq_lens, *rest)

        return DecodeCase(
            sequences=len(query_lens),
            rows=int(np.count_nonzero(plan[:, 0] >= 0)),
            planner=Timed(plan_all, len(steps)),
            again=Timed(functools.partial(plan_decode, query_lens, steps[0], *rest)),
        )


def look_ups(variant: KernelVariant) -> dict[str, Timed]:
    """The look-ups that a step makes, by a name that says how each is called."""
    decode = (*_HEADS, 1, _PAGE_SIZE, _HND, 0, DType.bf16)
    untuned = (*_HEADS, 1, 3 * _PAGE_SIZE, _HND, 0, DType.bf16)
    prefill = (*_HEADS, _PAGE_SIZE, _HND, 0, DType.bf16)
    by_keyword = functools.partial(
        variant_for,
        num_q_heads=NUM_Q_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_size=HEAD_SIZE,
        max_query_len=1,
        page_size=_PAGE_SIZE,
        layout=_HND,
        window=0,
        dtype="bf16",
    )
    starts, lengths = np.arange(0, 65 * 32, 32, dtype=np.int32), np.full(64, 3000, np.int32)
    calls: dict[str, Callable[[], object]] = {
        "variant_for, tuned": functools.partial(variant_for, *decode, True),
        "variant_for, none": functools.partial(variant_for, *untuned),
        "variant_for, by keyword": by_keyword,
        "select, tuned": functools.partial(select, *decode, True),
        "select, derived": functools.partial(select, *untuned),
        "provenance": functools.partial(provenance, variant),
        "prefill_variants": functools.partial(prefill_variants, *_HEADS, _PAGE_SIZE, 0, DType.bf16),
        "prefill_variant_for": functools.partial(prefill_variant_for, *prefill, 1024),
        "prefill_batch_variant_for, 64 sequences": functools.partial(
            prefill_batch_variant_for, *prefill, starts, lengths
        ),
    }
    return {name: Timed(call) for name, call in calls.items()}


def _tuned_prefill_variant() -> PrefillVariant:
    variant = prefill_variant_for(*_HEADS, _PAGE_SIZE, _HND, 0, DType.bf16, num_tokens=1024)
    if variant is None:
        raise ValueError(f"the tables have no prefill row of {NUM_Q_HEADS} query heads on {NUM_KV_HEADS} kv heads")
    return variant
