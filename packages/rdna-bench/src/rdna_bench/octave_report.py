"""What ``rdna-bench octave`` shows: a table of times, ratios and memory."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from rdna_bench.octave_run import PLAIN, OctaveRun
from rdna_bench.report import machine_table
from rdna_bench.timing import Spread, ratio


def octave_tables(run: OctaveRun) -> Group:
    """Where and how the run was made, and what each implementation took."""
    return Group(
        _where(run),
        "",
        _times(run),
        "",
        "memory: the most that a call held at once beyond its arguments, its result included, in multiples of K and V.",
    )


def _where(run: OctaveRun) -> Table:
    shape = run.shape
    table = machine_table(run.machine)
    table.add_row(
        "input",
        f"K and V, fp16 {escape(str([shape.tokens, shape.heads, shape.head_size]))}, {run.input_bytes / 1e6:.1f} MB; "
        f"{shape.cache_dtype}, rotary {shape.rope_dim}, slots of {run.format.slot_bytes} bytes",
    )
    reason = f": {escape(run.why_no_core)}" if run.why_no_core else ""
    table.add_row("path", f"octave_quant.quantize uses {run.active_path}{reason}")
    same = "the same bytes on every path" if run.passed else "[red]the paths differ[/red]"
    table.add_row("slots", f"{same}; {run.slots_off_plain} of them differ from the transcription, which sums otherwise")
    table.add_row("times", f"milliseconds, median ± half the interquartile range of {run.repeats} rounds in turns")
    return table


def _times(run: OctaveRun) -> Table:
    table = Table(title="times, and the plain NumPy transcription's over them", title_justify="left")
    table.box, table.padding, table.show_edge, table.title_style = box.SIMPLE_HEAD, (0, 0), False, "bold"
    table.add_column("implementation", no_wrap=True)
    for heading in ("quantize", "ratio", "memory", "dequantize", "ratio", "memory"):
        table.add_column(heading, justify="right", no_wrap=True)
    plain = run.contenders[PLAIN]
    for name, one in run.contenders.items():
        table.add_row(
            name,
            _milliseconds(one.quantize.spread),
            f"{ratio(plain.quantize, one.quantize).median:.2f}x",
            _multiple(one.quantize_bytes, run.input_bytes),
            _milliseconds(one.dequantize.spread),
            f"{ratio(plain.dequantize, one.dequantize).median:.2f}x",
            _multiple(one.dequantize_bytes, run.input_bytes),
        )
    return table


def _milliseconds(spread: Spread) -> str:
    return f"{spread.median / 1000:.3g} ±{50 * (spread.upper - spread.lower) / spread.median:.0f}%"


def _multiple(held: int | None, of: int) -> str:
    return "-" if held is None else f"{held / of:.2f}x"
