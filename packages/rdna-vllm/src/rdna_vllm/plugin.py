"""What vLLM calls in each of its processes: the entry point of the group ``vllm.general_plugins``."""

from __future__ import annotations

import importlib.util
import logging
import sys
from functools import lru_cache
from importlib.metadata import version

logger = logging.getLogger("rdna_vllm")


class VllmMissingError(ImportError):
    """vLLM is not installed in this environment."""


@lru_cache(maxsize=1)
def register() -> None:
    """Says in the log, once in a process, that this version brings no attention backend; VllmMissingError without vLLM.

    vLLM keeps choosing among its own backends: nothing of it is changed.
    """
    if importlib.util.find_spec("vllm") is None:
        raise VllmMissingError(
            f"rdna-vllm is a plugin of vLLM, and vLLM is not installed in {sys.prefix}: install vllm 0.32 or 0.33 "
            "there; without it, rdna_vllm.why_not_served still answers"
        )
    logger.warning(
        "rdna-vllm %s has no attention backend yet, and vLLM chooses among its own; rdna_vllm.why_not_served says "
        "which layers rdna-kernels would serve",
        version("rdna-vllm"),
    )
