# SPDX-License-Identifier: Apache-2.0
"""What runs in the child processes of run.py: everything that touches the GPU."""
import contextlib
import datetime
import gc
import json
import os
import time

import torch

import cases
import check
import nautilus_lib
import supervise
import sweep
import timing
import work
import peers as peers_module

CHECK_LIMIT = 20.0  # seconds; a check takes well under one
OPEN_LIMIT = 90.0  # NVRTC
CASE_SECONDS = 10.0  # no case is begun with less


def is_fatal(problem):
    """After a fault on the device nothing more works in this process."""
    text = str(problem)
    return "CUDA error" in text or "CUDA_ERROR" in text or "compute-sanitizer" in text


def first_line(problem):
    return (str(problem).splitlines() or [type(problem).__name__])[0]


def probe(options, known):
    """Checks files on small problems; says for each why it is wrong, or nothing."""
    torch.cuda.init()
    library = nautilus_lib.Library(options.lib)
    for path in options.probe:
        case = next((c for c in known if cases.takes(c, path)), None)
        if case is None:
            supervise.say(probed=path, why="no case has a candidate of this name and type")
            continue
        name = os.path.basename(path)
        why, worst = "", 0.0
        try:
            supervise.begin(f"open {name}", OPEN_LIMIT)
            kernel = nautilus_lib.Kernel(path, library, options.target)
            why, worst = check_small(case, kernel, name, CHECK_LIMIT)
            kernel.close()
        except RuntimeError as problem:
            why = first_line(problem)
            if is_fatal(problem):
                supervise.say(probed=path, why=why, lost=True)
                return 1
        print(f"{'wrong' if why else 'right'}  {name}  worst relative error {worst:.1e}  {why}",
              flush=True)
        supervise.say(probed=path, why=why)
    supervise.say(done=True)
    return 0


def check_small(case, kernel, name, limit):
    """(why a kernel is wrong on one of the case's small problems, or nothing; the worst relative
    error)"""
    worst = 0.0
    for label, make in work.small(case):
        supervise.begin(f"check {name}: {label}", limit)
        problem = make()
        problem.bind(kernel)
        try:
            result = problem.check(kernel.launcher())
        except nautilus_lib.NautilusError as refused:
            # A program may serve fewer sizes than its case has; its facts say so.
            if "does not hold" not in str(refused):
                raise
            continue
        if not result.ok:
            return f"{label}: {result.why} (seed {problem.seed})", worst
        worst = max(worst, result.rel_error)
    return "", worst


def run_job(options, known):
    """Times the cases of a job of run.py."""
    with open(options.worker, encoding="utf-8") as file:
        job = json.load(file)
    deadline = time.monotonic() + job["seconds"]
    torch.cuda.init()
    kernels = None
    sampler = timing.Sampler(os.environ.get("NAUTILUS_BENCH_GPU", "0"))
    card = dict(gpu=sampler.gpu or torch.cuda.get_device_name(0), driver=sampler.driver)
    try:
        for n, (name, files) in enumerate(job["cases"]):
            if time.monotonic() > deadline - CASE_SECONDS:
                supervise.say(note="the budget is used up")
                break
            if files and kernels is None:
                kernels = Kernels(options)
            _time_case(options, known[name], files, job["skip"], kernels, sampler, card)
            supervise.say(case_done=name)
            if kernels:
                following = job["cases"][n + 1:n + 2]
                kernels.release([f for _, fs in following for f in fs])
            gc.collect()
            torch.cuda.empty_cache()
    except RuntimeError as problem:
        # The parent knows what was under way; this says why.
        print(f"{type(problem).__name__}: {first_line(problem)}", flush=True)
        return 1
    finally:
        sampler.close()
    supervise.say(done=True)
    return 0


class Kernels:
    """Open kernels: cases of several sizes share them."""

    def __init__(self, options):
        self.library = nautilus_lib.Library(options.lib)
        self.target = options.target
        self.open = {}

    def get(self, path):
        key = sweep.identity(path)
        if key not in self.open:
            self.open[key] = nautilus_lib.Kernel(path, self.library, self.target)
        return self.open[key]

    def release(self, wanted):
        """Lets go of the tensors of a case, and of the kernels that the next one does not want."""
        keep = {sweep.identity(path) for path in wanted}
        for key in list(self.open):
            self.open[key].unbind() if key in keep else self.open.pop(key).close()


def _note(text):
    supervise.say(note=text)


