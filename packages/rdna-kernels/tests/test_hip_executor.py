"""The hip executor through the stand-in runtime: answers, streams, devices, graphs, threads, foreign arrays."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hip_stand_in import GLOBAL_CAPTURE, OnDevice, StandIn, put, stand_in
from oracle import relative_error
from problem import Problem, make_problem
from rdna_kernels import ArgumentError, ExecutorError, HipExecutor, LaunchRecord, decode_attention
from rdna_registry import KernelVariant, select


def entry_of(problem: Problem) -> KernelVariant:
    heads, head_size = problem.q.shape[1:]
    _, kv_heads, page_size, _ = problem.kv_cache.shape
    return select(
        heads, kv_heads, head_size, problem.max_query_len, page_size, 1, problem.window, problem.q.dtype,
        len(problem.seq_lens) > 1,
    )  # fmt: skip


@pytest.fixture
def runtime() -> Iterator[StandIn]:
    with stand_in(RDNA_EMULATED_DEVICES="gfx1151,gfx1100", RDNA_EMULATED_CHECKS="all") as runtime:
        yield runtime


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("device", [0, 1], ids=["gfx1151", "gfx1100"])
def test_answers(runtime: StandIn, device: int, dtype: str) -> None:
    problem = make_problem([300, 17, 1], dtype=dtype, max_query_len=2, window=100, layout="NHD")
    executor = HipExecutor(device)
    q, table, lengths = (put(executor, array) for array in (problem.q, problem.block_table, problem.seq_lens))
    records: list[LaunchRecord] = []
    # A cache in the order of tokens has strides, which arrays of a foreign library may have.
    flat = problem.kv_cache.transpose(0, 2, 1, 3)
    memory = put(executor, np.ascontiguousarray(flat))
    face = {
        "shape": problem.kv_cache.shape,
        "strides": problem.kv_cache.strides,
        "typestr": problem.kv_cache.dtype.str,
        "data": (memory.address, False),
    }
    cache = SimpleNamespace(__cuda_array_interface__=face, dtype=problem.kv_cache.dtype)
    out = decode_attention(q, cache, table, lengths, max_query_len=2, window=100, report=records)
    assert relative_error(out.get(), problem.exact()) <= problem.tolerance
    (record,) = records
    assert (record.executor, record.target) == ("hip", ["gfx1151", "gfx1100"][device])
    assert record.device == executor.properties.name
    assert record.runtime == "HIP 7.0.51831"
    assert executor.library.current_device() == 0


def test_properties(runtime: StandIn) -> None:
    first, second = HipExecutor(0).properties, HipExecutor(1).properties
    assert (first.target, first.multiprocessors, first.lds_bytes) == ("gfx1151", 20, 65536)
    assert (second.target, second.multiprocessors) == ("gfx1100", 48)


def test_features_are_no_part_of_a_target() -> None:
    with stand_in(RDNA_EMULATED_DEVICES="gfx1100:sramecc+:xnack-"):
        assert HipExecutor().target == "gfx1100"


@pytest.mark.parametrize("version", ["6.0.0", "6.2.41134", "7.0.51831"])
def test_versions(version: str) -> None:
    with stand_in(RDNA_EMULATED_VERSION=version):
        assert HipExecutor().properties.runtime == f"HIP {version}"


def test_a_warm_call_only_launches(runtime: StandIn) -> None:
    problem = make_problem([40, 3])
    ready = OnDevice(HipExecutor(), problem, entry_of(problem))
    ready.call()
    before, launches = runtime.calls(), runtime.calls("hipModuleLaunchKernel")
    ready.call()
    others = {"hipModuleLaunchKernel", "hipGetDevice"}
    assert runtime.calls("hipModuleLaunchKernel") == launches + 1
    counted = runtime.calls() - before
    ready.call()
    assert runtime.calls() - before == 2 * counted
    assert counted <= len(others)
    assert ready.error <= problem.tolerance


def test_a_graph_captured_once_is_replayed_with_new_lengths(runtime: StandIn) -> None:
    problem = make_problem([64, 64], gqa=1, num_kv_heads=1, garbage="both")
    problem.kv_cache[np.isnan(problem.kv_cache)] = 0
    ready = OnDevice(HipExecutor(), problem, entry_of(problem))
    ready.call()  # loads the code object
    stream = runtime.make("hipStreamCreateWithFlags", 1)
    runtime.call("hipStreamBeginCapture", stream, GLOBAL_CAPTURE)
    with ready.executor.on_stream(stream.value or 0):
        ready.call()
    graph = runtime.make_graph(stream)
    replay = runtime.make("hipGraphInstantiate", graph, None, None, 0)
    random = np.random.default_rng(0)
    for number in range(1000):
        problem.seq_lens[:] = random.integers(0, 65, 2)
        ready.arrays[3].set(problem.seq_lens)
        runtime.call("hipGraphLaunch", replay, stream)
        runtime.call("hipStreamSynchronize", stream)
        if number % 50 == 0:
            assert ready.error <= problem.tolerance
    assert ready.error <= problem.tolerance


@pytest.mark.parametrize("missing", ["out", "scratch"])
def test_nothing_is_allocated_while_a_graph_is_captured(runtime: StandIn, missing: str) -> None:
    problem = make_problem([40])
    ready = OnDevice(HipExecutor(), problem, entry_of(problem))
    ready.call()
    stream = runtime.make("hipStreamCreateWithFlags", 1)
    runtime.call("hipStreamBeginCapture", stream, GLOBAL_CAPTURE)
    message = "a graph is being captured.*pass out and scratch"
    with ready.executor.on_stream(stream.value or 0), pytest.raises(ArgumentError, match=message):
        ready.call(**{missing: None})
    runtime.make_graph(stream)


def test_no_code_object_is_loaded_while_a_graph_is_captured(runtime: StandIn) -> None:
    problem = make_problem([40])
    ready = OnDevice(HipExecutor(), problem, entry_of(problem))
    stream = runtime.make("hipStreamCreateWithFlags", 1)
    runtime.call("hipStreamBeginCapture", stream, GLOBAL_CAPTURE)
    message = "a graph is being captured.*make the call once before the capture"
    with ready.executor.on_stream(stream.value or 0), pytest.raises(ArgumentError, match=message):
        ready.call()
    runtime.make_graph(stream)
    ready.call()
    assert ready.error <= problem.tolerance


def test_two_streams_have_scratch_of_their_own() -> None:
    with stand_in(RDNA_EMULATED_QUEUE="deferred") as runtime:
        executor = HipExecutor()
        problems = [make_problem([700], seed=seed) for seed in range(2)]
        ready = [OnDevice(executor, problem, entry_of(problem)) for problem in problems]
        streams = [runtime.make("hipStreamCreateWithFlags", 1).value or 0 for _ in ready]
        for one, stream in zip(ready, streams, strict=True):
            with executor.on_stream(stream):
                one.call(scratch=None)
        lent = [blocks[0]._counters.address for blocks in executor.scratch._free.values()]
        assert len(set(lent)) == 2
        for one, stream in zip(reversed(ready), reversed(streams), strict=True):
            runtime.call("hipStreamSynchronize", ctypes.c_void_p(stream))
            assert one.error <= one.problem.tolerance


def test_threads_call_at_once(runtime: StandIn) -> None:
    problems = [make_problem([40 + 30 * number], seed=number) for number in range(4)]
    ready = [OnDevice(HipExecutor(number % 2), problem, entry_of(problem)) for number, problem in enumerate(problems)]
    errors: list[float] = []

    def work(one: OnDevice) -> None:
        for _ in range(5):
            one.call(scratch=None)
        errors.append(one.error)

    threads = [threading.Thread(target=work, args=(one,)) for one in ready]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 4
    assert max(errors) <= problems[0].tolerance


def test_debug_checks_values_and_waits(runtime: StandIn) -> None:
    problem = make_problem([40, 3])
    problem.seq_lens[1] = 10_000
    executor = HipExecutor(debug=True)
    ready = OnDevice(executor, problem, entry_of(problem))
    with pytest.raises(ArgumentError, match=r"seq_lens\[1\] = 10000 needs"):
        ready.call()
    problem.seq_lens[1] = 3
    ready.arrays[3].set(problem.seq_lens)
    waits = runtime.calls("hipStreamSynchronize")
    ready.call()
    assert runtime.calls("hipStreamSynchronize") > waits
    assert ready.error <= problem.tolerance


class ThroughDlpack:
    """An array of which only DLPack tells, as other libraries make it."""

    def __init__(self, array: Any, kind: int = 10) -> None:
        self._array = array
        self._kind = kind
        self._dimensions = (ctypes.c_int64 * len(array.shape))(*array.shape)
        codes = {"float16": 2, "bfloat16": 4, "int32": 0}
        self._tensor = (ctypes.c_uint8 * 64)()
        address = ctypes.addressof(self._tensor)
        ctypes.c_uint64.from_address(address).value = array.address - 32
        ctypes.c_int32.from_address(address + 8).value = kind
        ctypes.c_int32.from_address(address + 12).value = array.device
        ctypes.c_int32.from_address(address + 16).value = len(array.shape)
        ctypes.c_uint8.from_address(address + 20).value = codes[array.dtype.name]
        ctypes.c_uint8.from_address(address + 21).value = 8 * array.dtype.itemsize
        ctypes.c_uint16.from_address(address + 22).value = 1
        ctypes.c_uint64.from_address(address + 24).value = ctypes.addressof(self._dimensions)
        ctypes.c_uint64.from_address(address + 40).value = 32  # byte_offset

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, self._array.device

    def __dlpack__(self, stream: int | None = None) -> object:
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self._tensor), b"dltensor", None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_arrays_through_dlpack(runtime: StandIn, dtype: str) -> None:
    problem = make_problem([40, 3], dtype=dtype)
    ready = OnDevice(HipExecutor(), problem, entry_of(problem))
    decode_attention(*map(ThroughDlpack, ready.arrays), out=ready.out)
    assert ready.error <= problem.tolerance


def test_dlpack_arrays_of_another_kind_of_device_are_refused(runtime: StandIn) -> None:
    problem = make_problem([40])
    ready = OnDevice(HipExecutor(), problem, entry_of(problem))
    q = ThroughDlpack(ready.arrays[0], kind=2)
    with pytest.raises(ExecutorError, match="cannot be reached from one executor"):
        decode_attention(q, *ready.arrays[1:])


def test_arrays_in_different_places_are_refused(runtime: StandIn) -> None:
    problem = make_problem([40])
    here, there = (OnDevice(HipExecutor(device), problem, entry_of(problem)) for device in (0, 1))
    with pytest.raises(ExecutorError, match=r"different places.*q: .*DeviceArray on hip:0.*kv_cache: .*on hip:1|hip:1"):
        decode_attention(here.arrays[0], *there.arrays[1:])
    with pytest.raises(ExecutorError, match=r"q: .*DeviceArray on hip:0, kv_cache: numpy\.ndarray.*different places"):
        decode_attention(here.arrays[0], problem.kv_cache, *here.arrays[2:])
    with pytest.raises(ExecutorError, match=r"q: numpy\.ndarray, kv_cache: .*DeviceArray on hip:0.*different places"):
        decode_attention(problem.q, *here.arrays[1:])
    with pytest.raises(ExecutorError, match="scratch counters: numpy"):
        here.call(scratch=(*here.scratch[:3], np.zeros(64, np.int32)))
