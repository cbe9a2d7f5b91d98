from __future__ import annotations

from dataclasses import replace

import pytest
from command import invoke, invoke_json
from rdna_bench import decode_cells
from rdna_bench.cells_aims import aims
from rdna_bench.decode_cells import Cell, CellResult, CellsRun, CountsResult, judge, ranks_of
from rdna_bench.decode_inputs import DecodeInputs, DecodeProblem, Measured, model_executor
from rdna_bench.published import PublishedCounts, PublishedTime, published_counts, published_times


def result(published: float, modelled: float) -> CellResult:
    cell = Cell(64, 14, 2, 1, 1024, published)
    measured = Measured("build", 8, 2**20, 2**20, 0, 0, 1000, 10, 10, modelled, 0.0, modelled, 1.0, {"vmcnt": 30}, 70)
    return CellResult(cell, "tuned", 2**20, measured)


def test_the_published_tables() -> None:
    times, counts = published_times(), published_counts()
    assert len(times) == 52
    assert {tuple(row.microseconds) for row in times} == {decode_cells.CONTEXTS}
    first = PublishedTime(64, 14, 2, 1, {128: 3.81, 1024: 5.91, 8192: 20.9, 32768: 76.2})
    assert times[0] == first
    assert len(counts) == 20
    assert {row.kernel for row in counts} == {"triton", "hip_fork", "hip_fork_pinned", "hip_fork_dot"}


def test_ranks_share_what_is_equal() -> None:
    assert ranks_of([5.0, 1.0, 5.0, 7.0]).tolist() == [2.5, 1.0, 2.5, 4.0]


def test_the_model_is_judged_by_the_order_of_the_overheads() -> None:
    cells = [result(published, modelled) for published, modelled in ((6, 7), (7, 8), (8, 9), (9, 30))]
    assert judge(1024, cells).spearman == pytest.approx(1)
    turned = [result(cell.cell.published_microseconds or 0, 40 - cell.measured.modelled_microseconds) for cell in cells]
    judgement = judge(1024, turned)
    assert judgement.spearman == pytest.approx(-1)
    assert judgement.worst[0] == ("14/2 x 64, 1 new, 1024", 4, 1)
    assert judge(1024, cells[:1]).spearman is None


def test_derived_figures() -> None:
    measured = result(6.0, 12.0)
    assert measured.roof_microseconds == pytest.approx(1.48 + 2**20 / (230 * 2**30) * 1e6)
    assert measured.modelled_over_published == 2
    assert measured.stalled == pytest.approx(0.3)


def test_aims() -> None:
    good, slow = result(10.0, 8.0), result(10.0, 9.0)
    short = [replace(cell, cell=replace(cell.cell, context=128)) for cell in (good, slow)]
    long = replace(slow, cell=replace(slow.cell, context=8192), needed_bytes=2**19)
    other = PublishedCounts(14, 2, 64, 1, 1024, "hip_fork", 0.9, 1.1, 0.0)
    found = aims([*short, long], [CountsResult(good, (other, replace(other, kernel="triton", kilo_instructions=2)))])
    assert [(aim.cells, aim.reached) for aim in found] == [(2, 1), (1, 1), (0, 0), (1, 0), (2, 1), (1, 1), (1, 1)]
    assert [aim.allowed for aim in found[:2]] == [2, 1]
    assert found[0].missed == ("14/2 x 64, 1 new, 128: 0.900",)
    assert found[3].missed == ("14/2 x 64, 1 new, 8192: 2.000",)
    assert found[4].missed == ("14/2 x 64, 1 new, 1024 (hip_fork): 1.111",)


def test_an_aim_that_the_roof_does_not_allow() -> None:
    cell = result(6.0, 5.9)
    long = replace(cell, cell=replace(cell.cell, context=32768))
    assert long.roof_microseconds > 0.95 * 6.0
    [aim] = [aim for aim in aims([long], []) if "32768" in aim.name]
    assert (aim.cells, aim.reached, aim.allowed) == (1, 0, 0)


def test_a_launch_is_modelled_alike_each_time() -> None:
    problem = DecodeProblem(14, 2, 64, 4, window=100, page_size=48)
    assert problem.name == "14/2 x 64, 4 new, window 100, pages of 48"
    launches = []
    for _ in range(2):
        inputs = DecodeInputs(problem, 700)
        launches += [inputs.measure(model_executor("gfx1151"), problem.entry("gfx1151")) for _ in range(2)]
    assert all(launch == launches[0] for launch in launches)
    # K and V of 103 keys, Q, output and table entries; then the rest of the first and last key tile.
    assert (
        103 * 2 * 2 * 64 * 2 < problem.needed_bytes(700) <= launches[0].touched_bytes < 1.3 * problem.needed_bytes(700)
    )


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (published_times()[0], PublishedTime(70, 8, 2, 1, {128: 4.0}))
    monkeypatch.setattr(decode_cells, "published_times", lambda: rows)
    small = tuple(row for row in published_counts() if (row.num_q_heads, row.context) == (14, 1024))
    monkeypatch.setattr(decode_cells, "published_counts", lambda: small)


@pytest.mark.usefixtures("few_cells")
def test_a_run() -> None:
    run = CellsRun(target="gfx1151", contexts=(128, 1024))
    heard: list[int] = []
    run.run(lambda stage, done, total: heard.append(done))
    assert heard == [0, 1, 2, 3, 4]
    assert [measured.cell.context for measured in run.results] == [128, 1024]
    for measured in run.results:
        assert 1 <= measured.measured.touched_bytes / measured.needed_bytes < 1.03
        assert measured.measured.modelled_microseconds >= measured.roof_microseconds * 0.99
        assert 0 < measured.stalled < 1
    [counted] = run.counts
    assert [other.kernel for other in counted.others] == ["triton", "hip_fork"]
    ours = counted.result.measured
    # Partial results are written once and read by whoever arrives last.
    assert 0 < ours.partial_bytes < ours.scratch_bytes <= 4 * ours.partial_bytes
    assert 1 <= ours.requested_bytes / counted.result.needed_bytes < 1.05
    [(reason, names)] = run.refused.items()
    assert "head_size is 70" in reason
    assert names == ["8/2 x 70, 1 new, 128"]


@pytest.mark.usefixtures("few_cells")
def test_the_command() -> None:
    shown = invoke("decode", "--table")
    assert shown.exit_code == 0, shown.output
    for part in (
        "modelled",
        "published",
        "tuned",
        "Spearman",
        "not served: 1 call. head_size is 70",
        "hip_fork",
        "aims at",
    ):
        assert part in shown.output
    data = invoke_json("decode", "--table")
    assert len(data["cells"]) == 4
    assert data["cells"][0]["modelled_over_published"] > 0
