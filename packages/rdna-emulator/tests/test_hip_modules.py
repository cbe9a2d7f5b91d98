"""The emulated HIP runtime: modules, bundles, functions, launches, memory, planned failures."""

from __future__ import annotations

import ctypes
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from hip_runtime import (
    BY_ADDRESS,
    FILE_NOT_FOUND,
    ILLEGAL_ADDRESS,
    INVALID_CONFIGURATION,
    INVALID_DEVICE,
    INVALID_HANDLE,
    INVALID_IMAGE,
    INVALID_VALUE,
    LAUNCH_FAILURE,
    NO_BINARY,
    NOT_FOUND,
    ON_DEVICE,
    OUT_OF_MEMORY,
    TO_DEVICE,
    TO_HOST,
    Hip,
    code_object,
    fresh,
    library,
)
from rdna_emulator import Device

ONES = np.ones(256, np.float32)
COUNT = np.array([256], np.int32)


def test_a_launch_by_pointers_and_by_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    scale = hip.function("scale")
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.scale(scale, y, n, 3)
    np.testing.assert_array_equal(hip.download(y, ONES), 4)
    data = struct.pack("<QQf", y, n, 2)
    buffer, size = ctypes.create_string_buffer(data, len(data)), ctypes.c_size_t(len(data))
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
    hip.hipModuleLaunchKernel(scale, 4, 1, 1, 64, 1, 1, 0, None, None, extra)
    np.testing.assert_array_equal(hip.download(y, ONES), 9)
    size.value = 19
    with hip.fails(INVALID_VALUE, "20 bytes of arguments, extra gives 19"):
        hip.hipModuleLaunchKernel(scale, 4, 1, 1, 64, 1, 1, 0, None, None, extra)
    with hip.fails(INVALID_VALUE, "none are given"):
        hip.hipModuleLaunchKernel(scale, 4, 1, 1, 64, 1, 1, 0, None, None, None)
    with hip.fails(INVALID_VALUE, "given twice"):
        hip.hipModuleLaunchKernel(scale, 4, 1, 1, 64, 1, 1, 0, None, extra, extra)


def test_hidden_arguments_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    out = hip.upload(np.zeros(4, np.int32))
    hip.launch(hip.function("sizes"), 4, 48, [ctypes.c_void_p(out)])
    np.testing.assert_array_equal(hip.download(out, np.zeros(4, np.int32)), 48)
    module = hip.handle("hipModuleLoadData", code_object())
    address, size = ctypes.c_void_p(), ctypes.c_size_t()
    hip.hipModuleGetGlobal(ctypes.byref(address), ctypes.byref(size), module, b"table")
    assert size.value == 16
    hip.store(address.value or 0, np.array([10, 20, 30, 40], np.int32))
    total = hip.handle("hipModuleGetFunction", module, b"sum")
    hip.launch(total, 1, 64, [ctypes.c_void_p(out)])
    assert hip.download(out, np.zeros(1, np.int32)) == 100


def test_what_a_module_may_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hip = fresh(monkeypatch)
    path = tmp_path / "kernels.hsaco"
    path.write_bytes(code_object())
    module = hip.handle("hipModuleLoad", str(path).encode())
    with hip.fails(NOT_FOUND, "no kernel nothing"):
        hip.handle("hipModuleGetFunction", module, b"nothing")
    function = hip.handle("hipModuleGetFunction", module, b"scale")
    assert hip.number("hipFuncGetAttribute", 0, function) == 64
    hip.hipModuleUnload(module)
    with hip.fails(INVALID_HANDLE):
        hip.handle("hipModuleGetFunction", module, b"scale")
    with hip.fails(INVALID_HANDLE):
        hip.scale(function, 0, 0, 1)
    with hip.fails(FILE_NOT_FOUND):
        hip.handle("hipModuleLoad", str(tmp_path / "none").encode())
    with hip.fails(NO_BINARY, "is for gfx1100, the device is gfx1151"):
        hip.handle("hipModuleLoadData", code_object("gfx1100"))
    with hip.fails(INVALID_IMAGE, "neither an ELF file"):
        hip.handle("hipModuleLoadData", b"something else")
    with hip.fails(INVALID_VALUE):
        hip.handle("hipModuleLoadData", None)


