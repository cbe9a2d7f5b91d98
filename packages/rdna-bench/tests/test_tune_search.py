"""The parts of ``rdna-bench tune``: candidates, search, state."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rdna_bench.decode_inputs import (
    DecodeInputs,
    DecodeProblem,
    Measured,
    merge_microseconds,
    model_executor,
    segments_of,
)
from rdna_bench.tune_search import MOST_INSTRUCTIONS, MOST_LOSS, search
from rdna_bench.tune_space import SEGMENTS, Candidate, candidates
from rdna_bench.tune_state import TuneState
from rdna_registry import KernelVariant, builds

CONTEXTS = (128, 1024)
PROBLEM = DecodeProblem(14, 2, 64, 1)


def launch(microseconds: float, requested: int = 2**20, partials: int = 0) -> Measured:
    return Measured(
        "build",
        8,
        2**20,
        requested,
        2 * partials,
        partials,
        1000,
        10,
        10,
        microseconds,
        0.0,
        microseconds - 1.5,
        0.5,
        {"vmcnt": 30},
        70,
    )


def test_candidates_differ_in_what_they_do() -> None:
    found = candidates(PROBLEM, builds(), CONTEXTS)
    keys = [(candidate.entry.build, candidate.segments) for candidate in found]
    assert len(keys) == len(set(keys)) > 50
    assert {candidate.entry.build for candidate in found} == {
        build for build in builds() if (build.head_size, build.rows_padded, build.dtype.name) == (64, 16, "fp16")
    }
    assert all(candidate.segments[0] <= candidate.segments[1] <= candidate.entry.max_segments for candidate in found)
    assert {candidate.segments[1] for candidate in found} >= set(SEGMENTS)


def test_row_groups_are_no_more_than_need_be() -> None:
    def groups(query_len: int, most: int) -> set[tuple[int, int]]:
        found = candidates(replace(PROBLEM, max_query_len=query_len), builds(), (64,), most)
        return {(candidate.entry.rows_padded, candidate.entry.row_groups) for candidate in found}

    # 4 new tokens are 28 rows: one group in builds of 32 rows, two in those of 16.
    assert groups(4, 1) == {(32, 1)}
    assert groups(4, 2) == {(32, 1), (16, 2)}
    assert groups(4, 4) == {(32, 1), (16, 2), (16, 4)}
    # 8 are 56 rows: no build takes them in one group.
    assert groups(8, 1) == {(32, 2)}


def test_builds_of_the_same_code_are_tried_once() -> None:
    found = candidates(DecodeProblem(8, 2, 256, 1), builds(), (128,))
    assert {candidate.entry.head_dim_split for candidate in found if candidate.entry.waves == 4} == {0, 4}


@pytest.mark.parametrize("window", [0, 500])
def test_candidates_make_the_segments_that_they_say(window: int) -> None:
    problem = replace(PROBLEM, window=window)
    inputs, executor = DecodeInputs(problem, 1024), model_executor("gfx1151")
    seen = set()
    for candidate in candidates(problem, builds(), (128, 1024))[::7]:
        [_, segments] = candidate.segments
        launch = inputs.measure(executor, candidate.entry)
        alike = inputs.measure(executor, candidate.with_segments(1))
        assert launch.partial_bytes == alike.partial_bytes
        assert segments_of(candidate.entry, 1024) == segments_of(candidate.with_segments(1), 1024) == segments
        assert launch.merge_microseconds == merge_microseconds(segments)
        assert (launch.partial_bytes > 0) == (segments > 1)
        if segments == candidate.entry.max_segments:  # then only the least segment differs, and nothing else may
            assert launch == alike
        seen.add(segments)
    assert len(seen) > 2


def test_the_merge() -> None:
    assert [round(merge_microseconds(segments), 3) for segments in (1, 2, 4, 5, 8, 9)] == [
        0,
        0.315,
        0.315,
        0.42,
        0.42,
        0.525,
    ]


def variant(number: int) -> KernelVariant:
    return KernelVariant(64, 14, 2, 1, 16, 1, min_segment_blocks=number)


def searched(times: list[tuple[float, ...]], costs: dict[int, dict[str, Any]] | None = None) -> int:
    """The number of the candidate that the search chooses; number 0 is what there was before, of times 10."""
    entries = [Candidate(variant(number), (number, number)) for number in range(1, len(times) + 1)]
    table = [(10.0, 10.0), *times]

    def measure(entry: KernelVariant, context: int) -> Measured:
        number = entry.max_segments if entry.max_segments > 1 or entry.min_segment_blocks == 1 else 0
        number = entry.min_segment_blocks if entry.min_segment_blocks > 1 else number
        measured = launch(table[number if number < 100 else 0][CONTEXTS.index(context)])
        return replace(measured, **(costs or {}).get(number, {}))

    tuned = search(variant(100), entries, CONTEXTS, [2**19, 2**19], measure)
    return tuned.entry.min_segment_blocks % 100


def test_the_least_geometric_mean_wins() -> None:
    assert searched([(9.0, 9.0), (6.0, 9.9), (9.9, 7.0)]) == 2


def test_what_was_before_stays_where_nothing_is_better() -> None:
    assert searched([(12.0, 10.0), (10.0, 10.5)]) == 0


def test_no_context_may_lose() -> None:
    assert searched([(5.0, 10.0 * MOST_LOSS + 0.01), (9.0, 10.0 * MOST_LOSS)]) == 2


def test_long_contexts_may_not_issue_much_more() -> None:
    many: dict[str, Any] = {"wave_instructions": int(1000 * MOST_INSTRUCTIONS) + 1}
    assert searched([(5.0, 5.0), (9.0, 9.0)], {1: many}) == 2
    assert searched([(5.0, 5.0), (9.0, 9.0)], {1: {"wave_instructions": int(1000 * MOST_INSTRUCTIONS)}}) == 1
    limited = search(
        variant(100),
        [Candidate(variant(1), (1, 1))],
        CONTEXTS,
        [2**19, 2**19],
        lambda entry, context: launch(10.0 if entry == variant(100) else 5.0),
        {1024: 999.0},
    )
    assert limited.entry == variant(100)
    short = search(
        variant(100),
        [Candidate(variant(1), (1,))],
        (128,),
        [2**19],
        lambda entry, context: launch(10.0) if entry == variant(100) else replace(launch(5.0), **many),
    )
    assert short.entry == variant(1)


def test_of_those_as_good_the_one_that_asks_for_less_wins() -> None:
    cheap = {2: {"requested_bytes": 2**19}}
    assert searched([(8.0, 8.0), (8.03, 8.03)], cheap) == 2
    assert searched([(8.0, 8.0), (8.0, 8.07)], cheap) == 2
    assert searched([(8.0, 8.0), (8.05, 8.05)], cheap) == 1
    assert searched([(8.0, 8.0), (8.0, 8.0)], {1: {"partial_bytes": 128}}) == 2


def test_gains() -> None:
    tuned = search(variant(100), [], CONTEXTS, [1, 1], lambda entry, context: launch(float(context)))
    assert (tuned.gain_percent, tuned.gains) == (0, {128: 0.0, 1024: 0.0})
    better = replace(tuned, launches={128: launch(100.0), 1024: launch(1024.0)})
    assert better.gain_percent == 28
    assert math.isclose(better.gains[128], 0.28)


HEADER = {"format": 1, "target": "gfx1151"}


def test_a_state_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = TuneState(path, HEADER)
    state.put("a", 128, "code", launch(3.0))
    state.put("b", 128, "code", launch(4.0))
    read = TuneState(path, HEADER)
    assert len(read) == 2
    assert read.get("a", 128, "code") == launch(3.0)
    assert read.get("a", 1024, "code") is None
    assert read.get("a", 128, "other code") is None


def test_a_line_that_was_cut_short_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = TuneState(path, HEADER)
    state.put("a", 128, "code", launch(3.0))
    whole = path.read_bytes()
    for cut in (whole[:-1], whole[:-30]):
        path.write_bytes(cut)
        assert len(TuneState(path, HEADER)) == 0
    path.write_bytes(whole + b'{"variant":"b","con')
    again = TuneState(path, HEADER)
    assert len(again) == 1
    again.put("b", 128, "code", launch(4.0))
    assert len(TuneState(path, HEADER)) == 2


@pytest.mark.parametrize(
    "line", ["", "{", "[1]", '{"variant":"a"}', '{"variant":"a","context":1,"code":"c","measured":{"x":1}}']
)
def test_another_file_is_no_state(tmp_path: Path, line: str) -> None:
    path = tmp_path / "state"
    TuneState(path, HEADER)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match="state line 2 is no line of a tuning state: remove the file"):
        TuneState(path, HEADER)


def test_the_state_of_another_target_is_refused(tmp_path: Path) -> None:
    TuneState(tmp_path / "state", HEADER)
    with pytest.raises(ValueError, match="holds launches of target 'gfx1151', this run is of 'gfx1100'"):
        TuneState(tmp_path / "state", {**HEADER, "target": "gfx1100"})
