# SPDX-License-Identifier: Apache-2.0
"""Rows of results as a table.

    python3 bench/report.py results.jsonl
"""
import json
import sys

COLUMNS = ("work", "shape", "candidate", "ms", "speed", "sustained", "burst", "rel error")


def _number(value, form):
    return format(value, form) if value is not None else "-"


def table(rows):
    """One line per candidate of a problem, best first. Ratios are the peer's time over ours."""
    groups = {}
    for row in rows:
        key = (row["work"], row["shape"])
        groups.setdefault(key, {}).setdefault(row["candidate"], {})[row["mode"]] = row
    lines = [COLUMNS]
    for (work, shape), candidates in groups.items():
        def speed(modes):
            return modes.get("sustained", next(iter(modes.values())))["ms_median"]
        for name, modes in sorted(candidates.items(), key=lambda item: speed(item[1])):
            shown = modes.get("sustained", next(iter(modes.values())))
            if "tflops" in shown:
                rate = f"{shown['tflops']:.0f} TFLOP/s"
            else:
                rate = f"{shown['gb_per_s']:.0f} GB/s"
            lines.append((work, shape, name, f"{shown['ms_median']:.4f}", rate,
                          _number(modes.get("sustained", {}).get("ratio_to_peer"), ".3f"),
                          _number(modes.get("burst", {}).get("ratio_to_peer"), ".3f"),
                          _number(shown.get("rel_error"), ".1e")))
    if len(lines) == 1:
        return "nothing was measured"
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(w) if i > 2 else cell.ljust(w)
                               for i, (cell, w) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(table([json.loads(line) for line in file if line.strip()]))
