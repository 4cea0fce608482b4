#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has something become slower? Checks and times a fixed sample and compares with recorded ratios.

The sample and the ratios are guard.json beside this file: the peer's time over ours, in one loop.
A ratio that fell by more than is allowed there is timed twice more, and the median of the three
counts. bench/README.md says how to read and how to change the sample.

    python3 bench/guard.py --lib build-device/libnautilus.so
    python3 bench/guard.py --lib build-device/libnautilus.so --update --out results.jsonl
    python3 bench/guard.py --lib build/libnautilus.so --dry-run           # needs no GPU
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True  # no __pycache__ in the checkout
# A child compiles one peer; its own pool of compilers for that would start slower than it works.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import cases  # noqa: E402
import guard_record  # noqa: E402
import supervise  # noqa: E402
import sweep  # noqa: E402
import timing  # noqa: E402

AGAIN = 2  # how often a case that fell is timed once more
TURN_SECONDS = 60.0  # for one timing, which takes one to two


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--lib", default="build-device/libnautilus.so", help="the library")
    p.add_argument("--tool", default="", help="the command line tool (default: beside --lib)")
    p.add_argument("--golden", default="golden", help="folder of the programs")
    p.add_argument("--target", default="sm_90a")
    p.add_argument("--record", default=os.path.join(HERE, "guard.json"),
                   help="the sample and its ratios")
    p.add_argument("--case", action="append", default=[], metavar="TEXT",
                   help="only cases whose name contains the text (repeatable)")
    p.add_argument("--update", action="store_true",
                   help="write the ratios of this run, medians of three, into --record")
    p.add_argument("--out", default="", help="append rows as bench/run.py writes them")
    p.add_argument("--dry-run", action="store_true",
                   help="compile all kernels, print the sample and stop; needs no GPU")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1,
                   help="cases that are prepared at a time")
    p.add_argument("--budget-seconds", type=float, default=420, help="for everything")
    p.add_argument("--child", metavar="NAME", help=argparse.SUPPRESS)
    return p.parse_args(arguments)


class Entry:
    """A case of the sample: what is recorded of it, and what this run finds."""

    def __init__(self, recorded, case, golden):
        self.recorded, self.case = recorded, case
        self.path = os.path.join(golden, case.math)
        self.child = None
        self.wrong = ""  # why there is no ratio
        self.output = []  # what the child printed
        self.timings = []  # of each time: (peer's ms, our ms)
        self.errors = {}
        self.state = {}  # of the card

    @property
    def name(self):
        return self.case.name

    @property
    def ratio(self):
        """The median of what was timed, or None."""
        ratios = [statistics.median(p) / statistics.median(o) for p, o in self.timings]
        return statistics.median(ratios) if ratios else None

    @property
    def change(self):
        """Of the ratio against the recorded one, or None."""
        if self.ratio is None or not self.recorded["ratio"]:
            return None
        return self.ratio / self.recorded["ratio"] - 1

    def take(self, message):
        if "wrong" in message:
            self.wrong = message["wrong"]
        elif "times" in message:
            self.timings.append((message["times"][self.recorded["peer"]],
                                 message["times"]["ours"]))
            self.errors = message["errors"]

    def follow(self, deadline):
        """True if the child asks what to do next."""
        ended = self.child.follow(deadline, self.take, self.output.append)
        if ended == "asks":
            return True
        if ended != "done" and not self.wrong:
            self.wrong = f"{ended} at: {self.child.doing}"
        self.child.end(ended)
        self.child = None
        return False


def compile_all(entries, tool, jobs):
    """All programs of the sample, into the kernel cache. Returns {path: why not}."""
    start = time.monotonic()
    paths = list(dict.fromkeys(e.path for e in entries))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        why = dict(zip(paths, pool.map(lambda p: sweep.compile_program(tool, p), paths)))
    failed = {path: text for path, text in why.items() if text}
    print(f"{len(paths)} programs compiled in {time.monotonic() - start:.0f} s"
          f"{f', {len(failed)} failed' if failed else ''}", flush=True)
    for path, text in failed.items():
        print(f"    {path}: {text}")
    return failed


