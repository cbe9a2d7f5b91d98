"""Arrays as callers bring them: NumPy's own, ml_dtypes' bfloat16, and torch tensors on the CPU, none of them copied."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ELEMENTS = ("float32", "float16", "bfloat16")
"""What K, V and Q may be made of."""


@dataclass(frozen=True)
class Rows:
    """An array whose last axis is dense: fp32, fp16, or bfloat16 as uint16. `element` is one of `ELEMENTS`."""

    values: NDArray[Any]
    element: str


def is_tensor(x: object) -> bool:
    """Whether ``x`` is a torch tensor. torch itself is not imported: who has a tensor has imported it."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(x, tensor)


def as_array(x: Any, name: str) -> NDArray[Any]:
    """The memory of ``x``, a NumPy array or a torch tensor on the CPU, as an array.

    TypeError for anything else, and for tensors elsewhere, sparse or of bfloat16 (see `as_rows`), by ``name``.
    """
    if type(x) is not np.ndarray and _is_masked(x):
        raise TypeError(f"{name} is a masked {'tensor' if is_tensor(x) else 'array'}; pass a plain one")
    if isinstance(x, np.ndarray):
        return x
    if not is_tensor(x):
        raise TypeError(f"{name} is a {type(x).__name__}; it must be a NumPy array or a torch tensor on the CPU")
    if x.device.type != "cpu":
        raise TypeError(f"{name} is a tensor on {x.device}; octave_quant works on the CPU: pass {name}.cpu()")
    if str(x.layout) != "torch.strided":
        raise TypeError(f"{name} is a tensor of layout {x.layout}; pass {name}.to_dense()")
    if element_of(x) == "bfloat16":
        raise TypeError(f"{name} has dtype bfloat16; NumPy has no such dtype")
    result: NDArray[Any] = x.detach().numpy()
    return result


def _is_masked(x: object) -> bool:
    masked_tensor = getattr(sys.modules.get("torch.masked"), "MaskedTensor", None)
    return isinstance(x, np.ma.MaskedArray) or (masked_tensor is not None and isinstance(x, masked_tensor))


def plain(x: Any, name: str) -> NDArray[Any]:
    """``x`` as an array: what `as_array` takes, or anything that NumPy makes one of."""
    return as_array(x, name) if is_tensor(x) or isinstance(x, np.ndarray) else np.asarray(x)


def element_of(x: Any) -> str:
    """The name of an array's or tensor's dtype, without the library's prefix."""
    return str(x.dtype).removeprefix("torch.")


def as_rows(x: Any, name: str) -> Rows:
    """``x`` as `Rows`; TypeError for other dtypes than `ELEMENTS`. A last axis that is not dense is copied."""
    as_bits = x
    if is_tensor(x) and element_of(x) == "bfloat16":
        import torch

        as_bits = x.detach().view(torch.int16)
    values = as_array(as_bits, name)
    element = element_of(x)
    if element not in ELEMENTS:
        raise TypeError(f"{name} has dtype {element}; allowed are {', '.join(ELEMENTS)}")
    if values.ndim and values.shape[-1] > 1 and values.strides[-1] != values.itemsize:
        values = np.ascontiguousarray(values)
    if values.dtype != np.float32 and values.dtype != np.float16:
        values = values.view(np.uint16)
    return Rows(values, element)


def widened(rows: Rows, part: slice = slice(None)) -> NDArray[np.float32]:
    """The rows, or a part of them, in fp32."""
    values = rows.values[part]
    if rows.element == "bfloat16":
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float32, copy=False)


def like(result: NDArray[Any], *given: Any) -> Any:
    """``result`` as the caller's kind: a tensor if any of ``given`` is one, on the same memory."""
    if not any(is_tensor(x) for x in given):
        return result
    import torch

    return torch.from_numpy(result)
