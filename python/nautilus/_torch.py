# SPDX-License-Identifier: Apache-2.0
"""Programs on PyTorch's CUDA tensors: the current stream, and PyTorch's allocator for outputs and workspace."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch

from . import _dtypes
from ._device import Plans, PreparedCall, dtype_number, scalars_only
from ._errors import ArgumentError
from ._program import Number, Program, ValueSpec

_ALIGNMENT = 16  # bytes: addresses that are no multiples need kernels of their own
_MAX_KEYS = 4096  # shapes of a server differ with every request


class _Prepared:
    """What is the same for all calls with the same shapes, strides, dtypes and sizes."""

    __slots__ = ("pool", "outputs", "device")

    def __init__(self, outputs: list[tuple[tuple[int, ...], torch.dtype]], device: torch.device) -> None:
        self.pool: list[PreparedCall] = []  # one for each thread that is in a call at a time
        self.outputs = outputs
        self.device = device


def _raw_stream(device: int) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream)


# The same number without the objects around it, where this PyTorch has it.
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _raw_stream)


class Runner:
    """Runs a program on CUDA tensors."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._plans = Plans(program)
        self._prepared: dict[Any, _Prepared] = {}
        self._dtypes = [getattr(torch, _dtypes.FOREIGN_NAMES[t.dtype], None) for t in program.outputs]

    def again(self, inputs: Sequence[Any]) -> Optional[list[torch.Tensor]]:
        """A call like the usual ones, CUDA tensors that need no gradient; None: look closer."""
        if len(inputs) != len(self._program.inputs):
            return None
        for tensor in inputs:
            if type(tensor) is not torch.Tensor or not tensor.is_cuda or tensor.requires_grad:
                return None
        return self(inputs)

    def __call__(self, inputs: Sequence[torch.Tensor], values: Sequence[tuple[ValueSpec, Number]] = (),
                 out: Optional[Sequence[torch.Tensor]] = None) -> list[torch.Tensor]:
        addresses = [t.data_ptr() for t in inputs]
        key: Any = [(t.shape, t.stride(), t.dtype, t.get_device()) for t in inputs]
        if values:
            key.append(scalars_only(values))
        if out is not None:
            key += [(t.shape, t.stride(), t.dtype, t.get_device()) for t in out]
            addresses += [t.data_ptr() for t in out]
        merged = 0
        for address in addresses:
            merged |= address
        if merged % _ALIGNMENT:
            key.append(tuple(address % _ALIGNMENT for address in addresses))
        key = tuple(key)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(key, inputs, values, out)
        device = prepared.device
        results = (
            [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in prepared.outputs]
            if out is None
            else list(out)
        )
        try:
            call = prepared.pool.pop()
        except IndexError:
            call = self._call(inputs, values, results)
        if out is None:
            for result in results:
                addresses.append(result.data_ptr())
        for slot, address in zip(call.slots, addresses):
            slot.data = address
        if values:
            call.set_values(values)
        options = call.options
        options.stream = _current_stream(device.index)
        if call.workspace:
            workspace = torch.empty(call.workspace, dtype=torch.uint8, device=device)
            options.workspace = workspace.data_ptr()
        call.launch()
        prepared.pool.append(call)
        return results

    def _prepare(self, key: Any, inputs: Sequence[torch.Tensor], values: Sequence[tuple[ValueSpec, Number]],
                 out: Optional[Sequence[torch.Tensor]]) -> _Prepared:
        device = inputs[0].device if inputs else torch.device("cuda", torch.cuda.current_device())
        specs = self._program.inputs + (self._program.outputs if out is not None else ())
        for spec, tensor in zip(specs, list(inputs) + list(out or ())):
            if tensor.device != device:
                raise ArgumentError(f"`{spec.name}` is on {tensor.device}, the first tensor is on {device}")
        if out is None:
            from ._program import Call

            question = Call([self._slot(t) for t in inputs], values)
            shapes = self._program.output_shapes(question)
            for spec, dtype in zip(self._program.outputs, self._dtypes):
                if dtype is None:
                    raise ArgumentError(f"this PyTorch has no dtype for the output `{spec.name}`: {spec.dtype}")
            outputs = [(shape, dtype) for shape, dtype in zip(shapes, self._dtypes) if dtype is not None]
        else:
            outputs = [(tuple(t.shape), t.dtype) for t in out]
        if len(self._prepared) >= _MAX_KEYS:
            self._prepared.clear()
        prepared = _Prepared(outputs, device)
        self._prepared[key] = prepared
        return prepared

    @staticmethod
    def _slot(tensor: torch.Tensor) -> Any:
        return tensor.data_ptr(), tensor.shape, tensor.stride(), dtype_number(tensor.dtype)

    def _call(self, inputs: Sequence[torch.Tensor], values: Sequence[tuple[ValueSpec, Number]],
              results: Sequence[torch.Tensor]) -> PreparedCall:
        tensors = [*inputs, *results]
        index = tensors[0].get_device()
        if index < 0:
            index = torch.cuda.current_device()
        with torch.cuda.device(index):
            return PreparedCall(self._plans.of(index), [self._slot(t) for t in tensors], values)

    def multiprocessors(self, device: int) -> int:
        return int(torch.cuda.get_device_properties(device).multi_processor_count)


NO_BACKWARD = (
    "{name} has no backward: Nautilus computes what its equations say, and a gradient needs equations of its own. "
    "Call it under torch.no_grad(), or with tensors that were detached"
)


class _NoBackward(torch.autograd.Function):
    """Keeps a result that is asked for its gradient from looking like a constant."""

    @staticmethod
    def forward(ctx: Any, name: str, run: Callable[..., Any], values: Any, out: Any, *inputs: torch.Tensor) -> Any:
        ctx.name = name
        return tuple(run(inputs, values, out))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(NO_BACKWARD.format(name=ctx.name))


def run_with_grad(name: str, run: Callable[..., Any], inputs: Sequence[torch.Tensor],
                  values: Sequence[tuple[ValueSpec, Number]],
                  out: Optional[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
    """What `run` gives, with a backward that says that there is none."""
    return list(_NoBackward.apply(name or "this operator", run, values, out, *inputs))
