# SPDX-License-Identifier: Apache-2.0
"""libnautilus through ctypes: the structs and functions of include/nautilus.h, nothing more.

ctypes and not an extension module: the wheel then has no part that depends on the version of Python.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Optional

from ._errors import ArgumentError, InternalError, NautilusError, ProgramError, SystemFailure, UnsupportedError

# The major and minor version of the header that the structs below are taken from.
HEADER_VERSION = (0, 1)

OK = 0
ERROR_PROGRAM = 2
ERROR_ARGUMENT = 3
ERROR_NOT_PREPARED = 5
ERROR_SYSTEM = 6
ERROR_UNSUPPORTED = 7
ERROR_INTERNAL = 8

OPEN_DEFERRED = 1
OPEN_UNTUNED = 2

KIND_SIZE = 0
KIND_STATIC = 1
KIND_SCALAR = 2

TEXT_PROGRAM = 0
TEXT_SCHEDULE = 1
TEXT_NOTE = 2
TEXT_EXPLAIN = 3
TEXT_WARNINGS = 4
TEXT_CUDA = 5
TEXT_KERNELS = 6

EVALUATE_ORACLE = 0
EVALUATE_DEFINITION = 1
EVALUATE_EMULATOR = 2

ABSENT = -1


class OpenOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("sizes", c_char_p),
        ("schedule", c_char_p),
        ("target", c_char_p),
        ("database", c_char_p),
        ("cuda_source", c_char_p),
        ("name", c_char_p),
    ]


class TensorInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("is_output", c_int32),
        ("dims", POINTER(c_char_p)),
    ]


class ValueInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("kind", c_int32),
        ("dtype", c_int32),
        ("has_hint", c_int32),
        ("hint", c_int64),
        ("default_text", c_char_p),
        ("bound_tensor", c_int32),
        ("bound_dimension", c_int32),
    ]


class KernelInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("form", c_char_p),
        ("threads", c_int32),
        ("shared_bytes", c_int32),
        ("source", c_char_p),
    ]


class Tensor(Structure):
    # Pointers as numbers: many are set for each new shape, and those of ctypes are objects of their own.
    _fields_ = [
        ("data", c_void_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("rank", c_int32),
        ("dtype", c_int32),
    ]


class Value(Structure):
    _fields_ = [("index", c_int32), ("reserved", c_int32), ("integer", c_int64), ("number", c_double)]


class Arguments(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("tensors", POINTER(Tensor)),
        ("tensor_count", c_int32),
        ("value_count", c_int32),
        ("values", POINTER(Value)),
    ]


class LaunchInfo(Structure):
    _fields_ = [
        ("kernel", c_char_p),
        ("form", c_char_p),
        ("grid", c_int64),
        ("threads", c_int32),
        ("reserved", c_int32),
    ]


class EvaluateOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("evaluator", c_int32),
        ("threads", c_int32),
        ("seed", c_uint64),
        ("bounds", POINTER(POINTER(c_double))),
    ]


class PrepareOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("threads", c_int32),
        ("allocator", c_void_p),
        ("arguments", POINTER(Arguments)),
    ]


class LaunchOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("stream", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
    ]


class PlanInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("multiprocessors", c_int32),
        ("device_name", c_char_p),
        ("kernels", c_int32),
        ("cached_kernels", c_int32),
    ]


def sized(struct: Any) -> Any:
    """The struct with its struct_size set, as the _INIT macros do."""
    struct.struct_size = ctypes.sizeof(struct)
    return struct


# name: (result, arguments). Handles are c_void_p.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "nautilus_version": (ctypes.c_int, []),
    "nautilus_version_text": (c_char_p, []),
    "nautilus_last_error": (c_char_p, []),
    "nautilus_status_name": (c_char_p, [ctypes.c_int]),
    "nautilus_dtype_name": (c_char_p, [ctypes.c_int]),
    "nautilus_dtype_bytes": (ctypes.c_int, [ctypes.c_int]),
    "nautilus_dtype_of_name": (ctypes.c_int, [c_char_p]),
    "nautilus_open_text": (ctypes.c_int, [c_char_p, POINTER(OpenOptions), POINTER(c_void_p)]),
    "nautilus_open_file": (ctypes.c_int, [c_char_p, POINTER(OpenOptions), POINTER(c_void_p)]),
    "nautilus_close": (None, [c_void_p]),
    "nautilus_program_name": (c_char_p, [c_void_p]),
    "nautilus_tensor_count": (c_int32, [c_void_p]),
    "nautilus_tensor_at": (ctypes.c_int, [c_void_p, c_int32, POINTER(TensorInfo)]),
    "nautilus_value_count": (c_int32, [c_void_p]),
    "nautilus_value_at": (ctypes.c_int, [c_void_p, c_int32, POINTER(ValueInfo)]),
    "nautilus_text": (ctypes.c_int, [c_void_p, ctypes.c_int, POINTER(c_char_p)]),
    "nautilus_kernel_count": (ctypes.c_int, [c_void_p, POINTER(c_int32)]),
    "nautilus_kernel_at": (ctypes.c_int, [c_void_p, c_int32, POINTER(KernelInfo)]),
    "nautilus_solve_sizes": (ctypes.c_int, [c_void_p, POINTER(Arguments), POINTER(c_int64)]),
    "nautilus_shape": (ctypes.c_int, [c_void_p, POINTER(Arguments), c_int32, POINTER(c_int64)]),
    "nautilus_launches": (
        ctypes.c_int,
        [c_void_p, POINTER(Arguments), c_int32, POINTER(LaunchInfo), c_int32, POINTER(c_int32)],
    ),
    "nautilus_workspace": (ctypes.c_int, [c_void_p, POINTER(Arguments), c_int32, POINTER(c_uint64)]),
    "nautilus_evaluate": (ctypes.c_int, [c_void_p, POINTER(Arguments), POINTER(EvaluateOptions)]),
    "nautilus_prepare": (ctypes.c_int, [c_void_p, POINTER(PrepareOptions), POINTER(c_void_p)]),
    "nautilus_prepare_for": (ctypes.c_int, [c_void_p, POINTER(Arguments)]),
    "nautilus_plan_close": (None, [c_void_p]),
    "nautilus_plan_workspace": (ctypes.c_int, [c_void_p, POINTER(Arguments), POINTER(c_uint64)]),
    # Pointers that the caller keeps are passed as they are: byref of each call would cost as much as the call.
    "nautilus_launch": (ctypes.c_int, [c_void_p, c_void_p, c_void_p]),
    "nautilus_plan_describe": (ctypes.c_int, [c_void_p, POINTER(PlanInfo)]),
}

_library: Optional[ctypes.CDLL] = None


def _file_name() -> str:
    return "libnautilus.dylib" if sys.platform == "darwin" else "libnautilus.so"


def library_path() -> str:
    """$NAUTILUS_LIBRARY, else the library that the package was installed with."""
    given = os.environ.get("NAUTILUS_LIBRARY")
    return os.path.abspath(given) if given else str(Path(__file__).resolve().parent / "lib" / _file_name())


def load() -> ctypes.CDLL:
    """The library, loaded at the first call and not at import: `import nautilus` is cheap and cannot fail."""
    global _library
    if _library is not None:
        return _library
    path = library_path()
    if not os.path.exists(path):
        raise NautilusError(
            f"there is no library at {path}: install the package with `pip install .`, or set NAUTILUS_LIBRARY to "
            f"the path of {_file_name()}"
        )
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise NautilusError(f"{path} does not load: {error}") from error
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise NautilusError(
                f"{path} has no function {name}: it is of another version than this package"
            ) from None
        function.restype = result
        function.argtypes = arguments
    number = library.nautilus_version()
    found = (number // 10000, number // 100 % 100)
    if found != HEADER_VERSION:
        raise NautilusError(
            f"{path} has version {found[0]}.{found[1]}, this package needs {HEADER_VERSION[0]}.{HEADER_VERSION[1]}"
        )
    _library = library
    return library


_ERRORS: dict[int, type[NautilusError]] = {
    ERROR_PROGRAM: ProgramError,
    ERROR_ARGUMENT: ArgumentError,
    ERROR_SYSTEM: SystemFailure,
    ERROR_UNSUPPORTED: UnsupportedError,
    ERROR_INTERNAL: InternalError,
}


def last_error() -> str:
    return (load().nautilus_last_error() or b"").decode(errors="replace").rstrip("\n")


def check(status: int) -> None:
    """Raises what the status means, with the library's text."""
    if status != OK:
        raise error_of(status)


def error_of(status: int) -> NautilusError:
    text = last_error()
    if not text:
        text = load().nautilus_status_name(status).decode()
    return _ERRORS.get(status, NautilusError)(text)
