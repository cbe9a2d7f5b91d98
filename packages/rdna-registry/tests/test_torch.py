from __future__ import annotations

from typing import Any

import pytest
from rdna_registry import (
    ArgumentError,
    DType,
    as_dtype,
    devices,
    make_prefill_scratch,
    make_scratch,
    plan_decode,
    plan_prefill,
    prefill_target_workgroups,
    prefill_variant_for,
    prefill_variants,
    variant_for,
    variants,
)

torch: Any = pytest.importorskip("torch", reason="torch is in a dependency group of its own")


def test_dtypes() -> None:
    assert as_dtype(torch.float16) is DType.fp16
    assert as_dtype(torch.bfloat16) is DType.bf16
    with pytest.raises(ArgumentError, match=r"^dtype is torch\.float32"):
        as_dtype(torch.float32)


def test_look_ups() -> None:
    assert variant_for(14, 2, 64, 1, 16, 1, 0, torch.bfloat16) is variant_for(14, 2, 64, 1, 16, 1, 0, "bf16")
    assert prefill_variant_for(14, 2, 64, 16, 1, 0, torch.float16, 700) is prefill_variants(14, 2, 64, 16, 0, "fp16")[1]


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_scratch(device: Any) -> None:
    entry = variants()[0]
    acc, maxima, sums, counters = make_scratch(entry, device, 3)
    (rows, columns), _, count = entry.scratch_shapes()
    assert acc.shape == (3 * rows, columns)
    assert maxima.shape == sums.shape == (3 * rows,)
    assert {array.dtype for array in (acc, maxima, sums)} == {torch.float32}
    assert counters.dtype == torch.int32
    assert counters.tolist() == [0] * (3 * count)
    prefill = make_prefill_scratch(prefill_variants(14, 2, 64, 16, 0, "fp16"), device, 80)
    assert {str(array.device) for array in (acc, *prefill)} == {"cpu"}


@pytest.mark.parametrize("device", ["no such device", object(), 1.5])
def test_no_device(device: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^device is .*; allowed: None for NumPy arrays, or a torch device"):
        make_scratch(variants()[0], device)


def test_a_gpu_is_asked_through_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        multi_processor_count = 20

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties())
    assert prefill_target_workgroups(torch.device("cuda:0")) == 80
    assert prefill_target_workgroups("cuda") == 80
    assert devices.multiprocessors(torch.cuda.get_device_properties(0)) == 20


def test_a_cpu_is_no_gpu() -> None:
    with pytest.raises(ArgumentError, match=r"^device is device\(type='cpu'\)"):
        prefill_target_workgroups(torch.device("cpu"))


def test_plans_from_tensors() -> None:
    variant = prefill_variants(14, 2, 64, 16, 0, "fp16")[0]
    starts, lengths = torch.tensor([0, 50, 90], dtype=torch.int32), torch.tensor([500, 40], dtype=torch.int32)
    plan, _ = plan_prefill(starts, lengths, variant, 0, 80)
    assert plan.tolist() == plan_prefill([0, 50, 90], [500, 40], variant, 0, 80)[0].tolist()
    lengths[0] = 60
    assert plan_prefill(starts, lengths, variant, 0, 80)[0].tolist() != plan.tolist()
    rows = plan_decode(torch.ones(2, dtype=torch.int32), lengths, variants()[0], 0, 80)
    assert rows.tolist() == plan_decode([1, 1], [60, 40], variants()[0], 0, 80).tolist()
    assert torch.from_numpy(rows).shape == rows.shape
