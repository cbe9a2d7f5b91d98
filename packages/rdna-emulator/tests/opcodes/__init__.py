"""Tests of single instructions against NumPy models that know nothing of the core."""
