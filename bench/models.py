#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times attention layers of five models, 150 configurations, by everyone: ours untuned, cuDNN,
FlashAttention-2, FlexAttention by its backends and torch.compile of the formula, in the same loop.

    python3 bench/models.py --out models.jsonl --budget-seconds 1500    # again: goes on where it stopped
    python3 bench/models.py --out models.jsonl --page models.html       # a page alone: models_page.py
    python3 bench/models.py --list
    python3 bench/models.py --out some.jsonl --case llama2 --case decode --limit-seconds 60
"""
import argparse
import datetime
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True  # no __pycache__ in the checkout
# A child compiles few functions; a pool of compilers for that would start slower than it works.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import cases  # noqa: E402
import models_page  # noqa: E402
import report  # noqa: E402
import sweep  # noqa: E402
import systems  # noqa: E402
import timing  # noqa: E402
import windows  # noqa: E402

CASE_SECONDS = 240.0
MODE = "sustained"


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--out", default="models.jsonl", help="a row for each system of each case is "
                   "appended; what has a row is not timed again")
    p.add_argument("--page", default="", help="write all rows of --out as a page to this file")
    p.add_argument("--case", action="append", default=[], metavar="TEXT",
                   help="only cases whose name contains the text (repeatable; any of them)")
    p.add_argument("--list", action="store_true", help="print the cases and their systems and stop")
    p.add_argument("--failures-again", action="store_true", help="try again what has failed")
    p.add_argument("--without", action="append", default=[], metavar="SYSTEM",
                   help="leave out a system (repeatable)")
    p.add_argument("--limit-seconds", type=float, default=CASE_SECONDS,
                   help="for a step of a case: compiling all systems, or timing them")
    p.add_argument("--budget-seconds", type=float, default=3600, help="for everything")
    p.add_argument("--golden", default=os.path.join(HERE, "..", "golden"), help="our programs")
    p.add_argument("--lib", default="build-device/libnautilus.so", help="the library")
    p.add_argument("--tool", default="", help="the command line tool (default: beside --lib)")
    p.add_argument("--target", default="sm_90a")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compiling at a time")
    p.add_argument("--window", type=int, default=16, help="cases that are compiled, then timed")
    p.add_argument("--memory-gb", type=float, default=80, help="of the card, while compiling")
    p.add_argument("--reps", type=int, default=0, help="turns of the loop (0: 7 to 25)")
    p.add_argument("--child", metavar="CASE", help=argparse.SUPPRESS)
    p.add_argument("--systems", default="", help=argparse.SUPPRESS)
    p.add_argument("--child-program", default="", help=argparse.SUPPRESS)  # of tests
    return p.parse_args(arguments)


def full_name(case):
    return f"{case.model} {case.name}"


def selected(options):
    found = cases.grid_of_models()
    return [c for c in found
            if not options.case or any(text in full_name(c) for text in options.case)]


class Layer(windows.Member):
    """A case, the systems that have no row yet, and their rows."""

    def __init__(self, case, names, limit):
        super().__init__()
        self.case, self.names, self.limit = case, names, limit
        self.timed, self.failed = {}, {}
        self.left = []  # systems that another's end took with it: for another child
        self.doing = self.broken = ""

    def take(self, message):
        if "failed" in message:
            self.failed[message["failed"]] = message["why"]
        elif "rows" in message:
            self.timed = {row["candidate"]: row for row in message["rows"]}

    def follow(self, deadline):
        """A step that takes longer than the limit of a case is a hang; the deadline is everyone's."""
        asks = super().follow(min(deadline, time.monotonic() + self.limit))
        if self.late and not self.broken and time.monotonic() < deadline:
            self.late = False
            self.ended("hung", self.doing, self.limit)
        return asks

    def leave(self, how):
        self.doing = self.child.doing
        super().leave(how)

    def ended(self, how, doing, limit):
        missing = [n for n in self.names if n not in self.timed and n not in self.failed]
        if how == "done":
            self.failed.update((n, "no time came back") for n in missing)
            return
        why = f"{how} at: {doing}" + (f" (after {limit:.0f} s)" if how == "hung" else "")
        last = next((line for line in reversed(self.output) if line.strip()), "")
        if how == "died" and last:
            why += f": {last.strip()[:200]}"
        if doing == "start":  # nothing of this case has begun
            self.broken, self.late = why, True
            return
        guilty = doing.partition(": ")[0]
        if guilty in self.failed:  # it said why before it ended
            guilty = ""
        elif guilty in missing:
            self.failed[guilty] = why
        else:  # nobody's fault that we know of
            self.failed.update((n, why) for n in missing)
        self.left = [n for n in missing if n not in self.failed]

    def finished(self, sampler, state):
        """The rows as they are written. The peer is the first of systems.PEERS that has a time."""
        case = self.case
        flops = systems.flops_of(case)
        peer = next((n for n in systems.PEERS if n in self.timed), None)
        base = dict(suite=case.suite, model=case.model, work=case.work, shape=case.shape, flops=flops,
                    bytes=case.bytes, gpu=sampler.gpu, driver=sampler.driver, mode=MODE)
        date = datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds")
        rows = []
        for name in self.names:
            if name in self.timed:
                ms = self.timed[name]["ms_median"]
                rate = (dict(tflops=flops / ms / 1e9) if case.flops
                        else dict(gb_per_s=case.bytes / ms / 1e6))
                ratio = self.timed[peer]["ms_median"] / ms if peer else None
                rows.append(dict(base, **self.timed[name], **rate, peer=peer, ratio_to_peer=ratio,
                                 date=date, **state))
            elif name in self.failed:
                rows.append(dict(base, candidate=name, failed=self.failed[name], date=date))
        return rows


