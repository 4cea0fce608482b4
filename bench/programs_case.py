# SPDX-License-Identifier: Apache-2.0
"""The child processes of programs.py: one problem, compiled by us and by torch.compile while others do
the same, then, alone on the card, checked and timed.

What it says: {"needs": bytes} of the card for compiling; parts of its row as soon as they are known,
{"part": {...}}, because a kernel of ours may never end; {"note": text}.
"""
import gc
import importlib
import time

import torch

import nautilus_lib
import programs_forms
import supervise
import sweep
import timing
import worker
from programs_problem import torch_dtype

OPEN_LIMIT = 200.0  # NVRTC, with all cores busy
COMPILE_LIMIT = 200.0  # torch.compile, likewise
PEER_LIMIT = 60.0
FLUSH_MS = 0.1
WARM_MS = 150.0
FEWEST, MOST = 3, 30  # turns
TOLERANCE, TOLERANCE_16 = 1e-4, 1e-2  # the second where a tensor has 16 bits
CHUNK = 1 << 26  # elements that are compared at a time


@torch.inference_mode()
def run(problem, options):
    shapes = problem.result_shapes(problem.sizes)
    supervise.say(needs=_bytes(problem, shapes))
    if options.compiled:
        importlib.import_module("torch._inductor.compile_fx")  # seconds of torch.compile
    # Into the kernel cache, without the card.
    supervise.begin("compiling ours", OPEN_LIMIT)
    sweep.compile_program(options.tool, problem.opened_as(problem.sizes))
    forms = programs_forms.compiled(problem, options) if options.forms else []
    if supervise.ask() != "prepare":
        return 0
    torch.cuda.init()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    kernel = _opened(problem, options)
    forms = programs_forms.opened(forms, options)
    compiled = _compiled(problem) if options.compiled else None
    gc.collect()
    torch.cuda.empty_cache()
    if supervise.ask() != "time":
        return 0
    _time(problem, shapes, (kernel, forms), compiled, options)
    gc.collect()
    torch.cuda.empty_cache()  # the next one need not wait for the end of this process
    supervise.say(done=True)
    return 0


def _bytes(problem, shapes):
    """For the inputs, the outputs and what a peer keeps between kernels."""
    inputs = sum(_size(dtype, shape) for dtype, shape in
                 problem.shapes(problem.sizes).values())
    outputs = sum(_size(dtype, shape) for dtype, shape in
                  zip(problem.text.outputs.values(), shapes))
    supervise.say(part=dict(bytes=inputs + outputs))
    return inputs + 2 * outputs + (1 << 30)


def _size(dtype, shape):
    return torch_dtype(dtype).itemsize * torch.Size(shape).numel()


def _opened(problem, options):
    supervise.begin("compiling ours", OPEN_LIMIT)
    start = time.monotonic()
    try:
        kernel = nautilus_lib.Kernel(problem.opened_as(problem.sizes),
                                     nautilus_lib.Library(options.lib), options.target)
    except nautilus_lib.NautilusError as trouble:
        supervise.say(part=dict(wrong=worker.first_line(trouble)))
        return None
    supervise.say(part=dict(open_seconds=round(time.monotonic() - start, 2)))
    return kernel


def _compiled(problem):
    supervise.begin("torch.compile", COMPILE_LIMIT)
    function = torch.compile(problem.expression, dynamic=False)
    try:
        function(**problem.tensors(problem.sizes))
        torch.cuda.synchronize()
    except Exception as trouble:  # any part of a foreign compiler may fail, in its own way
        supervise.say(note=f"torch.compile: {worker.first_line(trouble)}")
        return None
    return function


