"""The result of a quality run as a person reads it."""

from __future__ import annotations

import math

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from rdna_bench.quality_result import Comparison, FormatResult
from rdna_bench.quality_run import QualityRun
from rdna_bench.report import plural
from rdna_bench.token_scores import BLOCK_TOKENS, RESAMPLES, Estimate


def quality_tables(run: QualityRun) -> Group:
    """What was read, a row for each format, and how the variants compare with the formats that they vary."""
    nll = float(run.reference_nll.mean())
    head = (
        f"[bold]{escape(run.file.name)}[/bold], {plural(len(run.reference_nll), 'prediction')} in "
        f"{plural(len(run.sequences), 'sequence')} of up to {max(map(len, run.sequences))} tokens; unquantized: NLL "
        f"{nll:.4f}, perplexity {math.exp(nll):.3f}"
    )
    foot = (
        "Changes are against the unquantized cache; in brackets what 95 % of "
        f"{RESAMPLES} resamples of blocks of {BLOCK_TOKENS} tokens hold. error, slope: of a layer's attention output "
        "and scores, mean over the layers."
    )
    parts: list[str | Table] = [head, _formats_table(run.results), foot]
    compared = [(result, result.comparison) for result in run.results if result.comparison is not None]
    if compared:
        parts += ["", _variants_table(compared)]
    return Group(*parts)


def _formats_table(results: list[FormatResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("format", no_wrap=True)
    for heading in ("B/token", "tokens/GiB", "NLL", "perplexity", "KL", "top-1", "error", "slope"):
        table.add_column(heading, justify="right", no_wrap=heading != "NLL")
    for result in results:
        table.add_row(
            result.name,
            f"{result.bytes_per_token:,}",
            f"{result.tokens_per_gib:,}",
            _interval(result.nll_change, "+.4f"),
            f"{result.perplexity_change.value:+.2%}",
            f"{result.kl.value:.2g}" if result.kl.value < 1e-3 else f"{result.kl.value:.4f}",
            f"{result.agreement.value:.2%}",
            f"{result.output_error:.4f}",
            f"{result.score_slope:.4f}",
        )
    return table


def _variants_table(compared: list[tuple[FormatResult, Comparison]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("variant", no_wrap=True)
    table.add_column("of", no_wrap=True)
    table.add_column("its NLL loss", justify="right")
    table.add_column("its KL", justify="right")
    table.add_column("", no_wrap=True)
    for result, comparison in compared:
        table.add_row(
            result.name,
            comparison.base,
            _interval(comparison.nll, ".0%") if comparison.nll else "no loss to share",
            _interval(comparison.kl, ".0%") if comparison.kl else "no loss to share",
            "wins" if comparison.wins else "",
        )
    return table


def _interval(figure: Estimate, form: str) -> str:
    return escape(f"{figure.value:{form}} [{figure.low:{form}}, {figure.high:{form}}]")
