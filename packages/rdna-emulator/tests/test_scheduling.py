"""Order, barriers, threads and spins."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembly import AssemblyKernel, assemble_code_object
from launch_library import TARGETS, code_object, kernel
from rdna_emulator import Device, EmulatorError, MemoryFault, SpinError

RANDOM = np.random.default_rng(3)
ONE_THREAD: dict[str, Any] = {"threads": 1}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("schedule", [None, "random"])
def test_the_last_workgroup_sees_what_the_others_wrote(threads: int, schedule: str | None) -> None:
    x = RANDOM.random((40, 64), np.float32)
    partial, counter, out = np.zeros_like(x), np.zeros(1, np.int32), np.zeros(64, np.float32)
    last = kernel("last_arriver", threads=threads)
    for seed in range(5):
        out[:] = 0
        last.launch(40, 64, [x, partial, counter, out, np.int32(40)], schedule=schedule, seed=seed)
        np.testing.assert_allclose(out, 2 * x.sum(axis=0), rtol=1e-5)
        assert counter[0] == 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 1}, {"checks": "all"}])
def test_workgroups_that_wait_for_each_other_are_in_flight_together(target: str, options: dict[str, Any]) -> None:
    for threads in (1, 2):
        counter, out = np.zeros(1, np.int32), np.zeros((20, 64), np.int32)
        kernel("grid_barrier", target, threads=threads).launch(20, 64, [counter, out, np.int32(20)], **options)
        assert (out == 20).all()


def test_waiting_for_more_workgroups_than_a_device_holds_is_a_spin() -> None:
    counter, out = np.zeros(1, np.int32), np.zeros((700, 64), np.int32)
    with pytest.raises(SpinError, match="spin without progress"):
        kernel("grid_barrier").launch(700, 64, [counter, out, np.int32(700)])


@pytest.mark.parametrize("options", ["-O3", "-O0"])
@pytest.mark.parametrize("schedule", [None, "random"])
def test_a_wave_that_waits_for_another_one_of_its_workgroup(options: str, schedule: str | None) -> None:
    out = np.zeros(64, np.int32)
    flag = kernel("flag_in_lds", "gfx1151", options)
    flag.launch(1, 64, [out, np.int32(1)], schedule=schedule)
    assert list(out[:32]) == [7] * 32
    with pytest.raises(SpinError) as error:
        flag.launch(1, 64, [out, np.int32(0)], schedule=schedule)
    text = str(error.value)
    assert re.search(r"the loop from 0x[0-9a-f]+ to 0x[0-9a-f]+ repeats with the same registers", text)
    assert re.search(r"polling with `(ds|flat)_load", text)
    assert "kernel flag_in_lds, workgroup (0, 0, 0), wave 0, pc 0x" in text


def test_a_spin_on_global_memory_names_its_load() -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    with pytest.raises(SpinError, match="polling with `global_load_b32"):
        kernel("grid_barrier").launch(3, 64, [flag, out, np.int32(1000)])


@pytest.mark.parametrize("schedule", [None, "random"])
def test_a_spin_with_a_limit_ends(schedule: str | None) -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    kernel("bounded_spin").launch(1, 64, [flag, out, np.int32(200_000)], schedule=schedule)
    assert (out == 200_000).all()


def test_a_long_loop_is_no_spin() -> None:
    x, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    kernel("long_loop").launch(2, 64, [x, out, np.int32(300_000)])
    assert (out == 0).all()


SETUP = """
  s_load_b64 s[2:3], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, 1
  s_waitcnt lgkmcnt(0)
OUTER_{name}:
  s_movk_i32 s5, 100
INNER_{name}:
  s_sub_u32 s5, s5, 1
  s_cmp_lg_u32 s5, 0
  s_cbranch_scc1 INNER_{name}
"""
BODIES = {
    "plain": "",
    "stores": "  global_store_b32 v0, v1, s[2:3]\n",  # the same value again and again
    # The registers return each time round, but memory changes: it ends.
    "counts": """
  global_atomic_add_u32 v0, v2, s[2:3]
  global_load_b32 v3, v0, s[2:3] glc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s6, v3
  v_mov_b32_e32 v3, 0
  s_cmp_gt_u32 s6, 0x4000
  s_mov_b32 s6, 0
  s_cbranch_scc1 DONE
