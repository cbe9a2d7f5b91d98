"""The emulated HIP runtime: devices and what they say of themselves, versions, errors of the environment."""

from __future__ import annotations

import ctypes
import struct

import pytest
from hip_runtime import INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, fresh, library

# Offsets of ROCm's public headers: 6 and 7 have R0600, 5 had what later libraries keep under the plain name.
LAYOUTS = {
    "hipGetDevicePropertiesR0600": {"architecture": 1160, "processors": 388, "memory": 288, "size": 1472},
    "hipGetDeviceProperties": {"architecture": 396, "processors": 336, "memory": 256, "size": 792},
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_properties_have_rocms_layout(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="gfx1151,gfx1100", MEMORY="3G")
    layout = LAYOUTS[name]
    for device, (target, processors) in enumerate((("gfx1151", 20), ("gfx1100", 48))):
        buffer = ctypes.create_string_buffer(b"\xee" * (layout["size"] + 64))
        hip.call(name, buffer, device)
        assert buffer.raw[layout["architecture"] :].split(b"\0")[0].decode() == target
        assert struct.unpack_from("<i", buffer.raw, layout["processors"]) == (processors,)
        assert struct.unpack_from("<Q", buffer.raw, layout["memory"]) == (3 << 30,)
        assert buffer.raw[layout["size"] : layout["size"] + 64] == b"\xee" * 64, "writes past the structure"


def test_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="gfx1100")
    assert hip.number("hipDeviceGetAttribute", 63, 0) == 48  # multiprocessors
    assert hip.number("hipDeviceGetAttribute", 87, 0) == 32  # lanes of a wave
    assert hip.number("hipDeviceGetAttribute", 74, 0) == 65536  # LDS of a workgroup
    assert (hip.number("hipDeviceGetAttribute", 23, 0), hip.number("hipDeviceGetAttribute", 61, 0)) == (11, 0)
    with hip.fails(INVALID_VALUE, "attribute 20 is not served"):
        hip.number("hipDeviceGetAttribute", 20, 0)
    with hip.fails(INVALID_DEVICE, "there is no device 1; there are 1"):
        hip.number("hipDeviceGetAttribute", 63, 1)


def test_the_current_device(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="gfx1151,gfx942:sramecc+:xnack-")
    hip.hipInit(0)
    assert hip.number("hipGetDeviceCount") == 2
    assert hip.number("hipGetDevice") == 0
    hip.hipSetDevice(1)
    assert hip.number("hipGetDevice") == 1
    with hip.fails(INVALID_DEVICE):
        hip.hipSetDevice(2)
    buffer = ctypes.create_string_buffer(2048)
    hip.hipGetDevicePropertiesR0600(buffer, 1)
    assert buffer.raw[1160:].split(b"\0")[0] == b"gfx942:sramecc+:xnack-"


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, DEVICES="none")
    count = ctypes.c_int(7)
    assert hip.code("hipGetDeviceCount", ctypes.byref(count)) == NO_DEVICE
    assert count.value == 0
    with hip.fails(NO_DEVICE):
        hip.handle("hipMalloc", 16)
    assert hip.number("hipRuntimeGetVersion") > 0


def test_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, VERSION="6.2.41134")
    assert hip.number("hipRuntimeGetVersion") == hip.number("hipDriverGetVersion") == 60241134


def test_an_override_renames_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "11.0.0")
    hip = fresh(monkeypatch, DEVICES="gfx1151,gfx90a")
    for device in range(2):
        buffer = ctypes.create_string_buffer(2048)
        hip.hipGetDevicePropertiesR0600(buffer, device)
        assert buffer.raw[1160:].split(b"\0")[0] == b"gfx1100"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEVICES", "geforce"),
        ("MEMORY", "lots"),
        ("MEMORY", "99999999999T"),
        ("VERSION", "six"),
        ("CHECKS", "everything"),
        ("THREADS", "0"),
        ("LAUNCH", "maybe"),
        ("FAIL", "hipMalloc"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch, **{name: value})
    with hip.fails(3, f'RDNA_EMULATED_{name} is "{value}"; it may be'):
        hip.number("hipGetDeviceCount")


def test_errors_are_named_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = fresh(monkeypatch)
    assert library().hipGetErrorName(209) == b"hipErrorNoBinaryForGpu"
    assert library().hipGetErrorString(2) == b"out of memory"
    assert library().hipGetErrorName(123456) == b"hipErrorUnknown"
    assert hip.code("hipSetDevice", 9) == INVALID_DEVICE
    assert hip.code("hipSetDevice", 0) == 0
    assert hip.code("hipPeekAtLastError") == INVALID_DEVICE
    assert hip.code("hipGetLastError") == INVALID_DEVICE
    assert hip.code("hipGetLastError") == 0
