"""Every load and store of every space against a model, and what happens at the edges of memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from assembly import AssemblyKernel, assemble_code_object
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_kernels import BYTES, OPERATIONS, SPACES, memory_kernels, model, patterns
from rdna_emulator import Device, MemoryFault, Module, UnsupportedError

TARGETS = ("gfx1151", "gfx1100")
MASKS = (0xFFFFFFFF, 0, 1, 0x80000000, 0x0000FFFF, 0xA5A5F00F)


@pytest.fixture(scope="module", params=TARGETS)
def module(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Module:
    target = str(request.param)
    return Device(target, threads=1).load(
        assemble_code_object(memory_kernels(), target, tmp_path_factory.mktemp(target))
    )


def run(
    module: Module,
    name: str,
    data: np.ndarray,
    offsets: np.ndarray,
    registers: np.ndarray,
    mask: int,
    checks: tuple[str, ...] = (),
) -> tuple[np.ndarray, np.ndarray]:
    memory, out = data.copy(), np.zeros_like(registers)
    module[name].launch(1, 32, [memory, offsets, registers, np.array([mask], np.uint32), out], checks=checks)
    return memory, out


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("space", SPACES)
def test_loads_and_stores(module: Module, space: str, name: str) -> None:
    random = np.random.default_rng(len(name))
    operation = OPERATIONS[name]
    own = 5 if "scratch" in space or "private" in space else None
    data = random.integers(0, 256, BYTES, np.uint8)
    registers = random.integers(0, 1 << 32, (4, 32), np.uint32)
    for pattern, offsets in patterns(operation, random, space).items():
        for mask in MASKS:
            expected = model(operation, data, offsets, registers, mask, own)
            wild = np.where([mask >> lane & 1 for lane in range(32)], offsets, 0xDEADBEEF).astype(np.uint32)
            memory, out = run(module, f"{space}__{name}", data, wild, registers, mask)
            np.testing.assert_array_equal(out, expected[1], err_msg=f"{pattern}, EXEC {mask:#x}")
            np.testing.assert_array_equal(memory, expected[0], err_msg=f"{pattern}, EXEC {mask:#x}")


@pytest.mark.parametrize("space", SPACES)
@settings(max_examples=30)
@given(st.data())
def test_any_offsets_and_masks(module: Module, space: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["load_b128", "load_b64", "store_b128", "store_b32", "load_d16_hi_b16"]))
    operation = OPERATIONS[name]
    step = min(4, operation.bytes)
    last = (BYTES - 12 - operation.bytes) // step
    offsets = np.array(data.draw(st.lists(st.integers(0, last), min_size=32, max_size=32)), np.uint32) * np.uint32(step)
    mask = data.draw(st.integers(0, (1 << 32) - 1))
    memory = np.arange(BYTES, dtype=np.uint8)
    registers = np.arange(128, dtype=np.uint32).reshape(4, 32) * np.uint32(0x01010101)
    own = 5 if "scratch" in space or "private" in space else None
    found = run(
        module,
        f"{space}__{name}",
        memory,
        offsets,
        registers,
        mask,
        checks=("waits", "uninitialised", "bounds", "races", "spin"),
    )
    expected = model(operation, memory, offsets, registers, mask, own)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


SIGNED = ("scratch", "scratch_saddr", "ds")  # a lane's offset may be negative
EDGES = [(space, False) for space in SPACES if space != "buffer"] + [(space, True) for space in SIGNED]


@pytest.mark.parametrize("name", ["load_b32", "store_b32", "load_b128", "store_b64", "load_u8", "store_b16"])
@pytest.mark.parametrize(("space", "before"), EDGES)
def test_a_lane_outside_faults_and_is_named(module: Module, space: str, name: str, before: bool) -> None:
    size = OPERATIONS[name].bytes
    offsets = np.full(32, 64, np.uint32)
    # The last element, or the first, is one outside.
    offsets[17] = (1 << 32) - 12 - 4 if before else BYTES - 12 - size + min(size, 4)
    data, registers = np.zeros(BYTES, np.uint8), np.zeros((4, 32), np.uint32)
    with pytest.raises(MemoryFault, match=r"lane 17, pc 0x") as error:
        run(module, f"{space}__{name}", data, offsets, registers, 0xFFFFFFFF)
    assert name.split("_")[1] in str(error.value)
    run(module, f"{space}__{name}", data, offsets, registers, 0xFFFFFFFF ^ 1 << 17)


def test_the_fault_names_address_and_nearest_array(module: Module) -> None:
    data, registers = np.zeros(BYTES, np.uint8), np.zeros((4, 32), np.uint32)
    offsets = np.full(32, 4096, np.uint32)
    with pytest.raises(MemoryFault) as error:
        run(module, "global__load_b32", data, offsets, registers, 0x100)
    text = str(error.value)
    assert "load of 4 bytes at 0x" in text
    assert "kernel global__load_b32" in text
    assert "workgroup (0, 0, 0), wave 0, lane 8" in text
    assert "global_load_b32 v8, v[4:5], off offset:12" in text
    assert "the nearest is" in text


def test_a_read_only_array_cannot_be_stored_to(module: Module) -> None:
    offsets, registers, out = np.zeros(32, np.uint32), np.zeros((4, 32), np.uint32), np.zeros((4, 32), np.uint32)
    data = np.zeros(BYTES, np.uint8)
    data.flags.writeable = False
    arguments = [data, offsets, registers, np.array([1], np.uint32), out]
    module["global__load_b32"].launch(1, 32, arguments)
    with pytest.raises(MemoryFault, match="argument 0, which is read-only"):
        module["global__store_b32"].launch(1, 32, arguments)


@pytest.mark.parametrize("name", ["load_b32", "load_b64", "load_b128", "store_b96", "load_u16", "store_b16"])
def test_lds_wants_alignment(module: Module, name: str) -> None:
    offsets = np.full(32, 64, np.uint32)
    offsets[3] += min(OPERATIONS[name].bytes, 4) // 2
    with pytest.raises(MemoryFault, match=r"not a multiple of [24]\n.*lane 3"):
        run(module, f"ds__{name}", np.zeros(BYTES, np.uint8), offsets, np.zeros((4, 32), np.uint32), 0xFFFFFFFF)


@pytest.mark.parametrize("name", ["load_b32", "load_b128", "load_u8", "load_d16_hi_b16", "store_b32", "store_b64"])
def test_buffer_lanes_outside_load_zero_and_store_nothing(module: Module, name: str) -> None:
    operation = OPERATIONS[name]
    random = np.random.default_rng(1)
    data = random.integers(0, 256, BYTES, np.uint8)
    registers = random.integers(0, 1 << 32, (4, 32), np.uint32)
    offsets = (np.arange(32) * 8).astype(np.uint32)
    outside = np.arange(32) % 3 == 0
    offsets[outside] = np.where(np.arange(32)[outside] % 2, 0x80000000, BYTES)
    inside = sum(1 << lane for lane in range(32) if not outside[lane])
    memory, out = run(module, f"buffer__{name}", data, offsets, registers, 0xFFFFFFFF)
    expected = model(operation, data, offsets, registers, inside)
    if not operation.store:
        keep = 0xFFFF if operation.half == "high" else 0
        expected[1][: operation.registers, outside] = registers[: operation.registers, outside] & np.uint32(keep)
    np.testing.assert_array_equal(out, expected[1])
    np.testing.assert_array_equal(memory, expected[0])


def test_a_structured_buffer_is_refused(tmp_path: Path) -> None:
    lines = """
  s_load_b64 s[4:5], s[0:1], 0x0
  s_mov_b32 s6, 64
  s_mov_b32 s7, 0
  s_waitcnt lgkmcnt(0)
  s_or_b32 s5, s5, 0x100000
  buffer_load_b32 v1, v0, s[4:7], 0 offen"""
    code = assemble_code_object([AssemblyKernel("structured", lines, ("pointer",))], "gfx1151", tmp_path)
    with pytest.raises(UnsupportedError, match="only raw buffers"):
        Device(threads=1).load(code)["structured"].launch(1, 32, [np.zeros(64, np.uint32)])
