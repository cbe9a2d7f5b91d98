"""The element types of queries, caches and outputs, named without importing torch or ml_dtypes."""

from __future__ import annotations

import enum

import numpy as np

from rdna_registry.arguments import ArgumentError


class DType(enum.Enum):
    """A 16-bit float type that kernels are built for."""

    fp16 = "float16"
    bf16 = "bfloat16"

    @property
    def code(self) -> int:
        """Its number in a variant's name and configuration: 0 for fp16, 1 for bf16."""
        return 1 if self is DType.bf16 else 0

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return 2


_NAMES = {
    "fp16": DType.fp16,
    "float16": DType.fp16,
    "torch.float16": DType.fp16,
    "bf16": DType.bf16,
    "bfloat16": DType.bf16,
    "torch.bfloat16": DType.bf16,
}


def as_dtype(dtype: object) -> DType:
    """The `DType` meant by a DType, a name ("fp16", "float16", "bf16", "bfloat16"), a NumPy dtype or a torch dtype.

    NumPy's bfloat16 is the one that ml_dtypes registers; both are known by name. ValueError for every other type.
    """
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, np.dtype):
        name = dtype.name
    elif isinstance(dtype, type):
        name = dtype.__name__
    else:
        name = str(dtype)
    found = _NAMES.get(name)
    if found is None or (isinstance(dtype, np.dtype) and not dtype.isnative):
        raise ArgumentError("dtype", dtype, "fp16 (float16) or bf16 (bfloat16), as a name, a NumPy or a torch dtype")
    return found
