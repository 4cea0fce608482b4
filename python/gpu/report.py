# SPDX-License-Identifier: Apache-2.0
"""Parts of a check that do not hide each other: each has a line in the table, whatever happens in it."""

import sys
import time
import traceback


class Report:
    def __init__(self, title):
        self.title = title
        self.rows = []  # part, ok, text
        self.began = time.time()

    def part(self, name, function, *arguments):
        """Runs it; what it returns is the text of its line, an exception makes the line a failure."""
        start = time.time()
        try:
            text, ok = function(*arguments), True
        except BaseException as error:  # noqa: B902  whatever it is, the other parts go on
            if isinstance(error, KeyboardInterrupt):
                raise
            traceback.print_exc()
            lines = str(error).strip().split("\n")
            text, ok = f"{type(error).__name__}: {lines[0][:200] if lines else ''}", False
        self.rows.append((name, ok, text if text is not None else ""))
        print(f"{'ok  ' if ok else 'FAIL'} {name:<44} {text or ''}  [{time.time() - start:.1f} s]", flush=True)

    def finish(self):
        print(f"\n== {self.title}")
        for name, ok, text in self.rows:
            print(f"{'ok  ' if ok else 'FAIL'} {name:<44} {text}")
        failed = sum(not ok for _, ok, _ in self.rows)
        print(f"{len(self.rows) - failed} of {len(self.rows)} parts passed in {time.time() - self.began:.0f} s")
        sys.exit(1 if failed else 0)


def microseconds(function, rounds=10000):
    """Median over blocks of host time for one call, launches not waited for."""
    import torch

    for _ in range(50):
        function()
    torch.cuda.synchronize()
    times = []
    block = 20
    for _ in range(max(rounds // block, 1)):
        start = time.perf_counter()
        for _ in range(block):
            function()
        times.append((time.perf_counter() - start) / block)
        torch.cuda.synchronize()
    times.sort()
    return times[len(times) // 2] * 1e6


def interleaved(functions, rounds=30):
    """Median device time in ms of each function, one after the other in each round."""
    import torch

    for function in functions:
        for _ in range(3):
            function()
    torch.cuda.synchronize()
    times = [[] for _ in functions]
    for _ in range(rounds):
        for index, function in enumerate(functions):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            function()
            end.record()
            end.synchronize()
            times[index].append(start.elapsed_time(end))
    return [sorted(t)[len(t) // 2] for t in times]
