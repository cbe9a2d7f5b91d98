"""The kernel provider that `rdna_registry.load` finds in the entry-point group `rdna_registry.kernels`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rdna_registry import KernelVariant

from rdna_kernels.catalogue import Catalogue
from rdna_kernels.decode import decode_attention


def load(variant: KernelVariant) -> Callable[..., Any] | None:
    """`decode_attention` bound to an entry, its query length and window; None when its build is not installed."""
    if all(record.name != variant.build.name for record in Catalogue.installed().records):
        return None
    return partial(decode_attention, variant=variant, max_query_len=variant.max_query_len, window=variant.window)
