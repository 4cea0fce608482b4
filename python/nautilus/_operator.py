# SPDX-License-Identifier: Apache-2.0
"""Operators: compiled programs that are called with tensors."""

from __future__ import annotations

import os
import sys
import warnings
from functools import partial
from typing import Any, Mapping, Optional, Sequence, Union

from . import _host, _library, _shapes
from ._display import Table, Text, details_html, program_html, table_html
from ._errors import ArgumentError, SlowWarning
from ._program import Call, Launch, Number, Program, Source, TensorSpec, ValueSpec

Out = Union[Any, Sequence[Any], Mapping[str, Any]]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) if names else "none"


class Operator:
    """A program that can be called. Made by `nautilus.compile`.

    Kernels are made when first needed: by a call on a device, or by `explain`, `schedule`, `source`, `launches`.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._torch_runner: Any = None
        self._foreign_runner: Any = None
        self._input_index = {spec.name: index for index, spec in enumerate(program.inputs)}

    # ---- What it is ----

    @property
    def name(self) -> str:
        return self._program.name

    @property
    def text(self) -> Text:
        """The program as it was given."""
        return Text(self._program.text)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._program.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._program.outputs

    @property
    def sizes(self) -> tuple[ValueSpec, ...]:
        return tuple(v for v in self._program.values if v.kind != "scalar")

    @property
    def scalars(self) -> tuple[ValueSpec, ...]:
        return tuple(v for v in self._program.values if v.kind == "scalar")

    @property
    def understood(self) -> Text:
        """The program with every extent and conversion written out."""
        return Text(self._program.read(_library.TEXT_PROGRAM))

    @property
    def schedule(self) -> Text:
        """The schedule that the kernels were made with; `compile(..., schedule=)` takes it, edited or not."""
        return Text(self._program.read(_library.TEXT_SCHEDULE))

    @property
    def note(self) -> Text:
        """Where the schedule comes from."""
        return Text(self._program.read(_library.TEXT_NOTE))

    @property
    def warnings(self) -> Text:
        """What is doubtful in the program, and what is slow about its kernels at the hints; empty if nothing is."""
        return Text(self._program.read(_library.TEXT_WARNINGS))

    @property
    def source(self) -> Text:
        """The kernels as CUDA."""
        return Text(self._program.read(_library.TEXT_CUDA))

    @property
    def kernels(self) -> Text:
        """The kernels and their plan as MA-tile text."""
        return Text(self._program.read(_library.TEXT_KERNELS))

    def explain(self) -> Text:
        """How the program became its kernels."""
        return Text(self._program.read(_library.TEXT_EXPLAIN))

    # ---- Questions about a call ----

    def shapes(self, *tensors: Any, **named: Any) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs; a shape may stand for a tensor, and symbols of PyTorch for numbers."""
        given_sizes = {v.name for v in self.sizes if v.kind == "size"}
        sizes = {name: value for name, value in named.items() if name in given_sizes and value is not None}
        inputs, _ = self._arguments(tensors, {name: v for name, v in named.items() if name not in sizes})
        return self._output_shapes([getattr(t, "shape", t) for t in inputs], sizes)

    def _output_shapes(self, shapes: Sequence[Any], given: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        known: dict[str, Any] = {v.name: v.hint for v in self.sizes if v.kind == "static"}
        known.update(given)
        wanted = [v.name for v in self.sizes if v.kind == "size"]
        for spec, shape in zip(self.inputs, shapes):
            if len(shape) != len(spec.dims):
                raise ArgumentError(f"`{spec}` has {len(spec.dims)} dimensions, a shape {tuple(shape)} was given")
        known = _shapes.bind(known, wanted, [spec.dims for spec in self.inputs], shapes)
        for size in self.sizes:
            if size.name not in known:
                if size.hint is None:
                    raise ArgumentError(f"no shape determines the size `{size.name}`: give {size.name}=")
                known[size.name] = size.hint
        # An extent that an input has as well is taken from it: symbols are not divided and multiplied again.
        same = {text: extent for spec, shape in zip(self.inputs, shapes) for text, extent in zip(spec.dims, shape)}
        return {spec.name: tuple(same[d] if d in same else _shapes.expression(d)(known) for d in spec.dims)
                for spec in self.outputs}

    def launches(self, *tensors: Any, **named: Any) -> list[Launch]:
        """What a call with these tensors (or shapes) launches, in order; no device is needed."""
        inputs, values = self._arguments(tensors, named)
        return Table(("kernel", "form", "grid", "threads"), self._program.launches(self._question(inputs, values)))

    def workspace(self, *tensors: Any, **named: Any) -> int:
        """Bytes of device memory that a call with these tensors (or shapes) needs besides them."""
        inputs, values = self._arguments(tensors, named)
        return self._program.workspace(self._question(inputs, values))

    def _question(self, inputs: Sequence[Any], values: Sequence[tuple[ValueSpec, Number]]) -> Call:
        """A call without memory: inputs of the declared dtypes, outputs dense."""
        from . import _dtypes

        shapes = [tuple(int(x) for x in getattr(t, "shape", t)) for t in inputs]
        slots: list[Any] = [
            (0, shape, None, _dtypes.NUMBERS[spec.dtype]) for spec, shape in zip(self.inputs, shapes)
        ]
        for spec, shape in zip(self.outputs, self._program.output_shapes(Call(slots, values))):
            slots.append((0, shape, None, _dtypes.NUMBERS[spec.dtype]))
        return Call(slots, values)

    # ---- Calls ----

    def __call__(self, *tensors: Any, out: Optional[Out] = None, **named: Any) -> Any:
        """Runs on the tensors: where they are. Returns a new tensor, or a tuple where the program has several outputs.

        Tensors are given in the order of the program or by name; scalars, and sizes that shapes do not determine, by
        name. `out` takes the tensor to write (a tuple or a dict for several)."""
        return self.call(tensors, named, out)

    def call(self, tensors: Sequence[Any], named: Mapping[str, Any], out: Optional[Out]) -> Any:
        """As a call, with arguments that are collected already."""
        if self._torch_runner is not None:
            results = self._torch_runner.again(tensors, named, out)
            if results is not None:
                return results[0] if len(results) == 1 else tuple(results)
        inputs, values = self._arguments(tensors, named)
        results = self._run(inputs, values, self._outputs(out), None)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, *tensors: Any, on: str, out: Optional[Out] = None, threads: int = 0, seed: int = 0,
            **named: Any) -> Any:
        """As a call, on host memory (NumPy, PyTorch's CPU tensors) by an evaluator of choice:

        "oracle"      fp64, blocked and threaded: what kernels are checked against
        "definition"  fp64, point by point as the equations are written
        "emulator"    the kernels themselves, on an emulated device; needs a C++ compiler
        """
        if on not in _host.EVALUATORS:
            raise ArgumentError(f"on={on!r}: there are {', '.join(map(repr, _host.EVALUATORS))}")
        inputs, values = self._arguments(tensors, named)
        results = self._run(inputs, values, self._outputs(out), on, threads=threads, seed=seed)
        return results[0] if len(results) == 1 else tuple(results)

    def _run(self, inputs: Sequence[Any], values: Sequence[tuple[ValueSpec, Number]], out: Optional[Sequence[Any]],
             on: Optional[str], **options: int) -> list[Any]:
        torch = sys.modules.get("torch")
        if torch is not None and inputs and all(isinstance(t, torch.Tensor) for t in inputs):
            wants_grad = torch.is_grad_enabled() and any(t.requires_grad for t in inputs)
            named: dict[str, Any] = {"on": on or "oracle", **options}
            run: Any = partial(_host.run_torch, self._program, **named)
            if any(t.is_cuda for t in inputs):
                if on is not None:
                    raise ArgumentError(f"on={on!r} is for tensors on the host; `{self.inputs[0].name}` is on a device")
                for spec, tensor in zip(self.inputs, inputs):
                    if not tensor.is_cuda:
                        raise ArgumentError(f"`{spec.name}` is not on the GPU, other tensors are")
                run = self.torch_runner
            if wants_grad:
                from ._torch import run_with_grad

                return run_with_grad(self.name, run, inputs, values, out)
            return list(run(inputs, values, out))
        packages = [type(t).__module__.partition(".")[0] for t in inputs]
        if any(package in ("cupy", "jax", "jaxlib", "torch") for package in packages):
            if len(set(packages)) != 1:
                raise ArgumentError(f"tensors of several packages: {', '.join(sorted(set(packages)))}")
            if self._foreign_runner is None:
                from ._foreign import Runner

                self._foreign_runner = Runner(self._program)
                self._warn()
            return list(self._foreign_runner(inputs, values, out))
        return _host.run_numpy(self._program, inputs, values, out, on or "oracle", **options)

    @property
    def torch_runner(self) -> Any:
        if self._torch_runner is None:
            from ._torch import Runner

            self._torch_runner = Runner(self._program)
            self._warn()
        return self._torch_runner

    def _warn(self) -> None:
        """Says once, when the operator first meets a device, what is slow about it there."""
        text = self.warnings
        if text:
            level, frame = 1, sys._getframe()
            while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "nautilus":
                level, frame = level + 1, frame.f_back
            warnings.warn(f"{self.name}\n{text}", SlowWarning, stacklevel=level)  # at the line of the user

    def _arguments(self, tensors: Sequence[Any],
                   named: Mapping[str, Any]) -> tuple[Sequence[Any], list[tuple[ValueSpec, Number]]]:
        """Inputs in the program's order, and the values that are given."""
        specs = self._program.inputs
        if not named and len(tensors) == len(specs):
            return tensors, []
        inputs: list[Any] = list(tensors) + [None] * (len(specs) - len(tensors))
        if len(tensors) > len(specs):
            raise ArgumentError(
                f"{self._called} takes {len(specs)} tensors ({_listed([s.name for s in specs])}), {len(tensors)} were "
                f"given; scalars and sizes are given by name"
            )
        values: list[tuple[ValueSpec, Number]] = []
        for name, value in named.items():
            index = self._input_index.get(name)
            if index is not None:
                if index < len(tensors):
                    raise ArgumentError(f"`{name}` is given twice: as argument {index + 1} and by name")
                inputs[index] = value
                continue
            spec = self._program.values_by_name.get(name)
            if spec is None:
                outputs = [s.name for s in self.outputs]
                hint = " (an output is given as out=)" if name in outputs else ""
                takes = [s.name for s in specs] + [v.name for v in self._program.values if v.kind != "static"]
                raise ArgumentError(f"{self._called} has no input `{name}`{hint}; it takes {_listed(takes)}")
            if spec.kind == "static":
                raise ArgumentError(
                    f"`{name}` is a static size, fixed at {spec.hint} when compiling: nautilus.compile(..., {name}=)"
                )
            if value is None:
                continue
            values.append((spec, _number(spec, value)))
        missing = [spec.name for spec, given in zip(specs, inputs) if given is None]
        if missing:
            raise ArgumentError(f"{self._called} needs {_listed(missing)} as well; its tensors are "
                                f"{', '.join(str(s) for s in specs)}")
        return inputs, values

    def _outputs(self, out: Optional[Out]) -> Optional[list[Any]]:
        if out is None:
            return None
        names = [spec.name for spec in self.outputs]
        if isinstance(out, Mapping):
            wrong = [name for name in out if name not in names]
            missing = [name for name in names if name not in out]
            if wrong or missing:
                raise ArgumentError(f"out: the outputs are {_listed(names)}, {_listed(list(out))} were given")
            return [out[name] for name in names]
        found = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(found) != len(names):
            raise ArgumentError(f"out: the outputs are {_listed(names)}, {len(found)} were given")
        return found

    @property
    def _called(self) -> str:
        return f"`{self.name}`" if self.name else "the program"

    # ---- Display ----

    def __repr__(self) -> str:
        sizes = ", ".join(str(v) for v in self.sizes if v.kind == "static")
        return (f"<nautilus.Operator {self.name or 'program'}({', '.join(str(t) for t in self.inputs)})"
                f" -> {', '.join(str(t) for t in self.outputs)}{'; ' + sizes if sizes else ''}>")

    def _repr_html_(self) -> str:
        tensors = table_html(("tensor", "dtype", "shape", ""),
                             [(t.name, t.dtype, f"[{', '.join(t.dims)}]", "output" if t.is_output else "input")
                              for t in self._program.tensors])
        values = table_html(("value", "kind", ""),
                            [(v.name, v.kind, v.default or (v.hint if v.kind == "static" else
                                                            "from shapes" if v.bound else "given by name"))
                             for v in self._program.values])
        return program_html(self._program.text) + details_html("tensors and values", tensors + values)


