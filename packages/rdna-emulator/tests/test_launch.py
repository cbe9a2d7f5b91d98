"""Arguments, spans, counts and reports of a launch."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembly import AssemblyKernel, assemble_code_object
from device_compiler import compile_hip
from launch_library import kernel
from rdna_emulator import CHECKS, Device, EmulatorError, LaunchError, MemoryFault, Report


def saxpy_arguments(size: int = 256) -> list[Any]:
    return [np.float32(2), np.ones(size, np.float32), np.ones(size, np.float32), np.int32(size)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a[:3], r"takes 4 arguments \(.*\), got 3"),
        (lambda a: [*a, np.int32(1)], "takes 4 arguments .*, got 5"),
        (lambda a: [np.float64(2), *a[1:]], r"'argument 0' of saxpy has 4 bytes, got float64 of 8 bytes"),
        (lambda a: [2.0, *a[1:]], r"'argument 0' of saxpy is 4 bytes by value, got float; pass a NumPy scalar"),
        (lambda a: [*a[:3], 256], "by value, got int"),
        (lambda a: [*a[:3], b"abc"], "has 4 bytes, got bytes of 3 bytes"),
        (lambda a: [a[0], 5, *a[2:]], r"'argument 1' of saxpy is a pointer, got int; pass a NumPy array, or None"),
        (lambda a: [a[1], *a[1:]], r"'argument 0' of saxpy is 4 bytes by value, got an array"),
        (lambda a: [a[0], np.array([object()]), *a[2:]], "dtype object: a kernel cannot read Python objects"),
        (lambda a: [a[0], a[1].astype(">f4"), *a[2:]], "byte order"),
        (lambda a: [a[0], np.ma.masked_less(a[1], 0), *a[2:]], "'argument 1' is a masked array"),
    ],
)
def test_wrong_arguments(change: Callable[[list[Any]], list[Any]], message: str) -> None:
    arguments = saxpy_arguments()
    with pytest.raises(LaunchError, match=message):
        kernel("saxpy").launch(1, 256, change(arguments))
    assert (arguments[2] == 1).all()


@pytest.mark.parametrize(
    ("grid", "block", "options", "message"),
    [
        (0, 256, {}, r"grid is 0; each dimension is at least 1"),
        (1, 0, {}, "block is 0"),
        ((1, 2, 3, 4), 256, {}, "may be an int or up to three"),
        (1.5, 256, {}, "grid is 1.5"),
        ((1, "a"), 256, {}, "may be an int or up to three"),
        (1, 257, {}, r"block \(257, 1, 1\) has 257 threads; kernel saxpy was compiled for at most 256"),
        (1, (16, 17), {}, "272 threads"),
        (1 << 31, 256, {}, "below 2"),
        (1 << 30, 4, {}, "2.32 threads"),
        (1, 256, {"dynamic_lds": 65537}, "together they may be 65536"),
        (1, 256, {"dynamic_lds": -1}, "dynamic_lds is -1"),
        (1, 256, {"schedule": "fair"}, "schedule is 'fair'; it may be None or 'random'"),
        (1, 256, {"checks": ("bound",)}, "unknown check 'bound'; there are waits, uninitialised"),
        (1, 256, {"measure": ("time",)}, "unknown measure 'time'; there is model"),
        (1, 256, {"memory": [3]}, "memory holds NumPy arrays"),
        (1, 256, {"memory": [(5, np.ones(3))]}, r"memory holds NumPy arrays or \(name, array\), got \(int, ndarray\)"),
        (1, 256, {"memory": [("x", np.ones(3), 5)]}, r"got \(str, ndarray, int\)"),
        (1, 256, {"memory": 5}, "memory is a list of NumPy arrays or .*, got int"),
        (1, 256, {"memory": None}, "memory is a list .*, got NoneType"),
        (1, 256, {"memory": np.ones((2, 3))}, "memory is a list .*, got ndarray"),
        (None, 256, {}, "grid is None; it may be an int or up to three"),
        (1, 1.5, {}, "block is 1.5; it may be an int or up to three"),
        (1, None, {}, "block is None; it may be an int or up to three"),
        *[
            (1, 256, {option: value}, f"{option} is {value!r}; it must be an integer")
            for option in ("dynamic_lds", "seed")
            for value in ("x", None, 1.5, True, np.True_)
        ],
        (True, 256, {}, "grid is True; it may be an int or up to three"),
        (1, (np.True_, 256), {}, r"block is \(.*, 256\); it may be an int or up to three"),
        *[
            (1, 256, {option: value}, f"{option} is {value!r}; it may be a name or several")
            for option in ("checks", "measure")
            for value in (5, None)
        ],
        (1, 256, {"checks": [5]}, "unknown check 5; there are waits"),
        ((1, 65536), 256, {}, r"grid is \(1, 65536, 1\); y and z may be up to 65535"),
        ((1, 1, 65536), 256, {}, r"grid is \(1, 1, 65536\); y and z may be up to 65535"),
        ((1 << 20, 1 << 20, 1 << 20), 1, {}, "y and z may be up to 65535"),
        ((1 << 15, 1 << 15, 2), 1, {}, "there may be 2147483647 workgroups in all"),
    ],
)
def test_wrong_launches(grid: Any, block: Any, options: dict[str, Any], message: str) -> None:
    arguments = saxpy_arguments()
    with pytest.raises(LaunchError, match=message):
        kernel("saxpy").launch(grid, block, arguments, **options)
    assert (arguments[2] == 1).all()


def test_numpy_integers_are_sizes() -> None:
    arguments = saxpy_arguments()
    kernel("saxpy").launch(np.int64(1), (np.int32(256), 1), arguments, dynamic_lds=np.int16(4), seed=np.uint64(2))
    assert (arguments[2] == 3).all()


@pytest.mark.parametrize("arguments", [5, None])
def test_arguments_are_a_list(arguments: Any) -> None:
    with pytest.raises(LaunchError, match="args is a list or tuple of the arguments of saxpy, got"):
        kernel("saxpy").launch(1, 256, arguments)


@pytest.mark.parametrize("threads", ["2", 1.5, True, np.True_])
def test_threads_are_an_integer(threads: Any) -> None:
    with pytest.raises(ValueError, match=f"threads is {threads!r}; it must be an integer"):
        Device(threads=threads)


def test_values_of_other_types() -> None:
    x, y = np.ones(16, np.float16), np.zeros(16, np.float32)
    wide = np.ones(32, np.float32)
    kernel("saxpy").launch(1, 16, [np.float32(3).tobytes(), wide, y, bytearray(np.int32(16).tobytes())])
    assert (y == 3).all()
    # The dtype of an array is not a kernel's business: 16 values of 2 bytes are 8 of 4.
    kernel("saxpy").launch(1, 8, [np.float32(1), x, y, np.int32(8)])
    with pytest.raises(MemoryFault):
        kernel("saxpy").launch(1, 16, [np.float32(1), x, y, np.int32(16)])


def test_a_null_pointer_faults_when_it_is_used() -> None:
    _, x, y, _ = saxpy_arguments()
    kernel("saxpy").launch(1, 256, [np.float32(1), None, y, np.int32(0)])
    with pytest.raises(MemoryFault, match="load of 4 bytes at 0x0 is in no registered memory"):
        kernel("saxpy").launch(1, 256, [np.float32(1), None, y, np.int32(16)])
    assert (x == 1).all()


def test_an_empty_array() -> None:
    _, x, y, _ = saxpy_arguments()
    kernel("saxpy").launch(1, 256, [np.float32(1), x[:0], y, np.int32(0)])
    with pytest.raises(MemoryFault):
        kernel("saxpy").launch(1, 256, [np.float32(1), x[:0], y[:0], np.int32(1)])


def test_a_view_may_reach_what_its_strides_reach() -> None:
    base = np.zeros((8, 64), np.float32)
    x = np.ones(600, np.float32)
    for view, reachable in ((base[:, :32], 480), (base[2:4], 128), (base[1:7:2], 320), (base.T, 512)):
        kernel("saxpy").launch(3, 256, [np.float32(1), x, view, np.int32(reachable)])
        with pytest.raises(MemoryFault, match=f"at byte {4 * reachable} of it"):
            kernel("saxpy").launch(3, 256, [np.float32(1), x, view, np.int32(reachable + 1)])
    with pytest.raises(MemoryFault):  # begins at the last row
        kernel("saxpy").launch(1, 256, [np.float32(1), x, base[::-1], np.int32(65)])


def test_arrays_that_overlap() -> None:
    base = np.zeros(600, np.float32)
    x, y = base[:512], base[256:]
    base[:] = 1
    report = kernel("saxpy").launch(1, 256, [np.float32(2), x, y, np.int32(256)])
    assert (base[256:512] == 3).all()
    lines = report.counts["unique_lines_by_argument"]
    # x reads 256 values, y is read and written: 8 lines each; y's lie in x's span as well.
    assert lines == {"argument 1": 16, "argument 2": 8}
    assert report.counts["unique_lines_128"] == 16


def test_counts_of_a_kernel_whose_every_access_is_known() -> None:
    report = kernel("saxpy").launch(4, 256, saxpy_arguments(1000))
    counts = report.counts
    assert counts["wave_instructions"] == sum(counts["by_class"].values())
    assert counts["by_class"]["global_store"] == 32
    assert counts["by_class"]["global_load"] == 64
    assert counts["by_class"]["smem"] >= 32
    assert counts["wmma"] == 0
    scalars = counts["global_bytes_requested"] - 3 * 4000
    assert 0 < scalars <= 32 * 64  # the waves' arguments
    assert counts["unique_lines_by_argument"] == {"argument 1": 32, "argument 2": 32}
    assert counts["unique_lines_128"] == 64
    assert counts["segments_128"] >= 96
    assert counts["segments_32"] >= 4 * 96 - 3 * 4
    assert counts["lds_cycles"] == counts["lds_cycles_minimum"] == 0


TRAFFIC = """
  s_load_b64 s[2:3], s[0:1], 0x0
  s_load_b32 s4, s[0:1], 0x8
  v_and_b32_e32 v0, 0x3ff, v0
  s_waitcnt lgkmcnt(0)
  v_mul_lo_u32 v1, v0, s4
  {instruction}
