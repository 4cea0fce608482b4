# SPDX-License-Identifier: Apache-2.0
"""Rows of benchmarks as problems: what bench/run.py, bench/models.py and bench/programs.py write as JSON lines."""

from __future__ import annotations

import html
import json
import math
import os
from dataclasses import dataclass, field
from typing import Any, Iterable, Optional, Sequence, Union

from . import _plots
from ._display import details_html, table_html
from ._errors import ArgumentError
from ._svg import Figure

OURS = "ours"
# Candidates that are not ours, in the order of plots; FlexAttention's names end in its backend.
PEERS = ("cudnn", "flash", "cudnn of casts", "flex", "flex triton", "flex decode", "flex flash", "compiled formula",
         "cublas", "cublas_nn", "cublas plain", "torch", "inductor", "eager", "compiled")
_YARDSTICKS = ("copy", "plain")  # another computation, timed in the same loop
_COLUMNS = {"eager": "eager_ms", "compiled": "compiled_ms", OURS: "ours_ms"}  # of bench/programs.py

Rows = Union[str, "os.PathLike[str]", Iterable[Any]]


@dataclass
class Problem:
    """One problem and everybody's times in one loop."""

    work: str
    shape: str
    model: str = ""
    flops: float = 0.0
    bytes: float = 0.0
    unit: str = "ms"  # of rates: "TFLOP/s", "GB/s", or nothing better than times
    times: dict[str, float] = field(default_factory=dict)  # ms
    rates: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # why

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.model, self.work, self.shape) if part)

    def ratio(self, peer: Optional[str] = None) -> Optional[float]:
        """The peer's time over ours, above 1 where we are faster; without a name the fastest peer's."""
        theirs = [t for n, t in self.times.items() if n != OURS and (peer is None or n == peer)]
        if OURS not in self.times or not theirs:
            return None
        return min(theirs) / self.times[OURS]


def read(source: Rows) -> list[dict[str, Any]]:
    """Rows of a file, of several, or as they are."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    rows: list[dict[str, Any]] = []
    for item in source:
        rows += [item] if isinstance(item, dict) else read(item)
    return rows


def problems_of(rows: Sequence[dict[str, Any]]) -> list[Problem]:
    """In the order of the rows; of several rows of a candidate the last one counts."""
    found: dict[tuple[str, str], Problem] = {}
    for row in rows:
        if "ours_ms" in row or "eager_ms" in row:
            _take_program(found, row)
        elif "candidate" in row:
            _take_candidate(found, row)
    return [p for p in found.values() if p.times or p.failed]


def _take_candidate(found: dict[tuple[str, str], Problem], row: dict[str, Any]) -> None:
    """Schedules of a sweep are left out: the program's own is the row `untuned`."""
    name = row["candidate"]
    if row.get("mode", "sustained") != "sustained" or "schedule" in row or name in _YARDSTICKS:
        return
    if name not in PEERS:
        name = OURS
    problem = found.setdefault((row["work"], row["shape"]), Problem(row["work"], row["shape"]))
    problem.model = row.get("model", problem.model)
    problem.flops, problem.bytes = row.get("flops", problem.flops), row.get("bytes", problem.bytes)
    if row.get("failed"):
        problem.failed[name] = row["failed"]
        problem.times.pop(name, None)
        problem.rates.pop(name, None)
        return
    problem.failed.pop(name, None)
    problem.times[name] = row["ms_median"]
    for key, unit in (("tflops", "TFLOP/s"), ("gb_per_s", "GB/s")):
        if key in row:
            problem.rates[name], problem.unit = row[key], unit


def _take_program(found: dict[tuple[str, str], Problem], row: dict[str, Any]) -> None:
    problem = Problem(row.get("suite", ""), row["title"], bytes=row.get("bytes", 0.0))
    problem.times = {name: row[column] for name, column in _COLUMNS.items() if row.get(column) and not
                     (name == OURS and row.get("wrong"))}
    if row.get("wrong"):
        problem.failed[OURS] = row["wrong"]
    if problem.bytes:
        problem.unit = "GB/s"
        problem.rates = {name: problem.bytes / ms / 1e6 for name, ms in problem.times.items()}
    found[problem.work, problem.shape] = problem


