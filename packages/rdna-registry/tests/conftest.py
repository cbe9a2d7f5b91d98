from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from rdna_registry import PrefillVariant


class GoldenPlan(NamedTuple):
    """A batch and the exact plan for it."""

    query_start_loc: NDArray[np.int32]
    seq_lens: NDArray[np.int32]
    variant: PrefillVariant
    window: int
    target_workgroups: int
    head_group: int
    plan: NDArray[np.int32]
    planned_head_group: int
    features: NDArray[np.float64]


@pytest.fixture(scope="session")
def golden() -> list[GoldenPlan]:
    data = np.load(Path(__file__).parent / "data" / "plans.npz")
    cases = []
    for number, case in enumerate(data["cases"].tolist()):
        head_size, q_heads, kv_heads, window, waves, key_tile, split, key_waves, target, head_group, planned = case
        variant = PrefillVariant(
            head_size, q_heads, kv_heads, window, 16, 128, waves, key_tile, split, 0, 0, key_waves, 16, 8
        )
        arrays = (data[f"c{number}_{name}"] for name in ("qsl", "seq", "plan", "feat"))
        starts, lengths, plan, features = arrays
        cases.append(GoldenPlan(starts, lengths, variant, window, target, head_group, plan, planned, features))
    assert len(cases) == 60
    return cases