def _number(spec: ValueSpec, value: Any) -> Number:
    from . import _dtypes

    what = "size" if spec.kind == "size" else f"scalar ({spec.dtype})"
    try:
        if spec.kind == "scalar" and spec.dtype in _dtypes.FLOATS:
            return float(value)
        number = value.__index__()
    except (AttributeError, TypeError, ValueError):
        kind = "a number" if spec.dtype in _dtypes.FLOATS and spec.kind == "scalar" else "an integer"
        raise ArgumentError(f"`{spec.name}` is a {what} and must be {kind}, {value!r} was given") from None
    return int(number)


def compile(source: Union[Source, Any], *, schedule: Optional[str] = None, target: Optional[str] = None,
            tuned: bool = True, name: Optional[str] = None, **sizes: int) -> Operator:
    """The operator of a program: its text, the path of a .naut file, or a `nautilus.Program` of expressions.

    sizes       values of static sizes (D=128); for other sizes hints, by which kernels are chosen
    schedule    a schedule's text (or the path of a .sched file) in place of the tuned or the first one
    target      the machine, "sm_90a"; None: what the program says, or the default
    tuned       False: the first schedule, whatever trials are known
    name        what messages call the text
    """
    if hasattr(source, "compile") and hasattr(source, "text"):
        return source.compile(schedule=schedule, target=target, tuned=tuned, **sizes)  # type: ignore[no-any-return]
    if schedule is not None and "\n" not in schedule and os.path.exists(schedule):
        with open(schedule, encoding="utf-8") as file:
            schedule = file.read()
    return Operator(Program(source, sizes, schedule=schedule, target=target, name=name, tuned=tuned))
