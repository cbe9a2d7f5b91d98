"""What ``rdna-bench tune`` shows."""

from __future__ import annotations

from rdna_registry import KernelVariant
from rdna_registry.decode_modelled import CLEAR_GAIN_PERCENT, MODEL_RANKS
from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from rdna_bench.fitted import Fitted
from rdna_bench.report import plural
from rdna_bench.tune_run import TuneRun


def tune_tables(run: TuneRun) -> Group:
    """Each shape's knobs before and after, and their modelled times."""
    ranks = ", ".join(f"{rank:.2f} at {context}" for context, rank in MODEL_RANKS.items())
    contexts = ", ".join(map(str, run.contexts))
    parts: list[RenderableType] = [
        f"{run.target} machine code, contexts of {contexts} tokens, each of the same weight (geometric mean).",
        f"Chosen with {escape(run.model)}; nothing ran on a GPU.",
        f"The model's ranks agree with published times to {ranks} tokens (Spearman).",
        f"The registry prefers the tuned knobs where they gain {CLEAR_GAIN_PERCENT} % or more at some context.",
        "requested: bytes asked of memory over those needed, scratch left out; the most of all contexts.",
        "scratch: bytes asked of partials, both ways; the most of all contexts.",
        "knobs: most segments / least blocks of one / row groups, and the build's waves, split, prefetch, V in LDS.",
        "",
        _shapes(run),
        "",
        f"{plural(run.measured, 'launch')}; {escape(str(run.state_path))} holds {run.launches_in_state}",
    ]
    if not run.complete:
        left = len(run.problems) - len(run.tuned)
        parts.append(f"the budget is spent: {plural(left, 'shape')} left; the same command goes on from there")
    return Group(*parts)


def _shapes(run: TuneRun) -> Fitted:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("knobs", no_wrap=True)
    for context in run.contexts:
        table.add_column(f"us, {context}", justify="right", no_wrap=True)
    for heading in ("requested", "scratch KB", "gain"):
        table.add_column(heading, justify="right", no_wrap=True)
    for problem, tuned in run.tuned.items():
        needed = {context: problem.needed_bytes(context) for context in run.contexts}
        table.add_row(problem.name)
        for entry, launches, gain in (
            (tuned.before, tuned.launches_before, ""),
            (tuned.entry, tuned.launches, f"{tuned.gain_percent} %"),
        ):
            requested = max(launch.requested_bytes / needed[context] for context, launch in launches.items())
            scratch = max(launch.scratch_bytes for launch in launches.values()) / 1e3
            times = (f"{launch.modelled_microseconds:.2f}" for launch in launches.values())
            table.add_row(f"  {_knobs(entry)}", *times, f"{requested:.3f}", f"{scratch:.0f}", gain)
    times_left_out = tuple(f"us, {context}" for context in run.contexts[:-1])
    return Fitted(table, ("scratch KB", "requested", *times_left_out))


def _knobs(entry: KernelVariant) -> str:
    build = f"w{entry.waves} s{entry.head_dim_split} p{entry.prefetch} l{entry.v_in_lds}"
    return f"{entry.max_segments}/{entry.min_segment_blocks}/{entry.row_groups} {build}"
