# SPDX-License-Identifier: Apache-2.0
"""The table of programs.py: a line for each problem, and what they come to together."""
import math

from programs_problem import OTHER

INEXACT = 4.0  # times PyTorch's error, beyond the rounding of a result


def ratio(row):
    """The better of eager and compiled over ours; None if there is no time, or a wrong result."""
    peers = [row[n] for n in ("eager_ms", "compiled_ms") if row.get(n)]
    if not peers or not row.get("ours_ms") or row.get("wrong"):
        return None
    return min(peers) / row["ours_ms"]


def is_inexact(row):
    """Less accurate than PyTorch, in f32."""
    ours, eager = row.get("ours_error"), row.get("eager_error")
    if ours is None or eager is None or row.get("wrong"):
        return False
    return ours > max(2e-6, INEXACT * eager)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(rows):
    lines = ["| | problem | eager ms | compiled ms | ours ms | better / ours | our error | eager's |"
             " |", "|---|---|---|---|---|---|---|---|---|"]
    lines += [_line(row) for row in rows]
    for label, some in (("all", rows), ("no products", [r for r in rows if r["kind"] == OTHER])):
        if some:
            lines.append(_summary(label, some))
    for label, some in (("wrong", [r for r in rows if r.get("wrong")]),
                        ("less accurate than PyTorch", [r for r in rows if is_inexact(r)]),
                        ("no time", [r for r in rows if not r.get("wrong") and not ratio(r)])):
        if some:
            lines.append(f"{label}: " + ", ".join(r["case"] for r in some))
    return "\n".join(lines)


def _line(row):
    def number(key, form):
        return format(row[key], form) if row.get(key) is not None else ""

    r = ratio(row)
    remarks = [row["wrong"]] if row.get("wrong") else []
    if row.get("over"):
        remarks.append("did not end: the limit")
    elif row.get("samples") == 1 and row.get("ours_ms"):
        remarks.append("once")
    if is_inexact(row):
        remarks.append("inexact")
    remarks += row.get("notes", [])
    return (f"| {row['case']} | {row['title'][:44]} | {number('eager_ms', '.4g')} | "
            f"{number('compiled_ms', '.4g')} | {number('ours_ms', '.4g')} | "
            f"{f'{r:.3f}' if r else ''} | {number('ours_error', '.0e')} | "
            f"{number('eager_error', '.0e')} | {'; '.join(remarks)[:120]} |")


def _summary(label, rows):
    ratios = sorted(r for r in map(ratio, rows) if r)
    if not ratios:
        return f"{label}: nothing timed"
    return (f"{label}: geometric mean {geometric_mean(ratios):.3f} of {len(ratios)} of {len(rows)}, "
            f"median {ratios[len(ratios) // 2]:.3f}, {sum(r >= 1 for r in ratios)} at or above 1, "
            f"{sum(r < 0.8 for r in ratios)} below 0.8")
