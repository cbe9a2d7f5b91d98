"""Ctrl-C while a launch runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from launch_library import kernel
from rdna_emulator import InterruptedLaunchError

ENDLESS = np.int32(2**31 - 1)  # steps, of some 40 nanoseconds each


@pytest.fixture(autouse=True)
def python_handles_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def _interrupt_soon() -> threading.Timer:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def _few_steps() -> np.ndarray[Any, np.dtype[np.uint32]]:
    out = np.zeros(64, np.uint32)
    kernel("generator", threads=2).launch(1, 64, [out, np.int32(3)])
    return out


@pytest.mark.parametrize("options", [{}, {"schedule": "random"}, {"checks": "all"}])
@pytest.mark.parametrize("workgroups", [1, 5])
def test_it_ends_the_launch_and_the_next_one_runs(options: dict[str, Any], workgroups: int) -> None:
    expected = _few_steps()
    timer, start = _interrupt_soon(), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        kernel("generator", threads=2).launch(workgroups, 64, [np.zeros(64, np.uint32), ENDLESS], **options)
    timer.join()
    assert time.monotonic() - start < 20
    np.testing.assert_array_equal(_few_steps(), expected)


def test_launches_of_other_threads_end_with_an_error_of_their_own() -> None:
    errors: list[BaseException] = []
    ended = threading.Event()

    def launch() -> None:
        try:
            kernel("generator", threads=1).launch(1, 64, [np.zeros(64, np.uint32), ENDLESS])
        except InterruptedLaunchError as error:
            errors.append(error)
        ended.set()

    thread = threading.Thread(target=launch)
    thread.start()
    timer = _interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        ended.wait(60)
    assert ended.wait(20)
    thread.join()
    timer.join()
    assert len(errors) == 1
    assert "Ctrl-C" in str(errors[0])


def test_a_program_that_ignores_interrupts_is_not_disturbed() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        timer, out = _interrupt_soon(), np.zeros(64, np.uint32)
        kernel("generator", threads=1).launch(1, 64, [out, np.int32(10_000_000)])
        timer.join()
        assert out.all()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
