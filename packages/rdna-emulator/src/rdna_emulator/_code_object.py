"""AMDGPU code objects: ELF, metadata, kernel descriptors, and the image as a device would hold it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from ._errors import CodeObjectError

_MACHINE_AMDGPU = 224
_OSABI_AMDGPU_HSA = 64
_NOTE_METADATA = 32
_SECTION_SYMTAB, _SECTION_RELA, _SECTION_DYNSYM = 2, 4, 11
_SEGMENT_LOAD, _SEGMENT_NOTE = 1, 4
_LARGEST_IMAGE = 1 << 30
_LARGEST_ARGUMENTS = 1 << 16
_RELOCATION_ABS64, _RELOCATION_RELATIVE64 = 3, 13

# EF_AMDGPU_MACH of e_flags, for the targets that people are likely to mix up.
_MACHINES = {
    0x02C: "gfx900", 0x02F: "gfx906", 0x030: "gfx908", 0x033: "gfx1010", 0x036: "gfx1030", 0x037: "gfx1031",
    0x03F: "gfx90a", 0x041: "gfx1100", 0x043: "gfx1150", 0x044: "gfx1103", 0x046: "gfx1101", 0x047: "gfx1102",
    0x048: "gfx1200", 0x04A: "gfx1151", 0x04C: "gfx942", 0x04E: "gfx1201", 0x04F: "gfx950", 0x054: "gfx11-generic",
    0x055: "gfx1152", 0x058: "gfx1153",
}  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel, as the metadata describe it."""

    name: str
    kind: str  # "global_buffer", "by_value", "hidden_block_count_x", ...
    offset: int  # bytes from the start of the arguments
    size: int  # bytes

    @property
    def hidden(self) -> bool:
        return self.kind.startswith("hidden_")


@dataclass(frozen=True)
class Resources:
    """What a kernel needs of the device."""

    vgprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds_bytes: int  # static
    scratch_bytes: int  # a lane
    max_block: int  # threads
    dynamic_stack: bool


@dataclass(frozen=True)
class Descriptor:
    """The kernel descriptor: how a wave begins."""

    entry: int  # virtual address
    lds_bytes: int
    private_bytes: int
    vgprs: int
    mode: int
    user_sgprs: int
    user_sgpr_count: int
    workgroup_ids: int
    workitem_ids: int
    wave32: bool


@dataclass(frozen=True)
class KernelObject:
    name: str
    arguments: tuple[Argument, ...]
    argument_bytes: int
    resources: Resources
    descriptor: Descriptor


@dataclass(frozen=True)
class Segment:
    address: int  # virtual
    size: int
    writable: bool
    executable: bool


@dataclass
class CodeObject:
    target: str
    image: npt.NDArray[np.uint8]  # page-aligned; a virtual address is an index
    segments: tuple[Segment, ...]
    text: Segment
    functions: dict[str, int]  # virtual addresses in the text
    variables: dict[str, tuple[int, int]]  # virtual address and size of data symbols
    kernels: dict[str, KernelObject] = field(default_factory=dict)


@dataclass(frozen=True)
class _Symbol:
    name: str
    address: int
    size: int
    defined: bool


