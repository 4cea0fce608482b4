# SPDX-License-Identifier: Apache-2.0
"""Shapes in Python agree with the library's."""

import nautilus
import numpy as np
import pytest
from nautilus import _dtypes, _foreign, _shapes
from nautilus._program import Call


def test_expressions():
    assert _shapes.expression("4*Hk + 1")({"Hk": 3}) == 13
    assert _shapes.expression("(N + 3) / 4")({"N": 6}) == 2
    assert _shapes.expression("max(N, 2) % 5")({"N": 1}) == 2
    with pytest.raises(ValueError):
        _shapes.expression("__import__('os').system")


def test_bind():
    found = _shapes.bind({"G": 4}, ["Hk", "M", "L"], [("Hk * G", "M + 2"), ("M * L",)], [(12, 10), (24,)])
    assert found == {"G": 4, "Hk": 3, "M": 8, "L": 3}
    assert _shapes.bind({}, ["A", "B"], [("A * B",)], [(6,)]) == {}


EXAMPLES = ["attention_gqa", "attention_decode", "attention_paged", "conv1d", "gemm_swiglu", "moe_routing", "rope",
            "cross_entropy", "quantise_fp8", "linear_attention"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_as_the_library_says(examples, name):
    op = nautilus.compile(examples / f"{name}.naut")
    sizes = {v.name: v.hint for v in op.sizes}
    shapes = [tuple(_shapes.expression(d)(sizes) for d in t.dims) for t in op.inputs]
    given = {v.name: v.hint for v in op.sizes if v.kind == "size" and not v.bound}
    question = Call([(0, s, None, _dtypes.NUMBERS[t.dtype]) for s, t in zip(shapes, op.inputs)],
                    [(v, given[v.name]) for v in op.sizes if v.name in given])
    assert list(op.shapes(*shapes, **given).values()) == op._program.output_shapes(question)


def test_dlpack():
    """CuPy and JAX are read through DLPack; NumPy speaks it as well."""
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[1:, ::2]
    (address, shape, strides, dtype), device, _ = _foreign.read(array)
    assert (address, shape, strides) == (array.ctypes.data, (3, 3), (6, 2))
    assert _dtypes.NAMES[dtype] == "f32" and device == (1, 0)
    assert _foreign.dense((2, 3, 4)) == (12, 4, 1)
