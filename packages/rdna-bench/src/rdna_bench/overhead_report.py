"""What ``rdna-bench overhead`` shows: where the host's time of a call goes."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.table import Table

from rdna_bench.overhead_run import HEAD_SIZE, NUM_KV_HEADS, NUM_Q_HEADS, NUM_SEQS, OverheadRun, Part
from rdna_bench.report import machine_table


def overhead_tables(run: OverheadRun) -> Group:
    """Where and how the run was made, whole calls, the parts of the warm one, and what other arrays would take."""
    calls = _table("host side of a call, microseconds", "call")
    for part in run.parts:
        if part.kind == "call":
            _row(calls, part)
    parts = _table("where the warm call's time goes, microseconds", "part")
    for part in run.parts:
        if part.kind == "part":
            _row(parts, part)
    parts.add_row("everything else", f"{run.rest:.2f}", "", "")
    others = _table("reading other arrays, microseconds", "arrays")
    for part in run.parts:
        if part.kind == "array":
            _row(others, part)
    verdict = "within" if run.passed else "[red]above[/red]"
    return Group(
        _where(run),
        "",
        calls,
        f"The fastest warm call is {verdict} the limit of {run.limit_us:g} us.",
        "",
        parts,
        "",
        others,
    )


def _where(run: OverheadRun) -> Table:
    table = machine_table(run.machine)
    table.add_row("runtime", f"{run.runtime} emulated, launching switched off; {run.target}")
    table.add_row(
        "call", f"{NUM_SEQS} sequences, {NUM_Q_HEADS} query heads on {NUM_KV_HEADS} kv heads, head size {HEAD_SIZE}"
    )
    table.add_row("times", f"fastest, median and upper quartile of {run.repeats} rounds in turns")
    return table


def _table(title: str, heading: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.title_style = "bold"
    table.add_column(heading, no_wrap=True)
    for name in ("fastest", "median", "upper quartile"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _row(table: Table, part: Part) -> None:
    spread = part.timed.spread
    table.add_row(part.name, *(f"{value:.2f}" for value in (part.least, spread.median, spread.upper)))