class _Elf:
    """The parts of an ELF file that a loader needs; every read is checked against the file's end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[:4] != b"\x7fELF":
            start = data[:4].hex() or "nothing"
            raise CodeObjectError(
                f"not an ELF file: it begins with {start} (an AMDGPU code object begins with 7f454c46)"
            )
        if len(data) < 64:
            raise CodeObjectError(f"truncated: {len(data)} bytes, less than an ELF header")
        if data[4] != 2 or data[5] != 1:
            raise CodeObjectError("not a 64-bit little-endian ELF file")
        machine = self.unpack("<H", 18, "ELF header")[0]
        if machine != _MACHINE_AMDGPU:
            raise CodeObjectError(f"an ELF file for machine {machine}, not for AMDGPU ({_MACHINE_AMDGPU})")
        if data[7] != _OSABI_AMDGPU_HSA:
            raise CodeObjectError(
                f"an AMDGPU file for OS ABI {data[7]}; only HSA ({_OSABI_AMDGPU_HSA}) can be launched"
            )
        self.flags = self.unpack("<I", 48, "ELF header")[0]
        segments_at, sections_at = self.unpack("<QQ", 32, "ELF header")
        segment_size, segment_count, section_size, section_count = self.unpack("<HHHH", 54, "ELF header")
        self.segments = [
            self.unpack("<IIQQQQQQ", segments_at + k * segment_size, "program header") for k in range(segment_count)
        ]
        self.sections = [
            self.unpack("<IIQQQQIIQQ", sections_at + k * section_size, "section header") for k in range(section_count)
        ]

    def unpack(self, layout: str, offset: int, what: str) -> tuple[Any, ...]:
        if offset + struct.calcsize(layout) > len(self.data):
            raise CodeObjectError(f"truncated: the {what} at byte {offset} lies past the file's {len(self.data)} bytes")
        return struct.unpack_from(layout, self.data, offset)

    def bytes_at(self, offset: int, size: int, what: str) -> bytes:
        if offset + size > len(self.data):
            raise CodeObjectError(
                f"truncated: the {what} ends at byte {offset + size}, the file has {len(self.data)} bytes"
            )
        return self.data[offset : offset + size]

    def text_at(self, table: int, offset: int) -> str:
        _, _, _, _, start, size, *_ = self.sections[table]
        strings = self.bytes_at(start, size, "string table")
        return strings[offset : strings.index(b"\0", offset)].decode(errors="replace")

    def symbols(self, section: int) -> list[_Symbol]:
        _, _, _, _, offset, size, link, _, _, entry = self.sections[section]
        symbols = []
        for at in range(offset, offset + size, entry or 24):
            name, _, _, index, address, length = self.unpack("<IBBHQQ", at, "symbol table")
            symbols.append(_Symbol(self.text_at(link, name), address, length, index != 0))
        return symbols

    def sections_of(self, kind: int) -> list[int]:
        return [k for k, section in enumerate(self.sections) if section[1] == kind]


def _target(elf: _Elf) -> str:
    machine = elf.flags & 0xFF
    return _MACHINES.get(machine, f"an unknown target (machine 0x{machine:x})")


def _metadata(elf: _Elf) -> dict[str, Any]:
    for kind, _, offset, _, _, size, _, _ in elf.segments:
        if kind != _SEGMENT_NOTE:
            continue
        end = offset + size
        while offset + 12 <= end:
            name_size, description_size, note = elf.unpack("<III", offset, "note")
            name = elf.bytes_at(offset + 12, name_size, "note")
            start = offset + 12 + (name_size + 3) // 4 * 4
            if name.rstrip(b"\0") == b"AMDGPU" and note == _NOTE_METADATA:
                description = elf.bytes_at(start, description_size, "metadata note")
                try:
                    metadata = msgpack.unpackb(description, raw=False, strict_map_key=False)
                except ValueError as error:
                    raise CodeObjectError(f"the metadata note is no msgpack: {error}") from error
                if isinstance(metadata, dict) and isinstance(metadata.get("amdhsa.kernels"), list):
                    return metadata
                raise CodeObjectError("the metadata note lists no kernels (amdhsa.kernels)")
            offset = start + (description_size + 3) // 4 * 4
    raise CodeObjectError("no metadata note (NT_AMDGPU_METADATA): is it a relocatable object that was not linked?")


def _load_image(elf: _Elf) -> tuple[npt.NDArray[np.uint8], tuple[Segment, ...]]:
    loads = [segment for segment in elf.segments if segment[0] == _SEGMENT_LOAD]
    if not loads:
        raise CodeObjectError("nothing to load: is it a relocatable object that was not linked?")
    size = max(address + memory for _, _, _, address, _, _, memory, _ in loads)
    if size > _LARGEST_IMAGE:
        raise CodeObjectError(f"the image would take {size} bytes; the emulator loads up to {_LARGEST_IMAGE}")
    page = 4096
    memory = np.zeros(size + page, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % page
    image = memory[start : start + size]
    segments = []
    for _, flags, offset, address, _, file_size, memory_size, _ in loads:
        contents = elf.bytes_at(offset, file_size, "segment")
        image[address : address + file_size] = np.frombuffer(contents, dtype=np.uint8)
        executable = bool(flags & 1)
        size = file_size if executable else memory_size  # code is what the file holds
        segments.append(Segment(address, size, bool(flags & 2), executable))
    return image, tuple(segments)


def _relocate(elf: _Elf, image: npt.NDArray[np.uint8]) -> None:
    base = image.__array_interface__["data"][0]
    for section in elf.sections_of(_SECTION_RELA):
        _, _, _, _, offset, size, link, _, _, entry = elf.sections[section]
        if not size or elf.sections[link][1] != _SECTION_DYNSYM:
            continue
        symbols = elf.symbols(link)
        for at in range(offset, offset + size, entry or 24):
            place, info, addend = elf.unpack("<QQq", at, "relocation")
            kind, symbol = info & 0xFFFFFFFF, symbols[info >> 32]
            if kind == _RELOCATION_RELATIVE64:
                value = base + addend
            elif kind == _RELOCATION_ABS64:
                if not symbol.defined:
                    raise CodeObjectError(f"{symbol.name} is not defined in the code object")
                value = base + symbol.address + addend
            else:
                raise CodeObjectError(f"relocation type {kind} for {symbol.name} is not supported (3 and 13 are)")
            if place + 8 > image.size:
                raise CodeObjectError(f"a relocation lies outside the image, at 0x{place:x}")
            image[place : place + 8] = np.frombuffer(struct.pack("<Q", value % (1 << 64)), dtype=np.uint8)


def _descriptor(image: npt.NDArray[np.uint8], address: int, name: str) -> Descriptor:
    if address + 64 > image.size:
        raise CodeObjectError(f"the descriptor of {name} lies outside the image")
    record = image[address : address + 64].tobytes()
    lds, private = struct.unpack_from("<II", record, 0)
    (entry_offset,) = struct.unpack_from("<q", record, 16)
    registers1, registers2 = struct.unpack_from("<II", record, 48)
    (properties,) = struct.unpack_from("<H", record, 56)
    mode = (
        (registers1 >> 12 & 0xFF)  # rounding and denormals
        | (registers1 >> 21 & 1) << 8  # DX10_CLAMP
        | (registers1 >> 23 & 1) << 9  # IEEE
        | (registers1 >> 26 & 1) << 23  # FP16_OVFL
    )
    return Descriptor(
        entry=address + entry_offset,
        lds_bytes=lds,
        private_bytes=private,
        vgprs=min(256, ((registers1 & 0x3F) + 1) * 8),
        mode=mode,
        user_sgprs=properties & 0x7F,
        user_sgpr_count=registers2 >> 1 & 0x1F,
        workgroup_ids=registers2 >> 7 & 0xF,
        workitem_ids=registers2 >> 11 & 3,
        wave32=bool(properties >> 10 & 1),
    )


def _arguments(entries: list[dict[str, Any]]) -> tuple[Argument, ...]:
    arguments = []
    for k, entry in enumerate(entries):
        kind = str(entry[".value_kind"])
        arguments.append(
            Argument(str(entry.get(".name", "")) or f"argument {k}", kind, int(entry[".offset"]), int(entry[".size"]))
        )
    return tuple(arguments)


def _kernel(entry: dict[str, Any], symbols: dict[str, _Symbol], image: npt.NDArray[np.uint8]) -> KernelObject:
    name = str(entry[".name"])
    descriptor_symbol = symbols.get(str(entry.get(".symbol", f"{name}.kd")))
    if descriptor_symbol is None or not descriptor_symbol.defined:
        raise CodeObjectError(f"kernel {name} has no descriptor ({name}.kd)")
    arguments = _arguments(entry.get(".args", []))
    size = max([int(entry.get(".kernarg_segment_size", 0)), *(a.offset + a.size for a in arguments)])
    if not 0 <= size <= _LARGEST_ARGUMENTS or any(a.offset < 0 or a.size < 0 for a in arguments):
        raise CodeObjectError(f"kernel {name} would have {size} bytes of arguments")
    return KernelObject(
        name=name,
        arguments=arguments,
        argument_bytes=size,
        resources=Resources(
            vgprs=int(entry.get(".vgpr_count", 0)),
            sgprs=int(entry.get(".sgpr_count", 0)),
            vgpr_spills=int(entry.get(".vgpr_spill_count", 0)),
            sgpr_spills=int(entry.get(".sgpr_spill_count", 0)),
            lds_bytes=int(entry.get(".group_segment_fixed_size", 0)),
            scratch_bytes=int(entry.get(".private_segment_fixed_size", 0)),
            max_block=int(entry.get(".max_flat_workgroup_size", 1024)),
            dynamic_stack=bool(entry.get(".uses_dynamic_stack", False)),
        ),
        descriptor=_descriptor(image, descriptor_symbol.address, name),
    )


def read_code_object(data: bytes, target: str) -> CodeObject:
    """Loads a code object for a device of `target`.

    Raises CodeObjectError where the bytes are not ELF, are truncated or damaged, or are for another target.
    """
    try:
        return _read(_Elf(data), target)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, struct.error) as error:
        raise CodeObjectError(f"the code object is damaged: {error!r}") from error


def _read(elf: _Elf, target: str) -> CodeObject:
    found = _target(elf)
    if found not in (target, "gfx11-generic"):
        raise CodeObjectError(
            f"the code object is for {found}, the device is {target}; compile it with --offload-arch={target}, "
            f"or make a Device({found!r})"
        )
    metadata = _metadata(elf)
    image, segments = _load_image(elf)
    _relocate(elf, image)
    code = [segment for segment in segments if segment.executable]
    if not code:
        raise CodeObjectError("no executable segment")
    text = code[0]
    tables = [*elf.sections_of(_SECTION_SYMTAB), *elf.sections_of(_SECTION_DYNSYM)]
    symbols = {symbol.name: symbol for table in tables for symbol in elf.symbols(table)}
    inside = [s for s in symbols.values() if s.defined and s.name]
    functions = {s.name: s.address for s in inside if text.address <= s.address < text.address + text.size}
    variables = {
        s.name: (s.address, s.size) for s in inside if s.size and s.name not in functions and not s.name.endswith(".kd")
    }
    result = CodeObject(target, image, segments, text, functions, variables)
    for entry in metadata["amdhsa.kernels"]:
        kernel = _kernel(entry, symbols, image)
        if not text.address <= kernel.descriptor.entry < text.address + text.size or kernel.descriptor.entry % 4:
            raise CodeObjectError(f"kernel {kernel.name} begins outside the code")
        result.kernels[kernel.name] = kernel
    return result
