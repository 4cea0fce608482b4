# SPDX-License-Identifier: Apache-2.0
"""Programs on CUDA arrays of other packages (CuPy, JAX) through DLPack, without PyTorch.

CuPy: its current stream and its allocator, as with PyTorch. JAX: it has no stream of ours to order work on, so a call
waits for the device before and after it; use it to try operators, not inside of a jitted function.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence

from . import _dtypes
from ._device import Plans, PreparedCall, Slot
from ._errors import ArgumentError, SystemFailure
from ._program import Call, Number, Program, ValueSpec

_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):  # DLTensor, the first member of DLManagedTensor
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def read(array: Any, stream: Optional[int] = None) -> tuple[Slot, tuple[int, int], Any]:
    """Where an array lies, its device, and the capsule, which has to live as long as the address is used.

    The capsule is not consumed: its destructor gives back what it holds."""
    capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream)
    view = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    shape = tuple(view.shape[k] for k in range(view.ndim))
    if view.strides:
        strides = tuple(view.strides[k] for k in range(view.ndim))
    else:
        strides = dense(shape)
    slot = ((view.data or 0) + view.byte_offset, shape, strides, _dtypes.NUMBERS.get(_dtypes.name_of(array.dtype), -1))
    return slot, (view.device.device_type, view.device.device_id), capsule


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _wait() -> None:
    driver = ctypes.CDLL("libcuda.so.1")
    status = driver.cuCtxSynchronize()
    if status:
        raise SystemFailure(f"cuCtxSynchronize failed with status {status}")


class Runner:
    """Runs a program on CUDA arrays that are not PyTorch's."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._plans = Plans(program)

    def __call__(self, inputs: Sequence[Any], values: Sequence[tuple[ValueSpec, Number]],
                 out: Optional[Sequence[Any]]) -> list[Any]:
        package = type(inputs[0]).__module__.partition(".")[0]
        is_cupy = package == "cupy"
        if not is_cupy and out is not None:
            raise ArgumentError(f"out= is not possible with arrays of {package}, which do not change")
        slots, kept = [], []
        device: Optional[int] = None
        for spec, array in zip(self._program.inputs, inputs):
            slot, (kind, index), capsule = read(array)
            if kind not in _CUDA:
                raise ArgumentError(f"`{spec.name}` is not in memory of a CUDA device")
            if device is not None and index != device:
                raise ArgumentError(f"`{spec.name}` is on device {index}, the first array is on device {device}")
            device = index
            slots.append(slot)
            kept.append(capsule)
        shapes = self._program.output_shapes(Call(slots, values))
        results = list(out) if out is not None else self._empty(inputs[0], shapes)
        for result in results:
            slot, _, capsule = read(result)
            slots.append(slot)
            kept.append(capsule)
        if not is_cupy:
            _wait()
        call = PreparedCall(self._plans.of(device or 0), slots, values)
        workspace: Any = None
        if is_cupy:
            import cupy  # type: ignore[import-not-found,unused-ignore]

            call.options.stream = cupy.cuda.get_current_stream().ptr
            if call.workspace:
                workspace = cupy.empty(call.workspace, cupy.uint8)
                call.options.workspace = workspace.data.ptr
        elif call.workspace:
            workspace = self._bytes(inputs[0], call.workspace)
            slot, _, capsule = read(workspace)
            kept.append(capsule)
            call.options.workspace = slot[0]
            _wait()
        call.launch()
        if not is_cupy:
            _wait()
        return results

    def _empty(self, like: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
        package = type(like).__module__.partition(".")[0]
        names = [_dtypes.FOREIGN_NAMES[t.dtype] for t in self._program.outputs]
        if package == "cupy":
            import cupy
            import numpy

            def dtype(name: str) -> Any:
                if hasattr(numpy, name):
                    return name
                import ml_dtypes  # type: ignore[import-not-found,unused-ignore]

                return getattr(ml_dtypes, name)

            return [cupy.empty(shape, dtype(name)) for shape, name in zip(shapes, names)]
        if package in ("jax", "jaxlib"):
            import jax  # type: ignore[import-not-found,unused-ignore]

            found = [jax.device_put(jax.numpy.zeros(shape, name), like.device) for shape, name in zip(shapes, names)]
            return [array.block_until_ready() for array in found]
        raise ArgumentError(f"arrays of {package} are not known here: PyTorch, CuPy, JAX and NumPy are")

    @staticmethod
    def _bytes(like: Any, count: int) -> Any:
        import jax

        return jax.device_put(jax.numpy.zeros(count, "uint8"), like.device).block_until_ready()
