# SPDX-License-Identifier: Apache-2.0
"""Kernels of libnautilus.so on PyTorch's tensors, through its C interface (include/nautilus.h)."""
import ctypes
import os

# Names of the language for PyTorch's element types.
DTYPE_NAMES = {
    "torch.bfloat16": "bf16",
    "torch.float16": "f16",
    "torch.float32": "f32",
    "torch.float64": "f64",
    "torch.int8": "i8",
    "torch.uint8": "u8",
    "torch.int32": "i32",
    "torch.int64": "i64",
    "torch.bool": "bool",
    "torch.float8_e4m3fn": "f8e4m3",
    "torch.float8_e5m2": "f8e5m2",
}

OPEN_UNTUNED = 2
OPEN_MORE_SIZES = 4
ERROR_NOT_PREPARED = 5
VALUE_STATIC = 1
LAUNCH_WORKSPACE_KEPT = 1


class NautilusError(RuntimeError):
    pass


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_int32),
                ("dtype", ctypes.c_int32)]


class Value(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("integer", ctypes.c_int64), ("number", ctypes.c_double)]


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class OpenOptions(Sized):
    _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint32),
                ("sizes", ctypes.c_char_p), ("schedule", ctypes.c_char_p),
                ("target", ctypes.c_char_p), ("database", ctypes.c_char_p),
                ("cuda_source", ctypes.c_char_p), ("name", ctypes.c_char_p)]


class TensorInfo(Sized):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("is_output", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_char_p))]


class ValueInfo(Sized):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("kind", ctypes.c_int32), ("dtype", ctypes.c_int32), ("has_hint", ctypes.c_int32),
                ("hint", ctypes.c_int64), ("default_text", ctypes.c_char_p),
                ("bound_tensor", ctypes.c_int32), ("bound_dimension", ctypes.c_int32)]


class Arguments(Sized):
    _fields_ = [("struct_size", ctypes.c_size_t), ("tensors", ctypes.POINTER(Tensor)),
                ("tensor_count", ctypes.c_int32), ("value_count", ctypes.c_int32),
                ("values", ctypes.POINTER(Value))]


class LaunchOptions(Sized):
    _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64)]


