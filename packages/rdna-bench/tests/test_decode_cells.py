from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rdna_bench import decode_cells
from rdna_bench.cli import app
from rdna_bench.decode_cells import Cell, CellResult, CellsRun, judge, ranks_of
from rdna_bench.published import PublishedTime, published_counts, published_times
from typer.testing import CliRunner


def result(published: float, modelled: float) -> CellResult:
    cell = Cell(64, 14, 2, 1, 1024, published)
    return CellResult(cell, "build", 8, 2**20, 2**20, 2**20, 0, 1000, 10, 10, modelled, modelled, {"vmcnt": 30}, 70)


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
    turned = [replace(cell, modelled_microseconds=40 - cell.modelled_microseconds) for cell in cells]
    judgement = judge(1024, turned)
    assert judgement.spearman == pytest.approx(-1)
    assert judgement.worst[0] == ("14/2 x 64, 1 new, 1024", 4, 1)
    assert judge(1024, cells[:1]).spearman is None


def test_derived_figures() -> None:
    measured = result(6.0, 12.0)
    assert measured.roof_microseconds == pytest.approx(1.48 + 2**20 / (230 * 2**30) * 1e6)
    assert measured.modelled_over_published == 2
    assert measured.stalled == pytest.approx(0.3)


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (published_times()[0], PublishedTime(72, 8, 2, 1, {128: 4.0}))
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
        assert 1 <= measured.touched_bytes / measured.needed_bytes < 1.03
        assert measured.modelled_microseconds >= measured.roof_microseconds * 0.99
        assert 0 < measured.stalled < 1
    [counted] = run.counts
    assert [other.kernel for other in counted.others] == ["triton", "hip_fork"]
    assert counted.result.partial_bytes > 0
    [(reason, names)] = run.refused.items()
    assert "head_size is 72" in reason
    assert names == ["8/2 x 72, 1 new, 128"]


@pytest.mark.usefixtures("few_cells")
def test_the_command() -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["decode", "--table"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    for part in ("modelled", "published", "Spearman", "not served: 1 call. No entry: head_size is 72", "hip_fork"):
        assert part in shown.output
    data = json.loads(runner.invoke(app, ["decode", "--table", "--json"]).stdout)
    assert len(data["cells"]) == 4
    assert data["cells"][0]["modelled_over_published"] > 0