def read_rows(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def missing(case, rows, options):
    """The systems to time: none if all have a row, else all but those that have failed before, for
    times compare in one loop only."""
    names = [n for n in systems.wanted(case) if n not in options.without]
    last = {r["candidate"]: r for r in rows if (r["work"], r["shape"]) == (case.work, case.shape)}
    failed = {n for n, r in last.items() if r.get("failed")}
    again = failed if options.failures_again else set()
    if all(n in last and n not in again for n in names):
        return []
    return [n for n in names if n not in failed or n in again]


def child_command(layer, options):
    program = options.child_program or os.path.abspath(__file__)
    return [sys.executable, "-uB", program, "--golden", options.golden, "--lib", options.lib,
            "--tool", options.tool, "--target", options.target, "--reps", str(options.reps),
            "--child", full_name(layer.case), "--systems", ",".join(layer.names)]


def run_child(options):
    import models_case  # the only part that needs PyTorch
    case = next(c for c in cases.grid_of_models() if full_name(c) == options.child)
    path = os.path.join(options.golden, case.math)
    return models_case.run(case, path, options.systems.split(","), options)


def run_all(layers, options, deadline, keep):
    """Layers that lost a system go once more without it, until each has all its rows. Returns those
    that were not reached."""
    sampler = timing.Sampler(os.environ.get("NAUTILUS_BENCH_GPU", "0"))
    left = []

    def write(layer, rows):
        keep(rows)
        for row in rows:
            if row.get("failed"):
                print(f"-- {full_name(layer.case)}: {row['candidate']}: {row['failed']}", flush=True)

    try:
        while layers:
            windows.run(layers, lambda layer: child_command(layer, options), options, sampler,
                        deadline, write)
            left += [layer for layer in layers if layer.late]
            layers = [Layer(layer.case, layer.left, layer.limit) for layer in layers
                      if layer.left and not layer.late]
    finally:
        sampler.close()
    return left


def main():
    options = parse(sys.argv[1:])
    if options.child:
        return run_child(options)
    deadline = time.monotonic() + options.budget_seconds
    chosen = selected(options)
    if not chosen:
        raise SystemExit("no case has such a name; --list prints them")
    if options.list:
        for case in chosen:
            print(f"{case.suite:13} {full_name(case):45} {', '.join(systems.wanted(case))}")
        print(f"{len(chosen)} cases")
        return 0
    options.tool = options.tool or sweep.tool_beside(options.lib)
    rows = read_rows(options.out)
    layers = [Layer(case, names, options.limit_seconds) for case in chosen
              if (names := missing(case, rows, options))]
    print(f"{len(chosen) - len(layers)} of {len(chosen)} cases are in {options.out}", flush=True)
    if layers and not options.child_program:
        for file in (options.lib, options.tool):
            if not os.path.isfile(file):
                raise SystemExit(f"there is no {file}: build it, or name another by --lib and --tool")

    def keep(new):
        rows.extend(new)
        with open(options.out, "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in new)

    left = run_all(layers, options, deadline, keep)
    print(report.table(models_page.latest(rows)))
    if options.page:
        models_page.write(rows, options.page)
        print(f"the page is {options.page}")
    for layer in left:
        print(f"not reached: {full_name(layer.case)}  {layer.broken}")
    if left:
        print(f"{len(left)} not reached; the same command goes on with them")
    ours_failed = any(r.get("failed") and r["candidate"] == systems.OURS
                      for r in models_page.latest(rows))
    return 1 if left or ours_failed else 0


if __name__ == "__main__":
    sys.exit(main())
