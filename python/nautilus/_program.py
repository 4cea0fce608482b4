# SPDX-License-Identifier: Apache-2.0
"""A program of the library: what was opened, and what it says of itself."""

from __future__ import annotations

import ctypes
import os
import weakref
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

from . import _dtypes, _library
from ._errors import ArgumentError
from ._library import Arguments, OpenOptions, Tensor, TensorInfo, Value, ValueInfo, check, sized

Source = Union[str, "os.PathLike[str]"]
Number = Union[int, float, bool]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of a program: `Q: bf16[B, 4*Hk, M, 128]`."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    is_output: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(self.dims)}]"


@dataclass(frozen=True)
class ValueSpec:
    """A size or a scalar of a program."""

    name: str
    index: int
    kind: str  # "size", "static" or "scalar"
    dtype: str
    hint: Optional[int]  # of a size; of a static one its value
    default: Optional[str]  # of a scalar: the expression; None: it has to be given
    bound: bool  # a size that shapes of inputs determine

    def __str__(self) -> str:
        if self.kind == "static":
            return f"{self.name} = {self.hint}"
        if self.kind == "scalar":
            return f"{self.name}: {self.dtype}" + (f" = {self.default}" if self.default else "")
        return self.name


@dataclass(frozen=True)
class Launch:
    """One kernel launch of a call. A grid of 0: the plan does not launch it at these sizes."""

    kernel: str
    form: str
    grid: int
    threads: int


def _is_path(source: Source) -> bool:
    if not isinstance(source, str):
        return True
    if "\n" in source or "->" in source:
        return False
    return os.path.exists(source) or source.endswith((".naut", ".matile", ".vrtile", ".scalar"))


def _sizes_text(sizes: Mapping[str, int]) -> Optional[bytes]:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentError(f"the size `{name}` must be an integer, {value!r} was given")
    return ",".join(f"{name}={value}" for name, value in sizes.items()).encode() or None


class Call:
    """nautilus_arguments of one call with memory for what it points to; `slots` are its tensors, `numbers` its
    values."""

    def __init__(self, tensors: Sequence[Optional[tuple[int, Sequence[int], Optional[Sequence[int]], int]]],
                 values: Sequence[tuple[ValueSpec, Number]]) -> None:
        """Tensors as (address, shape, strides in elements, number of the dtype), None for one that is not given."""
        self._tensors = (Tensor * max(len(tensors), 1))()
        self._values = (Value * max(len(values), 1))()
        self.slots = list(self._tensors)[:len(tensors)]
        self.numbers = list(self._values)[:len(values)]
        # Extents and strides of all tensors, one after the other.
        lists = [part for given in tensors if given is not None for part in given[1:3] if part is not None]
        flat = [number for part in lists for number in part]
        self._extents = (ctypes.c_int64 * max(len(flat), 1))(*flat)
        place = ctypes.addressof(self._extents)
        for slot, given in zip(self.slots, tensors):
            if given is None:
                slot.rank = _library.ABSENT
                continue
            slot.data, shape, strides, slot.dtype = given
            slot.rank = len(shape)
            slot.shape = place
            place += 8 * len(shape)
            if strides is not None:
                slot.strides = place
                place += 8 * len(strides)
        for number, (spec, value) in zip(self.numbers, values):
            number.index = spec.index
            if spec.kind == "scalar" and spec.dtype in _dtypes.FLOATS:
                number.number = float(value)
            else:
                number.integer = int(value)
        self.arguments = sized(Arguments())
        self.arguments.tensors = self._tensors
        self.arguments.tensor_count = len(tensors)
        self.arguments.values = self._values
        self.arguments.value_count = len(values)