"""


def _traffic(tmp_path: Path, instruction: str, stride: int, offset: int = 0, threads: int = 32) -> dict[str, Any]:
    lines = TRAFFIC.format(instruction=instruction)
    code = assemble_code_object([AssemblyKernel("k", lines, ("pointer", "i32"))], "gfx1151", tmp_path)
    kernel_of_code = Device("gfx1151", threads=1).load(code)["k"]
    # A part of an array counts its lines from the array's beginning, unless it begins at a line by itself.
    memory = np.frombuffer(mmap.mmap(-1, 1 << 20), np.uint8)[offset:]
    nothing = kernel_of_code.launch(1, threads, [memory, np.int32(0)]).counts
    counts = kernel_of_code.launch(1, threads, [memory, np.int32(stride)]).counts
    argument_loads = {"global_bytes_requested": 12, "segments_32": 2, "segments_64": 2, "segments_128": 2}
    assert nothing["unique_lines_128"] == 1
    return {name: counts[name] - argument_loads.get(name, 0) for name in (*argument_loads, "unique_lines_128")}


@pytest.mark.parametrize(
    ("instruction", "stride", "offset", "expected"),
    [
        # bytes, 32-, 64- and 128-byte segments, lines
        ("global_load_b128 v[4:7], v1, s[2:3]", 16, 0, (512, 16, 8, 4, 4)),
        ("global_load_b128 v[4:7], v1, s[2:3]", 16, 16, (512, 17, 9, 5, 5)),
        ("global_load_b128 v[4:7], v1, s[2:3]", 256, 0, (512, 32, 32, 32, 32)),
        ("global_load_b128 v[4:7], v1, s[2:3]", 48, 0, (512, 32, 24, 12, 12)),
        ("global_load_b128 v[4:7], v1, s[2:3]", 0, 0, (512, 1, 1, 1, 1)),
        ("global_load_b32 v4, v1, s[2:3]", 4, 0, (128, 4, 2, 1, 1)),
        ("global_load_b32 v4, v1, s[2:3]", 128, 0, (128, 32, 32, 32, 32)),
        ("global_load_b32 v4, v1, s[2:3]", 8192, 0, (128, 32, 32, 32, 32)),
        ("global_load_u8 v4, v1, s[2:3]", 1, 0, (32, 1, 1, 1, 1)),
        ("global_load_b64 v[4:5], v1, s[2:3]", 28, 0, (256, 28, 14, 7, 7)),
        ("global_store_b128 v1, v[4:7], s[2:3]", 16, 0, (512, 16, 8, 4, 4)),
        ("s_load_b512 s[8:23], s[2:3], 0x0", 0, 0, (64, 2, 1, 1, 1)),
    ],
)
def test_segments_and_lines(
    tmp_path: Path, instruction: str, stride: int, offset: int, expected: tuple[int, ...]
) -> None:
    found = _traffic(tmp_path, instruction, stride, offset)
    assert tuple(found.values()) == expected


def test_lines_do_not_depend_on_where_numpy_allocates() -> None:
    raw = bytearray(5000)
    seen = set()
    for shift in range(0, 64, 4):
        # Memory of another owner at any address: its first byte counts as the beginning of a line.
        x = np.frombuffer(memoryview(raw)[shift : shift + 4096], np.float32)
        y = np.ones(1024, np.float32)
        report = kernel("saxpy").launch(4, 256, [np.float32(1), x, y, np.int32(1024)])
        seen.add((report.counts["segments_32"], report.counts["unique_lines_128"]))
    assert len(seen) == 1


def test_repeated_launches_count_the_same() -> None:
    reports = [kernel("matmul").launch((2, 2), (16, 16), _matmul_arguments()) for _ in range(3)]
    assert reports[0].to_dict() == reports[1].to_dict() == reports[2].to_dict()


def _matmul_arguments() -> list[Any]:
    a = np.ones((32, 32), np.float32)
    return [a, a.copy(), np.zeros_like(a), np.int32(32)]


def test_an_array_beyond_2_31_elements_that_is_hardly_touched(tmp_path: Path) -> None:
    elements = 64 * 40_000_000  # 10 GB of addresses
    x = np.memmap(tmp_path / "huge", np.float32, "w+", shape=(elements,))
    report = kernel("touch_far").launch(1, 64, [x, np.int64(40_000_000)])
    np.testing.assert_array_equal(x[::40_000_000], np.arange(1, 65))
    assert report.counts["unique_lines_128"] == 64
    assert report.counts["segments_32"] >= 64
    with pytest.raises(MemoryFault, match="wave 1, lane 25"):
        kernel("touch_far").launch(1, 64, [x, np.int64(40_000_000 + 5_000_000)], checks=("bounds",))
    for checks in (("races",), "all"):
        kernel("touch_far").launch(1, 64, [x, np.int64(39_999_999)], checks=checks)


def test_report_is_plain_data() -> None:
    report = kernel("saxpy").launch(1, 256, saxpy_arguments())
    assert isinstance(report, Report)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["kernel"] == "saxpy"
    assert data["grid"] == [1, 1, 1]
    assert data["counts"]["wave_instructions"] == report.counts["wave_instructions"]
    assert data["model"] is None
    assert report.findings == ()


def test_model_is_labelled() -> None:
    model = kernel("saxpy").launch(4, 256, saxpy_arguments(1000), measure=("model",)).model
    assert model is not None
    assert model["label"] == "modelled"
    assert model["microseconds"] > 1
    assert json.dumps(model)


def test_source_lines_of_traps(tmp_path: Path) -> None:
    source = """
