"""The operators as torch's: importing this module registers `torch.ops.rdna.decode_attention` and its kin.

- `decode_attention(q, kv_cache, block_table, seq_lens, max_query_len=1, scale=None, window=0, ...) -> Tensor` allocates
  its output.
- `decode_attention_out(..., Tensor(a!) out, ...) -> ()` writes to `out` and, if it is given, to `lse`, and takes
  scratch: with it nothing is allocated, and the call can be captured in a graph. Its scratch is (partial_acc,
  partial_max, partial_sum, counters) of `rdna_registry.make_scratch`; give all four or none.

Arguments and errors are those of `rdna_kernels.decode_attention`, but that torch checks their kinds first, by their
names, with a RuntimeError; True and False are numbers to it. Both have fake implementations, so torch.compile can
trace them; neither has a gradient.
"""

from __future__ import annotations

from typing import Any

import torch

from rdna_kernels.decode import decode_attention
from rdna_kernels.errors import ArgumentError

_INPUTS = "Tensor q, Tensor kv_cache, Tensor block_table, Tensor seq_lens"
_KNOBS = "int max_query_len=1, float? scale=None, int window=0"
_SCRATCH = "Tensor(b!)? partial_acc=None, Tensor(c!)? partial_max=None, Tensor(d!)? partial_sum=None"
_COUNTERS = "Tensor(e!)? counters=None"
_FEATURES = "Tensor? sinks=None, float softcap=0.0, Tensor? alibi_slopes=None, Tensor? plan=None"
_DECODE = ", ".join((_INPUTS, _KNOBS, _FEATURES))
_DECODE_OUT = ", ".join((_INPUTS, "Tensor(a!) out", _KNOBS, _SCRATCH, _COUNTERS, _FEATURES, "Tensor(f!)? lse=None"))

# Kept for as long as the module: torch forgets the operators with it.
_LIBRARY = torch.library.Library("rdna", "DEF")
_LIBRARY.define(f"decode_attention({_DECODE}) -> Tensor")
_LIBRARY.define(f"decode_attention_out({_DECODE_OUT}) -> ()")


def _names(schema: str) -> tuple[str, ...]:
    return tuple(argument.split(" ")[1].split("=")[0] for argument in schema.split(", "))


_DECODE_NAMES, _DECODE_OUT_NAMES = _names(_DECODE), _names(_DECODE_OUT)
_SCRATCH_NAMES = _names(f"{_SCRATCH}, {_COUNTERS}")


# torch gives arguments in the schema's order, and may leave out the last ones where they have their defaults.
def _decode(*arguments: Any) -> Any:
    return decode_attention(**dict(zip(_DECODE_NAMES, arguments, strict=False)))


def _decode_out(*arguments: Any) -> None:
    given = dict(zip(_DECODE_OUT_NAMES, arguments, strict=False))
    scratch = _scratch([given.pop(name, None) for name in _SCRATCH_NAMES])
    decode_attention(**given, scratch=scratch)


def _scratch(tensors: list[Any]) -> list[Any] | None:
    missing = [tensor is None for tensor in tensors]
    if all(missing):
        return None
    if any(missing):
        raise ArgumentError(
            f"scratch has {len(tensors) - sum(missing)} of its {len(tensors)} tensors ({', '.join(_SCRATCH_NAMES)}); "
            "give all of them or none"
        )
    return tensors


def _fake_decode(q: Any, *arguments: Any, **knobs: Any) -> Any:
    return q.new_empty(q.shape)


def _fake_decode_out(q: Any, *arguments: Any, **knobs: Any) -> None:
    return None


# One implementation for every place: the operator chooses the executor by where the tensors live.
_LIBRARY.impl("decode_attention", _decode, "CompositeExplicitAutograd")
_LIBRARY.impl("decode_attention_out", _decode_out, "CompositeExplicitAutograd")
torch.library.register_fake("rdna::decode_attention", _fake_decode, lib=_LIBRARY)
torch.library.register_fake("rdna::decode_attention_out", _fake_decode_out, lib=_LIBRARY)
