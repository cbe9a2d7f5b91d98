"""Benchmarks, model runs and reports for rdna-kernels."""

from __future__ import annotations

from rdna_bench.reference import TOLERANCE, reference_attention, relative_error

__all__ = ["TOLERANCE", "reference_attention", "relative_error"]