KERNEL store(int* x, int at) {
  x[0] = 1;

  x[at] = 2;  // line
}
"""
    # An optimiser may give a store the line of the statement before it.
    for options, lines in ((("-O0", "-g"), "{}"), (("-O3", "-g"), r"\d+"), (("-O3", "-gdwarf-4"), r"\d+")):
        code = compile_hip(source, "gfx1151", tmp_path, *options)
        line = (tmp_path / "source.hip").read_text().splitlines().index("  x[at] = 2;  // line") + 1
        with pytest.raises(MemoryFault, match=rf"\n  at \S*source\.hip:{lines.format(line)}$"):
            Device("gfx1151", threads=1).load(code)["store"].launch(1, 64, [np.zeros(4, np.int32), np.int32(100)])
    without = compile_hip(source, "gfx1151", tmp_path)
    with pytest.raises(MemoryFault) as error:
        Device("gfx1151", threads=1).load(without)["store"].launch(1, 64, [np.zeros(4, np.int32), np.int32(100)])
    assert "\n  at " not in str(error.value)


def test_findings_are_collected() -> None:
    out = np.zeros(64, np.int32)
    arguments = [np.zeros(4, np.int32), out, np.int32(2)]
    report = kernel("bounded_spin").launch(1, 64, arguments, checks=CHECKS, collect=True)
    assert report.findings == ()


def test_errors_have_one_base() -> None:
    with pytest.raises(EmulatorError):
        kernel("saxpy").launch(1, 1000, saxpy_arguments())


def test_text_of_devices_modules_and_kernels() -> None:
    one = kernel("saxpy")
    assert re.fullmatch(r"<Kernel saxpy\(argument 0, argument 1, argument 2, argument 3\)>", repr(one))
    assert repr(one.module.device) == "Device('gfx1151', threads=2)"
    assert "saxpy" in repr(one.module)