def prepare(entries, options, deadline):
    """Starts a child for each case and follows it until it is checked and asks for its turn."""
    start = time.monotonic()

    def one(entry):
        command = [sys.executable, "-uB", os.path.abspath(__file__), "--lib", options.lib,
                   "--golden", options.golden, "--target", options.target, "--record",
                   options.record, "--child", entry.name]
        entry.child = supervise.Child(command, asks=True)
        entry.follow(deadline)

    able = [e for e in entries if not e.wrong]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, able))
    ready = sum(1 for e in able if e.child)
    print(f"{ready} of {len(entries)} cases checked in {time.monotonic() - start:.0f} s",
          flush=True)


def time_once(entry, deadline, sampler):
    if not entry.child:
        return
    start = time.monotonic()
    entry.child.answer("time")
    entry.follow(min(deadline, start + TURN_SECONDS))
    entry.state = sampler.between(start, time.monotonic())


def time_all(entries, allowed, update, deadline):
    """Each case alone on the card; those that fell, or for --update all, twice more."""
    start = time.monotonic()
    sampler = timing.Sampler(os.environ.get("NAUTILUS_BENCH_GPU", "0"))
    try:
        for entry in entries:
            time_once(entry, deadline, sampler)
        for _ in range(AGAIN):
            for entry in entries:
                once = entry.timings[:1]
                fell = once and entry.recorded["ratio"] and (
                    statistics.median(once[0][0]) / statistics.median(once[0][1]) <
                    entry.recorded["ratio"] * (1 - allowed))
                if fell or update:
                    time_once(entry, deadline, sampler)
    finally:
        sampler.close()
        for entry in entries:
            if entry.child:
                entry.child.answer("end")
        for entry in entries:
            if entry.child:
                entry.follow(time.monotonic() + 20)
    print(f"timed in {time.monotonic() - start:.0f} s", flush=True)
    return sampler


def result_rows(entry, sampler):
    """As bench/run.py writes them."""
    pairs = zip((entry.recorded["peer"], "untuned"), (0, 1), (entry.recorded["peer"], "ours"))
    for candidate, place, name in pairs:
        times = [t for timed in entry.timings for t in timed[place]]
        if not times:
            continue
        middle, low, high = timing.quartiles(times)
        rate = (dict(tflops=entry.case.flops / middle / 1e9) if entry.case.flops
                else dict(gb_per_s=entry.case.bytes / middle / 1e6))
        yield dict(work=entry.case.work, shape=entry.case.shape, gpu=sampler.gpu,
                   driver=sampler.driver, candidate=candidate, mode="sustained", ms_median=middle,
                   ms_p25=low, ms_p75=high, **rate, peer=entry.recorded["peer"],
                   ratio_to_peer=1.0 if place == 0 else entry.ratio,
                   rel_error=entry.errors.get(name), samples=len(times),
                   date=datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
                   **entry.state)


def main():
    options = parse(sys.argv[1:])
    record = guard_record.load(options.record)
    entries = [Entry(r, c, options.golden) for r, c in zip(record.cases, record.known_cases())]
    if options.child:
        import guard_case  # the only part that needs PyTorch
        entry = next(e for e in entries if e.name == options.child)
        return guard_case.run(entry.case, entry.path, entry.recorded["peer"], options)
    if options.case:
        entries = [e for e in entries if any(text in e.name for text in options.case)]
    deadline = time.monotonic() + options.budget_seconds
    tool = options.tool or sweep.tool_beside(options.lib)
    if not os.path.isfile(tool):
        raise SystemExit(f"there is no command line tool {tool}; --tool names it")
    failed = compile_all(entries, tool, options.jobs)
    for entry in entries:
        entry.wrong = failed.get(entry.path, "")
    if options.dry_run:
        print(guard_record.plan(entries))
        return 1 if failed else 0
    prepare(entries, options, deadline)
    sampler = time_all(entries, record.allowed_fall, options.update, deadline)
    if options.out:
        with open(options.out, "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for e in entries for row in result_rows(e, sampler))
    for entry in entries:
        if entry.wrong:
            print(f"-- {entry.name}: what its process printed last", *entry.output[-8:], sep="\n")
    table = guard_record.table(entries, record.allowed_fall)
    status = 1 if any(guard_record.is_bad(e, record.allowed_fall) for e in entries) else 0
    if options.update:
        source = os.path.basename(options.out) or f"guard {datetime.date.today()}"
        record.update({e.name: e.ratio for e in entries if e.ratio and not e.wrong}, source)
    print(table)
    return status


if __name__ == "__main__":
    sys.exit(main())
