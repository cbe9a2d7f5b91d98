"""How evenly `rdna_registry.plan_decode` shares a batch out, against segments that follow the batch size alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rdna_registry import KernelVariant, plan_decode, workgroups_per_row

from rdna_bench.plan_batches import DecodeBatch


@dataclass(frozen=True)
class Balance:
    """Work of the longest workgroup, in key blocks; ``mean`` is all work shared out over the target's workgroups.

    ``rows`` of the list's ``capacity`` are in use.
    """

    kind: str
    lengths: str
    slots: int
    mean: float
    planned: int
    by_batch_size: int
    rows: int
    capacity: int

    @property
    def ratio(self) -> float:
        """How many times longer the rule's longest workgroup works."""
        return self.by_batch_size / self.planned


def balance(batch: DecodeBatch, variant: KernelVariant, window: int, target_workgroups: int) -> Balance:
    """The longest workgroup of a batch's list, and of the rule "segments depend on the batch size only".

    The rule gives each slot of the batch ceil(target / (slots * workgroups of a row)) segments, the most that fit the
    capacity of the list, and no sequence segments of less than ``min_segment_blocks``.
    """
    plan = plan_decode(batch.query_lens, batch.seq_lens, variant, window, target_workgroups)
    used = plan[plan[:, 0] >= 0]
    slots, width = len(batch.seq_lens), workgroups_per_row(variant)
    blocks = np.zeros(slots, np.int64)
    np.add.at(blocks, used[:, 0], used[:, 3])
    segments = np.minimum(-(-target_workgroups // (slots * width)), blocks // variant.min_segment_blocks)
    return Balance(
        kind=batch.kind,
        lengths=batch.lengths,
        slots=slots,
        mean=float(blocks.sum()) * width / target_workgroups,
        planned=int(used[:, 3].max()),
        by_batch_size=int((-(-blocks // np.maximum(segments, 1))).max()),
        rows=len(used),
        capacity=len(plan),
    )