def mean(values: Sequence[float]) -> float:
    """The geometric one."""
    return math.exp(sum(map(math.log, values)) / len(values))


class Results:
    """Times of a benchmark, which a notebook shows as plots. Made by `nautilus.results`."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.problems = problems_of(rows)
        self.card = next((row["gpu"] for row in reversed(rows) if row.get("gpu")), "")
        self.driver = next((row["driver"] for row in reversed(rows) if row.get("driver")), "")
        self.dates = sorted(row["date"] for row in rows if row.get("date"))
        names = {name for p in self.problems for name in (*p.times, *p.failed)}
        self.systems = [name for name in (OURS, *PEERS) if name in names]

    def __len__(self) -> int:
        return len(self.problems)

    def __repr__(self) -> str:
        return f"<nautilus.Results: {len(self)} problems by {', '.join(self.systems) or 'nobody'}>"

    def only(self, text: str) -> "Results":
        """Those whose name has the text."""
        kept = Results([])
        kept.__dict__.update(self.__dict__, problems=[p for p in self.problems if text in p.name])
        return kept

    def ratios(self, peer: Optional[str] = None) -> dict[str, float]:
        """The peer's time over ours by the problem's name; without a peer that of the fastest one."""
        if peer is not None and peer not in self.systems:
            raise ArgumentError(f"nobody is called {peer!r} here; there are {', '.join(self.systems)}")
        found = {p.name: p.ratio(peer) for p in self.problems}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    def summary(self) -> list[tuple[str, int, float, float, float, int]]:
        """For each peer: name, problems with both times, geometric mean, lowest and highest ratio, its failures."""
        lines = []
        for peer in self.systems:
            ratios = list(self.ratios(peer).values()) if peer != OURS else []
            if ratios:
                failures = sum(1 for p in self.problems if peer in p.failed)
                lines.append((peer, len(ratios), mean(ratios), min(ratios), max(ratios), failures))
        return lines

    def failures(self) -> list[tuple[str, str, str]]:
        """(problem, system, why)"""
        return [(p.name, name, why) for p in self.problems for name, why in p.failed.items()]

    def bars(self) -> Figure:
        """Rates of all systems, a panel for each family of problems."""
        return _plots.bars(self.problems, self.systems)

    def distribution(self) -> Figure:
        """Ratios to each peer as dots on a logarithmic axis."""
        return _plots.distribution({peer: self.ratios(peer) for peer, *_ in self.summary()})

    def roofline(self) -> Optional[Figure]:
        """Speed over intensity with the card's limits; None where rows do not say FLOPs and bytes."""
        return _plots.roofline(self.problems, self.systems, self.card)

    def _repr_html_(self) -> str:
        head = ("peer", "problems", "mean", "lowest", "highest", "failures of the peer")
        lines = [(n, c, f"{m:.2f}", f"{low:.2f}", f"{high:.2f}", f) for n, c, m, low, high, f in self.summary()]
        about = " · ".join(part for part in (f"{len(self)} problems", self.card) if part)
        parts = [f"<p>{html.escape(about)}. The peer's time over ours: above 1 we are faster.</p>",
                 table_html(head, lines)]
        figures = (self.distribution() if lines else None, self.roofline(), self.bars())
        parts += [figure.svg for figure in figures if figure]
        failures = self.failures()
        if failures:
            parts.append(details_html(f"{len(failures)} failures", table_html(("problem", "system", "why"), failures)))
        return "".join(parts)


def results(source: Rows) -> Results:
    """Results of a benchmark: the path of a file of JSON lines, several paths, or rows.

        nautilus.results("models.jsonl")                # a notebook shows plots
        nautilus.results("models.jsonl").ratios("cudnn")
    """
    return Results(read(source))