class Library:
    def __init__(self, path):
        # dlopen searches system folders for a name without a slash.
        self.lib = ctypes.CDLL(os.path.abspath(path))
        handle, text, integer, place = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                                        ctypes.c_void_p)
        signatures = {
            "nautilus_last_error": (text, []),
            "nautilus_dtype_of_name": (ctypes.c_int, [text]),
            "nautilus_dtype_name": (text, [ctypes.c_int]),
            "nautilus_open_file": (ctypes.c_int, [text, place, place]),
            "nautilus_open_text": (ctypes.c_int, [text, place, place]),
            "nautilus_close": (None, [handle]),
            "nautilus_tensor_count": (integer, [handle]),
            "nautilus_tensor_at": (ctypes.c_int, [handle, integer, place]),
            "nautilus_value_count": (integer, [handle]),
            "nautilus_value_at": (ctypes.c_int, [handle, integer, place]),
            "nautilus_text": (ctypes.c_int, [handle, ctypes.c_int, place]),
            "nautilus_prepare": (ctypes.c_int, [handle, place, place]),
            "nautilus_prepare_for": (ctypes.c_int, [handle, place]),
            "nautilus_plan_workspace": (ctypes.c_int, [handle, place, place]),
            "nautilus_plan_close": (None, [handle]),
            "nautilus_launch": (ctypes.c_int, [handle, place, place]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self.lib, name)
            function.restype = result
            function.argtypes = arguments


_default_library = None


def default_library():
    """$NAUTILUS_LIB, or the library of the folder build-device."""
    global _default_library
    if _default_library is None:
        _default_library = Library(os.environ.get("NAUTILUS_LIB", "build-device/libnautilus.so"))
    return _default_library


def parts_of(path):
    """(file, sizes, schedule) of "attention.naut:D=128@tuned.sched"; what is not there is empty."""
    program, _, schedule = path.partition("@")
    file, _, sizes = program.partition(":")
    return file, sizes, schedule


class Kernel:
    """kernel = Kernel("golden/gemm.matile"); kernel(A=a, B=b, C=c)

    A path may end in values for static sizes of the program, "attention.naut:D=128", and then in
    the file of a schedule: "attention.naut:D=128@tuned.sched". Without one it is the program's
    first schedule, or, with tuned=True, what trials say is best."""

    def __init__(self, path, library=None, target="sm_90a", tuned=False):
        self._lib = (library or default_library()).lib
        self._program = ctypes.c_void_p()
        self._plan = ctypes.c_void_p()
        self._bound = {}  # tensors must live as long as launches may use them
        self._numbers = {}
        self._call = None  # what a launch takes, made of both
        file, sizes, schedule = parts_of(path)
        options = OpenOptions(flags=OPEN_MORE_SIZES | (0 if tuned else OPEN_UNTUNED),
                              sizes=sizes.encode(), target=target.encode())
        if schedule:
            with open(schedule, "rb") as text:
                options.schedule = text.read()
        if (self._lib.nautilus_open_file(os.fsencode(file), ctypes.byref(options),
                                         ctypes.byref(self._program)) or
                self._prepare()):
            message = self._message(f"{path} does not open")
            self.close()
            raise NautilusError(message)
        self._tensors, self._values = {}, {}
        for i in range(self._lib.nautilus_tensor_count(self._program)):
            info = TensorInfo()
            self._lib.nautilus_tensor_at(self._program, i, ctypes.byref(info))
            self._tensors[info.name.decode()] = (i, info.dtype, info.rank)
        for i in range(self._lib.nautilus_value_count(self._program)):
            info = ValueInfo()
            self._lib.nautilus_value_at(self._program, i, ctypes.byref(info))
            if info.kind != VALUE_STATIC:
                self._values[info.name.decode()] = i

    def _prepare(self):
        try:
            import torch
            if torch.cuda.is_available():
                torch.cuda.current_stream()  # the context is current then
        except ImportError:
            pass
        return self._lib.nautilus_prepare(self._program, None, ctypes.byref(self._plan))

    def _message(self, what):
        return f"{what}: {self._lib.nautilus_last_error().decode(errors='replace')}"

    @property
    def source(self):
        text = ctypes.c_char_p()
        if self._lib.nautilus_text(self._program, 5, ctypes.byref(text)):
            raise NautilusError(self._message("no source"))
        return text.value.decode()

    def bind(self, **arguments):
        """Tensors by their names; numbers are scalars or sizes."""
        for name, value in arguments.items():
            if isinstance(value, (int, float)):
                if name not in self._values:
                    raise NautilusError(f"the program takes no number `{name}`")
                self._numbers[name] = value
                continue
            given = DTYPE_NAMES.get(str(value.dtype), str(value.dtype))
            if not value.is_cuda:
                raise NautilusError(f"`{name}` is not on the GPU")
            if name not in self._tensors or self._tensors[name][2] != value.dim():
                raise NautilusError(f"the program takes no tensor `{name}` of shape "
                                    f"{tuple(value.shape)} and strides {value.stride()}")
            declared = self._tensors[name][1]
            if self._lib.nautilus_dtype_of_name(given.encode()) != declared:
                declared = self._lib.nautilus_dtype_name(declared).decode()
                raise NautilusError(f"`{name}` is {declared} in the program, the tensor is {given}")
            self._bound[name] = value
        self._call = None
        return self

    def offer(self, **sizes):
        """Sizes that shapes may not determine (the two factors of a product); a program that has no
        dimension of that name does not mind."""
        for name, value in sizes.items():
            if name in self._values:
                self._numbers[name] = value
        self._call = None
        return self

    def _made_call(self):
        """(arguments, options, what they point to); compiles what such tensors need."""
        if self._call:
            return self._call
        missing = [name for name in self._tensors if name not in self._bound]
        if missing:
            raise NautilusError(f"tensor `{missing[0]}` is not bound")
        tensors = (Tensor * len(self._tensors))()
        kept = []
        for name, (index, dtype, rank) in self._tensors.items():
            tensor = self._bound[name]
            shape = (ctypes.c_int64 * rank)(*tensor.shape)
            strides = (ctypes.c_int64 * rank)(*tensor.stride())
            kept += [tensor, shape, strides]
            tensors[index] = Tensor(tensor.data_ptr(), shape, strides, rank, dtype)
        values = (Value * len(self._numbers))(*[
            Value(self._values[name], 0, int(number), float(number))
            for name, number in self._numbers.items()])
        arguments = Arguments(tensors=tensors, tensor_count=len(tensors), values=values,
                              value_count=len(values))
        size = ctypes.c_uint64()

        def ask():
            return self._lib.nautilus_plan_workspace(self._plan, ctypes.byref(arguments),
                                                     ctypes.byref(size))

        status = ask()
        if status == ERROR_NOT_PREPARED:
            status = (self._lib.nautilus_prepare_for(self._plan, ctypes.byref(arguments)) or ask())
        if status:
            raise NautilusError(self._message("the launch failed"))
        options = LaunchOptions(flags=LAUNCH_WORKSPACE_KEPT)
        if size.value:
            import torch
            device = next(iter(self._bound.values())).device
            # Zero, and then only for launches of this call.
            workspace = torch.zeros(size.value, dtype=torch.uint8, device=device)
            kept.append(workspace)
            options.workspace = workspace.data_ptr()
            options.workspace_bytes = size.value
        self._call = (arguments, options, kept)
        return self._call

    def launch(self, stream=None):
        if stream is None:
            import torch
            stream = torch.cuda.current_stream().cuda_stream
        arguments, options, _ = self._made_call()
        options.stream = stream
        if self._lib.nautilus_launch(self._plan, ctypes.byref(arguments), ctypes.byref(options)):
            raise NautilusError(self._message("the launch failed"))

    def launcher(self):
        """A function that launches what is bound now, on the stream current now, with the least
        Python work."""
        import torch
        call = self._made_call()
        options = LaunchOptions(flags=call[1].flags, workspace=call[1].workspace,
                                workspace_bytes=call[1].workspace_bytes,
                                stream=torch.cuda.current_stream().cuda_stream)
        launch, plan = self._lib.nautilus_launch, self._plan
        arguments, chosen = ctypes.byref(call[0]), ctypes.byref(options)

        def go(_kept=(call, options)):
            if launch(plan, arguments, chosen):
                raise NautilusError(self._message("the launch failed"))

        return go

    def __call__(self, **arguments):
        self.bind(**arguments)
        self.launch()

    def unbind(self):
        """Lets go of the tensors; before the next launch all are bound again."""
        self._bound.clear()
        self._call = None

    def close(self):
        if self._plan:
            self._lib.nautilus_plan_close(self._plan)
            self._plan = ctypes.c_void_p()
        if self._program:
            self._lib.nautilus_close(self._program)
            self._program = ctypes.c_void_p()
        self._bound.clear()
        self._call = None