@torch.inference_mode()
def _time_case(options, case, files, skip, kernels, sampler, card):
    supervise.begin(f"inputs of {case.name}", 120)
    problem = work.timed(case)
    functions, errors, more = {}, {}, {}
    with contextlib.ExitStack() as stack:
        supervise.begin(f"peers of {case.name}", 240)  # the first call of torch.compile is slow
        peers = problem.peers(stack, _note, not options.no_inductor)
        reference = None  # the first peer's output
        for name, run in peers:
            functions[name] = run
            if name in peers_module.YARDSTICKS:
                continue
            result = problem.check(lambda run=run: problem.out.copy_(run()))
            errors[name] = result.rel_error
            if not result.ok:
                _note(f"{case.name}: the peer {name}: {result.why}")
            elif reference is None:
                reference = run().clone()
        for path in files:
            name = sweep.label(path, options.sweep)
            label = f"check {case.name}: {name}"
            if label in skip:
                continue
            if name in functions:
                name = f"{name} ({len(functions)})"
            try:
                supervise.begin(f"open {name}", OPEN_LIMIT)
                kernel = kernels.get(path)
                problem.bind(kernel)
                launch = kernel.launcher()
                supervise.begin(label, CHECK_LIMIT)
                result = problem.check(launch)
            except nautilus_lib.NautilusError as error:
                _note(f"{case.name}: {name}: {first_line(error)}")
                continue
            why = result.why or differs(problem.out, reference)
            if why:
                _note(f"{case.name}: {name} is not timed: {why} (seed {problem.seed})")
                continue
            functions[name] = launch
            errors[name] = result.rel_error
            if "@" in path:
                schedule = nautilus_lib.parts_of(path)[2]
                more[name] = dict(schedule="/".join(schedule.split(os.sep)[-2:]),
                                  predicted_cycles=sweep.described(schedule)[1])
        if case.plain and kernels:
            _add_plain(options, case, problem, skip, kernels, functions, errors)
        del reference
        supervise.begin(f"timing {case.name}", 120)
        _time(options, case, functions, [n for n, _ in peers], errors, more, sampler, card)


def _add_plain(options, case, problem, skip, kernels, functions, errors):
    label = f"check {case.name}: {cases.PLAIN}"
    if label in skip:
        return
    try:
        supervise.begin(f"open {case.plain}", OPEN_LIMIT)
        kernel = kernels.get(cases.plain_file(case, options.golden))
        problem.bind_plain(kernel)
        launch = kernel.launcher()
        supervise.begin(label, CHECK_LIMIT)
        result = problem.check_plain(launch)
    except nautilus_lib.NautilusError as error:
        _note(f"{case.name}: {cases.PLAIN}: {first_line(error)}")
        return
    if not result.ok:
        _note(f"{case.name}: {cases.PLAIN} is not timed: {result.why} (seed {problem.seed})")
        return
    functions[cases.PLAIN] = launch
    errors[cases.PLAIN] = result.rel_error


def differs(out, reference):
    """The float64 reference covers samples of large problems; the peer's result covers all."""
    if reference is None:
        return ""
    error = check.Error()
    columns = out.shape[-1]
    flat, wanted = out.reshape(-1, columns), reference.reshape(-1, columns)
    step = max(1, (1 << 25) // columns)
    for i in range(0, flat.shape[0], step):
        error.add(flat[i:i + step], wanted[i:i + step].double())
    result = error.result(2 * check.TOLERANCE)
    return f"against the peer: {result.why}" if result.why else ""


def _time(options, case, functions, peers, errors, more, sampler, card):
    if not functions:
        return
    base = dict(work=case.work, shape=case.shape, **card)

    def emit(mode, times, start):
        """Rows of one protocol. The peer is the library's time in the same loop; where there are
        several (eager and compiled), the fastest. A copy is a ceiling, no peer."""
        state = sampler.between(start, time.monotonic())
        stats = {n: timing.quartiles(t) for n, t in times.items()}
        able = [n for n in peers if n in stats and n != "copy"]
        if case.suite == "rows":
            able.sort(key=lambda n: stats[n][0])
        peer = able[0] if able else None
        for name, (middle, low, high) in stats.items():
            row = dict(base, candidate=name, mode=mode, ms_median=middle, ms_p25=low, ms_p75=high)
            if case.flops:
                flops = case.plain_flops if name == cases.PLAIN else case.flops
                row["tflops"] = flops / middle / 1e9
            else:
                row["gb_per_s"] = case.bytes / middle / 1e6
            row.update(peer=peer, ratio_to_peer=stats[peer][0] / middle if peer else None,
                       rel_error=errors.get(name), samples=len(times[name]),
                       date=datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
                       **state, **more.get(name, {}))
            if cases.PLAIN in stats and name not in peers:
                per_plain = case.plain_flops / stats[cases.PLAIN][0]
                row["per_live"] = case.flops / middle / per_plain if name != cases.PLAIN else 1.0
            if name == cases.PLAIN:
                row["ratio_to_peer"] = None  # the peer computes something else
            supervise.say(row=row)
        return stats

    start = time.monotonic()
    functions_ms = rough_ms(functions)
    repetitions = options.reps or (15 if functions_ms > 2 else 25)
    stats = emit("sustained", timing.sustained(functions, repetitions), start)

    yardsticks = peers + [n for n in functions if n == cases.PLAIN]
    ours = sorted((n for n in functions if n not in yardsticks), key=lambda n: stats[n][0])
    if sweep.UNTUNED in ours:
        # Beside it the best of the others, whatever their order.
        ours.sort(key=lambda n: n != sweep.UNTUNED)
    chosen = {n: functions[n] for n in yardsticks + ours[:options.best]}
    supervise.begin(f"timing {case.name}", 120)
    start = time.monotonic()
    emit("back_to_back", timing.back_to_back(chosen, 8 if functions_ms > 2 else 20), start)
    supervise.begin(f"timing {case.name}", 120)
    start = time.monotonic()
    emit("burst", {n: timing.burst(f) for n, f in chosen.items()}, start)


def rough_ms(functions):
    """The longest of the functions, from one call each."""
    longest = 0.0
    for f in functions.values():
        f()
        torch.cuda.synchronize()
        start = time.monotonic()
        f()
        torch.cuda.synchronize()
        longest = max(longest, (time.monotonic() - start) * 1e3)
    return longest
