"""What one cache format does to a model, as figures with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rdna_bench.causal_attention import Distortion
from rdna_bench.token_scores import BlockBootstrap, Estimate, Float64, TokenScores, estimate

#: A variant wins when it saves at least this share of its format's loss, with the whole interval.
WINNING_SHARE = 0.1


@dataclass(frozen=True)
class Comparison:
    """A variant against the format that it varies, token by token on the same text, at the same bytes.

    ``nll`` and ``kl`` are the variant's losses over the format's; None where the format's own loss is not positive in
    every resample, so that a share of it means nothing.
    """

    base: str
    nll: Estimate | None
    kl: Estimate | None

    @property
    def wins(self) -> bool:
        """Whether at least `WINNING_SHARE` of the NLL loss is saved, by the far end of the interval too."""
        return self.nll is not None and self.nll.high <= 1 - WINNING_SHARE

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return {
            "format": self.base,
            "nll_loss_ratio": self.nll.to_dict() if self.nll else None,
            "kl_ratio": self.kl.to_dict() if self.kl else None,
            "wins": self.wins,
        }


@dataclass
class FormatResult:
    """One format's figures; ``heads`` is num_layers * num_kv_heads, ``distortions`` has one entry a layer."""

    name: str
    slot_bytes: int
    heads: int
    scores: TokenScores
    reference_nll: Float64
    distortions: list[Distortion]
    bootstrap: BlockBootstrap = field(repr=False)
    base: FormatResult | None = None

    @property
    def bytes_per_token(self) -> int:
        """Of the whole model."""
        return self.heads * self.slot_bytes

    @property
    def tokens_per_gib(self) -> int:
        return 2**30 // self.bytes_per_token

    @cached_property
    def nll_loss(self) -> Float64:
        """NLL less the reference's, ``[predictions]``."""
        return self.scores.nll - self.reference_nll

    @cached_property
    def nll_change(self) -> Estimate:
        """Mean NLL less the reference's."""
        return self.bootstrap.mean(self.nll_loss)

    @cached_property
    def perplexity_change(self) -> Estimate:
        """Perplexity over the reference's, less 1."""
        change = self.nll_change
        return Estimate(*(math.expm1(value) for value in (change.value, change.low, change.high)))

    @cached_property
    def kl(self) -> Estimate:
        """Mean KL divergence from the reference's predictions."""
        return self.bootstrap.mean(self.scores.divergence)

    @cached_property
    def agreement(self) -> Estimate:
        """Share of the predictions whose likeliest token is the reference's."""
        return self.bootstrap.mean(self.scores.agrees)

    @property
    def output_error(self) -> float:
        """Mean over the layers of the relative error of the attention output."""
        return float(np.mean([layer.output_error for layer in self.distortions]))

    @property
    def score_slope(self) -> float:
        """Mean over the layers."""
        return float(np.mean([layer.score_slope for layer in self.distortions]))

    @cached_property
    def comparison(self) -> Comparison | None:
        """Against the format that this one varies, None where it varies none."""
        if self.base is None:
            return None
        return Comparison(
            self.base.name,
            self._ratio(self.nll_loss, self.base.nll_loss),
            self._ratio(self.scores.divergence, self.base.scores.divergence),
        )

    def _ratio(self, own: Float64, base: Float64) -> Estimate | None:
        base_means = self.bootstrap.means(base)
        if base_means.min() <= 0 or base.mean() <= 0:
            return None
        return estimate(float(own.mean() / base.mean()), self.bootstrap.means(own) / base_means)

    def to_dict(self) -> dict[str, Any]:
        """All figures, ready for JSON; errors and slopes are one a layer."""
        nll = float(self.scores.nll.mean())
        return {
            "name": self.name,
            "slot_bytes": self.slot_bytes,
            "bytes_per_token": self.bytes_per_token,
            "tokens_per_gib": self.tokens_per_gib,
            "nll": nll,
            "perplexity": math.exp(nll),
            "nll_change": self.nll_change.to_dict(),
            "perplexity_change": self.perplexity_change.to_dict(),
            "top1_agreement": self.agreement.to_dict(),
            "kl": self.kl.to_dict(),
            "attention_output_error": self.output_error,
            "attention_output_error_per_layer": [layer.output_error for layer in self.distortions],
            "score_slope": self.score_slope,
            "score_slope_per_layer": [layer.score_slope for layer in self.distortions],
            "against": self.comparison.to_dict() if self.comparison else None,
        }
