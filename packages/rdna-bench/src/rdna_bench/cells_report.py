"""What ``rdna-bench decode --table`` shows."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from rdna_bench.cells_aims import Aim
from rdna_bench.decode_cells import CellResult, CellsRun, CountsResult, Judgement
from rdna_bench.fitted import Fitted
from rdna_bench.report import plural

_MOST_MISSED = 3


def cells_tables(run: CellsRun) -> Group:
    """Each context's cells, the comparison with others' counts, and how far the model can be trusted."""
    machine = f"{run.machine.processor}, {run.machine.cores} cores, {run.machine.system}"
    parts: list[RenderableType] = [
        f"{run.target} machine code, {run.dtype}, one sequence, pages of 16, emulated on {escape(machine)}.",
        "modelled: cycles of an in-order issue model with assumed and published parameters, and the round trips of the",
        "merge of segments; nothing ran on a GPU.",
        "touched, requested: bytes over those needed, scratch left out. scratch: bytes asked of partials, both ways.",
        "knobs: tuned (a published row), modelled (tuned with the model) or derived (from such rows).",
        "published: times of others' kernel on a Radeon 8060S. roof: 1.48 us and the needed bytes at 230 GiB/s.",
        "",
    ]
    for context in sorted({result.cell.context for result in run.results}):
        parts += [_cells(context, [result for result in run.results if result.cell.context == context]), ""]
    if run.counts:
        parts += [_counts(run.counts), ""]
    parts += [_aims(run.aims()), ""]
    parts.append(_judgements(run.judgements()))
    parts += [f"not served: {plural(len(names), 'call')}. {escape(why)}" for why, names in run.refused.items()]
    return Group(*parts)


def _cells(context: int, results: Iterable[CellResult]) -> Fitted:
    headings = ("touched", "requested", "scratch KB", "instr/key", "LDS/key", "WMMA", "stalled", "knobs")
    table = _table(f"{context} tokens of context", *headings)
    for heading in ("modelled", "of roof", "published", "of roof", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        cell, published = result.cell, result.cell.published_microseconds
        times = ("", "", "")
        if published is not None:
            share = f"{100 * result.roof_microseconds / published:.0f} %"
            times = (f"{published:.1f}", share, f"{result.measured.modelled_microseconds / published:.2f}")
        table.add_row(
            f"{cell.num_q_heads}/{cell.num_kv_heads} x {cell.head_size}, {cell.max_query_len} new",
            f"{result.measured.touched_bytes / result.needed_bytes:.3f}",
            f"{result.measured.requested_bytes / result.needed_bytes:.3f}",
            f"{result.measured.scratch_bytes / 1e3:.0f}",
            f"{result.measured.wave_instructions / cell.context:.1f}",
            f"{result.measured.lds_cycles / cell.context:.1f}",
            f"{100 * result.measured.wmma / result.measured.wave_instructions:.1f} %",
            f"{100 * result.stalled:.0f} %",
            result.provenance,
            f"{result.measured.modelled_microseconds:.1f}",
            f"{100 * result.roof_microseconds / result.measured.modelled_microseconds:.0f} %",
            *times,
        )
    return Fitted(table, ("LDS/key", "WMMA", "stalled", "instr/key", "scratch KB", "of roof", "touched"))


def _counts(results: Iterable[CountsResult]) -> Fitted:
    table = _table("counts, beside those of other kernels", "kilo-instr", "requested", "partials KB", "scratch KB")
    for result in results:
        ours = result.result
        table.add_row(
            f"{ours.cell.name}: ours",
            f"{ours.measured.wave_instructions / 1e3:.0f}",
            f"{ours.measured.requested_bytes / ours.needed_bytes:.3f}",
            f"{ours.measured.partial_bytes / 1e3:.0f}",
            f"{ours.measured.scratch_bytes / 1e3:.0f}",
        )
        for other in result.others:
            table.add_row(
                f"  {other.kernel}",
                f"{other.kilo_instructions:.0f}",
                f"{other.requested_over_needed:.3f}",
                f"{other.partials_kb:.0f}",
                "",
            )
    return Fitted(table, ("scratch KB",))


def _aims(found: Iterable[Aim]) -> Table:
    table = _table("what the kernel aims at", "reached")
    table.columns[0].no_wrap = False
    for aim in found:
        roof = f", the roof allows {aim.allowed}" if aim.allowed < aim.cells else ""
        table.add_row(aim.name, f"{aim.reached} of {aim.cells}{roof}")
        for cell in aim.missed[:_MOST_MISSED]:
            table.add_row(f"  {escape(cell)}")
        if len(aim.missed) > _MOST_MISSED:
            table.add_row(f"  and {len(aim.missed) - _MOST_MISSED} more")
    return table


def _judgements(judgements: Iterable[Judgement]) -> Table:
    table = _table("overhead over the roof: the model's ranks against the published ones", "cells", "Spearman")
    table.add_column("furthest apart (modelled rank, published rank)")
    for judgement in judgements:
        worst = "; ".join(f"{name} ({ours}, {theirs})" for name, ours, theirs in judgement.worst)
        spearman = "-" if judgement.spearman is None else f"{judgement.spearman:.2f}"
        table.add_row(f"{judgement.context} tokens", str(judgement.cells), spearman, worst)
    return table


def _table(title: str, *numbers: str) -> Table:
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False
    )
    table.title_style = "bold"
    table.add_column("", no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
