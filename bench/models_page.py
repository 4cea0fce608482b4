#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of bench/models.py as one page that needs nothing else: means, the distribution of ratios, the
roofline, bars for each case, failures, and all numbers.

    python3 bench/models_page.py models.jsonl [later.jsonl ...] --out models.html

Rows of bench/run.py over the same layers (suites prefill_grid and decode_grid) can be drawn as well.
"""
import argparse
import html
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "python"))
sys.dont_write_bytecode = True

import cases  # noqa: E402
import systems  # noqa: E402
from nautilus import _results  # noqa: E402
from nautilus._display import table_html  # noqa: E402

SUITES = (("prefill_grid", "Prefill in bf16"), ("prefill_fp8", "Prefill in fp8 (e4m3)"),
          ("decode_grid", "Decoding one token, bf16"))

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1110px; margin: 2em auto; padding: 0 1em; color: #1c2733;
       background: #fff }
h1 { font-size: 1.5em; margin-bottom: 0 } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; font-size: 13px; margin: .6em 0 }
th, td { padding: 2px 10px 2px 0; border-bottom: 1px solid #dde3ea; vertical-align: top }
td { font-variant-numeric: tabular-nums } .wide { overflow-x: auto } p.small { color: #5a6673; font-size: 13px }
svg { display: block; margin: .5em 0 }
"""


def of_the_grid(rows):
    """Rows of the 150 cases, with what the cases know and rows of other benchmarks do not say."""
    known = {(c.work, c.shape): c for c in cases.grid_of_models()}
    found = []
    for row in rows:
        case = known.get((row.get("work"), row.get("shape")))
        if case is None or row.get("mode", "sustained") != "sustained":
            continue
        found.append(dict(dict(suite=case.suite, model=case.model, flops=systems.flops_of(case),
                               bytes=case.bytes), **row))
    return found


def latest(rows):
    """The last row of each system of each case, in the order of the cases' first rows."""
    return list({(r["work"], r["shape"], r["candidate"]): r for r in rows}.values())


def page(rows):
    rows = latest(of_the_grid(rows))
    everything = _results.Results(rows)
    count = len(cases.grid_of_models())
    about = " · ".join(filter(None, (
        everything.card, everything.driver and f"driver {everything.driver}",
        everything.dates and f"{everything.dates[0][:10]} to {everything.dates[-1][:10]}")))
    timed = sum(1 for p in everything.problems if p.times)
    parts = [f"<h1>Attention layers of five models: {timed} of {count} configurations</h1>",
             f"<p class='small'>{html.escape(about)}</p>",
             "<p>Every system computes the same tensors in one loop; medians, memory of 256 MB written before each launch. "
             "Numbers are the peer's time over ours: above 1 we are faster. Ours is what the compiler makes of the formula, "
             "untuned. A cross stands for a failure; its reason is shown when pointed at, and in the table of failures.</p>",
             "<h2>Means</h2>", _means(rows)]
    if everything.summary():
        parts += ["<h2>Distribution of ratios</h2>", everything.distribution().svg]
    roofline = everything.roofline()
    if roofline:
        parts += ["<h2>Roofline</h2>", roofline.svg,
                  "<p class='small'>Limits are those of the data sheet, for dense products.</p>"]
    for suite, title in SUITES:
        of_suite = [r for r in rows if r["suite"] == suite]
        if of_suite:
            parts += [f"<h2>{title}</h2>", _results.Results(of_suite).bars().svg]
    parts += [_failures(everything), "<h2>All numbers</h2>", _numbers(rows)]
    return (f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>Attention layers of five models</title>"
            f"<style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n")


def _means(rows):
    """A line for each group and peer."""
    lines = []
    for suite, title in (*SUITES, ("", "All")):
        results = _results.Results([r for r in rows if not suite or r["suite"] == suite])
        for peer, problems, mean, low, high, failures in results.summary():
            lines.append((title, peer, problems, f"{mean:.2f}", f"{low:.2f}", f"{high:.2f}", failures))
            title = ""
    return table_html(("", "peer", "both timed", "geometric mean", "lowest", "highest", "failures of the peer"), lines)


def _failures(results):
    """Equal failures of a system in one line."""
    groups = {}
    for problem, name, why in results.failures():
        groups.setdefault((name, why), []).append(problem)
    if not groups:
        return "<h2>Failures</h2><p>None.</p>"
    lines = [(name, len(problems), why, problems[0] + (" …" if len(problems) > 1 else ""))
             for (name, why), problems in sorted(groups.items())]
    return ("<h2>Failures</h2><div class='wide'>"
            + table_html(("system", "cases", "why", "first case"), lines) + "</div>")


def _numbers(rows):
    lines = []
    for row in rows:
        if row.get("failed"):
            numbers = ("failed", "", "", "")
        else:
            rate = f"{row['tflops']:.0f} TFLOP/s" if "tflops" in row else f"{row['gb_per_s']:.0f} GB/s"
            ratio = row.get("ratio_to_peer")
            error = row.get("rel_error")
            numbers = (f"{row['ms_median']:.4f}", rate, f"{ratio:.3f}" if ratio else "",
                       f"{error:.1e}" if error is not None else "")
        lines.append((row["model"], row["work"], row["shape"], row["candidate"], *numbers,
                      row.get("peer") or "", row.get("note", "")))
    head = ("model", "work", "shape", "system", "ms", "speed", "peer's time over it", "error", "peer", "")
    return f"<details><summary>{len(lines)} rows</summary>{table_html(head, lines)}</details>"


def write(rows, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(rows))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("results", nargs="+", help="files of JSON lines; of a case the last row counts")
    p.add_argument("--out", default="models.html")
    args = p.parse_args()
    rows = _results.read(args.results)
    if not of_the_grid(rows):
        raise SystemExit("no row of these files is of a layer of the models")
    write(rows, args.out)
    print(f"{len(of_the_grid(rows))} rows in {args.out}")


if __name__ == "__main__":
    main()
