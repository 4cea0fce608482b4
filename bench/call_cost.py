#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call costs in Python, without a GPU: host tensors stand in for CUDA's, and a C function that
returns 0 at once for the launch. What is left is the package's own part, PyTorch's allocation of the
output, and ctypes.

    NAUTILUS_LIBRARY=build/libnautilus.so PYTHONPATH=python python3 bench/call_cost.py [--profile]

Needs PyTorch (any build) and libnautilus. Times are the lowest of many short blocks: other work on
the machine does not count. python/gpu/check_torch.py measures the same with the real launch.
"""
import argparse
import cProfile
import ctypes
import functools
import pathlib
import pstats
import time
import types

import torch

import nautilus
from nautilus import _device, _host, _torch
from nautilus.integrations.transformers import nautilus_attention

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Plan:
    """Of a device that is not there."""

    handle = 1

    def prepare_for(self, call):
        del call

    def workspace(self, call):
        del call
        return 0


class Runner(_torch.Runner):
    def _call(self, inputs, values, results):
        tensors = [self._slot(t) for t in (*inputs, *results)]
        call = _device.PreparedCall(Plan(), tensors, values)
        call.start = functools.partial(nothing, 1, 2, 3)
        return call


def nothing_of_c():
    """A C function that is called as the launch is and returns 0: isalpha of 1."""
    function = ctypes.CDLL(None).isalpha
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return function


nothing = nothing_of_c()


def microseconds(function, seconds=1.0, block=50):
    for _ in range(20):
        function()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(block):
            function()
        best = min(best, (time.perf_counter() - start) / block)
    return best * 1e6


runners = {}


def stand_in(operator):
    """The operator with everything but a device: what would go to the oracle goes to its runner."""
    operator._torch_runner = runners[operator._program] = Runner(operator._program)
    return operator


def on_the_host(program, inputs, values, out, **options):
    del options
    return runners[program](inputs, values, out)


def cases():
    """(name, function)"""
    _torch._current_stream = lambda index: 0
    _host.run_torch = on_the_host
    q, k, v = (torch.randn(1, 2, 128, 128).bfloat16() for _ in range(3))
    out = torch.empty_like(q)
    op = stand_in(nautilus.compile(ROOT / "examples" / "attention_causal.naut", D=128))
    run = op._torch_runner
    run((q, k, v))
    call = next(iter(run._prepared.values())).pool[0]
    yield "the C call alone", call.launch
    yield "torch.empty of the output", lambda: torch.empty((1, 2, 128, 128), dtype=torch.bfloat16, device="cpu")
    yield "op(q, k, v)", lambda: op(q, k, v)
    yield "op(q, k, v, out=out)", lambda: op(q, k, v, out=out)
    yield "op(q, k, v, scale=0.1)", lambda: op(q, k, v, scale=0.1)
    formulas = {"attention(q, k, v, mask=)": dict(mask="j <= i"),
                "attention(q, k, v, mask=, scale=)": dict(mask="j <= i", scale=0.1),
                "attention(q, k, v, score=, mask=, W=)": dict(score="softcap(s, 30)", mask="i - j < W", W=7)}
    one = q[:, :, :1].contiguous()
    for name, arguments in formulas.items():
        stand_in(nautilus.attention_operator(q, k, v, **arguments))
        yield name, lambda arguments=arguments: nautilus.attention(q, k, v, **arguments)
    stand_in(nautilus.attention_operator(one, k, v))
    yield "attention of one query", lambda: nautilus.attention(one, k, v)
    layer = types.SimpleNamespace(training=False, is_causal=True)
    stand_in(nautilus.attention_operator(one, k, v, scale=0.1))
    yield "a layer of transformers, one query", lambda: nautilus_attention(layer, one, k, v, None, 0.1)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--profile", action="store_true", help="where the time of op(q, k, v) goes")
    p.add_argument("--seconds", type=float, default=1.0, help="for each line")
    options = p.parse_args()
    with torch.no_grad():
        for name, function in cases():
            print(f"{microseconds(function, options.seconds):7.2f} us  {name}", flush=True)
            if options.profile and name != "the C call alone":
                profile = cProfile.Profile()
                profile.runcall(lambda function=function: [function() for _ in range(20000)])
                pstats.Stats(profile).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
