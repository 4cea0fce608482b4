# SPDX-License-Identifier: Apache-2.0
"""Rows of results as the tables of docs/performance.md.

    python3 bench/tables.py results.jsonl [later.jsonl ...] [--work PATTERN] [--kernels]

A number is the peer's time over ours in the same loop, sustained: above 1 is faster than the
library. Of a sweep, "1.22 (1.24)" is the program as the compiler takes it and the fastest schedule
that was timed beside it. A problem that a later file has measured again counts as that file says;
without schedules there, the fastest one of the earlier file stays.
"""
import argparse
import fnmatch
import json
import math

import systems
from report import UNTUNED

PEERS = {"cublas", "cublas_nn", "cublas plain", "torch", "inductor", "flex", *systems.PEERS}
YARDSTICKS = {"copy", "plain"}  # timed in the same loop, neither ours nor what we are compared with


def collect(paths):
    """{(work, shape): problem}, in the order of measuring."""
    problems = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.strip()]
        for key, found in _problems_of(rows).items():
            if "swept" not in found and "swept" in problems.get(key, {}) and found["ratio"]:
                found["swept"] = max(problems[key]["swept"], found["ratio"])
            problems[key] = found
    return problems


def _problems_of(rows):
    """What one file says. Of several hand-written kernels the fastest is taken."""
    loops = {}
    for row in rows:
        if not row.get("failed"):
            loops.setdefault((row["work"], row["shape"]), []).append(row)
    result = {}
    for key, loop in loops.items():
        sustained = {r["candidate"]: r for r in loop if r["mode"] == "sustained"}
        ours = {name: r for name, r in sustained.items() if name not in PEERS | YARDSTICKS}
        if not ours:
            continue
        name = UNTUNED if UNTUNED in ours else min(ours, key=lambda n: ours[n]["ms_median"])
        first = ours[name]
        burst = [r for r in loop if r["mode"] == "burst" and r["candidate"] == name
                 and first["ratio_to_peer"]]
        found = dict(name=name, ms=first["ms_median"], ratio=first["ratio_to_peer"],
                     peer=_peer(first), rate=_rate(first), per_live=first.get("per_live"),
                     error=first.get("rel_error"),
                     burst=burst[-1]["ratio_to_peer"] if burst else None)
        if any("schedule" in r for r in ours.values()):
            found["swept"] = max(r["ratio_to_peer"] or 0 for r in ours.values())
        if "copy" in sustained:
            found["of_copy"] = sustained["copy"]["ms_median"] / first["ms_median"]
        result[key] = found
    return result


def _peer(row):
    """Nothing where no library was timed in the same loop."""
    if not row["ratio_to_peer"]:
        return ""
    return f"{row['peer']} {row['ms_median'] * row['ratio_to_peer']:.4f}"


def _rate(row):
    return f"{row['tflops']:.0f} TFLOP/s" if "tflops" in row else f"{row['gb_per_s']:.0f} GB/s"


def _ratio(problem):
    """Bold where we lose by more than noise."""
    if not problem["ratio"]:
        return ""
    text = f"{problem['ratio']:.2f}"
    if problem["ratio"] < 0.98:
        text = f"**{text}**"
    return text + (f" ({problem['swept']:.2f})" if "swept" in problem else "")


def _mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(problems):
    """Geometric mean and lowest of the problems that have a peer."""
    problems = [p for p in problems if p["ratio"]]
    if not problems:
        return "no peer was timed"
    first = [p["ratio"] for p in problems]
    text = f"{len(first)} problems: mean {_mean(first):.3f}, lowest {min(first):.3f}"
    if all("swept" in p for p in problems):
        swept = [p["swept"] for p in problems]
        text += f"; swept: mean {_mean(swept):.3f}, lowest {min(swept):.3f}"
    return text


def grid(work, problems):
    """Lengths as columns, everything else of a problem as rows."""
    cells = {tuple(shape.rsplit(" ", 1)): _ratio(p) for shape, p in problems.items()}
    lengths = sorted({length for _, length in cells}, key=lambda text: int(text[1:]))
    lines = [[work, *lengths]]
    for other in dict.fromkeys(other for other, _ in cells):
        lines.append([other, *(cells.get((other, length), "") for length in lengths)])
    return lines


def listing(problems, names):
    """A row for each problem, with the columns that any of them has."""
    columns = [("problem", lambda key, p: " ".join(key)),
               ("kernel", lambda key, p: p["name"].replace("_", "\\_") if names else ""),
               ("ms", lambda key, p: f"{p['ms']:.4f}"),
               ("speed", lambda key, p: p["rate"]),
               ("peer, ms", lambda key, p: p["peer"]),
               ("sustained", lambda key, p: _ratio(p)),
               ("burst", lambda key, p: _optional(p["burst"], ".2f")),
               ("of a copy", lambda key, p: _optional(p.get("of_copy"), ".0%")),
               ("of the plain kernel", lambda key, p: _optional(p["per_live"], ".2f")),
               ("relative error", lambda key, p: _optional(p["error"], ".1e"))]
    table = [[cell(key, p) for key, p in problems.items()] for _, cell in columns]
    used = [i for i, column in enumerate(table) if any(column)]
    rows = [[table[i][row] for i in used] for row in range(len(problems))]
    return [[columns[i][0] for i in used], *rows]


def _optional(value, form):
    return format(value, form) if value is not None else ""


def markdown(lines):
    head, *rest = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rest])


def is_grid(shapes):
    """True if the shapes are all combinations of several problems and several lengths."""
    pairs = [tuple(shape.rsplit(" ", 1)) for shape in shapes]
    if any(len(pair) < 2 for pair in pairs):
        return False
    others, lengths = ({pair[i] for pair in pairs} for i in (0, 1))
    return len(lengths) > 1 and len(pairs) == len(others) * len(lengths)


def main():
    p = argparse.ArgumentParser(description="Rows of results as Markdown tables.")
    p.add_argument("results", nargs="+", help="files of bench/run.py, later ones count more")
    p.add_argument("--work", default="*", help="only works of such names: 'gemm*,decode*'")
    p.add_argument("--kernels", action="store_true", help="a column with the kernel's name")
    args = p.parse_args()
    problems = {key: problem for key, problem in collect(args.results).items()
                if any(fnmatch.fnmatch(key[0], name) for name in args.work.split(","))}
    if not problems:
        raise SystemExit(f"no work '{args.work}' in these files")
    works, rest = {}, {}
    for (work, shape), problem in problems.items():
        works.setdefault(work, {})[shape] = problem
    for work, of_work in works.items():
        if is_grid(of_work) and not args.kernels:
            print(f"{markdown(grid(work, of_work))}\n\n{summary(of_work.values())}\n")
        else:
            rest |= {(work, shape): p for shape, p in of_work.items()}
    if rest:
        print(f"{markdown(listing(rest, args.kernels))}\n")
    print(f"all, {summary(problems.values())}")


if __name__ == "__main__":
    main()
