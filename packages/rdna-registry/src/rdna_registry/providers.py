"""Callable builds, from whichever installed package provides kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import metadata
from typing import Any, TypeAlias, cast

from rdna_registry.decode_variant import KernelVariant
from rdna_registry.prefill_variant import PrefillVariant

ENTRY_POINT_GROUP = "rdna_registry.kernels"
"""Entry points of this group name a function that takes a variant and returns a callable build, or None."""

Kernel: TypeAlias = Callable[..., Any]
Provider: TypeAlias = Callable[[Any], "Kernel | None"]


@functools.cache
def _providers() -> tuple[Provider, ...]:
    points = sorted(metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name)
    return tuple(map(_loaded, points))


def _loaded(point: metadata.EntryPoint) -> Provider:
    try:
        provider = point.load()
    except Exception as error:
        raise RuntimeError(
            f"kernel provider {point.name!r} ({point.value}) cannot be imported: {error}; repair or remove its package"
        ) from error
    if not callable(provider):
        raise RuntimeError(f"the kernel provider {point.name!r} ({point.value}) is no function that takes a variant")
    return cast(Provider, provider)


def load(variant: KernelVariant) -> Kernel | None:
    """A callable that runs the variant, from the first provider (by name) that has one, or None when none has.

    Providers register a function ``provider(variant) -> callable | None`` in the entry-point group
    ``rdna_registry.kernels``. RuntimeError for a provider that cannot be imported.
    """
    if not isinstance(variant, KernelVariant):
        raise TypeError(f"variant is {variant!r}; a KernelVariant is needed")
    return _first(variant)


def load_prefill(variant: PrefillVariant) -> Kernel | None:
    """`load` for a prefill entry."""
    if not isinstance(variant, PrefillVariant):
        raise TypeError(f"variant is {variant!r}; a PrefillVariant is needed")
    return _first(variant)


def _first(variant: KernelVariant | PrefillVariant) -> Kernel | None:
    for provider in _providers():
        kernel = provider(variant)
        if kernel is not None:
            return kernel
    return None
