# SPDX-License-Identifier: Apache-2.0
"""Kernels of libnautilus.so on PyTorch's tensors, through its C interface:

    // Parses, lowers, emits, compiles by NVRTC (cached) and loads. 0 on failure, with the text in
    // `error`. The sizes are values for static sizes of a math program: "D=128,G=4".
    void* nautilus_open_sized(const char* text_or_path, const char* sizes, const char* target,
                              char* error, int error_bytes);
    // The same with the decisions of a schedule, a path or a text.
    void* nautilus_open_scheduled(const char* text_or_path, const char* sizes,
                                  const char* schedule_text_or_path, const char* target,
                                  char* error, int error_bytes);
    // 0 ok, 1 no such tensor, 2 another element type, 3 another rank. The tensor's shape gives the
    // sizes of the program's dimensions.
    int nautilus_bind_typed(void* kernel, const char* tensor, const char* dtype,
                            void* device_pointer, int rank, const long long* shape,
                            const long long* strides_in_elements);
    // The declared element type, or 0.
    const char* nautilus_dtype(void* kernel, const char* tensor);
    // 0 ok.
    int nautilus_set(void* kernel, const char* scalar_or_size, double value);
    // 0 ok. Evaluates the plan, encodes the tensor maps, launches.
    int nautilus_launch(void* kernel, void* cuda_stream, char* error, int error_bytes);
    void nautilus_close(void* kernel);
    // The CUDA text; it lives as long as the kernel.
    const char* nautilus_source(void* kernel);
"""
import ctypes
import os

ERROR_BYTES = 1 << 16  # compiler logs are long

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
}


class NautilusError(RuntimeError):
    pass


class Library:
    def __init__(self, path):
        # dlopen searches system folders for a name without a slash.
        self.lib = ctypes.CDLL(os.path.abspath(path))
        signatures = {
            "nautilus_open_sized": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p,
                                                      ctypes.c_char_p, ctypes.c_char_p,
                                                      ctypes.c_int]),
            "nautilus_open_scheduled": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p,
                                                          ctypes.c_char_p, ctypes.c_char_p,
                                                          ctypes.c_char_p, ctypes.c_int]),
            "nautilus_bind_typed": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p,
                                                   ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int,
                                                   ctypes.POINTER(ctypes.c_longlong),
                                                   ctypes.POINTER(ctypes.c_longlong)]),
            "nautilus_dtype": (ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_char_p]),
            "nautilus_set": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double]),
            "nautilus_launch": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p,
                                               ctypes.c_int]),
            "nautilus_close": (None, [ctypes.c_void_p]),
            "nautilus_source": (ctypes.c_char_p, [ctypes.c_void_p]),
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
    the file of a schedule: "attention.naut:D=128@tuned.sched"."""

    def __init__(self, path, library=None, target="sm_90a"):
        self._lib = (library or default_library()).lib
        self._error = ctypes.create_string_buffer(ERROR_BYTES)
        self._kept = {}  # bound tensors must live as long as launches may use them
        file, sizes, schedule = parts_of(path)
        more = [os.fsencode(schedule)] if schedule else []
        opened = self._lib.nautilus_open_scheduled if more else self._lib.nautilus_open_sized
        self._handle = opened(os.fsencode(file), sizes.encode(), *more, target.encode(),
                              self._error, ERROR_BYTES)
        if not self._handle:
            raise NautilusError(self._message(f"{path} does not open"))

    def _message(self, what):
        return f"{what}: {self._error.value.decode(errors='replace') or 'no reason given'}"

    @property
    def source(self):
        return self._lib.nautilus_source(self._handle).decode()

    def bind(self, **arguments):
        """Tensors by their names; numbers are scalars or sizes."""
        for name, value in arguments.items():
            if isinstance(value, (int, float)):
                if self._lib.nautilus_set(self._handle, name.encode(), float(value)):
                    raise NautilusError(f"the program takes no number `{name}`")
                continue
            given = DTYPE_NAMES.get(str(value.dtype), str(value.dtype))
            if not value.is_cuda:
                raise NautilusError(f"`{name}` is not on the GPU")
            rank = value.dim()
            numbers = ctypes.c_longlong * rank
            status = self._lib.nautilus_bind_typed(
                self._handle, name.encode(), given.encode(), value.data_ptr(), rank,
                numbers(*value.shape), numbers(*value.stride()))
            if status == 2:
                declared = self._lib.nautilus_dtype(self._handle, name.encode()).decode()
                raise NautilusError(f"`{name}` is {declared} in the program, the tensor is {given}")
            if status:
                raise NautilusError(f"the program takes no tensor `{name}` of shape "
                                    f"{tuple(value.shape)} and strides {value.stride()}")
            self._kept[name] = value
        return self

    def offer(self, **sizes):
        """Sizes that shapes may not determine (the two factors of a product); a program that has no
        dimension of that name does not mind."""
        for name, value in sizes.items():
            self._lib.nautilus_set(self._handle, name.encode(), float(value))
        return self

    def launch(self, stream=None):
        if stream is None:
            import torch
            stream = torch.cuda.current_stream().cuda_stream
        if self._lib.nautilus_launch(self._handle, stream, self._error, ERROR_BYTES):
            raise NautilusError(self._message("the launch failed"))

    def launcher(self):
        """A function that launches on the stream current now, with the least Python work."""
        import torch
        stream = torch.cuda.current_stream().cuda_stream
        launch, handle, error = self._lib.nautilus_launch, self._handle, self._error

        def go():
            if launch(handle, stream, error, ERROR_BYTES):
                raise NautilusError(self._message("the launch failed"))

        return go

    def __call__(self, **arguments):
        self.bind(**arguments)
        self.launch()

    def unbind(self):
        """Lets go of the tensors; before the next launch all are bound again."""
        self._kept.clear()

    def close(self):
        if self._handle:
            self._lib.nautilus_close(self._handle)
            self._handle = None
            self._kept.clear()
