# SPDX-License-Identifier: Apache-2.0
"""Does a program say what its PyTorch expression says? Both in float64 on small problems, on the CPU:
the program by `nautilus eval`, the expression by PyTorch. Needs no GPU, but PyTorch and NumPy."""
import os
import subprocess
import tempfile

# The oracle writes f32 and, for 16 bits, the rounded value; the expression is not rounded.
TOLERANCE = {"f32": 1e-6, "f64": 1e-12, "bf16": 5e-3, "f16": 7e-4}
TOOL_SECONDS = 300


def small_sizes(problem):
    """Two problems: the program's hints, and the table's own."""
    statics = {n: v for n, v in problem.small.items() if n in problem.text.statics}
    return [{**problem.text.hints, **statics}, problem.small]


def differs(problem, tool):
    """Why the program is another function than the expression, or nothing; and the worst error."""
    import torch
    worst = 0.0
    for sizes in small_sizes(problem):
        torch.manual_seed(len(problem.name) + sum(sizes.values()))
        tensors = problem.tensors(sizes, "cpu")
        try:
            got = _evaluated(problem, tool, sizes, tensors)
            wanted = problem.results(problem.expression, as_double(tensors))
        except (RuntimeError, subprocess.TimeoutExpired, TypeError) as trouble:
            return f"{sizes}: {trouble}", worst
        if len(got) != len(wanted):
            return f"{len(got)} outputs, the expression has {len(wanted)}", worst
        got, wanted = problem.compared(tensors, got), problem.compared(tensors, wanted)
        for (name, dtype), g, w in zip(problem.text.outputs.items(), got, wanted):
            if tuple(g.shape) != tuple(w.shape):
                return f"{name} is {tuple(g.shape)}, the expression {tuple(w.shape)}", worst
            error = relative(g, w)
            worst = max(worst, error)
            if not error <= TOLERANCE.get(dtype, 0.0):
                return f"{name} differs by {error:.1e} at {sizes}", worst
    return "", worst


def as_double(tensors):
    return {n: t.double() if t.dtype.is_floating_point else t for n, t in tensors.items()}


def relative(got, wanted):
    """The largest difference over the largest element; nan if one has numbers where the other has
    none."""
    got, wanted = got.double(), wanted.double()
    largest = wanted.abs().max().item() if wanted.numel() else 0.0
    difference = (got - wanted).abs().max().item() if wanted.numel() else 0.0
    return difference / largest if largest else difference


def _evaluated(problem, tool, sizes, tensors):
    import numpy
    import torch
    with tempfile.TemporaryDirectory() as folder:
        command = [tool, "eval", problem.file, "--threads", "1",
                   "--shape", ",".join(f"{n}={v}" for n, v in sizes.items())]
        for name, tensor in tensors.items():
            path = os.path.join(folder, f"{name}.npy")
            # What has 16 bits is exact in f32.
            numpy.save(path, (tensor.float() if tensor.dtype.itemsize == 2 else tensor).numpy())
            command += ["--input", f"{name}={path}"]
        done = subprocess.run(command + ["--out-dir", folder], capture_output=True, text=True,
                              timeout=TOOL_SECONDS, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr or done.stdout).strip())
        return [torch.from_numpy(numpy.load(os.path.join(folder, f"{name}.npy")))
                for name in problem.text.outputs]
