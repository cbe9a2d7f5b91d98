"""Every bad input is refused by an error that names it, and nothing is launched, loaded or written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fake_catalogue import fake_catalogue
from numpy.lib.stride_tricks import as_strided
from rdna_kernels import ArgumentError, ExecutorError, KernelsError, decode_attention
from rdna_registry import KernelVariant, select
from recording_executor import RecordingExecutor

Arguments = dict[str, Any]
NUM_SEQS, TOKENS, Q_HEADS, KV_HEADS, HEAD, PAGE, PAGES = 3, 2, 4, 2, 64, 16, 7


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> RecordingExecutor:
    return RecordingExecutor(fake_catalogue(tmp_path_factory.mktemp("objects")))


def good() -> Arguments:
    rows = NUM_SEQS * TOKENS
    return {
        "q": np.ones((rows, Q_HEADS, HEAD), np.float16),
        "kv_cache": np.ones((PAGES, KV_HEADS, PAGE, 2 * HEAD), np.float16),
        "block_table": np.array([[0, 1, -1], [2, 3, 4], [-1, -1, -1]], np.int32),
        "seq_lens": np.array([17, 40, 0], np.int32),
        "max_query_len": TOKENS,
        "out": np.full((rows, Q_HEADS, HEAD), 7, np.float16),
        "scratch": scratch(),
    }


def scratch(**changes: Any) -> tuple[Any, ...]:
    (rows, width), _, counters = variant().scratch_shapes()
    made = {
        "acc": np.full((NUM_SEQS * rows, width), 7, np.float32),
        "max": np.full(NUM_SEQS * rows, 7, np.float32),
        "sum": np.full(NUM_SEQS * rows, 7, np.float32),
        "counters": np.zeros(NUM_SEQS * counters, np.int32),
    }
    return tuple({**made, **changes}.values())


def variant(**changes: Any) -> KernelVariant:
    chosen = select(Q_HEADS, KV_HEADS, HEAD, TOKENS, PAGE, 1, 0, "fp16", True)
    return dataclasses.replace(chosen, **changes)


def off_by(array: np.ndarray[Any, Any], items: int) -> np.ndarray[Any, Any]:
    raw = np.ones(array.size + items + 8, array.dtype)
    start = -(raw.__array_interface__["data"][0] // array.itemsize) % (16 // array.itemsize)
    return raw[start + items :][: array.size].reshape(array.shape)


def strided(array: np.ndarray[Any, Any], *strides: int) -> np.ndarray[Any, Any]:
    room = np.ones(2 * array.size, array.dtype)
    return as_strided(room, array.shape, [stride * array.itemsize for stride in strides])


class OnGpu:
    """Looks like a tensor on a GPU."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.shape, self.dtype, self.device = array.shape, array.dtype, "cuda:0"


def take(name: str, change: Callable[[Any], Any]) -> Callable[[Arguments], Arguments]:
    return lambda arguments: {**arguments, name: change(arguments[name])}


def put(**changes: Any) -> Callable[[Arguments], Arguments]:
    return lambda arguments: {**arguments, **changes}


def sharing(arguments: Arguments, name: str) -> Arguments:
    room = np.ones(4 * arguments[name].size, np.float16)
    size = arguments["out"].size
    return {
        **arguments,
        name: room[: arguments[name].size].reshape(arguments[name].shape),
        "out": room[8 : 8 + size].reshape(arguments["out"].shape),
    }


