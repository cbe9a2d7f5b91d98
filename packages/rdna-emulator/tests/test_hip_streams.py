"""The emulated HIP runtime: order in and between streams, events, captures and their rules, replays."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from hip_runtime import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_ISOLATION,
    CAPTURE_UNJOINED,
    CAPTURE_UNMATCHED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    ILLEGAL_ADDRESS,
    ILLEGAL_STATE,
    INVALID_HANDLE,
    NOT_READY,
    TO_DEVICE,
    WRONG_THREAD,
    Hip,
    fresh,
)

ONES = np.ones(256, np.float32)
COUNT = np.array([256], np.int32)
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NON_BLOCKING = 1


def status(hip: Hip, stream: int) -> int:
    return hip.number_of_stream("hipStreamIsCapturing", stream)


def capture(hip: Hip, stream: int) -> int:
    """Ends the capture and makes its graph executable."""
    graph = ctypes.c_void_p()
    hip.hipStreamEndCapture(stream, ctypes.byref(graph))
    executable = hip.handle("hipGraphInstantiate", graph, None, None, 0)
    hip.hipGraphDestroy(graph)
    return executable


@pytest.mark.parametrize("queue", ["eager", "deferred"])
def test_streams_wait_for_events(queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, QUEUE=queue)
    scale = hip.function("scale")
    first, second = (hip.handle("hipStreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    event = hip.handle("hipEventCreate")
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.scale(scale, y, n, 3, first)  # 4
    hip.hipEventRecord(event, first)
    hip.hipStreamWaitEvent(second, event, 0)
    hip.scale(scale, y, n, 10, second)  # 41
    hip.hipStreamSynchronize(second)
    np.testing.assert_array_equal(hip.download(y, ONES), 41)


def test_deferred_work_runs_no_sooner_than_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, QUEUE="deferred")
    scale = hip.function("scale")
    first, second = (hip.handle("hipStreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.scale(scale, y, n, 3, first)
    hip.scale(scale, y, n, 10, second)  # nothing says that it comes after the first
    hip.hipStreamSynchronize(second)
    np.testing.assert_array_equal(hip.download(y, ONES), 11)
    assert hip.code("hipStreamQuery", first) == NOT_READY
    assert hip.code("hipStreamQuery", first) == 0
    np.testing.assert_array_equal(hip.download(y, ONES), 34)


def test_the_null_stream_waits_for_blocking_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, QUEUE="deferred")
    scale = hip.function("scale")
    stream = hip.handle("hipStreamCreate")
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.scale(scale, y, n, 3, stream)
    np.testing.assert_array_equal(hip.download(y, ONES), 4)  # a copy in the null stream
    hip.hipMemsetAsync(y, 0, 1024, None)
    hip.scale(scale, y, n, 3, stream)
    hip.hipStreamSynchronize(stream)
    np.testing.assert_array_equal(hip.download(y, ONES), 1)


def test_deferred_failures_come_with_the_next_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, QUEUE="deferred")
    scale = hip.function("scale")
    stream = hip.handle("hipStreamCreate")
    hip.scale(scale, 4096, 4096, 1, stream)
    with hip.fails(ILLEGAL_ADDRESS, "in kernel scale"):
        hip.hipStreamSynchronize(stream)
    hip.hipStreamSynchronize(stream)


def test_events_tell_the_time_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, QUEUE="deferred")
    scale = hip.function("scale")
    stream = hip.handle("hipStreamCreate")
    start, stop = hip.handle("hipEventCreate"), hip.handle("hipEventCreate")
    untimed = hip.handle("hipEventCreateWithFlags", 2)
    y, n = hip.upload(ONES), hip.upload(COUNT)
    elapsed = ctypes.c_float(-1)
    with hip.fails(INVALID_HANDLE, "never recorded"):
        hip.hipEventElapsedTime(ctypes.byref(elapsed), start, stop)
    hip.hipEventRecord(start, stream)
    hip.scale(scale, y, n, 3, stream)
    hip.hipEventRecord(stop, stream)
    hip.hipEventRecord(untimed, stream)
    assert hip.code("hipEventElapsedTime", ctypes.byref(elapsed), start, stop) == NOT_READY
    assert hip.code("hipEventQuery", stop) == NOT_READY
    hip.hipEventSynchronize(stop)
    assert hip.code("hipEventQuery", stop) == 0
    hip.hipEventElapsedTime(ctypes.byref(elapsed), start, stop)
    assert 0 < elapsed.value < 10000
    with hip.fails(INVALID_HANDLE, "without timing"):
        hip.hipEventElapsedTime(ctypes.byref(elapsed), start, untimed)


@pytest.mark.parametrize("queue", ["eager", "deferred"])
def test_a_replay_reads_memory_again(queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, QUEUE=queue)
    scale = hip.function("scale")
    stream = hip.handle("hipStreamCreate")
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.hipStreamBeginCapture(stream, GLOBAL)
    assert status(hip, stream) == 1
    hip.hipMemsetAsync(y, 0, 1024, stream)
    for factor in (1, 4):
        hip.scale(scale, y, n, factor, stream)
    executable = capture(hip, stream)
    assert status(hip, stream) == 0
    np.testing.assert_array_equal(hip.download(y, ONES), 1)  # nothing has run yet
    index = np.arange(256)
    for count in range(1, 257, 5):
        hip.store(n, np.array([count], np.int32))
        hip.hipGraphLaunch(executable, stream)
        hip.hipStreamSynchronize(stream)
        np.testing.assert_array_equal(hip.download(y, ONES), np.where(index < count, 5, 0))
    hip.hipGraphExecDestroy(executable)


def test_a_capture_takes_in_the_streams_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    scale = hip.function("scale")
    first, second = hip.handle("hipStreamCreate"), hip.handle("hipStreamCreate")
    fork, join = hip.handle("hipEventCreate"), hip.handle("hipEventCreate")
    y, n = hip.upload(ONES), hip.upload(COUNT)

    def fork_and_work() -> None:
        hip.hipStreamBeginCapture(first, GLOBAL)
        hip.scale(scale, y, n, 3, first)
        hip.hipEventRecord(fork, first)
        hip.hipStreamWaitEvent(second, fork, 0)
        hip.scale(scale, y, n, 10, second)

    fork_and_work()
    with hip.fails(CAPTURE_UNMATCHED):
        capture(hip, second)
    with hip.fails(CAPTURE_UNJOINED):
        capture(hip, first)
    fork_and_work()
    hip.hipEventRecord(join, second)
    hip.hipStreamWaitEvent(first, join, 0)
    executable = capture(hip, first)
    assert status(hip, second) == 0
    hip.hipGraphLaunch(executable, second)
    np.testing.assert_array_equal(hip.download(y, ONES), 41)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("hipMalloc", (ctypes.byref(ctypes.c_void_p()), 64)),
        ("hipHostMalloc", (ctypes.byref(ctypes.c_void_p()), 64, 0)),
        ("hipDeviceSynchronize", ()),
        ("hipMemset", (0, 0, 4)),
        ("hipStreamSynchronize", ("stream",)),
        ("hipStreamQuery", ("stream",)),
    ],
)
def test_what_may_not_happen_in_a_capture_spoils_it(
    name: str, args: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    hip = fresh(monkeypatch)
    stream = hip.handle("hipStreamCreate")
    hip.hipStreamBeginCapture(stream, GLOBAL)
    with hip.fails(CAPTURE_UNSUPPORTED):
        hip.call(name, *(stream if value == "stream" else value for value in args))
    assert status(hip, stream) == 2
    with hip.fails(CAPTURE_INVALIDATED):
        capture(hip, stream)
    assert status(hip, stream) == 0
    hip.handle("hipMalloc", 64)


def test_the_other_rules_of_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    scale = hip.function("scale")
    stream, apart = hip.handle("hipStreamCreate"), hip.handle("hipStreamCreateWithFlags", NON_BLOCKING)
    event, before = hip.handle("hipEventCreate"), hip.handle("hipEventCreate")
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.hipEventRecord(before, apart)
    with hip.fails(CAPTURE_UNSUPPORTED):
        hip.hipStreamBeginCapture(None, GLOBAL)
    with hip.fails(ILLEGAL_STATE):
        capture(hip, stream)
    hip.hipStreamBeginCapture(stream, RELAXED)
    with hip.fails(ILLEGAL_STATE):
        hip.hipStreamBeginCapture(stream, GLOBAL)
    hip.handle("hipMalloc", 64)  # a relaxed capture allows it
    hip.hipEventRecord(event, stream)
    capture(hip, stream)

    hip.hipStreamBeginCapture(stream, GLOBAL)
    hip.hipEventRecord(event, stream)
    with hip.fails(CAPTURED_EVENT):
        hip.hipEventQuery(event)
    with hip.fails(CAPTURE_INVALIDATED):
        capture(hip, stream)

    hip.hipStreamBeginCapture(stream, GLOBAL)
    with hip.fails(CAPTURE_IMPLICIT):
        hip.scale(scale, y, n, 1)
    with hip.fails(CAPTURE_INVALIDATED):
        capture(hip, stream)

    hip.hipStreamBeginCapture(apart, GLOBAL)
    hip.scale(scale, y, n, 1)  # the null stream does not wait for this one
    with hip.fails(CAPTURE_ISOLATION):
        hip.hipStreamWaitEvent(apart, before, 0)
    with hip.fails(CAPTURE_INVALIDATED):
        capture(hip, apart)


def test_captures_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    stream = hip.handle("hipStreamCreate")
    codes: list[int] = []

    def elsewhere() -> None:
        codes.append(hip.code("hipMalloc", ctypes.byref(ctypes.c_void_p()), 64))
        codes.append(hip.code("hipStreamEndCapture", stream, ctypes.byref(ctypes.c_void_p())))

    for mode in (THREAD_LOCAL, GLOBAL):
        hip.hipStreamBeginCapture(stream, mode)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        code = hip.code("hipStreamEndCapture", stream, ctypes.byref(ctypes.c_void_p()))
        assert code == (CAPTURE_INVALIDATED if mode == GLOBAL else 0)
    assert codes == [0, WRONG_THREAD, CAPTURE_UNSUPPORTED, WRONG_THREAD]


def test_pinned_copies_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, QUEUE="deferred")
    stream = hip.handle("hipStreamCreate")
    host, device = hip.handle("hipHostMalloc", 1024, 0), hip.upload(ONES)
    there = np.ctypeslib.as_array((ctypes.c_float * 256).from_address(host))
    there[:] = 7
    hip.hipStreamBeginCapture(stream, GLOBAL)
    hip.hipMemcpyAsync(device, host, 1024, TO_DEVICE, stream)
    executable = capture(hip, stream)
    there[:] = 8
    hip.hipGraphLaunch(executable, stream)
    hip.hipStreamSynchronize(stream)
    np.testing.assert_array_equal(hip.download(device, ONES), 8)
