"""Checks that run before any work: every build that a job will launch exists for its target."""

from __future__ import annotations

from collections.abc import Iterable

from rdna_kernels import BuildRecord, Catalogue
from rdna_registry import Layout, select


def required_builds(
    *,
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    query_lens: Iterable[int],
    page_size: int,
    window: int,
    dtype: str,
    batch: bool,
    target: str,
) -> tuple[BuildRecord, ...]:
    """The installed builds that serve a shape at each of ``query_lens``, without repetition.

    Raises:
        ValueError: no build serves the shape; the message names the argument.
        rdna_kernels.MissingBuildError: a build serves it and is not installed for ``target``.
    """
    catalogue = Catalogue.installed()
    records: dict[str, BuildRecord] = {}
    for max_query_len in sorted(set(query_lens)):
        variant = select(
            num_q_heads,
            num_kv_heads,
            head_size,
            max_query_len,
            page_size,
            Layout.HND,
            window,
            dtype,
            batch,
            target=target,
        )
        records[variant.build.name] = catalogue.record(variant.build.name, target)
    return tuple(records.values())
