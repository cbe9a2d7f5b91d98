from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from octave_quant import OctaveFormat, dequantize, pack, paged_attention, quantize, rotate, store, unpack, unrotate

torch: Any = pytest.importorskip("torch", reason="torch is in a dependency group of its own")

FMT = OctaveFormat(128, 64, 4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensors_are_what_arrays_are(dtype: str) -> None:
    k, v = torch.randn(2, 5, 2, 128, generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    slots = quantize(k, v, FMT)
    assert slots.dtype is torch.uint8
    assert np.array_equal(slots.numpy(), quantize(k.float().numpy(), v.float().numpy(), FMT))
    back = dequantize(slots, FMT)
    assert all(x.dtype is torch.float32 for x in back)
    assert np.array_equal(back[0].numpy(), dequantize(slots.numpy(), FMT)[0])


def test_a_cache_is_written_in_place() -> None:
    k, v = torch.randn(2, 3, 2, 128)
    cache = torch.zeros(2, 2, 4, FMT.slot_bytes, dtype=torch.uint8)
    store(k.requires_grad_(), v, cache, torch.tensor([5, -1, 0]), FMT)
    slots = quantize(k, v, FMT)
    assert torch.equal(cache[1, :, 1], slots[0])
    assert torch.equal(cache[0, :, 0], slots[2])
    assert int(cache.count_nonzero()) == int(slots[0].count_nonzero() + slots[2].count_nonzero())
    table, zero, one = torch.zeros(1, 1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), torch.ones(1).int()
    out = paged_attention(torch.randn(1, 4, 128).half(), cache, table, zero, one, FMT, 0.1)
    assert out.dtype is torch.float32
    assert torch.allclose(out[0, :2], dequantize(slots, FMT)[1][2, :1].expand(2, -1), atol=1e-6)


def test_primitives() -> None:
    x = torch.randn(3, 128)
    assert torch.allclose(unrotate(rotate(x, 64), 64), x, atol=1e-6)
    codes = torch.arange(32, dtype=torch.int64) % 8
    assert torch.equal(unpack(pack(codes, 3), 32, 3), codes.to(torch.uint8))


def calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Every function that takes tensors, with arguments that it takes."""
    k, cache = torch.zeros(1, 2, 128), torch.zeros(2, 2, 4, FMT.slot_bytes, dtype=torch.uint8)
    numbers = torch.zeros(1, dtype=torch.int32)
    paged = {"block_table": numbers[None], "q_to_req": numbers, "q_to_klen": numbers}
    return {
        "quantize": (lambda **x: quantize(**x, fmt=FMT), {"key": k, "value": k}),
        "dequantize": (lambda **x: dequantize(**x, fmt=FMT), {"slots": cache[0]}),
        "store": (lambda **x: store(**x, fmt=FMT), {"key": k, "value": k, "cache": cache, "slot_mapping": numbers}),
        "paged_attention": (
            lambda **x: paged_attention(**x, fmt=FMT, scale=1.0),
            {"query": k, "cache": cache, **paged},
        ),
        "rotate": (lambda **x: rotate(**x, block=64), {"x": k}),
        "unrotate": (lambda **x: unrotate(**x, block=64), {"y": k}),
        "pack": (lambda **x: pack(**x, bits=4), {"codes": torch.zeros(64, dtype=torch.uint8)}),
        "unpack": (lambda **x: unpack(**x, n=64, bits=4), {"packed": torch.zeros(32, dtype=torch.uint8)}),
    }


@pytest.mark.parametrize("function", calls())
def test_tensors_elsewhere_are_refused_by_name(function: str) -> None:
    call, arguments = calls()[function]
    call(**arguments)
    for name, tensor in arguments.items():
        with pytest.raises(TypeError, match=f"^{name} is a tensor on meta; octave_quant works on the CPU"):
            call(**{**arguments, name: tensor.to("meta")})
        with pytest.raises(TypeError, match=rf"^{name} is a tensor of layout torch\.sparse_coo"):
            call(**{**arguments, name: tensor.to_sparse()})


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning")
@pytest.mark.parametrize("function", calls())
def test_masked_tensors_are_refused_by_name(function: str) -> None:
    call, arguments = calls()[function]
    for name, tensor in arguments.items():
        if tensor.dtype is torch.uint8:  # of which torch makes no masked tensor
            continue
        with pytest.raises(TypeError, match=f"^{name} is a masked tensor; pass a plain one"):
            call(**{**arguments, name: torch.masked.masked_tensor(tensor, torch.ones_like(tensor, dtype=torch.bool))})


def test_what_torch_has_beside_tensors_is_refused_by_name() -> None:
    k = torch.zeros(1, 2, 128)
    for thing in (torch.Size([1, 2, 128]), torch.float32):
        with pytest.raises(TypeError, match=f"^key is a {type(thing).__name__}; it must be a NumPy array or a torch"):
            quantize(thing, k, FMT)
    # The bits of bfloat16 are no codes.
    with pytest.raises(TypeError, match=r"^codes has dtype bfloat16"):
        pack(torch.zeros(64).bfloat16(), 4)


def test_arrays_do_not_import_torch() -> None:
    code = "import sys, numpy, octave_quant as o; f = o.OctaveFormat(64, 64, 4); k = numpy.zeros((1, 1, 64), 'f4')"
    code += "; o.dequantize(o.quantize(k, k, f), f); sys.exit('torch' in sys.modules or 'ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
