# SPDX-License-Identifier: Apache-2.0
"""Element types: the language's names, the library's numbers, and what arrays of other packages call them."""

from __future__ import annotations

from typing import Any

# By the numbers of nautilus_dtype.
NAMES = ("bool", "i8", "u8", "i32", "i64", "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64", "tf32")
NUMBERS = {name: number for number, name in enumerate(NAMES)}
BYTES = {
    "bool": 1,
    "i8": 1,
    "u8": 1,
    "i32": 4,
    "i64": 8,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "tf32": 4,
}
FLOATS = frozenset(name for name in NAMES if name.startswith(("f", "bf", "tf")))
INTEGERS = frozenset(("i8", "u8", "i32", "i64"))

# The name of a dtype elsewhere (numpy.dtype.name, which ml_dtypes follows; torch's without "torch.").
_FOREIGN = {
    "bool": "bool",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
}
# No package has arrays of tf32, only of the f32 numbers that it is a part of.
FOREIGN_NAMES = {ours: theirs for theirs, ours in _FOREIGN.items()} | {"tf32": "float32"}


def name_of(dtype: Any) -> str:
    """The language's name of another package's dtype, or that package's own name where we have none."""
    text = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    return _FOREIGN.get(text, text)


def known(name: str) -> bool:
    return name in NUMBERS