BAD: dict[str, tuple[Callable[[Arguments], Arguments], type[KernelsError], str]] = {
    "q of float32": (
        take("q", lambda q: q.astype(np.float32)),
        ArgumentError,
        "q has dtype float32.*float16 and bfloat16",
    ),
    "q of int16": (take("q", lambda q: q.astype(np.int16)), ArgumentError, "q has dtype int16"),
    "q big-endian": (take("q", lambda q: q.astype(">f2")), ArgumentError, "q has dtype >f2"),
    "cache of another dtype": (
        take("kv_cache", lambda kv: kv.astype(ml_dtypes.bfloat16)),
        ArgumentError,
        "kv_cache has dtype bfloat16; it must be float16",
    ),
    "out of another dtype": (take("out", lambda out: out.astype(np.float32)), ArgumentError, "out has dtype float32"),
    "table of int64": (
        take("block_table", lambda t: t.astype(np.int64)),
        ArgumentError,
        "block_table has dtype int64; it must be int32",
    ),
    "lengths past int32": (
        put(seq_lens=np.array([17, 2**31, 0])),
        ArgumentError,
        "seq_lens has dtype int64; it must be int32",
    ),
    "head size": (
        put(q=np.ones((6, 4, 520), np.float16), kv_cache=np.ones((7, 2, 16, 1040), np.float16), out=None),
        ArgumentError,
        r"no kernel serves .*head_size is 520; allowed: .*; the nearest build is decode_h512_\S+, for head_size = 512",
    ),
    "head size that no 16 bytes divide": (
        put(q=np.ones((6, 4, 70), np.float16), kv_cache=np.ones((7, 2, 16, 140), np.float16), out=None),
        ArgumentError,
        r"no kernel serves .*head_size is 70; allowed: a multiple of 8 .*; the nearest build .*, for head_size = \d+",
    ),
    "cache of another head size": (
        put(kv_cache=np.ones((7, 2, 16, 256), np.float16)),
        ArgumentError,
        r"kv_cache has rows of 256 elements.*2 \* 64",
    ),
    "query heads no multiple": (
        put(q=np.ones((6, 5, 64), np.float16), out=None),
        ArgumentError,
        "q has 5 heads and kv_cache 2",
    ),
    "too many heads a kv head": (
        put(q=np.ones((6, 66, 64), np.float16), out=None),
        ArgumentError,
        "num_q_heads is 66; allowed: at most 32 .*; the nearest build is decode_h64_.* num_q_heads = 64 .or call",
    ),
    "no kv heads": (put(kv_cache=np.ones((7, 0, 16, 128), np.float16)), ArgumentError, "kv_cache 0"),
    "no query heads": (put(q=np.ones((6, 0, 64), np.float16), out=None), ArgumentError, "q has 0 heads"),
    "page of 8": (
        put(kv_cache=np.ones((7, 2, 8, 128), np.float16)),
        ArgumentError,
        "page_size is 8; allowed: a multiple of 16; the nearest build is decode_h64_.*, for page_size = 16",
    ),
    "page of 24": (
        put(kv_cache=np.ones((7, 2, 24, 128), np.float16)),
        ArgumentError,
        "page_size is 24; allowed: .*, for page_size = 32",
    ),
    "page of 0": (
        put(kv_cache=np.ones((7, 2, 0, 128), np.float16)),
        ArgumentError,
        "q has heads of 64 elements and kv_cache pages of 0 tokens; both have some",
    ),
    "128 tokens": (
        put(max_query_len=128, q=np.ones((384, 4, 64), np.float16), out=None),
        ArgumentError,
        "max_query_len is 128; allowed: 1 to 127; the nearest build is decode_h64_.* = 127 .split a longer query",
    ),
    "empty heads": (
        put(q=np.ones((6, 4, 0), np.float16), kv_cache=np.ones((7, 2, 16, 0), np.float16), out=None),
        ArgumentError,
        "q has heads of 0 elements",
    ),
    "no tokens": (put(max_query_len=0), ArgumentError, "max_query_len is 0"),
    "half a token": (put(max_query_len=1.5), ArgumentError, r"max_query_len is 1\.5; it must be an integer"),
    "rows of q": (
        take("q", lambda q: q[:5]),
        ArgumentError,
        "q has 5 rows; 3 sequences .* with max_query_len 2 make 6",
    ),
    "tokens that q does not have": (put(max_query_len=3), ArgumentError, "q has 6 rows; 3 sequences"),
    "q of two dimensions": (take("q", lambda q: q[0]), ArgumentError, r"q has shape \(4, 64\); it must be \[num_seqs"),
    "cache of three dimensions": (take("kv_cache", lambda kv: kv[0]), ArgumentError, "kv_cache has shape"),
    "table of one dimension": (take("block_table", lambda t: t[0]), ArgumentError, "block_table has shape"),
    "table of other sequences": (
        take("block_table", lambda t: t[:2]),
        ArgumentError,
        r"block_table has shape \(2, 3\).*\[3, any\]",
    ),
    "lengths of two dimensions": (take("seq_lens", lambda s: s[:, None]), ArgumentError, "seq_lens has shape"),
    "out of another shape": (take("out", lambda out: out[:, :2]), ArgumentError, r"out has shape \(6, 2, 64\)"),
    "negative window": (put(window=-1), ArgumentError, "window is -1"),
    "window past int32": (put(window=2**31), ArgumentError, "window is 2147483648"),
    "window of no integer": (put(window=None), ArgumentError, "window is None"),
    "infinite scale": (put(scale=float("inf")), ArgumentError, "scale is inf"),
    "scale of no number": (
        put(scale=float("nan")),
        ArgumentError,
        "scale is nan; it must be a number of at most 1e.06",
    ),
    "huge scale": (put(scale=-2e6), ArgumentError, r"scale is -2000000\.0"),
    "scale of text": (put(scale="big"), ArgumentError, "scale is 'big'"),
    # Strides and places.
    "q broadcast": (take("q", lambda q: np.broadcast_to(q[:1], q.shape)), ArgumentError, "q has overlapping strides"),
    "cache broadcast": (
        take("kv_cache", lambda kv: np.broadcast_to(kv[:1], kv.shape)),
        ArgumentError,
        "kv_cache has overlapping strides: dimension 0",
    ),
    "cache with overlapping heads": (
        take("kv_cache", lambda kv: strided(kv, 4096, 128, 128, 1)),
        ArgumentError,
        "kv_cache has overlapping strides",
    ),
    "out broadcast": (take("out", lambda out: strided(out, 0, 64, 1)), ArgumentError, "out has overlapping strides"),
    "table broadcast": (
        take("block_table", lambda t: np.broadcast_to(t[1], t.shape)),
        ArgumentError,
        "block_table has overlapping strides",
    ),
    "cache backwards": (take("kv_cache", lambda kv: kv[::-1]), ArgumentError, "kv_cache has a negative stride"),
    "q misaligned": (take("q", lambda q: off_by(q, 1)), ArgumentError, "q begins at address 0x.*multiple of 16"),
    "cache misaligned": (take("kv_cache", lambda kv: off_by(kv, 4)), ArgumentError, "kv_cache begins at address"),
    "out misaligned": (take("out", lambda out: off_by(out, 2)), ArgumentError, "out begins at address"),
    "table misaligned": (
        put(block_table=np.frombuffer(bytearray(42), np.int32, 9, 2).reshape(3, 3)),
        ArgumentError,
        "block_table begins at address",
    ),
    "q with misaligned rows": (
        take("q", lambda q: strided(q, 4 * 68, 68, 1)),
        ArgumentError,
        "q has a stride of 136 bytes in dimension 1",
    ),
    "cache with misaligned rows": (
        take("kv_cache", lambda kv: strided(kv, 16 * 264, 132, 264, 1)),
        ArgumentError,
        "kv_cache has a stride of 264 bytes",
    ),
    "q with gaps in a row": (
        take("q", lambda q: np.repeat(q, 2, 2)[:, :, ::2]),
        ArgumentError,
        "q has a last dimension with a stride of 4",
    ),
    "cache with gaps in a row": (
        take("kv_cache", lambda kv: np.repeat(kv, 2, 3)[..., ::2]),
        ArgumentError,
        "kv_cache has a last dimension",
    ),
    "table with gaps": (
        take("block_table", lambda t: np.repeat(t, 2, 1)[:, ::2]),
        ArgumentError,
        "block_table has a last dimension",
    ),
    "lengths with gaps": (
        take("seq_lens", lambda s: np.repeat(s, 2)[::2]),
        ArgumentError,
        "seq_lens has a last dimension",
    ),
    "out over q": (lambda a: sharing(a, "q"), ArgumentError, "out shares memory with q"),
    "out over the cache": (lambda a: sharing(a, "kv_cache"), ArgumentError, "out shares memory with kv_cache"),
    "tokens far apart": (
        put(kv_cache=as_strided(np.ones(8, np.float16), (7, 2, 16, 128), (2**33, 2**32, 2**27 + 16, 2))),
        ArgumentError,
        "kv_cache has a token stride of 67108872 elements; at most 67108864",
    ),
    "heads too far apart": (
        take("q", lambda q: as_strided(np.ones(8, np.float16), q.shape, (2**40, 2**36, 2))),
        ArgumentError,
        "q has a stride of 1099511627776 bytes in dimension 0; at most 68719476720",
    ),
    "tables too far apart": (
        take("block_table", lambda t: as_strided(t, t.shape, (2**34, 4))),
        ArgumentError,
        "block_table has a stride of 17179869184 bytes in dimension 0; at most 17179869180",
    ),
    "too many sequences": (
        put(
            q=np.ones((65536, 1, 64), np.float16),
            kv_cache=np.ones((1, 1, 16, 128), np.float16),
            block_table=np.zeros((65536, 1), np.int32),
            seq_lens=np.zeros(65536, np.int32),
            max_query_len=1,
            out=None,
        ),
        ArgumentError,
        "65536 sequences make a grid .* at most 65535: call for parts of the batch",
    ),
    "too many partial results": (
        put(
            q=np.ones((40000, 32, 64), np.float16),
            kv_cache=np.ones((1, 32, 16, 128), np.float16),
            block_table=np.zeros((40000, 1), np.int32),
            seq_lens=np.zeros(40000, np.int32),
            max_query_len=1,
            out=None,
            variant=KernelVariant(64, 32, 32, 1, 16, 1, max_segments=128, waves=4),
        ),
        ArgumentError,
        "40000 sequences need 2621440000 rows of partial results; kernels count at most 2147483647: call for parts",
    ),
    # Values.
    "negative length": (put(seq_lens=np.array([17, -2, 0], np.int32)), ArgumentError, r"seq_lens\[1\] is -2"),
    "narrow table": (
        put(seq_lens=np.array([17, 49, 0], np.int32)),
        ArgumentError,
        r"block_table has 3 columns; seq_lens\[1\] = 49 needs 4",
    ),
    "negative id": (
        put(seq_lens=np.array([33, 40, 0], np.int32)),
        ArgumentError,
        r"block_table\[0, 2\] is -1, inside the 33",
    ),
    "large id": (
        put(kv_cache=np.ones((4, 2, 16, 128), np.float16)),
        ArgumentError,
        r"block_table\[1, 2\] is 4.*pages 0 to 3",
    ),
    # Scratch.
    "three scratch arrays": (put(scratch=scratch()[:3]), ArgumentError, "scratch has 3 arrays"),
    "small scratch": (
        put(scratch=scratch(max=np.ones(5, np.float32))),
        ArgumentError,
        "partial_max has 5 rows; this call needs at least",
    ),
    "scratch of another width": (
        take("scratch", lambda s: (s[0].reshape(-1, 128), *s[1:])),
        ArgumentError,
        r"partial_acc has shape .*, 128\)",
    ),
    "scratch of float16": (
        take("scratch", lambda s: (s[0].astype(np.float16), *s[1:])),
        ArgumentError,
        "partial_acc has dtype float16; it must be float32",
    ),
    "counters of float32": (
        take("scratch", lambda s: (*s[:3], s[3].astype(np.float32))),
        ArgumentError,
        "counters has dtype float32; it must be int32",
    ),
    "used counters": (take("scratch", lambda s: (*s[:3], s[3] + 1)), ArgumentError, "counters are not all zero"),
    "scratch with gaps": (
        take("scratch", lambda s: (np.repeat(s[0], 2, 0)[::2], *s[1:])),
        ArgumentError,
        "partial_acc is not dense",
    ),
    "scratch misaligned": (
        take("scratch", lambda s: (*s[:2], off_by(s[2], 1), s[3])),
        ArgumentError,
        "partial_sum begins at",
    ),
    "one array as two of scratch": (
        take("scratch", lambda s: (s[0], s[1], s[1], s[3])),
        ArgumentError,
        "partial_sum shares memory",
    ),
    "scratch over lengths": (
        lambda a: {**a, "seq_lens": a["scratch"][3][:3]},
        ArgumentError,
        "counters shares memory with seq_lens",
    ),
    "scratch of lists": (
        take("scratch", lambda s: (*s[:3], [0] * 99)),
        ArgumentError,
        r"scratch counters is \[0, .*\] of type list; it must be an array",
    ),
    "scratch of text": (put(scratch="four"), ArgumentError, "scratch partial_acc is 'f' of type str; it must be an"),
    # Entries.
    "variant by name": (put(variant=variant().name), ArgumentError, "variant is 'rdna_decode.*KernelVariant"),
    "variant of another page": (
        put(variant=variant(page_size=32)),
        ArgumentError,
        "variant has page_size 32, the call has 16",
    ),
    "variant of other heads": (
        put(variant=variant(num_q_heads=8)),
        ArgumentError,
        "variant has num_q_heads 8, the call has 4",
    ),
    "variant of other tokens": (
        put(variant=variant(max_query_len=1)),
        ArgumentError,
        "variant has max_query_len 1, the call has 2",
    ),
    "variant of another window": (
        put(variant=variant(window=9)),
        ArgumentError,
        "variant has window 9, the call has 0",
    ),
    "variant of another dtype": (put(variant=variant(dtype="bf16")), ArgumentError, "variant has dtype"),
    "report that is a tuple": (put(report=()), ArgumentError, r"report is \(\); it must be a list"),
    "report that is a number": (put(report=5), ArgumentError, "report is 5; it must be a list"),
    "variant that is a list": (put(variant=[]), ArgumentError, r"variant is \[\]; it must be"),
    "softcap array": (put(softcap=np.zeros(4)), ArgumentError, "softcap is .*; it must be a number"),
    # Arrays that no executor reaches.
    "an array on a GPU": (take("kv_cache", OnGpu), ExecutorError, r"kv_cache: .*OnGpu on cuda:0.*numpy\.asarray"),
    "an executor by name": (put(executor="emulated"), ArgumentError, "executor is 'emulated'"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused_and_nothing_written(name: str, executor: RecordingExecutor) -> None:
    change, kind, message = BAD[name]
    arguments = change({**good(), "executor": executor})
    arrays = [value for value in (arguments["out"], *arguments["scratch"]) if isinstance(value, np.ndarray)]
    before = [array.copy() for array in arrays]
    made, loads = len(executor.made), executor.loads
    with pytest.raises(kind, match=message):
        decode_attention(**arguments)
    assert executor.launches == []
    assert (len(executor.made), executor.loads) == (made, loads)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("name", ["out", 0, 1, 2, 3])
def test_read_only_memory_is_refused(name: str | int, executor: RecordingExecutor) -> None:
    arguments = good()
    array = arguments["out"] if name == "out" else arguments["scratch"][name]
    array.flags.writeable = False
    with pytest.raises(ArgumentError, match="is read-only; pass a writable array"):
        decode_attention(**arguments, executor=executor)
    assert executor.launches == []


def test_scratch_that_is_no_sequence_is_refused(executor: RecordingExecutor) -> None:
    with pytest.raises(ArgumentError, match="scratch is of type int; it must be"):
        decode_attention(**{**good(), "executor": executor, "scratch": 5})


def test_the_good_arguments_are_good(tmp_path: Path) -> None:
    executor = RecordingExecutor(fake_catalogue(tmp_path))
    assert decode_attention(**good(), executor=executor) is not None
    assert len(executor.launches) == 1


def test_without_an_executor_other_arrays_are_refused() -> None:
    arguments = good()
    arguments["q"] = OnGpu(arguments["q"])
    with pytest.raises(ExecutorError, match=r"q: .*OnGpu on cuda:0, kv_cache: numpy\.ndarray"):
        decode_attention(**arguments)
