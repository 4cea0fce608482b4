# SPDX-License-Identifier: Apache-2.0
"""Programs as operators of PyTorch's dispatcher: torch.compile, CUDA graphs and exporters see them as one op.

The low-level interface of torch.library, not custom_op: that one checks aliasing in Python at every call, which costs
more than the launch.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch

from . import _dtypes
from ._errors import ArgumentError
from ._operator import Operator, _number, compile
from ._program import Number, ValueSpec
from ._torch import NO_BACKWARD

_libraries: dict[str, torch.library.Library] = {}
_registered: dict[str, Any] = {}


def schema_of(operator: Operator) -> tuple[str, list[ValueSpec]]:
    """The arguments and results in PyTorch's notation, and the values among the arguments in their order."""
    arguments = [f"Tensor {spec.name}" for spec in operator.inputs]
    values = [v for v in (*operator.sizes, *operator.scalars)
              if v.kind == "scalar" or (v.kind == "size" and not v.bound)]
    for index, value in enumerate(values):
        if value.kind == "size":
            kind = "SymInt"
        else:
            kind = "float" if value.dtype in _dtypes.FLOATS else "int"
        needed = value.default is None if value.kind == "scalar" else value.hint is None
        star = "*, " if index == 0 else ""
        arguments.append(f"{star}{kind} {value.name}" if needed else f"{star}{kind}? {value.name}=None")
    results = ", ".join("Tensor" for _ in operator.outputs)
    if len(operator.outputs) != 1:
        results = f"({results})"
    return f"({', '.join(arguments)}) -> {results}", values


def _result(tensors: Sequence[torch.Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def register(name: str, source: Any, **options: Any) -> Any:
    """Defines `namespace::name`, its kernels for CUDA and CPU tensors and its fake function; gives the operator."""
    namespace, separator, short = name.partition("::")
    if not separator or not namespace.isidentifier() or not short.isidentifier():
        raise ArgumentError(f"the name {name!r} must be of the form \"namespace::name\"")
    if name in _registered:
        raise ArgumentError(f"{name} is registered already")
    operator = source if isinstance(source, Operator) else compile(source, **options)
    for spec in operator.outputs:
        if not hasattr(torch, _dtypes.FOREIGN_NAMES[spec.dtype]):
            raise ArgumentError(f"this PyTorch has no dtype for the output `{spec.name}`: {spec.dtype}")
    arguments, values = schema_of(operator)
    library = _libraries.get(namespace)
    if library is None:
        library = _libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
    library.define(short + arguments, tags=(torch.Tag.pt2_compliant_tag,))
    runner = operator.torch_runner
    dtypes = [getattr(torch, _dtypes.FOREIGN_NAMES[spec.dtype]) for spec in operator.outputs]

    def given(named: dict[str, Any]) -> list[tuple[ValueSpec, Number]]:
        return [(v, _number(v, named[v.name])) for v in values if named.get(v.name) is not None]

    def on_cuda(*tensors: torch.Tensor, **named: Any) -> Any:
        results = runner.again(tensors, named, None)
        return _result(results if results is not None else runner(tensors, given(named)))

    def on_cpu(*tensors: torch.Tensor, **named: Any) -> Any:
        return operator(*tensors, **named)

    def fake(*tensors: torch.Tensor, **named: Any) -> Any:
        like = tensors[0] if tensors else torch.empty(0, device="cuda")
        shapes = operator.shapes(*[t.shape for t in tensors], **_symbols(named, values))
        return _result([like.new_empty(shape, dtype=dtype) for shape, dtype in zip(shapes.values(), dtypes)])

    library.impl(short, on_cuda, "CUDA")
    library.impl(short, on_cpu, "CPU")
    torch.library.register_fake(name, fake, lib=library)
    found = getattr(getattr(torch.ops, namespace), short).default
    _refuse_backward(name, library, found, {"CUDA": on_cuda, "CPU": on_cpu})
    _registered[name] = found
    return found


class _Refused(torch.autograd.Function):
    """A call whose gradient may be asked for, which then says that there is none."""

    @staticmethod
    def forward(ctx: Any, found: Any, name: str, named: dict[str, Any], *tensors: torch.Tensor) -> Any:
        ctx.name = name
        return found(*tensors, **named)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(NO_BACKWARD.format(name=ctx.name))


def _refuse_backward(name: str, library: torch.library.Library, found: Any, kernels: dict[str, Any]) -> None:
    """A kernel of the autograd layer. register_autograd has one for everybody, which dispatches a second time: that
    costs as much as all else in a call. Here plain tensors outside of all modes go to the device's kernel at once."""
    c: Any = torch._C
    needed = ("DispatchKeySet", "_after_autograd_keyset", "_AutoDispatchBelowAutograd", "_any_requires_grad")
    if not all(hasattr(c, function) for function in needed):

        def backward(ctx: Any, *gradients: Any) -> Any:
            raise NotImplementedError(NO_BACKWARD.format(name=name))

        torch.library.register_autograd(name, backward, lib=library)
        return
    plain = {
        (c.DispatchKeySet(getattr(c.DispatchKey, device))
         | c.DispatchKeySet(getattr(c.DispatchKey, f"Autograd{device}"))).raw_repr(): kernel
        for device, kernel in kernels.items()
    }
    below, after, grad, needs = c._AutoDispatchBelowAutograd, c._after_autograd_keyset, c.is_grad_enabled, c._any_requires_grad

    def autograd(keyset: Any, *tensors: torch.Tensor, **named: Any) -> Any:
        if grad() and needs(*tensors):
            return _Refused.apply(found, name, named, *tensors)
        kernel = plain.get(keyset.raw_repr())
        if kernel is not None:
            return kernel(*tensors, **named)
        with below():
            return found.redispatch(keyset & after, *tensors, **named)

    library.impl(name.partition("::")[2], autograd, "Autograd", with_keyset=True)


def _symbols(named: dict[str, Any], values: Sequence[ValueSpec]) -> dict[str, Any]:
    """The sizes among the arguments; scalars do not matter for shapes."""
    sizes = {v.name for v in values if v.kind == "size"}
    return {key: value for key, value in named.items() if key in sizes and value is not None}


def operator_of(name: str) -> Optional[Any]:
    """What was registered by a name."""
    return _registered.get(name)
