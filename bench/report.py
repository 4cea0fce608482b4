# SPDX-License-Identifier: Apache-2.0
"""Rows of results as a table.

    python3 bench/report.py results.jsonl
"""
import json
import math
import sys

COLUMNS = ("work", "shape", "candidate", "ms", "speed", "sustained", "burst", "per live",
           "rel error")

SWEEP_COLUMNS = ("work", "shape", "best", "place", "untuned", "swept", "untuned burst",
                 "swept burst")
UNTUNED = "untuned"  # the row of a program with its first schedule, beside swept ones


def _number(value, form):
    return format(value, form) if value is not None else "-"


def table(rows):
    """One line per candidate of a problem, best first. Ratios are the peer's time over ours."""
    groups, failed = {}, {}
    for row in rows:
        key = (row["work"], row["shape"])
        if row.get("failed"):
            failed.setdefault(key, []).append(row["candidate"])
            continue
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
                          _number(shown.get("per_live"), ".3f"),
                          _number(shown.get("rel_error"), ".1e")))
        lines += [(work, shape, name, "failed", "-", "-", "-", "-", "-")
                  for name in failed.pop((work, shape), [])]
    lines += [(*key, name, "failed", "-", "-", "-", "-", "-")
              for key, names in failed.items() for name in names]
    if all(line[7] == "-" for line in lines[1:]):
        lines = [line[:7] + line[8:] for line in lines]
    return aligned(lines, 3)


def aligned(lines, texts):
    """A table of strings; the first columns, `texts` of them, are texts and the others numbers."""
    if len(lines) == 1:
        return "nothing was measured"
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) if i < texts else cell.rjust(w)
                               for i, (cell, w) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)


def _mean(values):
    """The geometric one."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def sweep_table(rows):
    """What a sweep gains: the program as the compiler takes it and the best of all that was tried,
    which may be the same, both as the peer's time over ours in the same loop, sustained and in a
    burst; and their geometric means for each work. The best is the best sustained; its place is that
    among the predictions."""
    groups, places = {}, {}
    for row in rows:
        ratios = groups.setdefault((row["work"], row["shape"]), {})
        is_swept = "schedule" in row
        if row["ratio_to_peer"] and (is_swept or row["candidate"] == UNTUNED):
            ratios.setdefault(row["mode"], {})[row["candidate"]] = row["ratio_to_peer"]
        if is_swept:  # attention_full.3.sched was predicted to be the third
            places[row["work"], row["shape"], row["candidate"]] = row["schedule"].split(".")[-2]
    lines = [SWEEP_COLUMNS]
    means = {}
    for (work, shape), modes in groups.items():
        sustained, burst = modes.get("sustained", {}), modes.get("burst", {})
        if len(sustained) < 2 or UNTUNED not in sustained:
            continue
        best = max(sustained, key=sustained.get)
        ratios = (sustained[UNTUNED], sustained[best], burst.get(UNTUNED), burst.get(best))
        means.setdefault(work, []).append(ratios)
        lines.append((work, shape, best, places.get((work, shape, best), "-"),
                      *(_number(r, ".3f") for r in ratios)))
    for work, all_ratios in means.items():
        columns = ([r for r in column if r] for column in zip(*all_ratios))
        lines.append((work, f"mean of {len(all_ratios)}", "", "",
                      *(_number(_mean(c), ".3f") for c in columns)))
    return aligned(lines, 3)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        all_rows = [json.loads(line) for line in file if line.strip()]
    print(table(all_rows))
    if any("schedule" in row for row in all_rows):
        print(sweep_table(all_rows))
