# SPDX-License-Identifier: Apache-2.0
"""Programs on a device: plans, and calls that were prepared for shapes, strides and dtypes.

The first call with given shapes asks the library for shapes of outputs and the workspace, and builds the structs; the
calls after it put addresses and scalars into those structs and launch.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from functools import lru_cache, partial
from typing import Any, Iterable, Sequence

from . import _dtypes, _library
from ._library import LaunchOptions, check, error_of, sized
from ._program import Call, Number, Program, ValueSpec

# (address, shape, strides in elements, number of the dtype)
Slot = tuple[int, Sequence[int], Sequence[int], int]


class Plan:
    """A program loaded into a device's context."""

    def __init__(self, program: Program, device: int) -> None:
        self._lib = _library.load()
        self.program = program
        options = sized(_library.PrepareOptions())
        options.device = device
        handle = ctypes.c_void_p()
        check(self._lib.nautilus_prepare(program.handle, ctypes.byref(options), ctypes.byref(handle)))
        self.handle = handle.value
        # At exit the driver may be gone before us, and the process's memory goes anyway.
        weakref.finalize(self, self._lib.nautilus_plan_close, self.handle).atexit = False

    def prepare_for(self, call: Call) -> None:
        check(self._lib.nautilus_prepare_for(self.handle, ctypes.byref(call.arguments)))

    def workspace(self, call: Call) -> int:
        size = ctypes.c_uint64()
        check(self._lib.nautilus_plan_workspace(self.handle, ctypes.byref(call.arguments), ctypes.byref(size)))
        return size.value

    def multiprocessors(self) -> int:
        info = sized(_library.PlanInfo())
        check(self._lib.nautilus_plan_describe(self.handle, ctypes.byref(info)))
        return int(info.multiprocessors)


class PreparedCall:
    """The structs of a call: one launch at a time. `start` launches and gives the status; all that it needs is bound."""

    __slots__ = ("call", "slots", "numbers", "options", "workspace", "start")

    def __init__(self, plan: Plan, tensors: Sequence[Slot], values: Sequence[tuple[ValueSpec, Number]]) -> None:
        self.call = Call(tensors, values)
        self.slots = self.call.slots
        self.numbers = [
            (slot, spec.dtype in _dtypes.FLOATS) for slot, (spec, _) in zip(self.call.numbers, values)
        ]
        self.options = sized(LaunchOptions())
        plan.prepare_for(self.call)
        self.workspace = plan.workspace(self.call)
        self.options.workspace_bytes = self.workspace
        self.start = partial(_library.load().nautilus_launch, plan.handle, ctypes.addressof(self.call.arguments),
                             ctypes.addressof(self.options))

    def set_values(self, values: Iterable[Number]) -> None:
        for (slot, is_float), value in zip(self.numbers, values):
            if is_float:
                slot.number = value
            else:
                slot.integer = value

    def launch(self) -> None:
        status = self.start()
        if status:
            raise error_of(status)


class Plans:
    """The plans of a program, one for each device, made when first needed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._plans: dict[int, Plan] = {}
        self._lock = threading.Lock()

    def of(self, device: int) -> Plan:
        plan = self._plans.get(device)
        if plan is None:
            with self._lock:
                plan = self._plans.get(device)
                if plan is None:
                    plan = self._plans[device] = Plan(self._program, device)
        return plan


@lru_cache(maxsize=None)
def dtype_number(dtype: Any) -> int:
    """-1, which the library refuses with the tensor's name, for a dtype that it has not."""
    return _dtypes.NUMBERS.get(_dtypes.name_of(dtype), -1)


def sizes_of(values: Sequence[tuple[ValueSpec, Number]]) -> tuple[Any, ...]:
    """What of the values a prepared call depends on: which are given, and the numbers of sizes."""
    return tuple((spec.index, None if spec.kind == "scalar" else value) for spec, value in values)
