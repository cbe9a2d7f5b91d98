"""Runs AMDGPU code objects for RDNA 3 on the CPU, checks and counts what they do."""
