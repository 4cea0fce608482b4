# SPDX-License-Identifier: Apache-2.0
"""Programs on host memory: NumPy arrays, and PyTorch's tensors on the CPU.

NumPy has neither bf16 nor 8-bit floats, so a float array may be given for a tensor of any float dtype: the library
rounds it to the declared one. Results of dtypes that NumPy has not come back as float32, which holds them exactly,
unless an input was an array of ml_dtypes: then they have that package's dtype.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _dtypes, _library
from ._errors import ArgumentError
from ._program import Call, Number, Program, TensorSpec, ValueSpec

EVALUATORS = {
    "oracle": _library.EVALUATE_ORACLE,
    "definition": _library.EVALUATE_DEFINITION,
    "emulator": _library.EVALUATE_EMULATOR,
}
_NUMPY = ("bool", "i8", "u8", "i32", "i64", "f16", "f32", "f64")  # what NumPy has by itself


def _array(spec: TensorSpec, given: Any) -> Any:
    """A NumPy array whose elements the library can read as they lie."""
    import numpy as np

    array = np.asarray(given)
    name = _dtypes.name_of(array.dtype)
    if spec.dtype in _dtypes.FLOATS:
        if name not in _dtypes.FLOATS:
            if not isinstance(given, np.ndarray) and array.dtype.kind in "iu":
                array, name = array.astype(np.float64), "f64"  # a list of whole numbers
            else:
                raise ArgumentError(f"`{spec.name}` is {spec.dtype}, the array has dtype {array.dtype}")
    elif name != spec.dtype:
        if spec.dtype not in _dtypes.INTEGERS or array.dtype.kind not in "iu":
            raise ArgumentError(f"`{spec.name}` is {spec.dtype}, the array has dtype {array.dtype}")
        wanted = np.dtype(_dtypes.FOREIGN_NAMES[spec.dtype])
        limits = np.iinfo(wanted)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise ArgumentError(f"`{spec.name}` is {spec.dtype}, the array has numbers beyond its range")
        array = array.astype(wanted)
    if not array.dtype.isnative or any(step % array.itemsize for step in array.strides):
        array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    return array


def _numpy_slot(array: Any) -> tuple[int, Sequence[int], Sequence[int], int]:
    strides = [step // array.itemsize for step in array.strides]
    return array.ctypes.data, array.shape, strides, _dtypes.NUMBERS[_dtypes.name_of(array.dtype)]


def _numpy_output(spec: TensorSpec, shape: Sequence[int], with_ml_dtypes: bool) -> tuple[Any, Any]:
    """The array that the library writes, and what the caller gets (the same, or a wider copy made later)."""
    import numpy as np

    if spec.dtype in _NUMPY:
        array = np.empty(shape, _dtypes.FOREIGN_NAMES[spec.dtype])
        return array, array
    if with_ml_dtypes:
        import ml_dtypes  # type: ignore[import-not-found,unused-ignore]

        array = np.empty(shape, getattr(ml_dtypes, _dtypes.FOREIGN_NAMES[spec.dtype]))
        return array, array
    return np.empty(shape, np.uint16 if spec.dtype == "bf16" else np.uint8), None


def _widen(spec: TensorSpec, raw: Any) -> Any:
    """float32 of the bits of bf16 or of an 8-bit float."""
    import numpy as np

    if spec.dtype == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    exponent_bits, bias = (4, 7) if spec.dtype == "f8e4m3" else (5, 15)
    mantissa_bits = 7 - exponent_bits
    bits = np.arange(256)
    sign = np.where(bits & 128, -1.0, 1.0)
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    value = np.where(
        exponent == 0,
        mantissa * 2.0 ** (1 - bias - mantissa_bits),
        (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias),
    )
    if spec.dtype == "f8e4m3":
        value = np.where((bits & 127) == 127, np.nan, value)
    else:
        value = np.where(exponent == 31, np.where(mantissa == 0, np.inf, np.nan), value)
    return (sign * value).astype(np.float32)[raw]


def run_numpy(program: Program, inputs: Sequence[Any], values: Sequence[tuple[ValueSpec, Number]],
              out: Optional[Sequence[Any]], on: str, **options: int) -> list[Any]:
    import numpy as np

    arrays = [_array(spec, given) for spec, given in zip(program.inputs, inputs)]
    slots: list[Any] = [_numpy_slot(a) for a in arrays]
    shapes = program.output_shapes(Call(slots, values))
    with_ml_dtypes = any(a.dtype.kind == "V" or _dtypes.name_of(a.dtype) not in _NUMPY for a in arrays)
    results: list[Any] = []
    written: list[Any] = []
    for index, (spec, shape) in enumerate(zip(program.outputs, shapes)):
        given = out[index] if out is not None else None
        if given is None:
            raw, result = _numpy_output(spec, shape, with_ml_dtypes)
        else:
            if not isinstance(given, np.ndarray) or not given.flags.writeable:
                raise ArgumentError(f"out: `{spec.name}` needs a writeable NumPy array")
            if given.shape != shape:
                raise ArgumentError(f"out: `{spec.name}` has shape {shape}, the array has {given.shape}")
            raw, result = _numpy_output(spec, shape, with_ml_dtypes)
        written.append(raw)
        results.append(result)
        slots.append((raw.ctypes.data, shape, None, _dtypes.NUMBERS[spec.dtype]))
    program.evaluate(Call(slots, values), EVALUATORS[on], **options)
    for index, (spec, raw) in enumerate(zip(program.outputs, written)):
        if results[index] is None:
            results[index] = _widen(spec, raw)
        if out is not None and out[index] is not None:
            np.copyto(out[index], results[index], casting="same_kind")
            results[index] = out[index]
    return results


def run_torch(program: Program, inputs: Sequence[Any], values: Sequence[tuple[ValueSpec, Number]],
              out: Optional[Sequence[Any]], on: str, **options: int) -> list[Any]:
    """Tensors on the CPU keep their dtypes: PyTorch has all of ours."""
    import torch

    tensors = [t.detach() for t in inputs]
    slots: list[Any] = [(t.data_ptr(), t.shape, t.stride(), _dtypes.NUMBERS.get(_dtypes.name_of(t.dtype), -1))
                        for t in tensors]
    shapes = program.output_shapes(Call(slots, values))
    results: list[Any] = []
    for index, (spec, shape) in enumerate(zip(program.outputs, shapes)):
        given = out[index] if out is not None else None
        if given is None:
            given = torch.empty(shape, dtype=getattr(torch, _dtypes.FOREIGN_NAMES[spec.dtype]))
        results.append(given)
        slots.append((given.data_ptr(), given.shape, given.stride(),
                      _dtypes.NUMBERS.get(_dtypes.name_of(given.dtype), -1)))
    program.evaluate(Call(slots, values), EVALUATORS[on], **options)
    return results
