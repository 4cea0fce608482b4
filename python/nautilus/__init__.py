# SPDX-License-Identifier: Apache-2.0
"""Nautilus: tensor operators from their mathematics.

    import nautilus
    op = nautilus.compile("examples/attention_causal.naut", D=128)
    o = op(q, k, v)

docs/python.md is the guide.
"""

from __future__ import annotations

from typing import Any

from ._attention import attention, attention_operator
from ._errors import (
    ArgumentError,
    InternalError,
    NautilusError,
    ProgramError,
    SlowWarning,
    SystemFailure,
    UnsupportedError,
)
from ._expressions import Axis, Expression, Program, Tensor, call
from ._functions import Function, Reducer, along, lib
from ._operator import Operator, compile
from ._program import Launch, TensorSpec, ValueSpec
from ._results import Results, results

__version__ = "0.1.0"

# Reductions, functions of an element and functions along an axis, for programs written as expressions.
sum = Reducer("sum")
prod = Reducer("prod")
max = Reducer("max")
min = Reducer("min")
any = Reducer("any")
all = Reducer("all")
mean = Reducer("mean")
argmax = Reducer("argmax")
argmin = Reducer("argmin")

exp = Function("exp")
exp2 = Function("exp2")
log = Function("log")
log2 = Function("log2")
log1p = Function("log1p")
expm1 = Function("expm1")
sqrt = Function("sqrt")
rsqrt = Function("rsqrt")
tanh = Function("tanh")
erf = Function("erf")
sigmoid = Function("sigmoid")
sin = Function("sin")
cos = Function("cos")
floor = Function("floor")
where = Function("where")
maximum = Function("max")
minimum = Function("min")

softmax = along("softmax")
logsumexp = along("logsumexp")
log_softmax = along("log_softmax")

inf = float("inf")


def op(name: str, source: Any, **options: Any) -> Any:
    """Registers a program as an operator of PyTorch: torch.ops.<namespace>.<name>. Needs PyTorch.

        causal = nautilus.op("mine::causal", "examples/attention_causal.naut", D=128)
        o = causal(q, k, v)                     # also torch.ops.mine.causal

    Options are those of `nautilus.compile`."""
    from ._torch_op import register

    return register(name, source, **options)


def library_version() -> str:
    """The version of libnautilus that runs."""
    from . import _library

    return str(_library.load().nautilus_version_text().decode())


__all__ = [
    "ArgumentError",
    "Axis",
    "Expression",
    "Function",
    "InternalError",
    "Launch",
    "NautilusError",
    "Operator",
    "Program",
    "ProgramError",
    "Reducer",
    "Results",
    "SlowWarning",
    "SystemFailure",
    "Tensor",
    "TensorSpec",
    "UnsupportedError",
    "ValueSpec",
    "attention",
    "attention_operator",
    "call",
    "compile",
    "lib",
    "library_version",
    "op",
    "results",
]
