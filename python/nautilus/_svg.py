# SPDX-License-Identifier: Apache-2.0
"""Drawings as SVG text: what plots of results are made of. Nothing is needed to make them or to show them."""

from __future__ import annotations

import html
import math
from typing import Callable, Sequence

FONT = "font-family:system-ui,sans-serif;font-size:11px"
FAINT = 0.25  # opacity of grids


class Drawing:
    """Shapes in the order in which they are drawn. Lines and texts have the colour of the text around the drawing, so
    that it can be read on light and dark ground."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, anchor: str = "start", size: int = 11, bold: bool = False,
             turned: bool = False) -> None:
        more = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{weight}{more}>'
                           f'{html.escape(text)}</text>')

    def line(self, x0: float, y0: float, x1: float, y1: float, opacity: float = 1.0, colour: str = "currentColor",
             dashes: str = "", width: float = 1.0) -> None:
        more = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" '
                           f'stroke-width="{width}" opacity="{opacity}"{more}/>')

    def box(self, x: float, y: float, width: float, height: float, colour: str, tip: str = "") -> None:
        self._parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0.0):.1f}" '
                           f'fill="{colour}">{_tip(tip)}</rect>')

    def dot(self, x: float, y: float, radius: float, colour: str, tip: str = "") -> None:
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity="0.75">'
                           f'{_tip(tip)}</circle>')

    def cross(self, x: float, y: float, radius: float, colour: str, tip: str = "") -> None:
        """What has failed."""
        r = radius
        self._parts.append(f'<path d="M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} '
                           f'{2 * r:.1f}" stroke="{colour}" stroke-width="1.5" fill="none">{_tip(tip)}</path>')

    def svg(self) -> str:
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.height:.0f}" '
                f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img" style="{FONT};max-width:100%;height:auto" '
                f'fill="currentColor"><title>{html.escape(self.title)}</title>{"".join(self._parts)}</svg>')


def _tip(text: str) -> str:
    return f"<title>{html.escape(text)}</title>" if text else ""


class Figure:
    """A drawing that a notebook shows; `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def ticks(top: float, count: int = 4) -> list[float]:
    """Round numbers from 0 to at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    step = 10.0 ** math.floor(math.log10(top / count))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if m * step * count >= top)
    return [k * step for k in range(count + 1) if (k - 1) * step < top]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between both: powers of ten where there are many, tenths between them where there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tenths = (1, *(k / 10 for k in range(11, 20)), *range(2, 10))
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), tenths):
        found = [m * 10.0 ** p for p in powers for m in steps if low <= m * 10.0 ** p <= high]
        if len(found) >= 4:
            break
    return found


def log_scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """From values to places."""
    span = math.log(high / low) or 1.0
    return lambda value: start + (end - start) * math.log(min(max(value, low), high) / low) / span


def number(value: float) -> str:
    """Short, without an exponent."""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def legend(drawing: Drawing, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
    """Boxes of colours with names, in a line."""
    for name, colour in entries:
        drawing.box(x, y - 9, 10, 10, colour)
        drawing.text(x + 14, y, name)
        x += 26 + 6.2 * len(name)