""",
}


def _spinning_code(tmp_path: Path) -> bytes:
    """Loops that last many branches before their registers return."""
    kernels = []
    for name, body in BODIES.items():
        lines = SETUP.format(name=name) + body + f"  s_branch OUTER_{name}\n" + ("DONE:\n" if name == "counts" else "")
        kernels.append(AssemblyKernel(name, lines, ("pointer",)))
    return assemble_code_object(kernels, "gfx1151", tmp_path)


def test_spins_of_a_longer_period(tmp_path: Path) -> None:
    module = Device("gfx1151", threads=2).load(_spinning_code(tmp_path))
    for name in ("plain", "stores"):
        for grid in (1, 3):
            with pytest.raises(SpinError):
                module[name].launch(grid, 64, [np.zeros(1, np.uint32)])
    memory = np.zeros(1, np.uint32)
    module["counts"].launch(3, 32, [memory])  # the same registers each time round, but memory changes: it ends
    assert memory[0] > 0x4000


def test_waves_that_have_ended_count_as_arrived() -> None:
    for waves in (1, 3, 8):
        for schedule in (None, "random"):
            out = np.full(256, -1, np.int32)
            kernel("early_exit").launch(1, 256, [out, np.int32(waves)], schedule=schedule, seed=waves)
            expected = np.full(256, -1)
            expected[: waves * 32] = np.arange(waves * 32)[::-1]
            np.testing.assert_array_equal(out, expected)


def _order(seed: int, schedule: str | None = "random") -> np.ndarray[Any, np.dtype[np.int32]]:
    counter, out = np.zeros(1, np.int32), np.zeros((6, 2, 8), np.int32)
    kernel("order", threads=1).launch(6, 64, [counter, out], schedule=schedule, seed=seed)
    assert sorted(out.reshape(-1)) == list(range(96))
    return out


def test_a_seed_fixes_the_random_order() -> None:
    first, again, other = _order(1), _order(1), _order(2)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    # Several workgroups and both waves of one are in flight together.
    assert first[0].max() > first[1].min()
    assert first[0, 0].max() > first[0, 1].min()
    assert first[0, 1].max() > first[0, 0].min()
    assert len({_order(seed).tobytes() for seed in range(20)}) > 10


def test_in_order_means_workgroup_after_workgroup() -> None:
    np.testing.assert_array_equal(_order(0, None).reshape(-1), np.arange(96))


def test_the_number_of_threads_changes_nothing() -> None:
    x = RANDOM.integers(0, 1 << 30, 50_000).astype(np.uint32)
    results = []
    for threads in (1, 2, 3, 16) * 3:
        bins = np.zeros(64, np.uint32)
        report = kernel("histogram", threads=threads).launch(8, 256, [x, bins, np.int32(x.size)])
        results.append((bins.tobytes(), report.to_dict()))
    assert all(result == results[0] for result in results)


def test_the_first_failing_workgroup_is_reported() -> None:
    x, y = np.zeros(100 * 256, np.float32), np.zeros(60 * 256, np.float32)
    for threads in (1, 2, 7):
        with pytest.raises(MemoryFault, match=r"workgroup \(60, 0, 0\), wave 0, lane 0"):
            kernel("saxpy", threads=threads).launch(100, 256, [np.float32(1), x, y, np.int32(x.size)])


def test_a_device_goes_on_after_a_failure() -> None:
    device = Device("gfx1151", threads=2)
    module = device.load(code_object("gfx1151"))
    x, y = np.ones(256, np.float32), np.ones(100, np.float32)
    for _ in range(3):
        with pytest.raises(MemoryFault):
            module["saxpy"].launch(4, 256, [np.float32(1), x, y, np.int32(1024)])
        out = np.zeros(1, np.float32)
        module["reduce"].launch(1, 256, [x, out, np.int32(256)])
        assert out[0] == 256


def test_launches_from_several_python_threads() -> None:
    device = Device("gfx1151", threads=2)
    saxpy = device.load(code_object("gfx1151"))["saxpy"]
    failures: list[BaseException] = []

    def work(factor: int) -> None:
        try:
            for _ in range(50):
                x, y = np.full(1000, factor, np.float32), np.ones(1000, np.float32)
                report = saxpy.launch(4, 256, [np.float32(2), x, y, np.int32(1000)])
                assert (y == 2 * factor + 1).all()
                assert report.counts["unique_lines_128"] == 64
        except BaseException as failure:
            failures.append(failure)

    workers = [threading.Thread(target=work, args=(factor,)) for factor in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_a_kernel_that_stops_itself() -> None:
    with pytest.raises(EmulatorError, match="s_trap 2"):
        kernel("stop").launch(1, 64, [np.zeros(64, np.int32)])
