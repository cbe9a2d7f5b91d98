from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from rdna_registry import DType, as_dtype


@pytest.mark.parametrize("given", [DType.fp16, "fp16", "float16", np.float16, np.dtype("float16"), "torch.float16"])
def test_fp16(given: object) -> None:
    assert as_dtype(given) is DType.fp16


@pytest.mark.parametrize(
    "given", [DType.bf16, "bf16", "bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), "torch.bfloat16"]
)
def test_bf16(given: object) -> None:
    assert as_dtype(given) is DType.bf16


@pytest.mark.parametrize(
    "given",
    ["fp32", "FP16", "", None, 0, float, np.float32, np.dtype(">f2"), np.dtype("int16"), ml_dtypes.float8_e4m3fn],
)
def test_others_are_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r"dtype is .*allowed: fp16 \(float16\) or bf16 \(bfloat16\)"):
        as_dtype(given)


def test_codes() -> None:
    assert [dtype.name for dtype in DType] == ["fp16", "bf16"]
    assert [dtype.code for dtype in DType] == [0, 1]
    assert [dtype.itemsize for dtype in DType] == [2, 2]