class Program:
    """A handle of nautilus_open with its tensors and values."""

    def __init__(self, source: Source, sizes: Mapping[str, int], *, schedule: Optional[str] = None,
                 target: Optional[str] = None, name: Optional[str] = None, tuned: bool = True) -> None:
        self._lib = _library.load()
        options = sized(OpenOptions())
        options.flags = _library.OPEN_DEFERRED | (0 if tuned else _library.OPEN_UNTUNED)
        options.sizes = _sizes_text(sizes)
        options.schedule = schedule.encode() if schedule is not None else None
        options.target = target.encode() if target is not None else None
        options.name = name.encode() if name is not None else None
        handle = ctypes.c_void_p()
        if _is_path(source):
            with open(source, encoding="utf-8") as file:  # FileNotFoundError, as Python's users expect it
                self.text = file.read()
            status = self._lib.nautilus_open_file(os.fsencode(source), ctypes.byref(options), ctypes.byref(handle))
        else:
            self.text = str(source)
            status = self._lib.nautilus_open_text(self.text.encode(), ctypes.byref(options), ctypes.byref(handle))
        check(status)
        self.handle = handle.value
        self._close = weakref.finalize(self, self._lib.nautilus_close, self.handle)
        self.name = (self._lib.nautilus_program_name(self.handle) or b"").decode()
        self.tensors = self._read_tensors()
        self.values = self._read_values()
        self.inputs = tuple(t for t in self.tensors if not t.is_output)
        self.outputs = tuple(t for t in self.tensors if t.is_output)
        self.values_by_name = {v.name: v for v in self.values}

    def _read_tensors(self) -> tuple[TensorSpec, ...]:
        found = []
        for index in range(self._lib.nautilus_tensor_count(self.handle)):
            info = sized(TensorInfo())
            check(self._lib.nautilus_tensor_at(self.handle, index, ctypes.byref(info)))
            dims = tuple(info.dims[k].decode() for k in range(info.rank))
            found.append(TensorSpec(info.name.decode(), _dtypes.NAMES[info.dtype], dims, bool(info.is_output)))
        return tuple(found)

    def _read_values(self) -> tuple[ValueSpec, ...]:
        found = []
        kinds = {_library.KIND_SIZE: "size", _library.KIND_STATIC: "static", _library.KIND_SCALAR: "scalar"}
        for index in range(self._lib.nautilus_value_count(self.handle)):
            info = sized(ValueInfo())
            check(self._lib.nautilus_value_at(self.handle, index, ctypes.byref(info)))
            found.append(ValueSpec(
                name=info.name.decode(), index=index, kind=kinds[info.kind], dtype=_dtypes.NAMES[info.dtype],
                hint=info.hint if info.has_hint else None,
                default=info.default_text.decode() if info.default_text else None,
                bound=info.bound_tensor >= 0))
        return tuple(found)

    def read(self, kind: int) -> str:
        """A text of nautilus_text."""
        text = ctypes.c_char_p()
        check(self._lib.nautilus_text(self.handle, kind, ctypes.byref(text)))
        return (text.value or b"").decode(errors="replace")

    def output_shapes(self, call: Call) -> list[tuple[int, ...]]:
        shapes = []
        for index in range(len(self.inputs), len(self.tensors)):
            rank = len(self.tensors[index].dims)
            shape = (ctypes.c_int64 * max(rank, 1))()
            check(self._lib.nautilus_shape(self.handle, ctypes.byref(call.arguments), index, shape))
            shapes.append(tuple(shape[:rank]))
        return shapes

    def solve_sizes(self, call: Call) -> dict[str, int]:
        numbers = (ctypes.c_int64 * max(len(self.values), 1))()
        check(self._lib.nautilus_solve_sizes(self.handle, ctypes.byref(call.arguments), numbers))
        return {v.name: numbers[v.index] for v in self.values if v.kind != "scalar"}

    def launches(self, call: Call, multiprocessors: int = 0) -> list[Launch]:
        count = ctypes.c_int32()
        ask = self._lib.nautilus_launches
        check(ask(self.handle, ctypes.byref(call.arguments), multiprocessors, None, 0, ctypes.byref(count)))
        infos = (_library.LaunchInfo * max(count.value, 1))()
        check(ask(self.handle, ctypes.byref(call.arguments), multiprocessors, infos, count.value, ctypes.byref(count)))
        return [Launch(i.kernel.decode(), (i.form or b"").decode(), i.grid, i.threads) for i in infos[:count.value]]

    def workspace(self, call: Call, multiprocessors: int = 0) -> int:
        size = ctypes.c_uint64()
        check(self._lib.nautilus_workspace(self.handle, ctypes.byref(call.arguments), multiprocessors,
                                           ctypes.byref(size)))
        return size.value

    def evaluate(self, call: Call, evaluator: int, threads: int = 0, seed: int = 0) -> None:
        options = sized(_library.EvaluateOptions())
        options.evaluator = evaluator
        options.threads = threads
        options.seed = seed
        check(self._lib.nautilus_evaluate(self.handle, ctypes.byref(call.arguments), ctypes.byref(options)))
