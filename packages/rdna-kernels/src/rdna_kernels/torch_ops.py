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

from typing import Any, TypeAlias

import torch

from rdna_kernels.decode import decode_attention
from rdna_kernels.errors import ArgumentError

Tensor: TypeAlias = torch.Tensor

_INPUTS = "Tensor q, Tensor kv_cache, Tensor block_table, Tensor seq_lens"
_KNOBS = "int max_query_len=1, float? scale=None, int window=0"
_SCRATCH = "Tensor(b!)? partial_acc=None, Tensor(c!)? partial_max=None, Tensor(d!)? partial_sum=None"
_COUNTERS = "Tensor(e!)? counters=None"
_FEATURES = "Tensor? sinks=None, float softcap=0.0, Tensor? alibi_slopes=None, Tensor? plan=None"

# Kept for as long as the module: torch forgets the operators with it.
_LIBRARY = torch.library.Library("rdna", "DEF")
_LIBRARY.define(f"decode_attention({_INPUTS}, {_KNOBS}, {_FEATURES}) -> Tensor")
_LIBRARY.define(
    f"decode_attention_out({_INPUTS}, Tensor(a!) out, {_KNOBS}, {_SCRATCH}, {_COUNTERS}, {_FEATURES}, "
    "Tensor(f!)? lse=None) -> ()"
)


def _decode(
    q: Tensor,
    kv_cache: Tensor,
    block_table: Tensor,
    seq_lens: Tensor,
    max_query_len: int = 1,
    scale: float | None = None,
    window: int = 0,
    sinks: Tensor | None = None,
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    plan: Tensor | None = None,
) -> Tensor:
    out: Tensor = decode_attention(
        q,
        kv_cache,
        block_table,
        seq_lens,
        max_query_len=max_query_len,
        scale=scale,
        window=window,
        sinks=sinks,
        softcap=softcap,
        alibi_slopes=alibi_slopes,
        plan=plan,
    )
    return out


def _decode_out(
    q: Tensor,
    kv_cache: Tensor,
    block_table: Tensor,
    seq_lens: Tensor,
    out: Tensor,
    max_query_len: int = 1,
    scale: float | None = None,
    window: int = 0,
    partial_acc: Tensor | None = None,
    partial_max: Tensor | None = None,
    partial_sum: Tensor | None = None,
    counters: Tensor | None = None,
    sinks: Tensor | None = None,
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    plan: Tensor | None = None,
    lse: Tensor | None = None,
) -> None:
    decode_attention(
        q,
        kv_cache,
        block_table,
        seq_lens,
        max_query_len=max_query_len,
        scale=scale,
        window=window,
        sinks=sinks,
        softcap=softcap,
        alibi_slopes=alibi_slopes,
        plan=plan,
        out=out,
        lse=lse,
        scratch=_scratch(partial_acc, partial_max, partial_sum, counters),
    )


def _scratch(*tensors: Tensor | None) -> tuple[Any, ...] | None:
    missing = [tensor is None for tensor in tensors]
    if all(missing):
        return None
    if any(missing):
        raise ArgumentError(
            f"scratch has {len(tensors) - sum(missing)} of its {len(tensors)} tensors (partial_acc, partial_max, "
            "partial_sum, counters); give all of them or none"
        )
    return tensors


def _fake_decode(q: Tensor, *arguments: Any, **knobs: Any) -> Tensor:
    return q.new_empty(q.shape)


def _fake_decode_out(q: Tensor, *arguments: Any, **knobs: Any) -> None:
    return None


# One implementation for every place: the operator chooses the executor by where the tensors live.
_LIBRARY.impl("decode_attention", _decode, "CompositeExplicitAutograd")
_LIBRARY.impl("decode_attention_out", _decode_out, "CompositeExplicitAutograd")
torch.library.register_fake("rdna::decode_attention", _fake_decode, lib=_LIBRARY)
torch.library.register_fake("rdna::decode_attention_out", _fake_decode_out, lib=_LIBRARY)
