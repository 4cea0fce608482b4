# SPDX-License-Identifier: Apache-2.0
"""Other kernels for a program without tiles, checked and timed beside its own: `programs.py --forms`.

The rows are what `nautilus bench --calibrate --rows` fits the costs of rows and points to. A form that
is wrong or fails has a row without a time.
"""
import os
import tempfile

import nautilus_lib
import supervise
import sweep
import timing
import worker

OPEN_LIMIT = 200.0  # NVRTC, with all cores busy
SLOW_CYCLES = 5e8  # a form that is predicted to take longer is not tried
LAUNCH_LIMIT = 8.0  # a form may be far slower than the first one
UNTUNED = "untuned"


class Form:
    def __init__(self, path):
        self.path = path
        self.schedule = nautilus_lib.parts_of(path)[2]
        self.name, self.predicted = sweep.described(self.schedule)
        self.kernel = self.launch = self.error = None
        self.wrong = ""

    def check(self, problem, tensors, outputs, reference):
        """The time of the first launch, or nothing if the form is not timed."""
        if not self.kernel:
            return None
        supervise.begin(f"a form: {self.name}", LAUNCH_LIMIT)
        try:
            self.kernel.offer(**problem.sizes)
            self.kernel.bind(**tensors, **dict(zip(problem.text.outputs, outputs)))
            launch = self.kernel.launcher()
            once = timing.once_ms(launch)
        except RuntimeError as trouble:
            self.wrong = worker.first_line(trouble)
            if worker.is_fatal(trouble):
                raise
            return None
        self.error, self.wrong = reference.error(outputs)
        if self.wrong:
            return None
        self.launch = launch
        return once


def compiled(problem, options):
    """The forms, with their kernels in the cache."""
    supervise.begin("compiling forms", OPEN_LIMIT)
    stem = os.path.splitext(os.path.basename(problem.file))[0]
    folder = os.path.join(tempfile.mkdtemp(), "-".join([stem, *(
        f"{n}{v}" for n, v in problem.sizes.items())]))
    shape = nautilus_lib.parts_of(problem.opened_as(problem.sizes))[1]
    command = [options.tool, "schedule", problem.file, *(["--shape", shape] if shape else []),
               "--sweep", "--forms", "--limit", str(options.forms), "-o", folder]
    out, why = sweep.run_tool(command)
    if why:
        supervise.say(note=f"no forms: {why}")
    forms = [Form(f"{problem.opened_as(problem.sizes)}@{line.partition(': ')[0]}")
             for line in out.splitlines() if ": " in line]
    forms = [form for form in forms if (form.predicted or 0) < SLOW_CYCLES]
    for form in forms:
        form.wrong = sweep.compile_program(options.tool, form.path)
    return forms


def opened(forms, options):
    for form in forms:
        if form.wrong:
            continue
        try:
            form.kernel = nautilus_lib.Kernel(form.path, nautilus_lib.Library(options.lib),
                                              options.target)
        except nautilus_lib.NautilusError as trouble:
            form.wrong = worker.first_line(trouble)
    return forms


def rows(problem, forms, times):
    """One for the program's own kernels and one for each form."""
    folder = os.path.basename(os.path.dirname(forms[0].schedule))
    common = dict(problem=problem.title, file=problem.file, sizes=problem.sizes)

    def row(name, number, more):
        values = times.get(name)
        middle = timing.quartiles(values)[0] if values else None
        return dict(common, candidate=UNTUNED if name == "ours" else name, ms_median=middle,
                    schedule=f"{folder}/{number}.sched", **more)

    return [row("ours", 0, {})] + [
        row(f.name, k + 1, dict(predicted=f.predicted, error=f.error, wrong=f.wrong))
        for k, f in enumerate(forms)]
