"""Results as a person reads them: rich tables of what a run did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rdna_kernels import BuildRecord
from rich import box
from rich.markup import escape
from rich.table import Table

from rdna_bench.attention import Comparison
from rdna_bench.machine import Machine
from rdna_bench.model_run import ModelRun
from rdna_bench.synthetic import DecodeRun
from rdna_bench.traffic import Tally


def quantity(value: float, unit: str = "") -> str:
    """``value`` with about three digits and its unit: 12345678 B is "12.3 MB"."""
    for limit, divisor, prefix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= limit:
            return f"{value / divisor:.3g} {prefix}{unit}"
    return (f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}").rstrip()


def plural(count: int, noun: str) -> str:
    """``count`` and ``noun``, in the plural unless the count is 1."""
    return f"{count} {noun}" + ("" if count == 1 else "es" if noun.endswith("ch") else "s")


def generate_table(run: ModelRun) -> Table:
    """Summary of a model run."""
    options, greedy = run.options, run.run
    table = summary_table()
    table.add_row("model", f"{escape(run.file.name)}, {options.dtype} cache in pages of {options.page_size}")
    _add_where(table, options.target, options.checks)
    table.add_row("prompt", f"{len(run.prompt_tokens)} tokens in {greedy.prompt_seconds:.2f} s")
    table.add_row(
        "answer",
        f"{plural(len(greedy.tokens), 'token')}, {greedy.tokens_per_second:.1f} tokens/s, up to the {greedy.finish}",
    )
    _add_tally(table, run.tally)
    if run.comparison is not None:
        _add_comparison(table, run.comparison)
    if run.tokens is not None:
        if run.tokens.equal:
            table.add_row("tokens", f"all {len(greedy.tokens)} equal to a run on NumPy attention")
        else:
            table.add_row(
                "tokens",
                f"[red]differ[/red] from a run on NumPy attention from token {run.tokens.first_difference} on, where "
                f"its two best logits are {run.tokens.margin:.3g} apart; it answers: {escape(run.tokens.numpy_text)}",
            )
    return table


def decode_table(run: DecodeRun) -> Table:
    """Summary of a synthetic decode call."""
    shape = run.shape
    table = summary_table()
    table.add_row(
        "shape",
        f"{shape.num_seqs} x {shape.context} tokens, {shape.max_query_len} new; {shape.num_q_heads} q heads on "
        f"{shape.num_kv_heads} kv heads of {shape.head_size}; {shape.dtype}, pages of {shape.page_size}, "
        + (f"window {shape.window}" if shape.window else "no window"),
    )
    _add_where(table, run.target, run.checks)
    _add_tally(table, run.tally)
    if run.comparison is not None:
        _add_comparison(table, run.comparison)
    return table


def builds_table(target: str, records: Iterable[BuildRecord]) -> Table:
    """The manifest's builds for one target, a build a row; sizes in bytes."""
    table = Table(title=target, title_justify="left", box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("build", no_wrap=True)
    for heading in ("VGPR", "SGPR", "LDS", "scratch", "spills", "waves", "code"):
        table.add_column(heading, justify="right", no_wrap=True)
    for record in records:
        table.add_row(record.name, *(str(number) for number in _resources(record)))
    return table


def _resources(record: BuildRecord) -> Sequence[int]:
    return (
        record.vgpr,
        record.sgpr,
        record.lds_bytes,
        record.scratch_bytes,
        record.vgpr_spills + record.sgpr_spills,
        record.waves_per_simd,
        record.code_bytes,
    )


def summary_table() -> Table:
    """A table of what is said, and of what of it."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def machine_table(machine: Machine) -> Table:
    """A summary that begins with the machine and the versions of a measurement."""
    load = "" if machine.load is None else f", load {machine.load}"
    table = summary_table()
    table.add_row("machine", escape(f"{machine.processor}, {machine.cores} cores, {machine.system}{load}"))
    table.add_row("versions", f"{machine.python}, NumPy {machine.numpy}")
    return table


def _add_where(table: Table, target: str, checks: Sequence[str]) -> None:
    table.add_row("target", f"{target} machine code on the emulated executor, checks: {', '.join(checks) or 'none'}")


def _add_tally(table: Table, tally: Tally) -> None:
    for index, (name, launches) in enumerate(sorted(tally.builds.items())):
        table.add_row(
            "" if index else "builds", f"{name}, {plural(launches, 'launch')}, {escape(tally.provenance[name])}"
        )
    rate = tally.wave_instructions / tally.seconds if tally.seconds else 0.0
    table.add_row(
        "launches", f"{tally.launches} with {plural(tally.workgroups, 'workgroup')} in all, {tally.seconds:.2f} s"
    )
    table.add_row(
        "instructions",
        f"{quantity(tally.wave_instructions)} wave-instructions, {quantity(rate)}/s; {quantity(tally.wmma)} WMMA",
    )
    ratio = tally.bytes_touched / tally.bytes_needed if tally.bytes_needed else 0.0
    table.add_row(
        "memory",
        f"{quantity(tally.bytes_touched, 'B')} touched, {quantity(tally.bytes_needed, 'B')} needed ({ratio:.3f}); "
        f"partials, counters and lengths {quantity(tally.bytes_scratch, 'B')}",
    )


def _add_comparison(table: Table, comparison: Comparison) -> None:
    verdict = ("within" if comparison.passed else "[red]over[/red]") + f" the {comparison.dtype} tolerance"
    table.add_row(
        "attention",
        f"{plural(comparison.calls, 'output')} against float64 NumPy: worst relative error "
        f"{comparison.worst_error:.2e}, {verdict} of {comparison.tolerance:.0e} ({comparison.worst_call})",
    )
