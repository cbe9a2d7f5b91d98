"""An SVG drawing of a quality run: what each format costs the model against the memory that it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from rdna_bench.files import require_writable
from rdna_bench.quality_result import FormatResult

_WIDTH, _HEIGHT = 900, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 30, 50, 70
_TEXT = 'font-family="sans-serif" font-size="13"'
# Left, top, right and bottom, in the drawing's units; a character of a label is about so wide.
_Box = tuple[float, float, float, float]
_CHARACTER = 7.5
# A KL below this is drawn at it: float32 cannot tell it from nothing.
_LEAST_KL = 1e-6


def check_plot_path(path: Path) -> Path:
    """``path`` itself.

    Raises:
        ValueError: it does not end in ``.svg``, its folder does not exist, or it cannot be written.
    """
    if path.suffix.lower() != ".svg":
        raise ValueError(f"the plot file is {path}; plots are SVG: name a file that ends in .svg")
    require_writable("the plot file", path)
    return path


def quality_plot(title: str, results: Sequence[FormatResult]) -> str:
    """An SVG document: KL divergence with its interval (logarithmic) over bytes a token of the model, by format."""
    xs = [result.bytes_per_token for result in results]
    kls = [[max(value, _LEAST_KL) for value in (r.kl.low, r.kl.value, r.kl.high)] for r in results]
    left, right = 0.0, 1.1 * max(xs)
    low = math.floor(math.log10(min(kl[0] for kl in kls)))
    high = max(math.ceil(math.log10(max(kl[2] for kl in kls))), low + 1)

    def across(x: float) -> float:
        return _LEFT + (x - left) / (right - left) * (_WIDTH - _LEFT - _RIGHT)

    def down(kl: float) -> float:
        return _HEIGHT - _BOTTOM - (math.log10(kl) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_TEXT}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="28" font-size="16">{escape(title)}</text>',
    ]
    for exponent in range(low, high + 1):
        y = down(10.0**exponent)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**exponent:g}</text>')
    step = _step(right)
    for index in range(int(right / step) + 1):
        x = across(index * step)
        parts.append(f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#eee"/>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{index * step:,}</text>')
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 20}" text-anchor="middle">'
        "bytes of cache for each token of the model</text>"
    )
    parts.append(
        f'<text transform="translate(24 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        "KL divergence from the unquantized cache, nats a token</text>"
    )
    points = [(across(x), down(kl[1])) for x, kl in zip(xs, kls, strict=True)]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    for result, kl, (x, y) in zip(results, kls, points, strict=True):
        colour = "#c2410c" if result.base else "#1d4ed8"
        parts.append(f'<path d="M{x:.1f} {down(kl[0]):.1f}V{down(kl[2]):.1f}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
        left_edge, middle = _place(x, y, _CHARACTER * len(result.name), taken)
        parts.append(f'<text x="{left_edge:.1f}" y="{middle + 4:.1f}" fill="{colour}">{escape(result.name)}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _place(x: float, y: float, width: float, taken: list[_Box]) -> tuple[float, float]:
    """Left edge and middle of a label beside (x, y) that covers nothing in ``taken``, to which it is added."""
    for shift in (0, 14, -14, 28, -28, 42, -42, 56, -56):
        for left in (x + 9, x - 9 - width):
            box = (left, y + shift - 7, left + width, y + shift + 7)
            inside = box[0] > _LEFT and box[2] < _WIDTH
            if inside and not any(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in taken
            ):
                taken.append(box)
                return left, y + shift
    return x + 9, y


def _step(length: float) -> int:
    """A round distance that divides ``length`` into 4 to 10 parts, and is 1 at least."""
    power = 10 ** math.floor(math.log10(max(length, 10) / 4))
    return max(int(next(m * power for m in (5, 2, 1) if length / (m * power) >= 4)), 1)
