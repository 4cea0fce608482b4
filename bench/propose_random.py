#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random walk over schedules: the smallest program that searches through `nautilus propose`.

Begins with the compiler's choice, changes a number of one line at a time, and keeps what is faster.

    python3 bench/propose_random.py --trials 50 -- golden/gemm_nt.naut --shape M=3000,N=5000,K=2000
    python3 bench/propose_random.py --trials 5 -- examples/rmsnorm.naut --emulate
"""
import argparse
import json
import random
import re
import statistics
import subprocess
import sys


def neighbour(schedule, rng):
    """The schedule with one of its numbers doubled, halved, or one more or less."""
    lines = schedule.splitlines()  # the first one says what it is a schedule of
    places = [(row, m) for row in range(1, len(lines)) for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", lines[row])]
    row, number = rng.choice(places)
    value = int(number.group())
    others = {2 * value, value // 2, value + 1, value - 1} - {value}
    changed = rng.choice(sorted(v for v in others if v >= 0))
    lines[row] = f"{lines[row][:number.start()]}{changed}{lines[row][number.end():]}"
    return "\n".join(lines) + "\n", f"{lines[row].strip()} in place of {value}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nautilus", default="build/nautilus")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("subject", nargs="+", help="what `nautilus propose` takes: a program, its sizes, where it runs")
    args = parser.parse_args()
    worker = subprocess.Popen([args.nautilus, "propose", *args.subject], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(schedule):
        worker.stdin.write(json.dumps({"schedule": schedule}) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
        if not line:
            sys.exit(f"nautilus propose ended with status {worker.wait()}")
        trial = json.loads(line)
        return trial, statistics.median(trial["times"]) if trial["verdict"] == "timed" else None

    rng = random.Random(args.seed)
    best, least = measure("")
    if least is None:
        sys.exit(f"the compiler's choice is {best['verdict']}: {best['reason']}")
    unit = "steps" if best["machine"] == "emulator" else "ms"
    print(f"trial 1: {least:g} {unit}, the compiler's choice")
    for number in range(2, args.trials + 1):
        schedule, what = neighbour(best["schedule"], rng)
        trial, time = measure(schedule)
        said = f"{time:g} {unit}" if time is not None else f"{trial['verdict']}: {trial['reason']}"
        if time is not None and time < least:
            best, least = trial, time
        print(f"trial {number}: {said}; {what}; best so far {least:g} {unit}", flush=True)
    worker.stdin.close()
    worker.wait()
    print(best["schedule"], end="")


if __name__ == "__main__":
    main()
