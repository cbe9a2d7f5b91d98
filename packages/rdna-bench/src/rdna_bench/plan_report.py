"""What ``rdna-bench plan`` shows: tables of times and of decode work."""

from __future__ import annotations

from collections.abc import Sequence

from rdna_registry import workgroups_per_row
from rich import box
from rich.console import Group
from rich.table import Table

from rdna_bench.plan_balance import Balance
from rdna_bench.plan_run import DecodeCase, PlanRun, PrefillCase
from rdna_bench.report import machine_table
from rdna_bench.timing import Spread, Timed, ratio


def plan_tables(run: PlanRun) -> Group:
    """Where and how the run was made, and a table of each thing that it measured."""
    return Group(
        _where(run),
        "",
        _prefill_table(run.prefill),
        "again: a batch that has not changed since the last plan.",
        "",
        _decode_table(run.decode),
        "",
        _look_up_table(run.look_ups),
        "",
        _balance_table(run.balance),
        "",
        f"mean: all work over {run.target_workgroups} workgroups. by size: each of n slots has ceil("
        f"{run.target_workgroups} / (n * {workgroups_per_row(run.decode_variant)})) segments.",
    )


def _where(run: PlanRun) -> Table:
    window = f"window {run.window}" if run.window else "no window"
    plans = "those of the transcription" if run.passed else "[red]differ[/red] from those of the transcription"
    table = machine_table(run.machine)
    table.add_row("planned for", f"{run.target}, {run.target_workgroups} workgroups, {window}")
    table.add_row("prefill", f"{run.prefill_variant.name}, plans are {plans}")
    table.add_row("decode", run.decode_variant.name)
    table.add_row("times", f"microseconds, median ± half the interquartile range of {run.repeats} rounds in turns")
    return table


def _prefill_table(cases: Sequence[PrefillCase]) -> Table:
    table = _table(
        "plan_prefill, and a plain NumPy transcription of its rules",
        ("lengths",),
        ("sequences", "entries", "split", "plain", "planner", "ratio", "again"),
    )
    previous = cases[0].batches.lengths
    for case in cases:
        if case.batches.lengths != previous:
            previous = case.batches.lengths
            table.add_section()
        fewest, most = case.entries
        table.add_row(
            case.batches.lengths,
            str(case.batches.sequences),
            str(most) if fewest == most else f"{fewest}-{most}",
            str(case.split_tiles),
            _spread(case.plain.spread),
            _spread(case.planner.spread),
            _spread(ratio(case.plain, case.planner), "x"),
            _spread(case.again.spread),
        )
    return table


def _decode_table(cases: Sequence[DecodeCase]) -> Table:
    table = _table("plan_decode on ragged batches", (), ("sequences", "rows", "planner", "again"))
    for case in cases:
        times = _spread(case.planner.spread), _spread(case.again.spread)
        table.add_row(str(case.sequences), str(case.rows), *times)
    return table


def _look_up_table(look_ups: dict[str, Timed]) -> Table:
    table = _table("look-ups, warm", ("look-up",), ("time",))
    for name, timed in look_ups.items():
        table.add_row(name, _spread(timed.spread))
    return table


def _balance_table(rows: Sequence[Balance]) -> Table:
    table = _table(
        "key blocks of the longest workgroup: plan_decode, and segments by batch size only",
        ("batch", "keys"),
        ("rows", "mean", "planned", "by size", "ratio"),
    )
    for row in rows:
        numbers = f"{row.mean:.1f}", str(row.planned), str(row.by_batch_size), f"{row.ratio:.2f}x"
        table.add_row(row.kind, row.lengths, f"{row.rows} of {row.capacity}", *numbers)
    return table


def _table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.title_style = "bold"
    for heading in texts:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _spread(spread: Spread, unit: str = "") -> str:
    return f"{spread.median:.3g}{unit} ±{50 * (spread.upper - spread.lower) / spread.median:.0f}%"
