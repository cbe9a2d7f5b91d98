"""The levels that coordinates are rounded to: Lloyd-Max levels of N(0, 1) as int8."""

from __future__ import annotations

import numpy as np

LEVELS = {
    3: np.array([-127, -79, -45, -14, 14, 45, 79, 127], np.float32),
    4: np.array([-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126], np.float32),
}
"""By bits, in the order of the codes."""

MULTIPLIERS = {3: np.float32(59), 4: np.float32(46)}
"""What a coordinate in units of its group's root mean square is multiplied by, to compare it with levels."""

MIDPOINTS = {bits: (levels[1:] + levels[:-1]) / 2 for bits, levels in LEVELS.items()}
"""Between neighbouring levels; a coordinate on one takes the lower code."""
