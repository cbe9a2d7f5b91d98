"""vLLM plugin for the attention kernels of rdna-kernels."""
