# SPDX-License-Identifier: Apache-2.0
"""Plots of results: bars of rates, the distribution of ratios, and the roofline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable, Iterable, Mapping, Optional, Sequence

from ._svg import FAINT, Drawing, Figure, legend, log_scale, log_ticks, number, ticks

if TYPE_CHECKING:
    from ._results import Problem

COLOURS = {
    "ours": "#1f5fa8", "cudnn": "#e07b39", "flash": "#5a9e6f", "cudnn of casts": "#b8962e", "flex": "#9467bd",
    "flex triton": "#9467bd", "flex decode": "#c49bd9", "flex flash": "#d1577f", "compiled formula": "#8c8c8c",
    "cublas": "#e07b39", "cublas_nn": "#b8962e", "cublas plain": "#e07b39", "torch": "#e07b39", "inductor": "#8c8c8c",
    "eager": "#e07b39", "compiled": "#8c8c8c",
}
# (FLOP/s in 16 bits, in 8 bits, bytes/s): dense, of data sheets.
CARDS = {"H200": (989e12, 1979e12, 4.8e12), "H100 SXM": (989e12, 1979e12, 3.35e12)}

_PANEL_WIDTH, _PANEL_HEIGHT = 360, 190
_LEFT, _TOP, _RIGHT, _BOTTOM = 46, 26, 8, 30
_PER_LINE = 3
_MOST_GROUPS = 8  # in a panel


def _colour(name: str) -> str:
    return COLOURS.get(name, "#666666")


def _panels(problems: Sequence[Problem]) -> list[tuple[str, list[tuple[str, Problem]]]]:
    """[(title, [(label, problem)])]: problems that differ in the last word of their shapes, a length, share a panel; those
    of a work that are alone are put together."""
    families: dict[str, list[tuple[str, Problem]]] = {}
    for problem in problems:
        first, _, last = problem.shape.rpartition(" ")
        families.setdefault(" ".join(filter(None, (problem.model, problem.work, first))), []).append((last, problem))
    panels: list[tuple[str, list[tuple[str, Problem]]]] = []
    alone: dict[str, list[tuple[str, Problem]]] = {}
    for title, members in families.items():
        if len(members) > 1:
            panels.append((title, sorted(members, key=lambda m: _length(m[0]))))
        else:
            problem = members[0][1]
            alone.setdefault(problem.work, []).append((problem.shape, problem))
    panels += alone.items()
    return [(title, members[i:i + _MOST_GROUPS]) for title, members in panels
            for i in range(0, len(members), _MOST_GROUPS)]


def _length(label: str) -> float:
    digits = "".join(c for c in label if c.isdigit())
    return float(digits) if digits else 0.0


def bars(problems: Sequence[Problem], systems: Sequence[str]) -> Figure:
    panels = _panels(problems)
    lines = math.ceil(len(panels) / _PER_LINE)
    drawing = Drawing(_PER_LINE * _PANEL_WIDTH, 26 + lines * _PANEL_HEIGHT, "rates of all systems by problem")
    legend(drawing, _LEFT, 14, [(name, _colour(name)) for name in systems])
    for index, (title, members) in enumerate(panels):
        x, y = index % _PER_LINE * _PANEL_WIDTH, 26 + index // _PER_LINE * _PANEL_HEIGHT
        _panel(drawing, x, y, title, members, systems)
    return Figure(drawing.svg())


def _panel(drawing: Drawing, x: float, y: float, title: str, members: Sequence[tuple[str, Problem]],
           systems: Sequence[str]) -> None:
    left, right, top, bottom = x + _LEFT, x + _PANEL_WIDTH - _RIGHT, y + _TOP, y + _PANEL_HEIGHT - _BOTTOM
    unit = next((p.unit for _, p in members if p.times), "no times")
    values = [p.rates if p.unit != "ms" else p.times for _, p in members]
    marks = ticks(max((v for rates in values for v in rates.values()), default=1.0))
    shown = [n for n in systems if any(n in p.times or n in p.failed for _, p in members)]
    drawing.text(left, top - 12, title, bold=True)
    drawing.text(right, top - 12, unit, anchor="end", size=10)
    for mark in marks:
        at = bottom - (bottom - top) * mark / marks[-1]
        drawing.line(left, at, right, at, FAINT)
        drawing.text(left - 4, at + 4, number(mark), anchor="end", size=10)
    group = (right - left) / len(members)
    width = group * 0.84 / max(len(shown), 1)
    for index, ((label, problem), rates) in enumerate(zip(members, values)):
        start = left + group * (index + 0.08)
        room = int(group / 6.5)  # letters; the whole name is shown when pointed at
        short = label if len(label) <= room else label[:room - 1] + "…"
        drawing.text(start + group * 0.42, bottom + 14, short, anchor="middle", size=10)
        for place, name in enumerate(shown):
            at = start + place * width
            if name in rates:
                height = (bottom - top) * rates[name] / marks[-1]
                tip = f"{problem.name}: {name} {number(rates[name])} {unit}, {problem.times[name]:.4g} ms"
                drawing.box(at, bottom - height, width * 0.9, height, _colour(name), tip)
            elif name in problem.failed:
                drawing.cross(at + width * 0.45, bottom - 5, min(3.0, width * 0.4), _colour(name),
                              f"{problem.name}: {name}: {problem.failed[name]}")
    drawing.line(left, bottom, right, bottom)


def distribution(ratios: Mapping[str, Mapping[str, float]]) -> Figure:
    """A line of dots for each peer, piled up where they are close."""
    every = [r for of_peer in ratios.values() for r in of_peer.values()] or [1.0]
    low, high = min(0.8, *every) * 0.95, max(1.25, *every) * 1.05
    left, right, step = 130, 1010, 74
    drawing = Drawing(1080, 40 + step * len(ratios) + 30, "the peer's time over ours, for each peer")
    place = log_scale(low, high, left, right)
    bottom = 30 + step * len(ratios)
    drawing.text(left, 14, "the peer's time over ours, for each problem: right of 1 we are faster; | is the geometric mean")
    for mark in log_ticks(low, high):
        drawing.line(place(mark), 26, place(mark), bottom, 1.0 if mark == 1 else FAINT)
        drawing.text(place(mark), bottom + 16, number(mark), anchor="middle")
    for index, (peer, of_peer) in enumerate(ratios.items()):
        base = 30 + step * (index + 1) - 8
        drawing.text(left - 8, base - 18, peer, anchor="end", bold=True)
        drawing.text(left - 8, base - 4, f"{len(of_peer)} problems", anchor="end", size=10)
        piles: dict[int, int] = {}
        tallest = max(_heights(place, of_peer.values()), default=1)
        rise = min(6.5, (step - 18) / tallest)
        for name, ratio in sorted(of_peer.items(), key=lambda item: item[1]):
            column = round(place(ratio) / 6)
            piles[column] = piles.get(column, 0) + 1
            drawing.dot(column * 6, base - rise * (piles[column] - 0.5), 3, _colour(peer), f"{name}: {ratio:.2f}")
        middle = place(math.exp(sum(map(math.log, of_peer.values())) / len(of_peer))) if of_peer else left
        drawing.line(middle, base - step + 16, middle, base, width=2.0)
        drawing.line(left, base, right, base, FAINT)
    return Figure(drawing.svg())


def _heights(place: Callable[[float], float], values: Iterable[float]) -> list[int]:
    piles: dict[int, int] = {}
    for value in values:
        column = round(place(value) / 6)
        piles[column] = piles.get(column, 0) + 1
    return list(piles.values())


def roofline(problems: Sequence[Problem], systems: Sequence[str], card: str) -> Optional[Figure]:
    points = [(name, p, p.flops / p.bytes, p.flops / ms / 1e9) for p in problems if p.flops and p.bytes
              for name, ms in p.times.items()]
    if not points:
        return None
    left, right, top, bottom = 56, 1010, 30, 400
    limits = next((CARDS[name] for name in CARDS if name in card), None)
    peak = max(t for *_, t in points) if limits is None else max(limits[0] / 1e12, *(t for *_, t in points))
    if limits is not None and any("fp8" in p.work for p in problems):
        peak = max(peak, limits[1] / 1e12)
    x_low, x_high = min(x for _, _, x, _ in points) / 1.5, max(x for _, _, x, _ in points) * 1.5
    y_low, y_high = min(y for *_, y in points) / 1.5, peak * 1.3
    across, up = log_scale(x_low, x_high, left, right), log_scale(y_low, y_high, bottom, top)
    drawing = Drawing(1080, bottom + 60, "roofline")
    legend(drawing, left, 14, [(name, _colour(name)) for name in systems])
    for mark in log_ticks(x_low, x_high):
        drawing.line(across(mark), top, across(mark), bottom, FAINT)
        drawing.text(across(mark), bottom + 16, number(mark), anchor="middle")
    for mark in log_ticks(y_low, y_high):
        drawing.line(left, up(mark), right, up(mark), FAINT)
        drawing.text(left - 6, up(mark) + 4, number(mark), anchor="end")
    drawing.text((left + right) / 2, bottom + 34, "FLOPs for each byte that must be moved (each tensor once)",
                 anchor="middle")
    drawing.text(14, (top + bottom) / 2, "TFLOP/s", anchor="middle", turned=True)
    if limits is not None:
        _roofs(drawing, limits, any("fp8" in p.work for p in problems), (x_low, x_high, y_low), across, up)
    # Ours last: it lies above the others.
    for name, problem, x, y in sorted(points, key=lambda point: point[0] == "ours"):
        drawing.dot(across(x), up(y), 3.2, _colour(name), f"{problem.name}: {name} {number(y)} TFLOP/s")
    return Figure(drawing.svg())


def _roofs(drawing: Drawing, limits: tuple[float, float, float], has_fp8: bool, extents: tuple[float, float, float],
           across: Callable[[float], float], up: Callable[[float], float]) -> None:
    x_low, x_high, y_low = extents
    wide, narrow, memory = limits
    for flops, label in ((wide, "16 bits"), (narrow, "8 bits")) if has_fp8 else ((wide, "16 bits"),):
        knee = flops / memory
        start = max(min(knee, x_high), x_low)
        drawing.line(across(start), up(flops / 1e12), across(x_high), up(flops / 1e12), 0.8, dashes="5 3")
        drawing.text(across(x_high) - 4, up(flops / 1e12) - 5, f"{flops / 1e12:.0f} TFLOP/s, {label}", anchor="end")
    first = max(x_low, y_low * 1e12 / memory)
    last = min(x_high, (narrow if has_fp8 else wide) / memory)
    if first < last:
        drawing.line(across(first), up(first * memory / 1e12), across(last), up(last * memory / 1e12), 0.8,
                     dashes="5 3")
        middle = math.sqrt(first * last)
        drawing.text(across(middle) - 8, up(middle * memory / 1e12) - 6, f"{memory / 1e12:.1f} TB/s", anchor="end")
