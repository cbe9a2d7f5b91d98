"""The command ``rdna-bench``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rdna_emulator import EmulatorError, LaunchError
from rdna_kernels import Catalogue, ExecutorError, KernelsError
from rdna_registry import DEFAULT_TARGET
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rdna_bench import options
from rdna_bench.cells_report import cells_tables
from rdna_bench.decode_cells import CellsRun
from rdna_bench.decode_features import FeaturesRun, features_table
from rdna_bench.doctor import diagnose
from rdna_bench.doctor_report import doctor_text
from rdna_bench.fitted import output_console
from rdna_bench.model_run import GenerateOptions, ModelRun
from rdna_bench.octave_report import octave_tables
from rdna_bench.octave_run import FORMATS, OctaveRun, OctaveShape
from rdna_bench.overhead_report import overhead_tables
from rdna_bench.overhead_run import LIMIT_US, OverheadRun
from rdna_bench.plan_report import plan_tables
from rdna_bench.plan_run import PlanRun
from rdna_bench.quality_formats import DEFAULT_FORMATS
from rdna_bench.quality_plot import check_plot_path, quality_plot
from rdna_bench.quality_report import quality_tables
from rdna_bench.quality_run import QualityOptions, QualityRun
from rdna_bench.report import builds_table, decode_table, generate_table
from rdna_bench.synthetic import DecodeRun, DecodeShape
from rdna_bench.tune_report import tune_tables
from rdna_bench.tune_run import TuneRun, require_files
from rdna_bench.tune_shapes import shapes_from_options, shapes_from_table

app = typer.Typer(
    name="rdna-bench",
    help="Run and measure attention kernels for AMD RDNA GPUs, on machines with and without one.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

_errors = Console(stderr=True)
_FORMATS = ",".join(DEFAULT_FORMATS)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 a difference, a finding or a failed write, 2 bad input."""
    try:
        app()
    except OSError as error:
        sys.stderr.write(f"rdna-bench: {error.filename or 'stdout'}: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of a failed write goes nowhere
        sys.exit(1)


@app.command(
    epilog="Example: [bold]rdna-bench generate 'Why is the sky blue?' --tokens 40 --checks all --verify[/bold]"
)
def generate(
    prompt: Annotated[str, typer.Argument(help="What the model shall answer.", show_default=False)],
    tokens: Annotated[int, typer.Option(callback=options.at_least(1), help="Most tokens to generate.")] = 40,
    dtype: options.Dtype = "fp16",
    target: options.Target = DEFAULT_TARGET,
    page_size: options.PageSize = 16,
    checks: options.Checks = "none",
    verify: options.Verify = False,
    seed: options.Seed = 0,
    model: options.Model = None,
    as_json: options.Json = False,
) -> None:
    """Generate text with SmolLM2-135M, every attention of every layer through our machine code."""
    with _bad_input(), _errors.status("reading the model"):
        run = ModelRun(
            GenerateOptions(
                prompt=prompt,
                max_tokens=tokens,
                dtype=dtype,
                target=target,
                page_size=page_size,
                checks=options.parse_checks(checks),
                verify=verify,
                seed=seed,
                model_path=model,
            )
        )
    with _findings():
        with _progress() as progress:
            run.load(progress)
            pieces = run.stream(progress)
            text = next(pieces, "") if not as_json else "".join(pieces)
        if not as_json:
            sys.stdout.write(text)
            for piece in pieces:
                sys.stdout.write(piece)
                sys.stdout.flush()
            sys.stdout.write("\n\n")
    if verify:
        with _findings(), _progress() as progress:
            run.verify(progress)
    _show(run, generate_table(run), as_json)


@app.command(
    epilog="Example: [bold]rdna-bench decode --num-q-heads 32 --num-kv-heads 8 --head-size 128 --context 4096[/bold]"
)
def decode(
    num_q_heads: options.OneQueryHeads = 9,
    num_kv_heads: options.OneKvHeads = 3,
    head_size: options.OneHeadSize = 64,
    max_query_len: options.OneQueryLen = 1,
    context: Annotated[
        int, typer.Option(callback=options.at_least(1), help="Tokens of each sequence, the new ones included.")
    ] = 1024,
    num_seqs: options.OneBatch = 1,
    window: options.Window = 0,
    page_size: options.PageSize = 16,
    dtype: options.Dtype = "fp16",
    target: options.Target = DEFAULT_TARGET,
    checks: options.Checks = "none",
    verify: options.Verify = False,
    table: Annotated[
        bool, typer.Option("--table", help="Run the published shapes and compare; takes --dtype, --target, --seed.")
    ] = False,
    published_knobs: Annotated[
        bool, typer.Option("--published-knobs", help="With --table: leave out entries that were tuned with the model.")
    ] = False,
    features: Annotated[
        bool,
        typer.Option(
            "--features", help="Count what sinks, softcap, ALiBi, lse and a plan add, each alone and all at once."
        ),
    ] = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Run one decode call on random data and count what its machine code does; or those that others published."""
    if features and (table or verify or checks != "none"):
        raise typer.BadParameter("--features goes without --table, --verify and --checks")
    if table:
        with _bad_input():
            cells = CellsRun(target=target, dtype=dtype, seed=seed, published_knobs=published_knobs)
        with _findings(), _progress() as progress:
            cells.run(progress)
        _show(cells, cells_tables(cells), as_json)
        return
    shape = DecodeShape(
        num_q_heads=num_q_heads,
        num_kv_heads=num_kv_heads,
        head_size=head_size,
        max_query_len=max_query_len,
        context=context,
        num_seqs=num_seqs,
        window=window,
        page_size=page_size,
        dtype=dtype,
    )
    if features:
        with _bad_input():
            costs = FeaturesRun(shape, target=target, seed=seed)
        with _findings(), _errors.status("running"):
            costs.run()
        _show(costs, features_table(costs), as_json)
        return
    with _bad_input():
        run = DecodeRun(shape, target=target, checks=options.parse_checks(checks), verify=verify, seed=seed)
    with _findings(), _errors.status("running"):
        run.run()
    _show(run, decode_table(run), as_json)


@app.command(
    epilog="Example: [bold]rdna-bench tune --num-q-heads 32 --num-kv-heads 8 --head-size 128 --max-query-len 1 "
    "--max-query-len 4 --output modelled.csv[/bold]"
)
def tune(
    num_q_heads: options.QueryHeads,
    num_kv_heads: options.KvHeads,
    head_size: options.HeadSizes,
    max_query_len: options.QueryLens,
    window: options.Windows,
    page_size: options.PageSizes,
    seq_len: options.Contexts,
    table: Annotated[
        str | None,
        typer.Option(help="Shapes from a CSV file in place of the options above; published and registry are tables."),
    ] = None,
    dtype: options.Dtype = "fp16",
    target: options.Target = DEFAULT_TARGET,
    budget: Annotated[float | None, typer.Option(callback=options.above_zero, help="Seconds to stop after.")] = None,
    state: Annotated[Path, typer.Option(help="Keeps every launch: a later run goes on from it.")] = Path(
        "rdna-tune.jsonl"
    ),
    output: Annotated[Path | None, typer.Option(help="Put the rows into this table of modelled rows.")] = None,
    as_json: options.Json = False,
) -> None:
    """Choose launch knobs of decode shapes with the emulator's issue model, among the builds that there are.

    Options of the shape may be repeated: one shape for each position, and an option given once holds for all. An
    interrupted run, or one whose budget is spent, goes on where it was when it is started again.
    """
    with _bad_input():
        if table is None:
            problems = shapes_from_options(
                dtype,
                num_q_heads=num_q_heads,
                num_kv_heads=num_kv_heads,
                head_size=head_size,
                max_query_len=max_query_len,
                window=window,
                page_size=page_size,
            )
        else:
            problems = shapes_from_table(table, dtype)
        require_files(state, output)
        run = TuneRun(problems, target=target, contexts=seq_len, state=state, budget_seconds=budget)
    try:
        with _findings(), _progress() as progress:
            run.run(progress)
    except KeyboardInterrupt:
        _errors.print(f"interrupted: launches are kept in {state}, the same command goes on", markup=False)
        raise typer.Exit(130) from None
    if output is not None:
        run.write(output)
    _show(run, tune_tables(run), as_json)


@app.command(epilog="Example: [bold]rdna-bench doctor --num-q-heads 32 --num-kv-heads 8 --head-size 128[/bold]")
def doctor(
    num_q_heads: options.OneQueryHeads = 9,
    num_kv_heads: options.OneKvHeads = 3,
    head_size: options.OneHeadSize = 64,
    max_query_len: options.OneQueryLen = 1,
    num_seqs: options.OneBatch = 1,
    window: options.Window = 0,
    page_size: options.PageSize = 16,
    dtype: options.Dtype = "fp16",
    as_json: options.Json = False,
) -> None:
    """Say what works here: Python, torch, ROCm, devices, builds, what serves a shape, and a short trial.

    The text can be pasted into a report as it stands. Exit 1 when nothing could be tried, or a trial failed.
    """
    shape = DecodeShape(
        num_q_heads=num_q_heads,
        num_kv_heads=num_kv_heads,
        head_size=head_size,
        max_query_len=max_query_len,
        num_seqs=num_seqs,
        window=window,
        page_size=page_size,
        dtype=dtype,
    )
    with _errors.status("looking around") as status:
        found = diagnose(shape, status.update)
    if as_json:
        _print_json(found.to_dict())
    else:
        sys.stdout.write(doctor_text(found) + "\n")
    if not found.passed:
        raise typer.Exit(1)


@app.command(epilog="Example: [bold]rdna-bench builds --target gfx1151[/bold]")
def builds(target: options.OptionalTarget = None, as_json: options.Json = False) -> None:
    """List the built kernels: registers, LDS, spills, waves per SIMD and code size of each."""
    with _bad_input():
        catalogue = Catalogue.installed()
        records = [record for record in catalogue.records if target in (None, record.target)]
    if as_json:
        _print_json([vars(record) for record in records])
        return
    console = output_console()
    for name in catalogue.targets if target is None else [target]:
        console.print(builds_table(name, [record for record in records if record.target == name]))
    console.print(f"{len(records)} builds, compiled by {catalogue.compiler}", highlight=False)


@app.command(epilog="Example: [bold]rdna-bench plan --window 4096 --repeats 200[/bold]")
def plan(
    window: options.Window = 0,
    target: options.PlannedTarget = DEFAULT_TARGET,
    repeats: options.Repeats = 50,
    seed: options.LengthsSeed = 0,
    as_json: options.Json = False,
) -> None:
    """Time the planners and look-ups, and show how evenly decode work is shared out.

    The prefill planner takes turns with a plain NumPy transcription of its rules: exit 1 where they disagree.
    """
    with _bad_input():
        run = PlanRun(target=target, window=window, repeats=repeats, seed=seed)
    with _progress() as progress:
        run.run(progress)
    _show(run, plan_tables(run), as_json)


@app.command(epilog="Example: [bold]rdna-bench overhead --repeats 200[/bold]")
def overhead(
    repeats: options.Repeats = 50,
    limit: options.Limit = LIMIT_US,
    as_json: options.Json = False,
) -> None:
    """Time the host side of a warm decode call, and show where its time goes.

    Through the emulated HIP runtime with launching switched off. Exit 1 where the fastest call is above the limit.
    """
    with _bad_input():
        run = OverheadRun(repeats=repeats, limit_us=limit)
    with _progress() as progress:
        run.run(progress)
    _show(run, overhead_tables(run), as_json)


@app.command(
    epilog="Example: [bold]rdna-bench quality --tokens 2048 --formats fp16,octave_k3v4,octave_k3v4+centred[/bold]"
)
def quality(
    tokens: Annotated[int, typer.Option(callback=options.at_least(2), help="Tokens of the text to predict.")] = 8192,
    skip: Annotated[int, typer.Option(callback=options.at_least(0), help="Tokens of the text before those.")] = 0,
    formats: options.Formats = _FORMATS,
    text: options.Text = None,
    seed: Annotated[int, typer.Option(callback=options.at_least(0), help="Draws the bootstrap's blocks.")] = 0,
    model: options.Model = None,
    plot: Annotated[Path | None, typer.Option(help="Write an SVG drawing of the result there.")] = None,
    as_json: options.Json = False,
) -> None:
    """Measure what a quantized KV cache does to SmolLM2-135M's predictions of a text, format by format.

    Every layer's attention reads K and V as the format gives them back; the reference is float32, unquantized.
    """
    with _bad_input(), _errors.status("reading the model"):
        if plot is not None:
            check_plot_path(plot)
        run = QualityRun(
            QualityOptions(
                tokens=tokens,
                skip=skip,
                formats=tuple(name.strip() for name in formats.split(",")),
                seed=seed,
                text=text,
                model_path=model,
            )
        )
    with _progress() as progress:
        run.run(progress)
    if plot is not None:
        plot.write_text(quality_plot(f"{run.file.name}: KV-cache formats", run.results), encoding="utf-8")
    _show(run, quality_tables(run), as_json)


@app.command(epilog="Example: [bold]rdna-bench octave --tokens 1024 --format octave_k3v3_compact[/bold]")
def octave(
    tokens: Annotated[int, typer.Option(callback=options.at_least(1), help="Tokens to quantize.")] = 4096,
    heads: Annotated[int, typer.Option(callback=options.at_least(1), help="Key and value heads.")] = 8,
    head_size: Annotated[int, typer.Option(help="Elements of a head, a multiple of 64.")] = 256,
    rope_dim: Annotated[int, typer.Option(help="Leading elements with rotary embedding, a multiple of 64.")] = 64,
    cache_dtype: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = FORMATS[0],
    repeats: options.Repeats = 5,
    seed: Annotated[int, typer.Option(callback=options.at_least(0), help="Draws the vectors.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Time octave-quant's paths, in turns with a plain NumPy transcription of the format and one in torch.

    torch takes part where it is installed. Exit 1 where the compiled core and the NumPy path differ in a byte.
    """
    with _bad_input(), _errors.status("comparing the paths"):
        run = OctaveRun(OctaveShape(tokens, heads, head_size, rope_dim, cache_dtype), repeats=repeats, seed=seed)
    with _progress() as progress:
        run.run(progress)
    _show(run, octave_tables(run), as_json)


@contextmanager
def _bad_input() -> Iterator[None]:
    """Turn what the checks before a run refuse into a usage error, exit code 2."""
    try:
        yield
    except (ValueError, KernelsError, EmulatorError) as error:
        raise typer.BadParameter(str(error)) from error


@contextmanager
def _findings() -> Iterator[None]:
    """Print what the emulator reports about the machine code and exit 1; a call that is refused is bad input."""
    try:
        yield
    except (EmulatorError, KernelsError) as error:
        if isinstance(error, LaunchError) or (isinstance(error, KernelsError) and not isinstance(error, ExecutorError)):
            raise typer.BadParameter(str(error)) from error
        _errors.print(f"\n{type(error).__name__}: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from error


class _StageProgress:
    """One progress bar on stderr, restarted for every stage; nothing when stderr is no terminal."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("start", total=None)
        self._stage = "start"

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self._bar.reset(self._task, description=stage, total=total)
        self._bar.update(self._task, completed=done)


@contextmanager
def _progress() -> Iterator[_StageProgress]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}"), TimeElapsedColumn())
    with Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as bar:
        yield _StageProgress(bar)


def _show(
    run: ModelRun | DecodeRun | FeaturesRun | CellsRun | PlanRun | OverheadRun | QualityRun | OctaveRun | TuneRun,
    table: RenderableType,
    as_json: bool,
) -> None:
    if as_json:
        _print_json(run.to_dict())
    else:
        output_console().print(table)
    if not run.passed:
        _errors.print("verification failed: see above", style="red")
        raise typer.Exit(1)


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")
