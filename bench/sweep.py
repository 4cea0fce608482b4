# SPDX-License-Identifier: Apache-2.0
"""Schedules to time beside the program's own: what `nautilus schedule --sweep` gives at the sizes of
a case, compiled before anything is timed.

A candidate is the program's path with the schedule behind it, "attention_full.naut:D=128@x.sched",
which nautilus_lib.Kernel opens. Schedules of several cases that decide the same are compiled once.
Compiling needs no GPU and fills the kernel cache, which the timing process reads.
"""
import concurrent.futures
import os
import re
import subprocess

from nautilus_lib import parts_of
from report import UNTUNED

TOOL_SECONDS = 300
COMMENT = re.compile(r"# (?P<name>[^,\n]+)(, (?P<cycles>\d+) cycles)?\n")


def tool_beside(lib):
    """The command line tool of the library's build folder."""
    return os.path.join(os.path.dirname(os.path.abspath(lib)), "nautilus")


def described(schedule):
    """(short name, predicted cycles or None) of a schedule's file, from its first line."""
    try:
        with open(schedule, encoding="utf-8") as file:
            match = COMMENT.match(file.readline())
    except OSError:
        match = None
    if not match:
        return os.path.splitext(os.path.basename(schedule))[0], None
    cycles = match["cycles"]
    return match["name"], int(cycles) if cycles else None


def label(path, is_sweep):
    """What rows call a candidate."""
    file, _, schedule = parts_of(path)
    if schedule:
        return described(schedule)[0]
    if is_sweep and file.endswith(".naut"):
        return UNTUNED
    return os.path.splitext(os.path.basename(file))[0]


def identity(path):
    """Equal for candidates with the same kernels."""
    file, sizes, schedule = parts_of(path)
    if not schedule:
        return file, sizes, ""
    with open(schedule, encoding="utf-8") as text:
        return file, sizes, "".join(line for line in text if not line.startswith("#"))


def sizes_of(case, path):
    """The sizes of the program as the tool takes them: static ones, and hints by which schedules
    are ordered. Names that the program does not have do no harm."""
    sizes = {n: v for n, v in case.sizes.items() if isinstance(v, int) and not isinstance(v, bool)}
    for item in filter(None, parts_of(path)[1].split(",")):
        name, _, value = item.partition("=")
        sizes[name] = int(value)
    return ",".join(f"{n}={v}" for n, v in sorted(sizes.items()))


def run_tool(command):
    """(output, why not)"""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return "", str(problem).splitlines()[0]
    if done.returncode == 0:
        return done.stdout, ""
    return "", (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]


def compile_program(tool, path):
    """Compiles into the kernel cache; why not, or nothing."""
    file, sizes, schedule = parts_of(path)
    return run_tool([tool, "compile", file, *(["--shape", sizes] if sizes else []),
                 *(["--schedule", schedule] if schedule else []), "-o", os.devnull])[1]


class Sweep:
    def __init__(self, tool, folder, limit, note):
        self.tool, self.folder, self.limit, self.note = tool, folder, limit, note
        self.threads = os.cpu_count() or 1

    def add_to(self, jobs, beside):
        """[(case, files)] with schedules behind each program; all that compile. `beside`: programs
        that are only compiled."""
        wanted = dict.fromkeys((f, sizes_of(c, f)) for c, fs in jobs for f in fs if ".naut" in f)
        with concurrent.futures.ThreadPoolExecutor(self.threads) as pool:
            listed = dict(zip(wanted, pool.map(lambda key: self._list(*key), wanted)))
            every = beside + [f for f, _ in wanted] + [p for paths in listed.values() for p in paths]
            kernels = {identity(p): p for p in every}
            failed = dict(zip(kernels, pool.map(lambda p: compile_program(self.tool, p),
                                                 kernels.values())))
        for key, why in failed.items():
            if why:
                self.note(f"{kernels[key]}: {why}")
        return [(case, files + [p for f in files for p in listed.get((f, sizes_of(case, f)), [])
                                if not failed[identity(p)]])
                for case, files in jobs]

    def _list(self, path, sizes):
        file = parts_of(path)[0]
        stem = os.path.splitext(os.path.basename(file))[0]
        folder = os.path.join(self.folder, f"{stem}-{sizes.replace(',', '-').replace('=', '')}")
        out, why = run_tool([self.tool, "schedule", file, "--shape", sizes, "--sweep", "--limit",
                         str(self.limit), "-o", folder])
        if why:
            self.note(f"no sweep of {path}: {why}")
        return [f"{path}@{line.rpartition(': ')[0]}" for line in out.splitlines()]
