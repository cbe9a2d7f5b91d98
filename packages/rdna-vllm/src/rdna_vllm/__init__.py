"""vLLM plugin for the attention kernels of rdna-kernels."""

from rdna_vllm.layer import AttentionLayer, attention_layer
from rdna_vllm.plugin import VllmMissingError, register
from rdna_vllm.served import why_not_served

__all__ = ["AttentionLayer", "VllmMissingError", "attention_layer", "register", "why_not_served"]