def test_every_truncation_and_change_is_refused_or_loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hip = fresh(monkeypatch)
    whole = code_object()
    path = tmp_path / "damaged.hsaco"
    rng = np.random.default_rng(1)
    codes = set()
    for end in [*range(70), *rng.integers(70, len(whole) - 64, 60)]:
        path.write_bytes(whole[:end])
        codes.add(hip.code("hipModuleLoad", ctypes.byref(ctypes.c_void_p()), str(path).encode()))
    assert codes == {INVALID_IMAGE}
    for place in rng.integers(0, 1500, 300):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        codes.add(hip.code("hipModuleLoad", ctypes.byref(ctypes.c_void_p()), str(path).encode()))
    assert codes <= {0, INVALID_IMAGE, NO_BINARY}


def bundle(*targets: str) -> bytes:
    """As clang-offload-bundler writes it, with an empty host entry in front."""
    entries = [("host-x86_64-unknown-linux-gnu-", b"")]
    entries += [(f"hipv4-amdgcn-amd-amdhsa--{target}", code_object(target)) for target in targets]
    header_size = 32 + sum(24 + len(name) for name, _ in entries)
    offset = -(-header_size // 4096) * 4096
    header, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
    for name, data in entries:
        header += struct.pack("<QQQ", offset + len(body), len(data), len(name)) + name.encode()
        body += data + bytes(-len(data) % 4096)
    return header + bytes(offset - len(header)) + body


def test_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="gfx1151,gfx1100,gfx1150")
    both = bundle("gfx1100", "gfx1151")
    for device in range(2):
        hip.hipSetDevice(device)
        module = hip.handle("hipModuleLoadData", both)
        function = hip.handle("hipModuleGetFunction", module, b"scale")
        y, n = hip.upload(ONES), hip.upload(COUNT)
        hip.scale(function, y, n, 1)
        np.testing.assert_array_equal(hip.download(y, ONES), 2)
    hip.hipSetDevice(2)
    with hip.fails(NO_BINARY, "no code object for gfx1150; it has gfx1100, gfx1151"):
        hip.handle("hipModuleLoadData", both)
    with hip.fails(INVALID_IMAGE, "compressed"):
        hip.handle("hipModuleLoadData", b"CCOB" + bytes(100))


@pytest.mark.parametrize("target", ["gfx1151", "gfx1100"])
def test_both_loaders_read_the_same(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES=target)
    module = hip.handle("hipModuleLoadData", code_object(target))
    python = Device(target, threads=1).load(code_object(target))
    assert python.kernels
    for name in python.kernels:
        function = hip.handle("hipModuleGetFunction", module, name.encode())
        resources = python[name].resources
        found = tuple(hip.number("hipFuncGetAttribute", attribute, function) for attribute in (0, 1, 3, 4))
        expected = (resources.max_block, resources.lds_bytes, resources.scratch_bytes, resources.vgprs)
        assert found == expected, name


def test_sizes_that_no_launch_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    scale = hip.function("scale")
    args = [ctypes.c_void_p(0), ctypes.c_void_p(0), ctypes.c_float(0)]
    assert hip.launch_code(scale, 0, 64, args) == INVALID_VALUE
    assert hip.launch_code(scale, 1, (64, 0, 1), args) == INVALID_VALUE
    assert hip.launch_code(scale, 1, (1024, 2, 1), args) == INVALID_CONFIGURATION
    assert hip.launch_code(scale, (1, 65536, 1), 64, args) == INVALID_CONFIGURATION
    assert hip.launch_code(scale, 1, 128, args) == LAUNCH_FAILURE  # compiled for 64
    assert hip.launch_code(scale, 1, 64, args, lds=65537) == INVALID_VALUE
    assert hip.launch_code(scale, 1, 64, args, stream=12345) == INVALID_HANDLE
    assert hip.launch_code(0, 1, 64, args) == INVALID_HANDLE


def test_memory_is_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, MEMORY="1M")
    first = hip.handle("hipMalloc", 1 << 19)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    hip.hipMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == (1 << 19, 1 << 20)
    with hip.fails(OUT_OF_MEMORY, "524289 bytes are asked for, 524288 are free on device 0"):
        hip.handle("hipMalloc", (1 << 19) + 1)
    hip.hipFree(first)
    hip.handle("hipMalloc", 1 << 20)
    hip.hipFree(None)
    with hip.fails(INVALID_VALUE):
        hip.hipFree(first + 16)
    assert hip.handle("hipMalloc", 0) == 0