def _time(problem, shapes, ours, compiled, options):
    kernel, forms = ours
    supervise.begin("inputs and reference", PEER_LIMIT)
    torch.manual_seed(options.seed)
    tensors = problem.tensors(problem.sizes)
    reference = Reference(problem, tensors, shapes)
    functions = {"eager": lambda: problem.expression(**tensors)}
    if compiled:
        functions["compiled"] = lambda: compiled(**tensors)
    rough, once = {}, None
    for name, function in list(functions.items()):
        supervise.begin(f"{name}: check", PEER_LIMIT)
        outputs = problem.results(function, {})
        error, why = reference.error(outputs)
        if name == "eager":
            reference.keep(outputs)
        del outputs
        if why:
            supervise.say(note=f"{name} is not timed: {why}")
            del functions[name]
            continue
        rough[name] = timing.once_ms(function)
        supervise.say(part={f"{name}_ms": rough[name], f"{name}_error": finite(error)})
    if kernel:
        supervise.begin("our first launch", options.launch_seconds)
        try:
            outputs = _outputs(problem, shapes)
            kernel.offer(**problem.sizes)
            kernel.bind(**tensors, **dict(zip(problem.text.outputs, outputs)))
            launch = kernel.launcher()
            once = timing.once_ms(launch)
        except RuntimeError as trouble:
            supervise.say(part=dict(wrong=worker.first_line(trouble)))
            if worker.is_fatal(trouble):
                return
        else:
            supervise.begin("our result", PEER_LIMIT)
            error, why = reference.error(outputs)
            supervise.say(part=dict(ours_ms=once, ours_error=finite(error), samples=1, wrong=why))
            if once <= options.once_ms:
                functions["ours"] = launch
                rough["ours"] = once
    gc.collect()
    made = _outputs(problem, shapes) if forms else []  # of one form after the other
    for form in forms:
        _poison(made)
        once = form.check(problem, tensors, made, reference)
        if once is not None and once <= options.once_ms:
            functions[form.name] = form.launch
            rough[form.name] = once
    reference.release()
    if not functions:
        return
    supervise.begin("timing", PEER_LIMIT)
    turn = sum(rough.values()) + FLUSH_MS * len(rough)
    turns = int(min(MOST, max(FEWEST, 1000 * options.case_seconds / turn)))
    _warm(functions, turn)
    times = timing.interleaved(functions, turns)
    supervise.say(part=dict(samples=turns if "ours" in times else 1))
    if forms:
        supervise.say(part=dict(forms=programs_forms.rows(problem, forms, times)))
    for name, values in times.items():
        if name not in ("eager", "compiled", "ours"):
            continue
        middle, low, high = timing.quartiles(values)
        supervise.say(part={f"{name}_ms": middle, f"{name}_p25": low, f"{name}_p75": high})
    if options.kernels:
        supervise.begin("kernels", PEER_LIMIT)
        supervise.say(part=dict(kernels={name: timing.by_kernel(functions[name])
                                         for name in ("ours", "compiled") if name in functions}))


def _warm(functions, turn):
    for _ in range(max(1, min(20, int(WARM_MS / turn)))):
        for function in functions.values():
            function()
    torch.cuda.synchronize()


def _outputs(problem, shapes):
    """Filled with what is wrong anywhere."""
    made = [torch.empty(shape, dtype=torch_dtype(dtype), device="cuda")
            for dtype, shape in zip(problem.text.outputs.values(), shapes)]
    _poison(made)
    return made


def _poison(outputs):
    for output in outputs:
        output.fill_(float("nan") if output.dtype.is_floating_point else -1)


class Reference:
    """The expression in float64 on a part of the problem, and eager's outputs, which are all of it."""

    def __init__(self, problem, tensors, shapes):
        self.problem, self.tensors = problem, tensors
        part, self.chosen = problem.part(tensors, shapes)
        doubles = {n: t.double() if t.dtype.is_floating_point else t for n, t in part.items()}
        self.wanted = problem.compared(doubles, problem.results(problem.expression, doubles))
        del doubles
        torch.cuda.empty_cache()
        self.part_tensors = part if problem.judged else None
        self.eager = None
        kinds = [d for d, _ in problem.text.inputs.values()] + list(problem.text.outputs.values())
        self.tolerance = TOLERANCE_16 if {"bf16", "f16"} & set(kinds) else TOLERANCE

    def keep(self, outputs):
        self.eager = self.problem.compared(self.tensors, outputs)

    def release(self):
        self.eager = self.wanted = self.part_tensors = None
        gc.collect()
        torch.cuda.empty_cache()

    def error(self, outputs):
        """(the relative error of the part, why the outputs are wrong or nothing)"""
        why, worst = "", 0.0
        part = outputs
        if self.chosen is not None:
            part = [o.index_select(self.problem.out_axis, self.chosen) for o in outputs]
        part = self.problem.compared(self.part_tensors or self.tensors, part)
        for name, got, wanted in zip(self.problem.text.outputs, part, self.wanted):
            error, largest = differences(got, wanted)
            worst = max(worst, error)
            why = why or self._judged(f"{name} against float64", error, largest)
        if self.eager:
            whole = self.problem.compared(self.tensors, outputs)
            for name, got, wanted in zip(self.problem.text.outputs, whole, self.eager):
                why = why or self._judged(f"{name} against eager", *differences(got, wanted))
        return worst, why

    def _judged(self, what, error, largest):
        if error <= self.tolerance and largest <= 10 * self.tolerance:
            return ""
        return f"{what}: error {error:.1e}, largest {largest:.1e}"


def finite(number):
    """For JSON, which has no infinities."""
    return number if number < float("inf") else None


def differences(got, wanted):
    """(norm of the difference over the norm, largest difference over the largest element), in
    float64; inf where one of both is no number."""
    square = norm = most = top = 0.0
    flat, other = got.reshape(-1), wanted.reshape(-1)
    for i in range(0, flat.numel(), CHUNK):
        w = other[i:i + CHUNK].double()
        d = (flat[i:i + CHUNK].double() - w).abs()
        square, norm = square + (d * d).sum().item(), norm + (w * w).sum().item()
        most, top = max(most, d.max().item()), max(top, w.abs().max().item())
    if not square < float("inf") or not norm < float("inf"):
        return float("inf"), float("inf")
    return (square / norm) ** 0.5 if norm else square ** 0.5, most / top if top else most
