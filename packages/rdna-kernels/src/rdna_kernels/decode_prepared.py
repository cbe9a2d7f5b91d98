"""A decode call whose layouts and knobs have passed every check: only addresses and values are left to each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from rdna_registry import KernelVariant

from rdna_kernels.decode_arguments import DECODE_ARGUMENTS
from rdna_kernels.decode_call import DecodeCall
from rdna_kernels.decode_features import Features, feature_constants
from rdna_kernels.decode_values import check_logits, check_plan, check_values
from rdna_kernels.errors import ArgumentError
from rdna_kernels.executors import Executor, Function
from rdna_kernels.layout import ALIGNMENT, Layout, Placed, extent, require_no_overlap, spans_apart
from rdna_kernels.packing import Packer
from rdna_kernels.record import LaunchRecord
from rdna_kernels.scratch import Scratch
from rdna_kernels.scratch_check import check_scratch, cut_scratch, require_zero_counters

ARRAYS = ("q", "kv_cache", "block_table", "seq_lens", "sinks", "alibi_slopes", "plan", "out", "lse")
"""The arrays of a call; those that are not among `REQUIRED_ARRAYS` may be None."""

REQUIRED_ARRAYS = ARRAYS[:4]

_SINKS, _OUT = ARRAYS.index("sinks"), ARRAYS.index("out")
_SCRATCH = ("partial_acc", "partial_max", "partial_sum", "counters")
_WRITTEN = frozenset({"out", "lse"})
_SIXTEEN_BITS = frozenset({"q", "kv_cache", "out"})
_ALIGNMENTS = tuple(ALIGNMENT if name in _SIXTEEN_BITS else 4 for name in ARRAYS)
_PACKER = Packer(DECODE_ARGUMENTS)
_MOST_PLACES = 256  # the layers of a model and the buffers that its allocator takes turns with, or about so


class _ScratchPlaces:
    """Where scratch that has been checked lies."""

    def __init__(self, places: Sequence[Placed]) -> None:
        self.places = places
        self.addresses = tuple(place.address for place in places)
        self.spans = [(place.address, place.address + extent(place.layout, place.itemsize)) for place in places]


_NO_SCRATCH = _ScratchPlaces(())


class PreparedDecode:
    """What is left of a call: checks of its addresses and values, new arrays where none were given, and the launch."""

    def __init__(
        self,
        executor: Executor,
        call: DecodeCall,
        scale: float,
        softcap: float,
        layouts: Sequence[Layout | None],
        variant: KernelVariant | None,
    ) -> None:
        self.executor = executor
        self.call = call
        self.variant = variant  # kept alive: who looks for this call knows it by number
        self._layouts = layouts
        features = Features(layouts[_SINKS], layouts[_SINKS + 1], layouts[_SINKS + 2], layouts[_OUT + 1], softcap)
        self._template = _PACKER.template({**call.constants, **feature_constants(features, scale)})
        given = (*ARRAYS, *_SCRATCH)
        self._pick = itemgetter(*[given.index(name) for name in self._template.names])
        self._function: Function | None = None
        self._sizes = [
            0 if layout is None else call.extents[name] for name, layout in zip(ARRAYS, layouts, strict=True)
        ]
        self._writes = layouts[_OUT] is not None or layouts[_OUT + 1] is not None
        self._checked: dict[Any, bytes | None] = {}
        self._scratch: dict[Any, _ScratchPlaces] = {}

    def run(
        self,
        arrays: tuple[Any, ...],
        addresses: list[int],
        scratch: Sequence[Any] | None,
        scratch_looks: tuple[Any, ...] | None,
        report: list[LaunchRecord] | None,
    ) -> Any:
        """Launch; returns `out`.

        `arrays` are those of `ARRAYS` (out may be None) and `addresses` theirs; `scratch` and `scratch_looks` are the
        caller's scratch and what the executor's `look` says of it.
        """
        executor, call = self.executor, self.call
        key = (*addresses, scratch_looks)
        try:
            packed = self._checked[key]
        except KeyError:
            packed = self._check(key, addresses, scratch)
        if executor.checks_values:
            self._check_values(arrays, scratch)
        function = self._function
        if function is None:
            function = self._function = executor.build_function(call.build_name, call.kernel_suffix)
        if packed is not None and not executor.tracks_memory and call.workgroups:
            counts = executor.launch(function, call.grid, call.block, packed, ())
            out = arrays[_OUT]
        else:
            out, counts = self._run_with_memory(function, arrays, addresses, scratch)
        if report is not None and call.workgroups:
            report.append(self._record(counts))
        return out

    def _run_with_memory(
        self, function: Function, arrays: tuple[Any, ...], addresses: list[int], scratch: Sequence[Any] | None
    ) -> tuple[Any, Mapping[str, Any]]:
        executor, call = self.executor, self.call
        out = arrays[_OUT]
        stream = executor.stream()
        if (out is None or scratch is None) and not executor.may_allocate(stream, kept=scratch is None):
            raise ArgumentError(
                "a graph is being captured, in which nothing may be allocated: pass out and scratch "
                "(rdna_registry.make_scratch makes it), and keep them for as long as the graph"
            )
        if out is None:
            out = executor.empty_beside(arrays[0], call.out_shape)
            arrays = (*arrays[:_OUT], out, *arrays[_OUT + 1 :])
            addresses[_OUT] = executor.address(out)
        if not call.workgroups:
            return out, {}
        if scratch is not None:
            memory = cut_scratch(executor, scratch, call.need, check_scratch(executor, scratch, call.need))
            return out, self._launch(function, arrays, addresses, memory, stream)
        with executor.scratch.lend(call.need, stream) as memory:
            return out, self._launch(function, arrays, addresses, memory, stream)

    def _launch(
        self, function: Function, arrays: tuple[Any, ...], addresses: list[int], scratch: Scratch, stream: Any
    ) -> Mapping[str, Any]:
        memory: list[tuple[str, Any]] = []
        if self.executor.tracks_memory:
            memory = [
                *[(name, array) for name, array in zip(ARRAYS, arrays, strict=True) if array is not None],
                ("partials", scratch.partial_acc),
                ("partials", scratch.partial_max),
                ("partials", scratch.partial_sum),
                ("counters", scratch.counters),
            ]
        packed = self._template.pack(self._pick((*addresses, *[scratch.addresses[name] for name in _SCRATCH])))
        return self.executor.launch(function, self.call.grid, self.call.block, packed, memory, stream)

    def _record(self, counts: Mapping[str, Any]) -> LaunchRecord:
        executor, call, device = self.executor, self.call, self.executor.properties
        return LaunchRecord(
            "decode",
            call.build_name,
            executor.target,
            executor.name,
            call.workgroups,
            counts,
            call.provenance,
            device.name,
            device.runtime,
        )

    def _check(self, key: Any, addresses: list[int], scratch: Sequence[Any] | None) -> bytes | None:
        """Check where the arrays lie, and remember it; the packed arguments where all arrays were given."""
        places = _NO_SCRATCH
        if scratch is not None:
            found = self._scratch.get(key[-1])
            if found is None:
                found = _ScratchPlaces(check_scratch(self.executor, scratch, self.call.need))
                _remember(self._scratch, key[-1], found)
            places = found
        self._check_places(addresses, places)
        packed = None
        if scratch is not None and self._layouts[_OUT] is not None:
            packed = self._template.pack(self._pick((*addresses, *places.addresses)))
        _remember(self._checked, key, packed)
        return packed

    def _check_places(self, addresses: list[int], scratch: _ScratchPlaces) -> None:
        aligned = not any(address % alignment for address, alignment in zip(addresses, _ALIGNMENTS, strict=True))
        spans = [(address, address + size) for address, size in zip(addresses, self._sizes, strict=True) if size]
        if aligned and (spans_apart([*spans, *scratch.spans]) or not (self._writes or scratch.spans)):
            return
        given = [
            Placed(name, address, layout, 2 if name in _SIXTEEN_BITS else 4)
            for name, address, layout in zip(ARRAYS, addresses, self._layouts, strict=True)
            if layout is not None
        ]
        for place in given:
            alignment = _ALIGNMENTS[ARRAYS.index(place.name)]
            if place.address % alignment:
                raise ArgumentError(
                    f"{place.name} begins at address {place.address:#x}, not a multiple of {alignment} bytes: pass an "
                    "aligned copy"
                )
        written = [place for place in given if place.name in _WRITTEN]
        read = [place for place in given if place.name not in _WRITTEN]
        require_no_overlap([*written, *scratch.places], read)

    def _check_values(self, arrays: tuple[Any, ...], scratch: Sequence[Any] | None) -> None:
        executor, call = self.executor, self.call
        if scratch is not None:
            require_zero_counters(executor, scratch[-1], call.need)
        lengths, table = (executor.host_values(arrays[ARRAYS.index(name)]) for name in ("seq_lens", "block_table"))
        if lengths is not None and table is not None:
            check_values(lengths, table, call.page_size, call.num_pages)
        plan = arrays[ARRAYS.index("plan")]
        rows = None if plan is None else executor.host_values(plan)
        if rows is not None:
            check_plan(rows, call.out_shape[0] // call.constants["max_query_len"])
        sinks, slopes = (arrays[_SINKS + k] for k in range(2))
        if sinks is not None or slopes is not None:
            check_logits(*(None if values is None else executor.host_values(values) for values in (sinks, slopes)))


def _remember(cache: dict[Any, Any], key: Any, value: Any) -> None:
    if len(cache) >= _MOST_PLACES:
        cache.clear()
    cache[key] = value