def test_copies_stay_in_their_allocations(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    here = np.arange(64, dtype=np.float32)
    there, other = hip.handle("hipMalloc", 256), hip.handle("hipMalloc", 256)
    hip.hipMemcpy(there, here.ctypes.data, 256, BY_ADDRESS)
    hip.hipMemcpyDtoD(other, there, 256)
    hip.hipMemset(other, 0, 128)
    np.testing.assert_array_equal(hip.download(other, here), np.where(here < 32, 0, here))
    for to, source, size, kind in (
        (there, here.ctypes.data, 257, TO_DEVICE),
        (here.ctypes.data, there + 4, 256, TO_HOST),
        (here.ctypes.data, there, 4, TO_DEVICE),
        (there, here.ctypes.data, 4, ON_DEVICE),
        (0, here.ctypes.data, 4, TO_DEVICE),
    ):
        with hip.fails(INVALID_VALUE):
            hip.hipMemcpy(to, source, size, kind)
    with hip.fails(21):
        hip.hipMemcpy(there, other, 4, 9)
    with hip.fails(INVALID_VALUE):
        hip.hipMemset(there, 0, 257)


def test_pointers_say_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="gfx1151,gfx1100")
    hip.hipSetDevice(1)
    device, host = hip.handle("hipMalloc", 64), hip.handle("hipHostMalloc", 64, 0)

    def attributes(address: int) -> tuple[int, int]:
        record = ctypes.create_string_buffer(32)
        hip.hipPointerGetAttributes(record, address)
        kind, number = struct.unpack_from("<Ii", record.raw)
        return kind, number

    assert attributes(device + 63) == (2, 1)
    assert attributes(host) == (1, 1)
    assert attributes(device + 64)[0] == 0
    hip.hipHostFree(host)
    assert attributes(host)[0] == 0


def test_accesses_outside_memory_and_findings_fail_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="gfx1151,gfx1100", CHECKS="all")
    scale = hip.function("scale")
    y, n = hip.upload(ONES), hip.upload(COUNT + 1)
    with hip.fails(ILLEGAL_ADDRESS, "device memory of 1024 bytes"):
        hip.launch(scale, 5, 64, [ctypes.c_void_p(y), ctypes.c_void_p(n), ctypes.c_float(1)])
    with hip.fails(LAUNCH_FAILURE, "race"):
        hip.launch(hip.function("race"), 1, 64, [ctypes.c_void_p(y)])
    hip.hipSetDevice(1)
    foreign = hip.function("scale", "gfx1100")
    with hip.fails(ILLEGAL_ADDRESS):
        hip.scale(foreign, y, n, 1)  # memory of device 0
    with hip.fails(INVALID_DEVICE, "loaded on device 0, the stream is of device 1"):
        hip.scale(scale, y, n, 1)


CALLS = ("hipModuleLoadData", "hipModuleGetFunction", "hipMalloc", "hipMemcpy", "hipModuleLaunchKernel", "hipFree")


def _everything(hip: Hip) -> None:
    scale = hip.function("scale")
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.scale(scale, y, n, 1)
    np.testing.assert_array_equal(hip.download(y, ONES), 2)
    hip.hipFree(y)
    hip.hipFree(n)


@pytest.mark.parametrize("name", CALLS)
def test_failures_can_be_planned_for_each_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    assert library().rdna_hip_fail_next(name.encode(), 719) == 1
    with hip.fails(719, f"{name} was told to fail"):
        _everything(hip)
    _everything(hip)
    before = library().rdna_hip_calls(name.encode())
    hip = fresh(monkeypatch, FAIL=f"{name}:2:2")
    with hip.fails(2):
        for _ in range(2):
            _everything(hip)
    assert library().rdna_hip_calls(name.encode()) >= before + 2
    _everything(hip)


def test_nothing_runs_with_launching_off(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, LAUNCH="off")
    scale = hip.function("scale")
    y, n = hip.upload(ONES), hip.upload(COUNT)
    hip.scale(scale, y, n, 5)
    np.testing.assert_array_equal(hip.download(y, ONES), 1)
    library().rdna_hip_launching(1)
    hip.scale(scale, y, n, 5)
    np.testing.assert_array_equal(hip.download(y, ONES), 6)


def test_threads_call_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="gfx1151,gfx1100")
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            device = number % 2
            hip.hipSetDevice(device)
            scale = hip.function("scale", ("gfx1151", "gfx1100")[device])
            stream = hip.handle("hipStreamCreate")
            y, n = hip.upload(ONES * number), hip.upload(COUNT)
            for _ in range(20):
                hip.scale(scale, y, n, 1, stream)
            hip.hipStreamSynchronize(stream)
            np.testing.assert_array_equal(hip.download(y, ONES), number + 20)
            assert hip.number("hipGetDevice") == device
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
