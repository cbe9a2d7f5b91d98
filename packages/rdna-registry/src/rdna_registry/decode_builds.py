"""The decode builds of each head size, in one place: what `select` may ask for, and so what is compiled."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter

from rdna_registry.builds import HEAD_SIZE_STEP, Build, wave_dims
from rdna_registry.decode_tables import tuned_rows
from rdna_registry.dtypes import DType

SERVED_HEAD_SIZES: tuple[int, ...] = (64, 80, 96, 128, 192, 256, 512)
"""Head sizes that kernels are built for."""

BUILDABLE_HEAD_SIZES: tuple[int, ...] = tuple(range(HEAD_SIZE_STEP, 512 + 1, HEAD_SIZE_STEP))
"""Head sizes that the sources compile for; those that are not in `SERVED_HEAD_SIZES` are built on request."""

# The share of a head size's matrix rows that must use a build for a head size without rows to have its like.
_COMMON = 1 / 6

# Builds of 32 query rows, for calls of more query tokens than any row was tuned for: few enough accumulators of a lane
# that nothing spills. Head size 512 has none: the query rows and the waves' scores do not fit in LDS together.
_WIDE = (
    Build(64, 32, 4, 0, 0, 1, 0, DType.fp16),
    Build(80, 32, 4, 0, 0, 1, 0, DType.fp16),
    Build(96, 32, 4, 2, 0, 1, 0, DType.fp16),
    Build(128, 32, 4, 2, 0, 1, 0, DType.fp16),
    Build(192, 32, 4, 2, 0, 1, 0, DType.fp16),
    Build(256, 32, 4, 4, 0, 0, 0, DType.fp16),
)

# Builds of eight waves that no published row uses: with them a short call has all its keys on their way at once.
# Modelled rows name them.
_MANY_WAVES = (
    Build(64, 32, 8, 0, 0, 1, 0, DType.fp16),
    Build(256, 16, 8, 2, 0, 1, 0, DType.fp16),
)


@functools.cache
def tuned_head_size(head_size: int) -> int:
    """The head size whose tuned rows serve ``head_size``: the one at the smallest ratio to its whole matrix steps."""
    return nearest_head_size(-(-head_size // 16) * 16, tuple({row.variant.head_size for row in tuned_rows()}))


def nearest_head_size(head_size: int, among: tuple[int, ...]) -> int:
    """The one at the smallest ratio to ``head_size``, the larger of two at the same."""
    return min(among, key=lambda size: (abs(math.log2(size / head_size)), -size))


@functools.cache
def builds_of(head_size: int) -> frozenset[Build]:
    """Every build of a head size, whether it is served or not, in both dtypes; none outside `BUILDABLE_HEAD_SIZES`.

    A head size with tuned rows has the builds of these rows (of dot-product rows too: `KernelVariant.build` is a matrix
    build). Any other has the builds that at least a sixth of the rows of its `tuned_head_size` use, dot-product rows
    left out, made for its own size. Both have their `wide_builds` and `short_builds` too.
    """
    if head_size not in BUILDABLE_HEAD_SIZES:
        return frozenset()
    tuned = tuned_head_size(head_size)
    rows_of_size = [row.variant for row in tuned_rows() if row.variant.head_size == tuned]
    used = Counter(variant.build for variant in rows_of_size if tuned == head_size or not variant.dot_product)
    if tuned != head_size:
        least = _COMMON * used.total()
        used = Counter({build: rows for build, rows in used.items() if rows >= least and _fits(build, head_size)})
    found = {dataclasses.replace(build, head_size=head_size) for build in used} | {
        *wide_builds(head_size),
        *short_builds(head_size),
    }
    return frozenset(dataclasses.replace(build, dtype=dtype) for build in found for dtype in DType)


def wide_builds(head_size: int) -> tuple[Build, ...]:
    """The fp16 builds of a head size for calls of more query tokens than any row was tuned for.

    A head size that is not among `_WIDE` has those of the next larger one, made for its own size.
    """
    like = min((build.head_size for build in _WIDE if build.head_size >= head_size), default=head_size)
    return tuple(dataclasses.replace(build, head_size=head_size) for build in _WIDE if build.head_size == like)


def short_builds(head_size: int) -> tuple[Build, ...]:
    """The fp16 builds of a head size for short calls, beside those of published rows."""
    return tuple(build for build in _MANY_WAVES if build.head_size == head_size)


def _fits(build: Build, head_size: int) -> bool:
    waves = dataclasses.replace(build, head_size=head_size).waves_per_tile
    dims = wave_dims(head_size, waves)
    if waves > 1 and dims < 48:  # so few that each of the waves would hardly have a score to make
        return False
    # More dimensions leave no registers for the next keys' values, and fewer do where waves exchange scores.
    return 0 < dims <= (128 if not build.prefetch else 80 if waves == 1 else 64)
