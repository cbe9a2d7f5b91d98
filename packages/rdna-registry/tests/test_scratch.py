from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest
from rdna_registry import (
    ArgumentError,
    make_prefill_scratch,
    make_scratch,
    prefill_variants,
    scratch_bytes,
    variants,
)


@pytest.mark.parametrize(("max_seqs", "sequences"), [(0, 1), (1, 1), (5, 5)])
def test_decode_scratch(max_seqs: int, sequences: int) -> None:
    entries = [variants()[0], next(entry for entry in variants() if entry.dot_product)]
    for entry in entries:
        acc, maxima, sums, counters = make_scratch(entry, None, max_seqs)
        (rows, columns), _, count = entry.scratch_shapes()
        assert acc.shape == (rows * sequences, columns)
        assert maxima.shape == sums.shape == (rows * sequences,)
        assert counters.shape == (count * sequences,)
        assert {array.dtype for array in (acc, maxima, sums)} == {np.dtype(np.float32)}
        assert counters.dtype == np.int32
        assert not counters.any()
        arrays: tuple[Any, ...] = (acc, maxima, sums, counters)
        assert sum(array.nbytes for array in arrays) == scratch_bytes(entry) * sequences
        assert not any(np.shares_memory(acc, other) for other in arrays[1:])


def test_prefill_scratch_serves_each_variant() -> None:
    entries = [*prefill_variants(14, 2, 64, 16, 0, "fp16"), *prefill_variants(16, 2, 128, 16, 0, "fp16")]
    acc, maxima, sums, counters = make_prefill_scratch(entries, None, target_workgroups=80)
    assert acc.size == max(entry.scratch_rows("gfx1151") * entry.head_size for entry in entries)
    assert maxima.size == sums.size == max(entry.scratch_rows("gfx1151") for entry in entries)
    assert counters.tolist() == [0] * 80
    # The largest rows and the largest head may be those of different variants.
    wide = dataclasses.replace(entries[0], head_size=512, waves=2, head_dim_split=1, key_waves=1, key_tile=16)
    tall = dataclasses.replace(entries[0], head_size=64, waves=32, head_dim_split=1, key_waves=1, key_tile=16)
    acc, maxima, _, _ = make_prefill_scratch([wide, tall], None, target_workgroups=3)
    assert acc.size == 6 * 512 * 64
    assert maxima.size == 6 * 512


def test_bad_scratch() -> None:
    with pytest.raises(ArgumentError, match=r"^max_seqs is -1"):
        make_scratch(variants()[0], None, -1)
    with pytest.raises(ArgumentError, match=r"^variants is \[\]"):
        make_prefill_scratch([], None, 80)
    with pytest.raises(ArgumentError, match=r"^target_workgroups is 0"):
        make_prefill_scratch(prefill_variants(14, 2, 64, 16, 0, "fp16"), None, 0)
    with pytest.raises(ArgumentError, match=r"^device is None"):
        make_prefill_scratch(prefill_variants(14, 2, 64, 16, 0, "fp16"), None)
    with pytest.raises(ArgumentError, match=r"^device is <object"):
        make_scratch(variants()[0], object())


def test_a_torch_device_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ArgumentError, match=r"^device is 'cuda'; allowed: None for NumPy arrays, as torch is not install"
    ):
        make_scratch(variants()[0], "cuda")
