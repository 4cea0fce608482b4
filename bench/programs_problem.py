# SPDX-License-Identifier: Apache-2.0
"""A program of the suites `level1` and `foreign` beside its PyTorch expression.

The program's own text says which tensors there are: names, element types, extents over its sizes,
and which equations are outputs. The table (level1.py, foreign.py) adds what a text cannot say: the
sizes to time, the expression, and where the inputs come from.
"""
import os
import re

PRODUCT, CONVOLUTION, ATTENTION, OTHER = "product", "convolution", "attention", "other"

INPUT = re.compile(r"((?:[A-Za-z_]\w*\s*,\s*)*[A-Za-z_]\w*)\s*:\s*(\w+)\[([^\]]*)\]")
EQUATION = re.compile(r"([A-Za-z_]\w*)\[[^\[\]]*\]\s*=(?!=)")
ARROW = re.compile(r"->\s*(\w+)")
REFERENCE_ELEMENTS = 1 << 26  # how many elements the largest tensor of a float64 reference may have


def sizes_of(text):
    """{"M": 4096} of "M=4096,N=64"."""
    return {name.strip(): int(value) for name, _, value in
            (item.partition("=") for item in text.split(",") if item.strip())}


class Text:
    """What the benchmark reads of a program's text."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.comment = lines[0].lstrip("# ") if lines and lines[0].startswith("#") else ""
        code = [line.partition("#")[0] for line in lines]
        self.statics = self._numbers("static", code)
        self.hints = self._numbers("hint", code)
        joined = "\n".join(code)
        self.outputs = self._outputs(joined)  # {name: element type}
        self.inputs = {}  # {name: (element type, [extents as texts])}
        for names, dtype, extents in INPUT.findall(joined):
            for name in re.split(r"\s*,\s*", names):
                if name not in self.outputs:
                    self.inputs[name] = dtype, [e.strip() for e in extents.split(",") if e.strip()]

    @staticmethod
    def _numbers(word, code):
        """Of the lines "static R = 3, S = 3", which may stand behind others on a line."""
        found = re.findall(rf"\b{word}\s+([^\n]*)", "\n".join(code))
        return sizes_of(",".join(found))

    @staticmethod
    def _outputs(code):
        starts = list(EQUATION.finditer(code))
        ends = [m.start() for m in starts[1:]] + [len(code)]
        found = {}
        for match, end in zip(starts, ends):
            arrow = ARROW.search(code, match.end(), end)
            if arrow:
                found[match[1]] = arrow[1]
        return found


class Problem:
    """`expression`: a function of the tensors by their names, which gives the outputs in the
    order of the program's equations (one, or a tuple). `along`: a size along which all elements
    of the outputs are independent, so that a reference may take some of it; `out_axis`: where the
    outputs have it. `inputs`: {tensor: maker}, see below, where the usual numbers do not do.
    `judged`: a function of the tensors and an output, what is compared instead of the output."""

    def __init__(self, name, file, kind, sizes, small, expression, along=None, out_axis=0,
                 inputs=None, judged=None):
        self.name, self.file, self.kind = name, file, kind
        self.sizes, self.small = sizes_of(sizes), sizes_of(small)
        self.expression, self.along, self.out_axis = expression, along, out_axis
        self.makers = inputs or {}
        self.judged = judged
        self._text = None

    @property
    def text(self):
        if self._text is None:
            self._text = Text(self.file)
        return self._text

    @property
    def title(self):
        """The public problem's name, or the file's."""
        found = re.search(r"\((\d+_\w+)\)", self.text.comment)
        return found[1].strip("_") if found else os.path.splitext(os.path.basename(self.file))[0]

    def opened_as(self, sizes):
        """What nautilus_lib.Kernel opens: static sizes, and hints by which schedules are made."""
        return self.file + ":" + ",".join(f"{n}={v}" for n, v in sizes.items())

    def shapes(self, sizes):
        """{tensor: (element type, shape)}"""
        values = {**self.text.statics, **sizes}
        return {name: (dtype, tuple(_extent(e, values) for e in extents))
                for name, (dtype, extents) in self.text.inputs.items()}

    def tensors(self, sizes, device="cuda"):
        return {name: self.makers.get(name, usual)(shape, torch_dtype(dtype), device, sizes)
                for name, (dtype, shape) in self.shapes(sizes).items()}

    def results(self, function, tensors):
        """The outputs as a list."""
        found = function(**tensors)
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def compared(self, tensors, outputs):
        """The outputs, or what stands for them in comparisons."""
        return [self.judged(tensors, o) for o in outputs] if self.judged else outputs

    def result_shapes(self, sizes):
        """Of the outputs, without computing them."""
        import torch
        meta = {name: torch.empty(shape, dtype=torch_dtype(dtype), device="meta")
                for name, (dtype, shape) in self.shapes(sizes).items()}
        return [tuple(r.shape) for r in self.results(self.expression, meta)]

    def part(self, tensors, shapes):
        """(tensors of a part of the problem, its indices along `along` or None): as much as a
        float64 reference may have, the first and the last of it at least."""
        import torch
        if not self.along:
            return tensors, None
        extents = {n: e for n, (_, e) in self.text.inputs.items()}
        axes = {n: e.index(self.along) for n, e in extents.items() if self.along in e}
        size = next(tensors[n].shape[a] for n, a in axes.items())
        largest = max([tensors[n].numel() for n in axes] + [_count(s) for s in shapes])
        count = max(1, min(size, REFERENCE_ELEMENTS * size // max(1, largest)))
        if count == size:
            return tensors, None
        device = next(iter(tensors.values())).device
        chosen = torch.linspace(size - 1, 0, count, device=device).round().long().unique()
        return {n: t.index_select(axes[n], chosen) if n in axes else t
                for n, t in tensors.items()}, chosen


def _extent(text, values):
    """An extent such as "G*Cg" is also an expression of Python, "/" apart."""
    return int(eval(text.replace("/", "//"), {"__builtins__": {}}, values))  # our own texts


def _count(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


def torch_dtype(name):
    import torch
    return {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
            "f64": torch.float64, "i64": torch.int64, "i32": torch.int32, "i8": torch.int8,
            "u8": torch.uint8, "bool": torch.bool}[name]


def wide(x):
    """f32 of what has 16 bits, else the tensor itself: for expressions that compute in f32."""
    return x.float() if x.dtype.itemsize < 4 and x.dtype.is_floating_point else x


# Makers of inputs: functions of shape, element type, device and the sizes.
def usual(shape, dtype, device, sizes):
    """f32: both signs and a mean that is not 0, so that variances do not come for nothing; 16
    bits: standard normal; bool: a coin."""
    import torch
    if dtype == torch.bool:
        return torch.rand(shape, device=device) < 0.5
    if dtype == torch.float32:
        return torch.empty(shape, dtype=dtype, device=device).uniform_(-0.5, 1.5)
    if not dtype.is_floating_point:
        raise ValueError("integers need a maker")
    return normal(1.0)(shape, dtype, device, sizes)


def normal(scale):
    def make(shape, dtype, device, sizes):
        import torch
        return torch.empty(shape, dtype=dtype, device=device).normal_(0, scale)
    return make


def uniform(low, high):
    def make(shape, dtype, device, sizes):
        import torch
        return torch.empty(shape, dtype=dtype, device=device).uniform_(low, high)
    return make


def signs(shape, dtype, device, sizes):
    import torch
    return torch.randint(0, 2, shape, device=device).to(dtype) * 2 - 1


def below(size):
    """Integers below a size of the problem, or a number."""
    def make(shape, dtype, device, sizes):
        import torch
        limit = sizes[size] if isinstance(size, str) else size
        return torch.randint(0, limit, shape, dtype=dtype, device=device)
    return make
