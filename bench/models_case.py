# SPDX-License-Identifier: Apache-2.0
"""The child processes of models.py: one layer by all systems, compiled while others do the same,
then, alone on the card, checked and timed in one loop.

What it says: {"needs": bytes} of the card for compiling; {"failed": system, "why": text} of a system
that has no time; {"rows": [...]} of all others. What is under way is "SYSTEM: what", so that the
parent knows whom a hang costs its row.
"""
import gc
import importlib

import torch

import nautilus_lib
import supervise
import sweep
import systems
import timing
import work
import worker

COMPILE_LIMIT = 200.0  # seconds; all cores are busy
CHECK_LIMIT = 60.0
SHORT_MS = 1.0  # kernels for which hosts may be too slow
TURNS_MS = 1500.0  # how long all turns take together
FEWEST, MOST = 7, 25


@torch.inference_mode()
def run(case, path, names, options):
    supervise.say(needs=_bytes(case, names))
    importlib.import_module("torch._inductor.compile_fx")  # seconds of torch.compile
    if systems.OURS in names:  # into the kernel cache, without the card
        supervise.begin(f"{systems.OURS}: compiling", COMPILE_LIMIT)
        sweep.compile_program(options.tool, path)
    if supervise.ask() != "prepare":
        return 0
    torch.cuda.init()
    made = _Systems(case, path, options)
    names, notes = _compile(case, names, made)
    _release()
    if supervise.ask() != "time":
        return 0
    _time(case, names, notes, made, options)
    _release()  # the next one need not wait for the end of this process
    supervise.say(done=True)
    return 0


def _bytes(case, names):
    """For the tensors, an output of each system and the scores of the formula."""
    scores = systems.score_bytes(case) if systems.FORMULA in names else 0
    return int(4 * case.bytes + (scores if scores < systems.FORMULA_GB * 1e9 else 0)) + (1 << 30)


def _release():
    gc.collect()
    torch.cuda.empty_cache()


def _failed(name, trouble):
    """After a fault on the device nothing works in this process; the parent starts another."""
    root = trouble
    while root.__cause__ is not None:
        root = root.__cause__
    why = f"{type(trouble).__name__}: {worker.first_line(trouble)}"
    if root is not trouble:
        why += f" ({worker.first_line(root)})"
    supervise.say(failed=name, why=why[:400])
    if worker.is_fatal(trouble) and not isinstance(trouble, torch.OutOfMemoryError):
        raise SystemExit(1)


class _Systems:
    """Compiled once, for tensors that come and go."""

    def __init__(self, case, path, options):
        self.case, self.path, self.options = case, path, options
        self.made = {}

    def function(self, name, problem):
        """A function without arguments that computes the problem; ours also writes its output."""
        made = self.made.get(name)
        if made is None:
            made = self.made[name] = self._make(name)
        if name != systems.OURS:
            return lambda: made(problem.q, problem.k, problem.v)
        problem.bind(made)
        return made.launcher()

    def _make(self, name):
        if name != systems.OURS:
            return systems.make(name, self.case)
        return nautilus_lib.Kernel(self.path, nautilus_lib.Library(self.options.lib),
                                   self.options.target)

    def unbind(self):
        if systems.OURS in self.made:
            self.made[systems.OURS].unbind()


def _inputs(case):
    supervise.begin("inputs", 120)
    return work.timed(case)


def _compile(case, names, made):
    """The systems whose first call works, and notes for their rows."""
    problem = _inputs(case)
    able, notes = [], {}
    for name in names:
        supervise.begin(f"{name}: first call", COMPILE_LIMIT)
        before = systems.rewritten()
        try:
            made.function(name, problem)()
            torch.cuda.synchronize()
        except Exception as trouble:  # any part of a foreign compiler may fail, in its own way
            _failed(name, trouble)
            continue
        able.append(name)
        if name == systems.FORMULA and systems.rewritten() > before:
            notes[name] = "Inductor calls a library's attention for it"
    made.unbind()
    return able, notes


def _time(case, names, notes, made, options):
    problem = _inputs(case)
    errors, timed = {}, {}
    for name in names:
        supervise.begin(f"{name}: check", CHECK_LIMIT)
        try:
            run = made.function(name, problem)
            written = run if name == systems.OURS else lambda run=run: problem.out.copy_(run())
            result = problem.check(written)
        except Exception as trouble:
            _failed(name, trouble)
            continue
        if result.why:
            supervise.say(failed=name, why=f"wrong: {result.why} (seed {problem.seed})")
            continue
        timed[name], errors[name] = run, result.rel_error
    if not timed:
        return
    supervise.begin("timing", 120)
    longest = worker.rough_ms(timed)
    turns = int(min(MOST, max(FEWEST, TURNS_MS / (longest * len(timed)))))
    times = timing.sustained(timed, options.reps or turns, longest < SHORT_MS)
    supervise.say(rows=[_row(name, values, errors[name], notes.get(name))
                        for name, values in times.items()])


def _row(name, values, error, note):
    middle, low, high = timing.quartiles(values)
    row = dict(candidate=name, ms_median=middle, ms_p25=low, ms_p75=high, rel_error=error,
               samples=len(values))
    if note:
        row["note"] = note
    return row
