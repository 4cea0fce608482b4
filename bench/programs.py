#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole programs beside their PyTorch expressions: ours untuned, eager, torch.compile.

Suites: `level1`, the 100 problems of KernelBench level 1; `foreign`, programs that are no examples of
ours. Each problem has a process of its own. A window of them is compiled on all cores, then one after
the other is checked and timed alone. bench/README.md says how to read the table.

    python3 bench/programs.py --lib build-device/libnautilus.so --suite level1 --out level1.jsonl
    python3 bench/programs.py --suite level1 --fast --case Norm
    python3 bench/programs.py --lib build/libnautilus.so --suite foreign --dry-run     # needs no GPU
"""
import argparse
import concurrent.futures
import datetime
import importlib
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True  # no __pycache__ in the checkout
# A child compiles one expression; a pool of compilers for that would start slower than it works.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import programs_table  # noqa: E402
import sweep  # noqa: E402
import timing  # noqa: E402
import windows  # noqa: E402
from programs_problem import OTHER  # noqa: E402

SUITES = ("level1", "foreign")


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--suite", choices=(*SUITES, "all"), default="level1")
    p.add_argument("--case", action="append", default=[], metavar="TEXT",
                   help="only this number, or problems whose name contains the text (repeatable)")
    p.add_argument("--fast", action="store_true",
                   help="no products, convolutions and attention")
    p.add_argument("--lib", default="build-device/libnautilus.so", help="the library")
    p.add_argument("--tool", default="", help="the command line tool (default: beside --lib)")
    p.add_argument("--target", default="sm_90a")
    p.add_argument("--out", default="", help="append a row for each problem; those in it are not "
                   "timed again, and the table is of all of it")
    p.add_argument("--again", action="store_true", help="also time what --out has")
    p.add_argument("--list", action="store_true", help="print the problems and stop")
    p.add_argument("--dry-run", action="store_true", help="compile all programs, compare them with "
                   "their expressions in float64 on the CPU if PyTorch is there, and stop")
    p.add_argument("--no-compile", action="store_true", help="with --dry-run: only compare")
    p.add_argument("--no-torch-compile", dest="compiled", action="store_false",
                   help="eager is the only peer")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compiling at a time")
    p.add_argument("--window", type=int, default=32, help="problems that are compiled, then timed")
    p.add_argument("--memory-gb", type=float, default=90, help="of the card, while compiling")
    p.add_argument("--limit-seconds", type=float, default=540, help="for everything")
    p.add_argument("--launch-seconds", type=float, default=8,
                   help="our first launch: what takes longer has this as its time")
    p.add_argument("--once-ms", type=float, default=400,
                   help="a first launch of ours that takes longer is its time")
    p.add_argument("--case-seconds", type=float, default=0.5, help="for the turns of a problem")
    p.add_argument("--seed", type=int, default=1, help="of the inputs")
    p.add_argument("--forms", type=int, default=0, metavar="N", help="also time up to so many other "
                   "kernels of each program without tiles (`nautilus schedule --sweep --forms`)")
    p.add_argument("--forms-out", default="", help="a file that their rows are added to, for "
                   "`nautilus bench --calibrate --rows`")
    p.add_argument("--kernels", action="store_true", help="rows also have the time of each kernel, "
                   "ours and of torch.compile, launched one behind the other")
    p.add_argument("--child", nargs=2, metavar=("SUITE", "NAME"), help=argparse.SUPPRESS)
    return p.parse_args(arguments)


class Entry(windows.Member):
    """A problem, and what this run finds out about it."""

    def __init__(self, suite, problem):
        super().__init__()
        self.suite, self.problem = suite, problem
        self.row = {}
        self.notes = []

    def take(self, message):
        if "part" in message:
            self.row.update(message["part"])
        elif "note" in message:
            self.notes.append(message["note"])

    def ended(self, how, doing, limit):
        """What a child was doing when it hung is in its row: our first launch, which then has the
        limit as its time, or something else."""
        if how == "hung" and doing == "our first launch":
            self.row.update(over=True, ours_ms=1000 * limit, samples=0)
        elif how != "done" and not self.row.get("wrong"):
            self.row["wrong"] = f"{how} at: {doing}"

    def finished(self, sampler, state):
        """The row as it is written."""
        row = dict(suite=self.suite, case=self.problem.name, title=self.problem.title,
                   kind=self.problem.kind, sizes=self.problem.sizes, **self.row)
        if self.notes:
            row["notes"] = self.notes
        if row.get("ours_ms") and row.get("bytes"):
            row["gb_per_s"] = row["bytes"] / row["ours_ms"] / 1e6
        row["ratio_to_peer"] = programs_table.ratio(row)
        row.update(state, gpu=sampler.gpu, driver=sampler.driver,
                   date=datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"))
        return row


def child_command(entry, options):
    more = [] if options.compiled else ["--no-torch-compile"]
    more += ["--kernels"] if options.kernels else []
    more += ["--forms", str(options.forms)] if options.forms else []
    return [sys.executable, "-uB", os.path.abspath(__file__), "--lib", options.lib, "--tool",
            options.tool, "--target", options.target, "--launch-seconds", str(options.launch_seconds),
            "--once-ms", str(options.once_ms), "--case-seconds", str(options.case_seconds), "--seed",
            str(options.seed), *more, "--child", entry.suite, entry.problem.name]


def dry_run(entries, options, tool):
    """Compiles and compares; 1 if something is wrong."""
    bad = 0
    compare = None
    try:
        import numpy  # noqa: F401
        import torch
        import programs_oracle
        torch.set_num_threads(1)
        for suite in {e.suite for e in entries}:
            importlib.import_module(suite).use_torch()
        compare = programs_oracle.differs
    except ImportError as missing:
        print(f"not compared with PyTorch: {missing}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        compiled = [pool.submit(sweep.compile_program, tool, e.problem.opened_as(e.problem.sizes))
                    if not options.no_compile else None for e in entries]
        for entry, job in zip(entries, compiled):
            why, worst = compare(entry.problem, tool) if compare else ("", None)
            failed = job.result() if job else ""
            bad += bool(why or failed)
            print(f"{'wrong' if why or failed else 'right'}  {entry.suite} {entry.problem.title}  "
                  f"{f'error {worst:.1e}  ' if worst is not None else ''}{why}{failed}", flush=True)
    print(f"{len(entries)} programs, {bad} wrong")
    return 1 if bad else 0


def read_rows(path):
    """{(suite, case): row}, the last of each."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return {(r["suite"], r["case"]): r for r in rows}


