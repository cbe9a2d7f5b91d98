"""What a decode call may add to plain attention - softcap, ALiBi, sinks, lse, a work list - as checks and arguments."""

from __future__ import annotations

import math
from typing import NamedTuple

from rdna_kernels.decode_arguments import FEATURES
from rdna_kernels.errors import ArgumentError
from rdna_kernels.layout import Layout, element_strides, require_apart, require_dense_last, require_dtype, require_shape
from rdna_kernels.numbers_given import as_real

SMALLEST_SCALE = 2.0**-80
"""Scores of fp16 times less change no weight in fp32, and kernels divide by the scale: below it, a scale is 0."""

SOFTCAP_RANGE = (1e-3, 1e6)
_LOG2_E = math.log2(math.e)


class Features(NamedTuple):
    """Layouts of the optional arrays of a call, None for one that is not given, and the softcap (0: none)."""

    sinks: Layout | None = None
    alibi_slopes: Layout | None = None
    plan: Layout | None = None
    lse: Layout | None = None
    softcap: float = 0.0


def check_features(features: Features, rows: int, num_q_heads: int) -> None:
    """Refuse layouts that do not fit a call of `rows` query tokens; ArgumentError says what would."""
    for name, layout in (("sinks", features.sinks), ("alibi_slopes", features.alibi_slopes)):
        if layout is not None:
            require_shape(name, layout, (num_q_heads,), "[num_q_heads]")
            _require_plain(name, layout, "float32")
    if features.lse is not None:
        require_shape("lse", features.lse, (rows, num_q_heads), "[num_seqs * max_query_len, num_q_heads]")
        require_dtype("lse", features.lse, "float32")
        require_apart("lse", features.lse, 4)
    if features.plan is not None:
        require_shape("plan", features.plan, (None, 4), "[rows of rdna_registry.plan_decode, 4]")
        _require_plain("plan", features.plan, "int32")
        count, (stride, _) = features.plan[0][0], features.plan[1]
        if count < 1 or (count > 1 and stride != 16):
            raise ArgumentError(
                f"plan has shape {tuple(features.plan[0])} and strides {tuple(features.plan[1])}; it must be a "
                "contiguous array of at least one row, as rdna_registry.plan_decode makes it"
            )


def feature_constants(features: Features, scale: float) -> dict[str, int | float]:
    """The kernel's arguments that depend on features and on the softmax scale, which is among them."""
    changes_scores = features.softcap != 0 or features.alibi_slopes is not None
    if changes_scores and scale == 0:
        scale = SMALLEST_SCALE
    given = {
        "softcap": features.softcap != 0,
        "alibi": features.alibi_slopes is not None,
        "sinks": features.sinks is not None,
        "lse": features.lse is not None,
        "plan": features.plan is not None,
    }
    token, head = (0, 0) if features.lse is None else element_strides(features.lse, 4)
    return {
        "scale_log2": scale * _LOG2_E,
        "features": sum(FEATURES[name] for name, used in given.items() if used),
        "slope_factor": 1 / scale if changes_scores else 0.0,
        "softcap": features.softcap / abs(scale) if changes_scores else 0.0,
        "softcap_inverse": abs(scale) / features.softcap if features.softcap else 0.0,
        "lse_stride_token": token,
        "lse_stride_head": head,
    }


def as_softcap(softcap: object) -> float:
    """The softcap as a float; 0 and None are no softcap. ArgumentError outside `SOFTCAP_RANGE`."""
    if softcap is None:
        return 0.0
    value = as_real("softcap", softcap)
    least, most = SOFTCAP_RANGE
    if value and not least <= value <= most:
        raise ArgumentError(f"softcap is {value}; it must be 0 (none) or {least:g} to {most:g}")
    return value


def _require_plain(name: str, layout: Layout, dtype: str) -> None:
    require_dtype(name, layout, dtype)
    require_dense_last(name, layout, 4)
    require_apart(name, layout, 4)
