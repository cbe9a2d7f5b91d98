"""Variants, tuned tables and look-up for attention kernels on AMD RDNA GPUs."""
