"""Arguments of a wrong kind - lists, numbers and masked arrays for arrays, text and truth values for numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fake_catalogue import fake_catalogue
from rdna_kernels import ArgumentError, decode_attention
from recording_executor import RecordingExecutor
from test_decode_bad_input import good

ARRAYS = ("q", "kv_cache", "block_table", "seq_lens", "sinks", "alibi_slopes", "plan", "out", "lse")
WANTED = {"scale": "a number", "softcap": "a number", "window": "an integer", "max_query_len": "an integer"}


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> RecordingExecutor:
    return RecordingExecutor(fake_catalogue(tmp_path_factory.mktemp("objects")))


def refused(executor: RecordingExecutor | None, message: str, **changes: Any) -> None:
    with pytest.raises(ArgumentError, match=message):
        decode_attention(**{**good(), **changes}, executor=executor)
    assert executor is None or executor.launches == []


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("given", [[1], 1.5, np.float32(1), "1", object], ids=str)
def test_what_is_no_array(executor: RecordingExecutor, name: str, given: Any) -> None:
    for which in (executor, None):
        refused(which, f"^{name} is .* of type {type(given).__name__}; it must be an array: NumPy's, ", **{name: given})


@pytest.mark.parametrize("name", ARRAYS[:4])
def test_arrays_that_every_call_has(executor: RecordingExecutor, name: str) -> None:
    for which in (executor, None):
        refused(which, f"^{name} is None; it must be an array", **{name: None})


@pytest.mark.parametrize("name", ARRAYS)
def test_masked_arrays(executor: RecordingExecutor, name: str) -> None:
    masked = np.ma.masked_equal(good().get(name, np.ones(4, np.float32)), 0)
    for which in (executor, None):
        refused(which, f"^{name} is a MaskedArray, and kernels read no mask; pass a plain array", **{name: masked})


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize(
    "given", ["2", b"2", True, np.True_, np.array(True), np.array("2"), np.ones(1), [2], 1j, object], ids=repr
)
def test_what_is_no_number(executor: RecordingExecutor, name: str, given: Any) -> None:
    refused(executor, f"^{name} is .*; it must be {WANTED[name]}$", **{name: given})


def test_numbers_past_a_float(executor: RecordingExecutor) -> None:
    refused(executor, "scale is -inf; it must be a number of at most", scale=-(10**400))
    refused(executor, "softcap is inf; it must be 0", softcap=10**400)


@pytest.mark.parametrize("kind", [float, np.float32, np.float16, ml_dtypes.bfloat16, np.array])
def test_numbers_of_every_kind_are_the_same(tmp_path: Path, kind: Any) -> None:
    executor = RecordingExecutor(fake_catalogue(tmp_path))
    numbers: dict[str, Any] = {"scale": kind(0.125), "window": np.int64(7), "softcap": np.int32(3)}
    decode_attention(**good(), executor=executor, **numbers)
    arguments = executor.launches[0]["arguments"]
    assert (arguments["scale_log2"], arguments["window"]) == (pytest.approx(0.125 * math.log2(math.e)), 7)
    assert arguments["softcap"] == 3 / 0.125
