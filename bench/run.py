#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks and times golden kernels beside the libraries. bench/README.md says how and why.

    python3 bench/run.py --suite all --golden golden --lib build-device/libnautilus.so \\
        --out results.jsonl --budget-seconds 500
"""
import argparse
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True  # no __pycache__ in the checkout

import cases  # noqa: E402
import report  # noqa: E402
import supervise  # noqa: E402
import sweep  # noqa: E402
import tuned  # noqa: E402


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--suite", default="all",
                   help="attention, gemm, epilogue, decode, rows, all; prefill_grid, decode_grid, "
                   "gemm_other, operands, variants, head_sizes; several with ,")
    p.add_argument("--golden", default="golden", help="folder of the candidates")
    p.add_argument("--math", action="store_true",
                   help="time what the compiler makes of the programs themselves (golden/*.naut)")
    p.add_argument("--sweep", type=int, default=0, metavar="N",
                   help="with --math: beside each program (the row \"untuned\") also up to N "
                   "schedules of `nautilus schedule --sweep`, at the sizes of the case")
    p.add_argument("--tune", type=float, default=0, metavar="SECONDS",
                   help="time also what `nautilus tune` finds for each case in so many seconds")
    p.add_argument("--tool", default="", help="the command line tool (default: beside --lib)")
    p.add_argument("--prepare", action="store_true",
                   help="only make and compile the schedules of --sweep; needs no GPU")
    p.add_argument("--lib", default="build-device/libnautilus.so", help="the library")
    p.add_argument("--target", default="sm_90a")
    p.add_argument("--out", default="results.jsonl", help="rows are appended, as JSON lines")
    p.add_argument("--budget-seconds", type=float, default=3600, help="for everything")
    p.add_argument("--case", action="append", default=[], metavar="TEXT",
                   help="only cases whose name contains the text (repeatable)")
    p.add_argument("--candidate", action="append", default=[], metavar="PATTERN",
                   help="only files of this name, * allowed (repeatable)")
    p.add_argument("--reps", type=int, default=0, help="turns in the sustained loop (0: 15 or 25)")
    p.add_argument("--best", type=int, default=2,
                   help="how many candidates, best first, are timed in burst and back to back")
    p.add_argument("--no-inductor", action="store_true", help="do not time torch.compile")
    p.add_argument("--peers-only", action="store_true", help="time the libraries alone")
    p.add_argument("--list", action="store_true", help="print cases and their candidates and stop")
    p.add_argument("--probe", nargs="+", metavar="FILE",
                   help="check these kernels on small problems in this process, time nothing")
    p.add_argument("--worker", metavar="FILE", help=argparse.SUPPRESS)
    return p.parse_args(arguments)


def selected(options):
    """[(case, files)], and the notes about what is missing."""
    result, notes = [], {}
    for case in cases.cases_of(options.suite):
        if options.case and not any(text in case.name for text in options.case):
            continue
        if options.math:
            files, missing = cases.math_candidates(case, options.golden)
        else:
            files, missing = cases.candidate_files(case, options.golden, options.candidate)
        notes.update(dict.fromkeys(missing))
        result.append((case, [] if options.peers_only else files))
    return result, ([] if options.peers_only else list(notes))


def child_command(options, *more):
    return [sys.executable, "-uB", os.path.join(HERE, "run.py"), "--suite", options.suite,
            "--golden", options.golden, "--lib", options.lib, "--target", options.target,
            "--reps", str(options.reps), "--best", str(options.best),
            *(["--no-inductor"] if options.no_inductor else []),
            *(["--math", "--sweep", str(options.sweep)] if options.sweep else []), *more]


def with_schedules(options, jobs):
    """The jobs with the candidates of --sweep, compiled."""
    tool = options.tool or sweep.tool_beside(options.lib)
    if not os.path.isfile(tool):
        raise SystemExit(f"--sweep needs the command line tool, and there is no {tool}")
    start = time.monotonic()
    plain = [cases.plain_file(c, options.golden) for c, _ in jobs if c.plain]
    jobs = sweep.Sweep(tool, options.out + ".schedules", options.sweep,
                       lambda text: print("note:", text)).add_to(jobs, plain)
    count = sum(1 for _, files in jobs for f in files if "@" in f)
    print(f"{count} schedules for {len(jobs)} cases, compiled in "
          f"{time.monotonic() - start:.0f} s", flush=True)
    return jobs


def probe_all(options, files, deadline):
    """Checks every file in children; a hang or a crash costs the file that was under way. Returns
    {file: why it is not timed}."""
    bad, todo, told = {}, list(files), False

    def handle(message):
        nonlocal told
        if "probed" in message:
            todo.remove(message["probed"])
            # The child ends after a fault, but has said whose it was.
            told = message.get("lost", False)
            if message["why"]:
                bad[message["probed"]] = message["why"]
                print(f"REJECTED {os.path.basename(message['probed'])}: {message['why']}")
        elif "note" in message:
            print("note:", message["note"])

    while todo:
        told = False
        ended, doing = supervise.watch(child_command(options, "--probe", *todo), deadline, handle)
        if ended == "done":
            break
        if told:
            continue
        if ended == "late" or doing == "start":
            print(f"no more probes: the process {ended} at: {doing}")
            bad.update((f, f"not probed ({ended})") for f in todo)
            break
        # Files are probed in order, so the first one left is the one that failed.
        bad[todo[0]] = f"{ended} at {doing}"
        print(f"REJECTED {os.path.basename(todo[0])}: {ended} at {doing}")
        del todo[0]
    return bad


def time_all(options, jobs, deadline, handle_row):
    """Times every case in children, as probe_all checks. A case whose timing hangs is lost, a
    candidate whose check hangs is left out of that case."""
    skip, todo = [], [c.name for c, _ in jobs]
    files = {c.name: f for c, f in jobs}

    def handle(message):
        if "row" in message:
            handle_row(message["row"])
        elif "case_done" in message:
            todo.remove(message["case_done"])
        elif "note" in message:
            print("note:", message["note"])

    while todo:
        job = dict(cases=[[name, files[name]] for name in todo], skip=skip,
                   seconds=deadline - time.monotonic())
        # The worker keeps to the deadline by itself; the margin is for its last case.
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:  # too long for an argument
            json.dump(job, file)
            file.flush()
            ended, doing = supervise.watch(child_command(options, "--worker", file.name),
                                           deadline + 20, handle)
        if ended == "done":
            break
        print(f"the worker {ended} at: {doing}")
        if ended == "late" or doing == "start":
            break
        if doing in skip or not doing.startswith("check "):
            del todo[0]  # cases are done in order
        else:
            skip.append(doing)
    for name in todo:
        print(f"not measured: {name}")


def main():
    options = parse(sys.argv[1:])
    deadline = time.monotonic() + options.budget_seconds
    jobs, notes = selected(options)
    if options.probe or options.worker:
        import worker  # the only part that needs PyTorch
        if options.probe:
            return worker.probe(options, [c for c, _ in jobs])
        return worker.run_job(options, {c.name: c for c, _ in jobs})
    if options.sweep and not options.math:
        raise SystemExit("--sweep goes with --math")
    if options.sweep and not options.peers_only and (options.prepare or not options.list):
        jobs = with_schedules(options, jobs)
    if options.tune and not options.list:
        jobs = tuned.Tuning(options.tool or sweep.tool_beside(options.lib), options.out + ".tuned",
                            options.tune, lambda text: print("note:", text)).add_to(jobs)
    if options.prepare or options.list:
        for case, files in jobs:
            print(case.name, *(os.path.basename(f) if "@" not in f else sweep.label(f, True)
                               for f in files), sep="\n    ")
        return 0
    for note in notes:
        print("note:", note)
    rows = []
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with open(options.out, "a", encoding="utf-8") as out:

        def keep(row):
            rows.append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()

        # Schedules of a sweep are checked where they are timed: they are too many for more.
        files = list(dict.fromkeys(f for _, fs in jobs for f in fs if "@" not in f))
        bad = probe_all(options, files, deadline) if files else {}
        time_all(options, [(c, [f for f in fs if f not in bad]) for c, fs in jobs], deadline, keep)
    print(report.table(rows))
    if options.sweep:
        print(report.sweep_table(rows))
    for file, why in bad.items():
        print(f"rejected: {os.path.basename(file)}: {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
