"""The decode operator: attention of 1 to 8 query tokens a sequence over a paged KV cache."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any

from rdna_registry import KernelVariant

from rdna_kernels.decode_arguments import DECODE_ARGUMENTS
from rdna_kernels.decode_call import DecodeCall, decode_call
from rdna_kernels.decode_values import check_values
from rdna_kernels.errors import ArgumentError, UnsupportedError
from rdna_kernels.executors import Executor, executor_for, require_reachable
from rdna_kernels.layout import ALIGNMENT, Placed, extent, require_no_overlap, spans_apart
from rdna_kernels.packing import Packer
from rdna_kernels.record import LaunchRecord
from rdna_kernels.scratch import Scratch
from rdna_kernels.scratch_check import check_scratch

_PACKER = Packer(DECODE_ARGUMENTS)
_LOG2_E = math.log2(math.e)
_LARGEST_SCALE = 1e6  # no score of fp16 inputs overflows fp32 below it
_SMALLEST_SCALE = 2.0**-80  # fp16 scores times less change no weight in fp32, and the kernel divides by it
_INT32_ARRAYS = frozenset({"block_table", "seq_lens"})


def decode_attention(
    q: Any,
    kv_cache: Any,
    block_table: Any,
    seq_lens: Any,
    *,
    max_query_len: int = 1,
    scale: float | None = None,
    window: int = 0,
    sinks: Any = None,
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    plan: Any = None,
    out: Any = None,
    lse: Any = None,
    scratch: Sequence[Any] | None = None,
    variant: KernelVariant | None = None,
    executor: Executor | None = None,
    report: list[LaunchRecord] | None = None,
) -> Any:
    """Attention of `max_query_len` new tokens a sequence over a paged KV cache; returns `out`.

    q: fp16 or bf16 `[num_seqs * max_query_len, num_q_heads, head_size]`, sequence by sequence.
    kv_cache: same dtype, `[num_pages, num_kv_heads, page_size, 2 * head_size]`, K then V in a row. Block, head and
        token strides are free: views of HND and of NHD caches both serve.
    block_table: int32 `[num_seqs, columns]`, the pages of each sequence in order; at least ceil(seq_len / page_size)
        columns, and what stands past that is never looked at.
    seq_lens: int32 `[num_seqs]`, tokens of each sequence, the new ones included; at most 2^30.
    max_query_len: M, 1 to 8. Token t of a sequence of S tokens stands at position S - M + t and sees no key past it.
    scale: of the scores, by default 1 / sqrt(head_size). window: a token sees the last `window` keys, itself included;
        0 is no window.
    out: like q, by default new. scratch: `(partial_acc, partial_max, partial_sum, counters)` as
        `rdna_registry.make_scratch` makes it, by default from the executor's pool.
    variant: an entry of the registry that overrides its choice. executor: where to run, by default where the arrays
        live (NumPy: emulated). report: a list to which a LaunchRecord is appended.
    sinks, softcap, alibi_slopes, plan and lse are not served yet and refused.

    Bases and strides of q, kv_cache and out are multiples of 16 bytes and the last dimension is dense; strides may not
    overlap, and out may share no memory with an input. Rows at a position below 0, so all rows of a sequence of length
    0, are zero. Everything is checked before anything is written: ArgumentError, UnsupportedError, MissingBuildError or
    ExecutorError.
    """
    capped = _is_capped(softcap)
    if sinks is not None or capped or alibi_slopes is not None or plan is not None or lse is not None:
        _refuse(capped, sinks=sinks, alibi_slopes=alibi_slopes, plan=plan, lse=lse)
    if report is not None:
        _require_report(report)
    arrays = {"q": q, "kv_cache": kv_cache, "block_table": block_table, "seq_lens": seq_lens}
    if out is not None:
        arrays["out"] = out
    if executor is None:
        executor = executor_for(arrays)
    else:
        _require_executor(executor)
        require_reachable(executor, arrays)
    layout, address = executor.layout, executor.address
    call = decode_call(
        layout(q),
        layout(kv_cache),
        layout(block_table),
        layout(seq_lens),
        None if out is None else layout(out),
        _integer("max_query_len", max_query_len),
        _integer("window", window),
        _entry(variant),
    )
    scale = call.default_scale if scale is None else _scale(scale)
    given, given_places = (None, []) if scratch is None else check_scratch(executor, scratch, call.need)
    addresses = {name: address(array) for name, array in arrays.items()}
    _check_places(executor, call, arrays, addresses, given_places)
    lengths, table = executor.host_values(seq_lens), executor.host_values(block_table)
    if lengths is not None and table is not None:
        check_values(lengths, table, call.page_size, call.num_pages)
    function = executor.build_function(call.build_name)

    if out is None:
        out = arrays["out"] = executor.empty(call.out_shape, q.dtype)
        addresses["out"] = address(out)
    if not call.workgroups:
        return out
    lent = executor.scratch.lend(call.need) if given is None else contextlib.nullcontext(given)
    with lent as memory:
        counts = _launch(executor, function, call, scale, arrays, addresses, memory)
    if report is not None:
        report.append(
            LaunchRecord(
                "decode", call.build_name, executor.target, executor.name, call.workgroups, counts, call.provenance
            )
        )
    return out


def _launch(
    executor: Executor,
    function: Any,
    call: DecodeCall,
    scale: float,
    arrays: dict[str, Any],
    addresses: dict[str, int],
    scratch: Scratch,
) -> Any:
    values: dict[str, int | float] = {
        **call.constants,
        **addresses,
        **scratch.addresses,
        "scale_log2": scale * _LOG2_E,
    }
    memory = [
        *arrays.items(),
        ("partials", scratch.partial_acc),
        ("partials", scratch.partial_max),
        ("partials", scratch.partial_sum),
        ("counters", scratch.counters),
    ]
    return executor.launch(function, call.grid, call.block, _PACKER.pack(values), memory)


def _is_capped(softcap: Any) -> bool:
    return softcap is not None and not (isinstance(softcap, Real) and softcap == 0)  # an array has no truth value


def _refuse(capped: bool, **features: Any) -> None:
    names = [name for name, value in features.items() if value is not None] + ["softcap"] * capped
    raise UnsupportedError(
        f"{', '.join(names)} given; decode_attention has no kernel for it yet: leave it at its default. Served are "
        "scale, window, max_query_len 1 to 8, out, scratch and variant"
    )


def _entry(variant: Any) -> KernelVariant | None:
    if variant is not None and not isinstance(variant, KernelVariant):
        raise ArgumentError(
            f"variant is {variant!r}; it must be a rdna_registry.KernelVariant, or None for the registry's choice"
        )
    return variant


def _require_executor(executor: Any) -> None:
    if not isinstance(executor, Executor):
        raise ArgumentError(
            f"executor is {executor!r}; it must be an Executor, such as rdna_kernels.EmulatedExecutor()"
        )


def _require_report(report: Any) -> None:
    if not callable(getattr(report, "append", None)):
        raise ArgumentError(f"report is {report!r}; it must be a list, to which a LaunchRecord is appended, or None")


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {value!r}; it must be an integer") from None


def _scale(scale: Any) -> float:
    try:
        value = float(scale)
    except (TypeError, ValueError):
        raise ArgumentError(f"scale is {scale!r}; it must be a number") from None
    if not abs(value) <= _LARGEST_SCALE:
        raise ArgumentError(f"scale is {value}; it must be a number of at most {_LARGEST_SCALE:g} in size")
    return value if abs(value) >= _SMALLEST_SCALE else 0.0


def _check_places(
    executor: Executor, call: DecodeCall, arrays: dict[str, Any], addresses: dict[str, int], scratch: list[Placed]
) -> None:
    for name, address in addresses.items():
        alignment = 4 if name in _INT32_ARRAYS else ALIGNMENT
        if address % alignment:
            raise ArgumentError(
                f"{name} begins at address {address:#x}, not a multiple of {alignment} bytes: pass an aligned copy"
            )
    if "out" in arrays:
        if not executor.writable(arrays["out"]):
            raise ArgumentError("out is read-only; pass a writable array")
    elif not scratch:
        return
    spans = [(address, address + call.extents[name]) for name, address in addresses.items()]
    spans += [(place.address, place.address + extent(place.layout, place.itemsize)) for place in scratch]
    if not spans_apart(spans):
        placed = [
            Placed(name, addresses[name], executor.layout(array), 4 if name in _INT32_ARRAYS else 2)
            for name, array in arrays.items()
        ]
        require_no_overlap([*placed[4:], *scratch], placed[:4])
