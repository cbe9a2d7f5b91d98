"""The decode operator: attention of 1 to 127 query tokens a sequence over a paged KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from rdna_registry import KernelVariant

from rdna_kernels.decode_call import decode_call
from rdna_kernels.decode_features import SMALLEST_SCALE, Features, as_softcap
from rdna_kernels.decode_prepared import ARRAYS, REQUIRED_ARRAYS, PreparedDecode
from rdna_kernels.errors import ArgumentError
from rdna_kernels.executors import Executor, executor_for, executor_of, require_reachable
from rdna_kernels.numbers_given import as_integer, as_real
from rdna_kernels.record import LaunchRecord
from rdna_kernels.scratch_check import require_scratch

_LARGEST_SCALE = 1e6  # no score of fp16 inputs overflows fp32 below it


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
        columns, and what stands past that is never used.
    seq_lens: int32 `[num_seqs]`, tokens of each sequence, the new ones included; at most 2^30.
    max_query_len: M, 1 to 127. Token t of a sequence of S tokens stands at position S - M + t and sees no key past it.
    scale: of the scores, by default 1 / sqrt(head_size). window: a token sees the last `window` keys, itself included;
        0 is no window.
    out: like q, by default new. scratch: `(partial_acc, partial_max, partial_sum, counters)` as
        `rdna_registry.make_scratch` makes it, by default from the executor's pool.
    variant: an entry of the registry that overrides its choice, `rdna_registry.select` for the executor's target, which
        `scratch` and `plan` are to be made for too. executor: where to run, by default where the arrays
        live (NumPy arrays and CPU tensors: emulated; a ROCm device: on that GPU, on the current stream, without waiting
        for it). report: a list to which a LaunchRecord is appended.
    sinks: float32 `[num_q_heads]`, at most 1e6 in size or -inf; exp(sink) joins the sum that a row's weights are
        divided by.
    softcap: scores become softcap * tanh(score * scale / softcap); 0 is no softcap, else 1e-3 to 1e6.
    alibi_slopes: float32 `[num_q_heads]`, at most 1e3 in size; slope * (key position - query position) is added to a
        score, after a softcap.
    lse: float32 `[num_seqs * max_query_len, num_q_heads]`, its strides free, to be written: the natural logarithm of
        the sum that a row's weights are divided by, the sink's share included; -inf for a row without keys.
    plan: int32 `[rows, 4]`, the work list of `rdna_registry.plan_decode` for this batch, instead of an even split. It
        must name every sequence, also those without keys. On a GPU, where the host does not read it, the rows of a
        sequence that it leaves out are not written: a new `out` holds there what its memory held. Scratch then has a
        slot for each of the plan's rows: `make_scratch` with `max_seqs` of at least rows / `variant.max_segments` has
        enough.

    Scores are fp32: with s = |scale| * sum |q_i k_i| + |ALiBi's bias| + |its slope| of a key, its weight is right to
    about 2e-7 * s, relative. Up to s = 5e6 outputs of finite inputs are finite, and means of the values; beyond,
    rounding may make all weights of a row 0 or infinite, and its output 0 or NaN. Nothing checks for it: q and k of
    30000 get there.

    Bases and strides of q, kv_cache and out are multiples of 16 bytes and the last dimension is dense; strides may not
    overlap, and out may share no memory with an input. Rows at a position below 0, so all rows of a sequence of length
    0, are zero. Everything is checked before anything is written: ArgumentError, UnsupportedError, MissingBuildError or
    ExecutorError. What stands in seq_lens, block_table, sinks, alibi_slopes and plan is checked where the host can read
    it: on a GPU only by `HipExecutor(debug=True)`.
    """
    if type(softcap) is not float or softcap != 0:  # the usual one is no question
        softcap = as_softcap(softcap)
    if report is not None:
        _require_report(report)
    if executor is None:
        executor = executor_of(q) or executor_for(
            _named(q, kv_cache, block_table, seq_lens, sinks, alibi_slopes, plan, out, lse)
        )
    elif not isinstance(executor, Executor):
        _refuse_executor(executor)
    if type(max_query_len) is not int:
        max_query_len = as_integer("max_query_len", max_query_len)
    if type(window) is not int:
        window = as_integer("window", window)
    if scale is not None:
        scale = _scale(scale)
    arrays = (q, kv_cache, block_table, seq_lens, sinks, alibi_slopes, plan, out, lse)
    look = executor.look
    try:
        looks = [look(array) for array in arrays]
        scratch_looks = None if scratch is None else tuple([look(array) for array in scratch])
    except Exception:
        require_reachable(executor, _named(*arrays))
        if scratch is not None:
            require_scratch(executor, scratch)
        raise
    # A prepared call holds its variant, so the number stays that variant's.
    key = ("decode", *[signature for signature, _ in looks], max_query_len, window, scale, softcap, id(variant))
    prepared = executor.prepared.get(key)
    if prepared is None:
        prepared = _prepare(executor, arrays, max_query_len, window, scale, softcap, variant)
        executor.remember(key, prepared)
    return prepared.run(arrays, [address for _, address in looks], scratch, scratch_looks, report)


def _prepare(
    executor: Executor,
    arrays: tuple[Any, ...],
    max_query_len: int,
    window: int,
    scale: float | None,
    softcap: float,
    variant: KernelVariant | None,
) -> PreparedDecode:
    named = _named(*arrays)
    require_reachable(executor, named)
    layouts = [None if array is None else executor.layout(array) for array in arrays]
    q, kv_cache, block_table, seq_lens, sinks, alibi_slopes, plan, out, lse = layouts
    features = Features(sinks, alibi_slopes, plan, lse, softcap)
    call = decode_call(
        q,
        kv_cache,
        block_table,
        seq_lens,
        out,
        max_query_len,
        window,
        _entry(variant),
        executor.target,
        features,
    )
    for name in ("out", "lse"):
        if name in named and not executor.writable(named[name]):
            raise ArgumentError(f"{name} is read-only; pass a writable array")
    return PreparedDecode(executor, call, call.default_scale if scale is None else scale, softcap, layouts, variant)


def _named(*arrays: Any) -> dict[str, Any]:
    return {
        name: array for name, array in zip(ARRAYS, arrays, strict=True) if array is not None or name in REQUIRED_ARRAYS
    }


def _entry(variant: Any) -> KernelVariant | None:
    if variant is not None and not isinstance(variant, KernelVariant):
        raise ArgumentError(
            f"variant is {variant!r}; it must be a rdna_registry.KernelVariant, or None for the registry's choice"
        )
    return variant


def _refuse_executor(executor: Any) -> NoReturn:
    raise ArgumentError(f"executor is {executor!r}; it must be an Executor, such as rdna_kernels.EmulatedExecutor()")


def _require_report(report: Any) -> None:
    if not callable(getattr(report, "append", None)):
        raise ArgumentError(f"report is {report!r}; it must be a list, to which a LaunchRecord is appended, or None")


def _scale(scale: Any) -> float:
    value = scale if type(scale) is float else as_real("scale", scale)
    if not abs(value) <= _LARGEST_SCALE:
        raise ArgumentError(f"scale is {value}; it must be a number of at most {_LARGEST_SCALE:g} in size")
    return value if abs(value) >= SMALLEST_SCALE else 0.0
