# SPDX-License-Identifier: Apache-2.0
"""Programs on PyTorch's CUDA tensors: the current stream, and PyTorch's allocator for outputs and workspace."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import torch

from . import _dtypes
from ._device import Plans, PreparedCall, dtype_number, sizes_of
from ._errors import ArgumentError
from ._library import error_of
from ._program import Call, Number, Program, ValueSpec

# Looked up once: a call asks for them many times.
_Tensor, _is_grad_enabled, _empty_like = torch.Tensor, torch.is_grad_enabled, torch.empty_like

_ALIGNMENT = 16  # bytes: addresses that are no multiples need kernels of their own
_MAX_KEYS = 4096  # shapes of a server differ with every request


class _Prepared:
    """What is the same for all calls with the same shapes, strides, dtypes and sizes."""

    __slots__ = ("pool", "outputs", "device", "index")

    def __init__(self, outputs: list[tuple[tuple[int, ...], torch.dtype, int]], device: torch.device) -> None:
        self.pool: list[PreparedCall] = []  # one for each thread that is in a call at a time
        # Shape, dtype, and the number of an input that looks the same, or -1: `empty_like` costs half of `empty`.
        self.outputs = outputs
        self.device = device
        self.index = device.index

    def empty(self, inputs: Sequence[torch.Tensor], addresses: list[int]) -> list[torch.Tensor]:
        """New outputs; their addresses go to the list."""
        made = []
        for shape, dtype, like in self.outputs:
            tensor = _empty_like(inputs[like]) if like >= 0 else torch.empty(shape, dtype=dtype, device=self.device)
            addresses.append(tensor.data_ptr())
            made.append(tensor)
        return made


class _Names:
    """Numbers that calls give by name, always the same ones in the same order."""

    __slots__ = ("types", "key", "specs")

    def __init__(self, specs: Sequence[ValueSpec]) -> None:
        self.specs = tuple(specs)
        self.types = [(float, int) if spec.kind == "scalar" and spec.dtype in _dtypes.FLOATS else (int,) for spec in specs]
        has_sizes = any(spec.kind != "scalar" for spec in specs)
        self.key = None if has_sizes else sizes_of([(spec, 0) for spec in specs])


def _same_as(shape: tuple[int, ...], dtype: torch.dtype, inputs: Sequence[torch.Tensor]) -> int:
    """The number of a dense input of this shape and dtype, or -1."""
    for number, tensor in enumerate(inputs):
        if tensor.shape == shape and tensor.dtype == dtype and tensor.is_contiguous():
            return number
    return -1


def _raw_stream(device: int) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream)


# The same number without the objects around it, where this PyTorch has it.
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _raw_stream)


def _key(tensors: Sequence[torch.Tensor], sizes: Any) -> tuple[list[int], tuple[Any, ...]]:
    """The addresses, and what a prepared call depends on."""
    addresses: list[int] = []
    key: list[Any] = []
    merged = 0
    for tensor in tensors:
        address = tensor.data_ptr()
        merged |= address
        addresses.append(address)
        key += (tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
    if sizes is not None:
        key.append(sizes)
    if merged % _ALIGNMENT:
        key.append(tuple(address % _ALIGNMENT for address in addresses))
    return addresses, tuple(key)


class Runner:
    """Runs a program on CUDA tensors.

    `again` is the way of nearly all calls: everything that they have in common with an earlier one was prepared then, and
    what is left is to ask tensors for their shapes and addresses, to allocate, and to launch."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._input_count = len(program.inputs)
        self._output_count = len(program.outputs)
        self._plans = Plans(program)
        self._prepared: dict[Any, _Prepared] = {}
        self._names: dict[tuple[str, ...], _Names] = {}
        self._dtypes = [getattr(torch, _dtypes.FOREIGN_NAMES[t.dtype], None) for t in program.outputs]

    def again(self, inputs: Sequence[Any], named: Mapping[str, Any], out: Any) -> Optional[Sequence[torch.Tensor]]:
        """A call that differs from an earlier one in addresses and scalars only; None: look closer."""
        if len(inputs) != self._input_count:
            return None
        tensors = inputs
        if out is not None:
            if type(out) is _Tensor:
                out = (out,)
            elif type(out) is not list and type(out) is not tuple:
                return None
            if len(out) != self._output_count:
                return None
            tensors = (*inputs, *out)
        needs_grad = _is_grad_enabled()
        for tensor in tensors:
            if type(tensor) is not _Tensor or (needs_grad and tensor.requires_grad):
                return None
        numbers: Any = ()
        sizes: Any = None
        if named:
            names = self._names.get(tuple(named))
            if names is None:
                return None
            numbers = named.values()
            for number, types in zip(numbers, names.types):
                if type(number) not in types:
                    return None
            sizes = names.key or sizes_of(list(zip(names.specs, numbers)))
        addresses, key = _key(tensors, sizes)
        prepared = self._prepared.get(key)
        if prepared is None:
            return None
        try:
            call = prepared.pool.pop()
        except IndexError:
            return None  # other threads have all of them
        results = out if out is not None else prepared.empty(inputs, addresses)
        self._launch(call, prepared, addresses, numbers)
        return results

    def __call__(self, inputs: Sequence[torch.Tensor], values: Sequence[tuple[ValueSpec, Number]] = (),
                 out: Optional[Sequence[torch.Tensor]] = None) -> Sequence[torch.Tensor]:
        addresses, key = _key([*inputs, *(out or ())], sizes_of(values) if values else None)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(key, inputs, values, out)
        if values:
            specs = [spec for spec, _ in values]
            self._names.setdefault(tuple(spec.name for spec in specs), _Names(specs))
        results = out if out is not None else prepared.empty(inputs, addresses)
        try:
            call = prepared.pool.pop()
        except IndexError:
            call = self._call(inputs, values, results)
        self._launch(call, prepared, addresses, [number for _, number in values])
        return results

    def _launch(self, call: PreparedCall, prepared: _Prepared, addresses: Sequence[int], numbers: Any) -> None:
        for slot, address in zip(call.slots, addresses):
            slot.data = address
        if numbers:
            call.set_values(numbers)
        options = call.options
        options.stream = _current_stream(prepared.index)
        if call.workspace:
            workspace = torch.empty(call.workspace, dtype=torch.uint8, device=prepared.device)
            options.workspace = workspace.data_ptr()
        status = call.start()
        if status:
            raise error_of(status)
        prepared.pool.append(call)

    def _prepare(self, key: Any, inputs: Sequence[torch.Tensor], values: Sequence[tuple[ValueSpec, Number]],
                 out: Optional[Sequence[torch.Tensor]]) -> _Prepared:
        device = inputs[0].device if inputs else torch.device("cuda", torch.cuda.current_device())
        specs = self._program.inputs + (self._program.outputs if out is not None else ())
        for spec, tensor in zip(specs, list(inputs) + list(out or ())):
            if tensor.device != device:
                raise ArgumentError(f"`{spec.name}` is on {tensor.device}, the first tensor is on {device}")
        if out is None:
            question = Call([self._slot(t) for t in inputs], values)
            shapes = self._program.output_shapes(question)
            for spec, dtype in zip(self._program.outputs, self._dtypes):
                if dtype is None:
                    raise ArgumentError(f"this PyTorch has no dtype for the output `{spec.name}`: {spec.dtype}")
            outputs = [(shape, dtype, _same_as(shape, dtype, inputs)) for shape, dtype in zip(shapes, self._dtypes)
                       if dtype is not None]
        else:
            outputs = []  # nothing is allocated for such calls
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
