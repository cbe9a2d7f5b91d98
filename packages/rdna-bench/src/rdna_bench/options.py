"""Command-line values: parsed and refused in one place, before any work begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rdna_emulator import CHECKS
from rdna_registry import as_dtype, as_target

from rdna_bench.decode_cells import CONTEXTS
from rdna_bench.octave_variants import CHANGES


def _target(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return as_target(value).name
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _dtype(value: str) -> str:
    try:
        return as_dtype(value).name
    except ValueError as error:
        raise typer.BadParameter(f"dtype is {value!r}; it must be fp16 or bf16") from error


def at_least(low: int) -> Callable[[int], int]:
    """A check of an integer option: it refuses what is below ``low``."""

    def check(value: int) -> int:
        if value < low:
            raise typer.BadParameter(f"{value} given; it must be {low} or more")
        return value

    return check


def _each(check: Callable[[int], int]) -> Callable[[list[int]], list[int]]:
    """A check of one value as one of all values of an option that may be given several times."""
    return lambda values: [check(value) for value in values]


def above_zero(value: float | None) -> float | None:
    """A check of an option: it refuses what is not above 0."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value} given; it must be above 0")
    return value


def _page_size(value: int) -> int:
    if value < 16 or value % 16:
        raise typer.BadParameter(f"page size is {value}; it must be a multiple of 16, at least 16")
    return value


def _checks(value: str) -> str:
    parse_checks(value)
    return value


def parse_checks(value: str) -> tuple[str, ...]:
    """Names of the emulator's checks from ``"none"``, ``"all"`` or names joined by commas.

    Raises:
        typer.BadParameter: a name is not known.
    """
    if value == "none":
        return ()
    if value == "all":
        return CHECKS
    names = tuple(name.strip() for name in value.split(","))
    for name in names:
        if name not in CHECKS:
            raise typer.BadParameter(f"unknown check {name!r}; use none, all, or some of {', '.join(CHECKS)}")
    return tuple(dict.fromkeys(names))


def _model(value: Path | None) -> Path | None:
    if value is not None and not value.is_file():
        raise typer.BadParameter(f"no model file {value}: name a GGUF file")
    return value


Target = Annotated[str, typer.Option(callback=_target, help="GPU whose machine code runs.")]
PlannedTarget = Annotated[str, typer.Option(callback=_target, help="GPU whose workgroups a plan keeps busy.")]
OptionalTarget = Annotated[str | None, typer.Option(callback=_target, help="Only builds for this GPU.")]
Dtype = Annotated[str, typer.Option(callback=_dtype, help="Element type of queries and cache: fp16 or bf16.")]
PageSize = Annotated[int, typer.Option(callback=_page_size, help="Tokens of a cache page, a multiple of 16.")]
Checks = Annotated[
    str, typer.Option(callback=_checks, help=f"none, all, or names joined by commas: {', '.join(CHECKS)}.")
]
Verify = Annotated[bool, typer.Option("--verify", help="Compare with float64 NumPy; exit 1 on a difference.")]
Seed = Annotated[int, typer.Option(callback=at_least(0), help="Orders the cache's pages and draws random inputs.")]
LengthsSeed = Annotated[int, typer.Option(callback=at_least(0), help="Draws the lengths of the batches.")]
Window = Annotated[int, typer.Option(callback=at_least(0), help="Keys that a token sees; 0 is all.")]
Repeats = Annotated[int, typer.Option(callback=at_least(3), help="Rounds that medians and quartiles are over.")]
Limit = Annotated[float, typer.Option(callback=above_zero, help="Most microseconds that a warm call may take.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Formats = Annotated[
    str,
    typer.Option(
        help="KV-cache formats joined by commas. An octave format may be followed by + and changes to try on it: "
        f"{', '.join(CHANGES)}."
    ),
]
Text = Annotated[Path | None, typer.Option(help="A UTF-8 file to predict; public-domain English prose by default.")]
Model = Annotated[
    Path | None, typer.Option(callback=_model, help="A GGUF file of the llama architecture; SmolLM2-135M by default.")
]


def _several(default: tuple[int, ...], check: Callable[[list[int]], list[int]], text: str) -> Any:
    """An option of integers that may be given several times."""
    shown = " ".join(map(str, default))
    return typer.Option(default_factory=lambda: list(default), show_default=shown, callback=check, help=text)


OneQueryHeads = Annotated[int, typer.Option(callback=at_least(1), help="Query heads.")]
OneKvHeads = Annotated[int, typer.Option(callback=at_least(1), help="Key and value heads.")]
OneHeadSize = Annotated[int, typer.Option(callback=at_least(1), help="Elements of a head.")]
OneQueryLen = Annotated[int, typer.Option(callback=at_least(1), help="New tokens of each sequence.")]
OneBatch = Annotated[int, typer.Option(callback=at_least(1), help="Sequences of the batch.")]
QueryHeads = Annotated[list[int], _several((9,), _each(at_least(1)), "Query heads.")]
KvHeads = Annotated[list[int], _several((3,), _each(at_least(1)), "Key and value heads.")]
HeadSizes = Annotated[list[int], _several((64,), _each(at_least(1)), "Elements of a head.")]
QueryLens = Annotated[list[int], _several((1,), _each(at_least(1)), "New tokens of the sequence.")]
Windows = Annotated[list[int], _several((0,), _each(at_least(0)), "Keys that a token sees; 0 is all.")]
PageSizes = Annotated[list[int], _several((16,), _each(_page_size), "Tokens of a cache page, a multiple of 16.")]
Contexts = Annotated[list[int], _several(CONTEXTS, _each(at_least(1)), "Tokens of the sequence, the new ones too.")]
