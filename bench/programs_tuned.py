#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tuning gains for whole programs: `nautilus tune` of each problem of a suite at its own sizes.

The compiler's choice and the winner are timed by the tuner in one process, taking turns. Problems that
`--out` has are not tuned again. Trials are kept as JSON lines, for `nautilus db import` and `db fit`.

    python3 bench/programs_tuned.py --suite level1 --case 23 --budget 20 --out tuned.jsonl
"""
import argparse
import importlib
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True  # no __pycache__ in the checkout

from tuned import names_of  # noqa: E402


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--suite", choices=("level1", "foreign"), default="level1")
    p.add_argument("--case", action="append", default=[], help="only this problem (repeatable)")
    p.add_argument("--budget", type=float, default=20, help="seconds for each")
    p.add_argument("--search", default="learned")
    p.add_argument("--limit-seconds", type=float, default=540, help="for everything")
    p.add_argument("--tool", default="build-device/nautilus")
    p.add_argument("--record", default="", help="a file that trials are added to")
    p.add_argument("--out", default="", help="a file that a row for each problem is added to")
    return p.parse_args(arguments)


def tune(problem, options):
    """The tuner's last event for a problem, with its name."""
    sizes = ",".join(f"{n}={v}" for n, v in problem.sizes.items() if n in names_of(problem.file))
    command = [options.tool, "tune", problem.file, "--budget", f"{options.budget}s", "--json",
               "--search", options.search, "--no-database"]
    command += ["--shape", sizes] if sizes else []
    command += ["--record", options.record] if options.record else []
    row = {"suite": options.suite, "problem": problem.name, "title": problem.title, "sizes": sizes,
           "kind": problem.kind, "budget": options.budget}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=4 * options.budget + 60)
    except subprocess.TimeoutExpired:
        return {**row, "failed": "it did not end"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {**row, "failed": done.stderr.strip()[:300]}
    end = json.loads(lines[-1])
    return {**row, **{k: v for k, v in end.items() if not isinstance(v, (str, dict, list))}}


def main(arguments):
    options = parse(arguments)
    began = time.monotonic()
    known = set()
    if options.out and os.path.exists(options.out):
        with open(options.out, encoding="utf-8") as rows:
            known = {(r["suite"], r["problem"]) for r in map(json.loads, rows)}
    for problem in importlib.import_module(options.suite).problems():
        if (options.case and problem.name not in options.case) or (options.suite, problem.name) in known:
            continue
        if time.monotonic() - began > options.limit_seconds:
            print("the time is over; the next call goes on", flush=True)
            break
        row = tune(problem, options)
        if options.out:
            with open(options.out, "a", encoding="utf-8") as rows:
                rows.write(json.dumps(row) + "\n")
        said = row.get("failed") or ", ".join(f"{k} {v:.4g}" for k, v in row.items()
                                              if k in ("first", "best", "median", "floor", "trials", "seconds"))
        print(f"{problem.name} {problem.title}: {said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
