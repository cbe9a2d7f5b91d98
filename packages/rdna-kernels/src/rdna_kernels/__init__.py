"""Attention kernels for AMD RDNA GPUs: HIP sources, built code objects and the operators that launch them."""
