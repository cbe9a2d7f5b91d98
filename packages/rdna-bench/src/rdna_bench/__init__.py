"""Benchmarks, model runs and reports for rdna-kernels."""
