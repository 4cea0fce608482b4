# SPDX-License-Identifier: Apache-2.0
"""Tuned schedules to time beside the program's own: what `nautilus tune` finds at the sizes of a case
within a budget. Trials are kept as JSON lines beside the schedules, for `nautilus db import`.

A candidate is the program's path with the sizes of the case as hints and the schedule behind it.
"""
import os
import re
import subprocess

import sweep
from nautilus_lib import parts_of


def names_of(file):
    """Sizes that a program declares."""
    with open(file, encoding="utf-8") as text:
        code = re.sub(r"#.*", "", text.read())
    dims = re.findall(r"\bdims\s+(\w+(?:\s*,\s*\w+)*)", code)
    statics = re.findall(r"\bstatic\s+((?:\w+\s*=\s*[^,\n]+,?\s*)+)", code)
    names = {n.strip() for group in dims for n in group.split(",")}
    return names | {n for group in statics for n in re.findall(r"(\w+)\s*=", group)}


class Tuning:
    def __init__(self, tool, folder, seconds, note):
        self.tool, self.folder, self.seconds, self.note = tool, folder, seconds, note
        os.makedirs(folder, exist_ok=True)

    def add_to(self, jobs):
        """[(case, files)] with the tuned schedule behind each program."""
        return [(case, files + [t for f in files if ".naut" in f and (t := self._tune(case, f))])
                for case, files in jobs]

    def _tune(self, case, path):
        file = parts_of(path)[0]
        sizes = ",".join(s for s in sweep.sizes_of(case, path).split(",")
                         if s.partition("=")[0] in names_of(file))
        stem = os.path.splitext(os.path.basename(file))[0]
        name = f"{stem}-{sizes.replace(',', '-').replace('=', '')}"
        out = os.path.join(self.folder, name + ".sched")
        done = subprocess.run(
            [self.tool, "tune", file, "--shape", sizes, "--budget", f"{self.seconds}s",
             "--no-database", "--record", os.path.join(self.folder, "trials.jsonl"), "-o", out],
            capture_output=True, text=True, timeout=20 * self.seconds + 120, check=False)
        said = [line for line in done.stdout.splitlines() if line.startswith("best:")]
        print(f"{case.name}: {said[0] if said else done.stderr.strip()[:200]}", flush=True)
        if done.returncode:
            self.note(f"no tuned schedule of {path}: {done.stderr.strip()[:200]}")
            return None
        with open(out, "r+", encoding="utf-8") as schedule:
            text = schedule.read()
            schedule.seek(0)
            schedule.write("# tuned\n" + text)
        return f"{file}:{sizes}@{out}"
