"""The candidates of a decode shape: what its builds and run-time knobs allow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from rdna_registry import DEFAULT_TARGET, Build, KernelVariant

from rdna_bench.decode_inputs import DecodeProblem, key_blocks

#: Numbers of KV segments that are tried; more than these gain nothing that the model sees.
SEGMENTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)


class Candidate(NamedTuple):
    """An entry, and the KV segments that it makes at each context."""

    entry: KernelVariant
    segments: tuple[int, ...]

    def with_segments(self, context: int) -> KernelVariant:
        """The entry of the same build that makes as many segments at the context of this index, however short."""
        return dataclasses.replace(self.entry, max_segments=self.segments[context], min_segment_blocks=1)


def candidates(
    problem: DecodeProblem, builds: Iterable[Build], contexts: tuple[int, ...], row_groups: int = 1
) -> list[Candidate]:
    """Every build with its fewest row groups and with ``row_groups``, with every number of segments at each context
    that a cap and a least segment give; of several that give the same, the one with the least cap and the shortest
    least segment.

    Builds that need more than ``row_groups``, and more than another build does, are left out: each row group reads all
    of K and V, and the model takes for granted that all but the first find them in a cache.
    """
    forms = _forms(problem, builds, row_groups)
    most = max(row_groups, min((form.row_groups for form in forms), default=1))
    found: list[Candidate] = []
    for form in forms:
        if form.row_groups > most:
            continue
        blocks = [key_blocks(form, context) for context in contexts]
        least = {1} | {count // segments for count in blocks for segments in SEGMENTS if count >= segments}
        seen: dict[tuple[int, ...], Candidate] = {}
        for cap in SEGMENTS:
            for shortest in sorted(least):
                made = tuple(max(1, min(cap, count // shortest)) for count in blocks)
                entry = dataclasses.replace(form, max_segments=cap, min_segment_blocks=shortest)
                seen.setdefault(made, Candidate(entry, made))
        found += seen.values()
    return found


def _forms(problem: DecodeProblem, builds: Iterable[Build], row_groups: int) -> list[KernelVariant]:
    rows = problem.num_q_heads // problem.num_kv_heads * problem.max_query_len
    shape = problem.entry(DEFAULT_TARGET, modelled=False)  # any target's will do: its knobs are replaced
    forms: dict[tuple[int, ...], KernelVariant] = {}
    for build in sorted(builds, key=lambda build: build.name):
        if (build.head_size, build.dtype.name, build.dot_product) != (problem.head_size, problem.dtype, 0):
            continue
        fewest = -(-rows // build.rows_padded)
        for groups in sorted({fewest, max(fewest, row_groups)}):
            entry = dataclasses.replace(
                shape,
                row_groups=groups,
                waves=build.waves,
                head_dim_split=build.head_dim_split,
                prefetch=build.prefetch,
                v_in_lds=build.v_in_lds,
                dot_product=build.dot_product,
            )
            # A split that is also the default is the same machine code under two names.
            code = groups, build.rows_padded, build.waves, build.waves_per_tile, build.prefetch, build.v_in_lds
            if entry.build == build:
                forms.setdefault(code, entry)
    return list(forms.values())
