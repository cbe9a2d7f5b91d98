"""Devices, the code objects loaded on them, and their kernels."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

from . import _errors as errors
from ._arguments import Dim3, MemoryItem, Packer
from ._code_object import Argument, CodeObject, KernelObject, Resources, Segment, read_code_object
from ._lines import LineTable
from ._model import PARAMETERS, modelled
from ._options import MEASURE_MODEL, Size, check_mask, integer, measure_mask, sizes
from ._records import KernelRecord, LaunchRecord, Span, class_names, functions
from ._report import Report

TARGETS = tuple(PARAMETERS)
_LDS_LIMIT = 65536
_MOST_YZ = 65535  # workgroups in each of the grid's y and z
_MOST_WORKGROUPS = (1 << 31) - 1
_ARGUMENTS_ALIGNMENT = 1 << 14  # of the L0 cache's size: what arguments evict in the model is the same in every run
_SCRATCH_LIMIT = 262144  # a lane: 8 MiB a wave on the device
_STACK = 16384  # scratch of a lane where the compiler could not tell how much calls need
_MODE = 0xF0  # nearest even, denormals kept
_MODE_MASK = 0x8000FF  # rounding, denormals, FP16_OVFL

# In the order of Fault in csrc/core/machine.hpp.
_FAULTS: tuple[type[errors.EmulatorError], ...] = (
    errors.UnknownInstructionError,
    errors.UnsupportedError,
    errors.MemoryFault,
    errors.MemoryFault,
    errors.CheckError,
    errors.SpinError,
    errors.CheckError,
    errors.InterruptedLaunchError,
)


class Device:
    """An emulated RDNA 3 GPU.

    ``target`` is "gfx1151" or "gfx1100"; ``threads`` run workgroups (default: one for each CPU that this process may
    use) and are kept for all launches. Raises ValueError for another target, and
    for threads that are no integer from 1 to 1024.
    """

    def __init__(self, target: str = "gfx1151", threads: SupportsIndex | None = None) -> None:
        if target not in TARGETS:
            raise ValueError(f"unknown target {target!r}; the emulator knows {', '.join(TARGETS)}")
        threads = len(os.sched_getaffinity(0)) if threads is None else integer("threads", threads)
        if not 1 <= threads <= 1024:
            raise ValueError(f"threads is {threads}; it may be 1 to 1024")
        self.target = target
        self.threads = threads
        self._lock = threading.Lock()
        library = functions()
        self._handle = library.rdna_device_create(threads)
        if not self._handle:
            raise errors.EmulatorError(f"cannot start {threads} threads")
        weakref.finalize(self, _destroy, self._handle, os.getpid())

    def __repr__(self) -> str:
        return f"Device({self.target!r}, threads={self.threads})"

    def load(self, code: bytes | bytearray | memoryview | str | os.PathLike[str]) -> Module:
        """Loads a code object: its bytes, or the path of its file.

        Raises CodeObjectError where it is no code object for this device, OSError where the file cannot be read.
        """
        if isinstance(code, str | os.PathLike):
            try:
                data = Path(code).read_bytes()
            except ValueError as error:  # a zero byte, which no path has
                raise errors.CodeObjectError(f"{os.fspath(code)!r} is no path of a code object: {error}") from None
        elif isinstance(code, bytes | bytearray | memoryview):
            data = bytes(code)
        else:
            raise errors.CodeObjectError(f"load takes a code object's bytes or its path, got {type(code).__name__}")
        return Module(self, data)


def _destroy(handle: int, process: int) -> None:
    # A forked child has no threads to join; its copy of the device goes when the process does.
    if os.getpid() == process:
        functions().rdna_device_destroy(handle)


class Module:
    """A loaded code object. ``kernels`` are the names of its kernels; ``module[name]`` is one of them."""

    def __init__(self, device: Device, data: bytes) -> None:
        self.device = device
        self.code: CodeObject = read_code_object(data, device.target)
        self._data = data
        self._line_table: LineTable | None = None
        self._handle = self._create()
        weakref.finalize(self, functions().rdna_module_destroy, self._handle)
        self._kernels: dict[str, Kernel] = {}

    def _create(self) -> int:
        code = self.code
        base: int = code.image.__array_interface__["data"][0]
        names = list(code.functions)
        addresses = (ctypes.c_uint32 * len(names))(*(code.functions[name] - code.text.address for name in names))
        texts = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
        span_names = [b"the code object's " + _segment_name(s) for s in code.segments]
        spans = (Span * len(code.segments))(
            *(
                Span(base + s.address, s.size, base, name, s.writable, 0, 0)
                for s, name in zip(code.segments, span_names, strict=True)
            )
        )
        error = ctypes.create_string_buffer(512)
        handle = functions().rdna_module_create(
            code.target.encode(),
            base + code.text.address,
            code.text.size,
            addresses,
            texts,
            len(names),
            spans,
            len(spans),
            error,
            len(error),
        )
        if not handle:
            raise errors.CodeObjectError(error.value.decode(errors="replace"))
        return int(handle)

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(self.code.kernels)

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            if name not in self.code.kernels:
                raise KeyError(f"no kernel {name!r}; the code object has {', '.join(self.kernels) or 'none'}")
            self._kernels[name] = Kernel(self, self.code.kernels[name])
        return self._kernels[name]

    def __repr__(self) -> str:
        return f"<Module for {self.code.target}: {', '.join(self.kernels)}>"

    def _with_source(self, message: str) -> str:
        """The message of a trap, with the source line where the object has line tables."""
        place = re.search(r", pc 0x([0-9a-f]+)", message)
        if not place:
            return message
        if self._line_table is None:
            self._line_table = LineTable(self._data)
        line = self._line_table.find(self.code.text.address + int(place[1], 16))
        return f"{message}\n  at {line}" if line else message


def _segment_name(segment: Segment) -> bytes:
    return b"code" if segment.executable else b"variables" if segment.writable else b"constants"


class Kernel:
    """A kernel of a module. ``arguments`` and ``resources`` are what its metadata say."""

    def __init__(self, module: Module, kernel: KernelObject) -> None:
        self.module = module
        self.name = kernel.name
        self.arguments: tuple[Argument, ...] = tuple(a for a in kernel.arguments if not a.hidden)
        self.resources: Resources = kernel.resources
        self._packer = Packer(kernel)
        descriptor = kernel.descriptor
        private = max(descriptor.private_bytes, _STACK) if kernel.resources.dynamic_stack else descriptor.private_bytes
        self._static_lds = descriptor.lds_bytes
        self._refusal = _refusal(kernel)
        self._record = KernelRecord(
            self.name.encode(),
            descriptor.entry - module.code.text.address,
            descriptor.user_sgprs,
            descriptor.user_sgpr_count,
            descriptor.workgroup_ids,
            descriptor.workitem_ids,
            descriptor.mode,
            descriptor.vgprs,
            self._static_lds,
            private,
        )
        self._template = LaunchRecord()
        self._template.kernel = ctypes.pointer(self._record)
        self._template.model[:-1] = PARAMETERS[module.device.target].core()

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({', '.join(a.name for a in self.arguments)})>"

    def launch(
        self,
        grid: Size,
        block: Size,
        args: Sequence[object] = (),
        *,
        dynamic_lds: SupportsIndex = 0,
        checks: Iterable[str] | str = (),
        collect: bool = False,
        schedule: str | None = None,
        seed: SupportsIndex = 0,
        measure: Iterable[str] = (),
        memory: Iterable[MemoryItem] = (),
    ) -> Report:
        """Runs a grid of workgroups and waits for its end.

        ``grid`` is in workgroups, ``block`` in threads, each an int or up to three. ``args`` are one value for each of
        ``arguments``: NumPy arrays for pointers (the kernel works in their memory, and may reach the bytes that the
        array can), None for a null pointer, NumPy scalars and bytes for what goes by value. ``memory`` are further
        arrays, or (name, array), that the kernel may reach through pointers in structures.

        ``checks`` are names of CHECKS or "all"; a finding raises CheckError, or is kept in the report with ``collect``.
        ``schedule`` None runs workgroups in order, spread over the device's threads; "random" interleaves the waves of
        several workgroups on one thread, the same way for the same ``seed``. ``measure`` may hold "model".

        Raises LaunchError where the launch cannot begin, and the other errors of this package where it goes wrong.
        """
        workgroups, threads = sizes("grid", grid), sizes("block", block)
        lds, number = integer("dynamic_lds", dynamic_lds), integer("seed", seed)
        mask = check_mask(checks) | measure_mask(measure)
        if schedule not in (None, "random"):
            raise errors.LaunchError(f"schedule is {schedule!r}; it may be None or 'random'")
        self._check_size(workgroups, threads, lds)
        data, spans = self._packer.pack(args, workgroups, threads, lds, memory)
        span_array = (Span * len(spans))(*spans)
        buffer = ctypes.create_string_buffer(len(data) + _ARGUMENTS_ALIGNMENT)
        kernarg = -(-ctypes.addressof(buffer) // _ARGUMENTS_ALIGNMENT) * _ARGUMENTS_ALIGNMENT
        ctypes.memmove(kernarg, bytes(data), len(data))
        launch = LaunchRecord.from_buffer_copy(self._template)
        launch.grid[:] = workgroups
        launch.block[:] = threads
        launch.dynamic_lds = lds
        launch.checks = mask
        launch.collect = collect
        launch.random = schedule == "random"
        launch.seed = number % (1 << 64)
        launch.kernarg = kernarg
        launch.kernarg_bytes = len(data)
        launch.spans = span_array
        launch.span_count = len(spans)
        span_bytes = (ctypes.c_uint64 * len(spans))()
        launch.span_bytes = span_bytes
        device = self.module.device
        with device._lock:
            functions().rdna_run(device._handle, self.module._handle, ctypes.byref(launch))
            if launch.failed:
                raise self._failure(launch)
            return self._report(launch, span_array, span_bytes, workgroups, threads, bool(mask & MEASURE_MODEL))

    def _check_size(self, grid: Dim3, block: Dim3, dynamic_lds: int) -> None:
        if self._refusal:
            raise errors.LaunchError(self._refusal)
        threads = block[0] * block[1] * block[2]
        if threads > min(self.resources.max_block, 1024):
            raise errors.LaunchError(
                f"block {block} has {threads} threads; kernel {self.name} was compiled for at most "
                f"{self.resources.max_block}"
            )
        if grid[0] * block[0] >= 1 << 32 or grid[1] * block[1] >= 1 << 32 or grid[2] * block[2] >= 1 << 32:
            raise errors.LaunchError(f"grid {grid} of blocks {block} has 2^32 threads or more in a dimension")
        if grid[1] > _MOST_YZ or grid[2] > _MOST_YZ or grid[0] * grid[1] * grid[2] > _MOST_WORKGROUPS:
            raise errors.LaunchError(
                f"grid is {grid}; y and z may be up to {_MOST_YZ}, and there may be {_MOST_WORKGROUPS} workgroups in "
                "all"
            )
        if dynamic_lds < 0 or self._static_lds + dynamic_lds > _LDS_LIMIT:
            raise errors.LaunchError(
                f"kernel {self.name} has {self._static_lds} bytes of LDS and dynamic_lds is {dynamic_lds}; "
                f"together they may be {_LDS_LIMIT}"
            )

    def _failure(self, launch: LaunchRecord) -> errors.EmulatorError:
        message: str = launch.message.decode(errors="replace")
        if launch.failed < 0:
            return errors.EmulatorError(f"the launch of {self.name} failed: {message}")
        fault = _FAULTS[int(launch.failed) - 1]
        return fault(self.module._with_source(message))

    def _report(
        self, launch: LaunchRecord, spans: Any, span_bytes: Any, grid: Dim3, block: Dim3, with_model: bool
    ) -> Report:
        by_class = dict(zip(class_names(), launch.by_class, strict=True))
        lines: dict[str, int] = {}
        requested: dict[str, int] = {}
        for span, requested_bytes in zip(spans, span_bytes, strict=True):
            name = span.name.decode()
            lines[name] = lines.get(name, 0) + span.lines
            requested[name] = requested.get(name, 0) + requested_bytes
        counts = {
            "wave_instructions": launch.wave_instructions,
            "by_class": by_class,
            "wmma": by_class["wmma"],
            "global_bytes_requested": launch.bytes_requested,
            "global_bytes_requested_by_argument": requested,
            "segments_32": launch.segments[0],
            "segments_64": launch.segments[1],
            "segments_128": launch.segments[2],
            "unique_lines_128": launch.unique_lines,
            "unique_lines_by_argument": lines,
            "lds_cycles": launch.lds_cycles,
            "lds_cycles_minimum": launch.lds_minimum,
        }
        findings = tuple(
            self.module._with_source(launch.findings[k].decode(errors="replace")) for k in range(launch.finding_count)
        )
        model = None
        if with_model:
            cycles = [
                (launch.model_workgroups[k].critical, launch.model_workgroups[k].busiest)
                for k in range(launch.model_workgroup_count)
            ]
            parameters = PARAMETERS[self.module.device.target]
            model = modelled(parameters, cycles, launch.model_issue, tuple(launch.model_stalls), launch.unique_lines)
        return Report(self.name, grid, block, counts, findings, model)


def _refusal(kernel: KernelObject) -> str:
    """Why no launch of the kernel can be run, or nothing."""
    descriptor = kernel.descriptor
    if not descriptor.wave32:
        return f"kernel {kernel.name} was compiled for waves of 64 lanes (-mwavefrontsize64); this runs waves of 32"
    if descriptor.private_bytes > _SCRATCH_LIMIT:
        wanted = f"kernel {kernel.name} wants {descriptor.private_bytes} bytes of scratch a lane"
        return f"{wanted}; there are up to {_SCRATCH_LIMIT}"
    if descriptor.mode & _MODE_MASK != _MODE:
        overflow = " and FP16_OVFL" if descriptor.mode >> 23 & 1 else ""
        return (
            f"kernel {kernel.name} begins with FLOAT_MODE 0x{descriptor.mode & 0xFF:02x}{overflow}; "
            f"only 0x{_MODE:02x} (nearest even, denormals kept) is executed"
        )
    return ""