def selected(options):
    suites = SUITES if options.suite == "all" else (options.suite,)
    entries = [Entry(s, p) for s in suites for p in importlib.import_module(s).problems()]
    if options.fast:
        entries = [e for e in entries if e.problem.kind == OTHER]
    if options.case:
        entries = [e for e in entries if any(
            text == e.problem.name or not text.isdigit() and text.lower() in
            e.problem.title.lower() for text in options.case)]
    return entries


def main():
    options = parse(sys.argv[1:])
    if options.child:
        import programs_case  # the only part that needs PyTorch
        suite, name = options.child
        module = importlib.import_module(suite)
        module.use_torch()
        return programs_case.run(next(p for p in module.problems() if p.name == name), options)
    deadline = time.monotonic() + options.limit_seconds
    entries = selected(options)
    if options.list:
        for e in entries:
            print(f"{e.suite:8} {e.problem.title:50.50} {e.problem.kind:12}",
                  ",".join(f"{n}={v}" for n, v in e.problem.sizes.items()))
        return 0
    options.tool = options.tool or sweep.tool_beside(options.lib)
    if not os.path.isfile(options.tool):
        raise SystemExit(f"there is no command line tool {options.tool}; --tool names it")
    if options.dry_run:
        return dry_run(entries, options, options.tool)
    rows = read_rows(options.out)
    todo = [e for e in entries if options.again or (e.suite, e.problem.name) not in rows]
    sampler = timing.Sampler(os.environ.get("NAUTILUS_BENCH_GPU", "0"))

    def write(entry, row):
        forms = row.pop("forms", [])
        if options.forms_out and forms:
            with open(options.forms_out, "a", encoding="utf-8") as out:
                out.writelines(json.dumps(form) + "\n" for form in forms)
        rows[entry.suite, entry.problem.name] = row
        if options.out:
            with open(options.out, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
        if row.get("wrong"):
            print(f"-- {row['title']}: {row['wrong']}", *entry.output[-4:], sep="\n    ", flush=True)

    try:
        windows.run(todo, lambda entry: child_command(entry, options), options, sampler, deadline,
                    write)
    finally:
        sampler.close()
    left = [e.problem.title for e in todo if (e.suite, e.problem.name) not in rows
            or e.late]
    done = [rows[e.suite, e.problem.name] for e in entries if (e.suite, e.problem.name) in rows]
    print(programs_table.table(done))
    if left:
        print(f"{len(left)} not reached; the same command with the same --out goes on with them")
    return 1 if left or any(r.get("wrong") for r in done) else 0


if __name__ == "__main__":
    sys.exit(main())
