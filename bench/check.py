# SPDX-License-Identifier: Apache-2.0
"""Is the output right? Before anything is timed.

The reference is computed in float64 on the GPU from the same rounded inputs. Inputs are random and
new for every check; outputs are filled with NaN before the run, so that an element nobody wrote is
seen. Two numbers judge: the relative error ||out - ref|| / ||ref|| of all that is compared, and the
worst relative error of one row, because a single wrong row vanishes in a norm over thousands.
"""
import math
import os
from dataclasses import dataclass

TOLERANCE = 1e-2  # bf16 operands and results; float32 programs are far below
TOLERANCE_FP8 = 5e-2  # operands of 8 bits: some round the weights to 8 bits as well
ROW_TOLERANCE = 5e-2
FULL_SCORES = 1 << 28  # attention scores up to this number are all recomputed


@dataclass
class Result:
    rel_error: float
    worst_row: float
    why: str = ""  # empty: right

    @property
    def ok(self):
        return not self.why


class Error:
    """Sums of squares over pieces of the output."""

    def __init__(self):
        self.difference = 0.0
        self.reference = 0.0
        self.worst_row = 0.0

    def add(self, out, ref):
        """Rows of an output, [rows, columns], and what they should be."""
        import torch
        d = (out.double() - ref).square().sum(-1)
        r = ref.square().sum(-1)
        self.difference += d.sum().item()
        self.reference += r.sum().item()
        # A row that should be zero (a query that sees no key) has to be exactly that.
        ratio = torch.where(r > 0, d / r, torch.where(d > 0, math.inf, 0.0).to(d.dtype))
        self.worst_row = max(self.worst_row, math.sqrt(ratio.max().item()))

    def result(self, tolerance=TOLERANCE):
        rel = math.sqrt(self.difference / self.reference) if self.reference > 0 else (
            0.0 if self.difference == 0 else math.inf)
        # Comparisons with NaN are false, so what is asked is whether all is well.
        if not rel <= tolerance:
            why = f"relative error {rel:.2e}, allowed {tolerance:.0e}"
        elif not self.worst_row <= max(ROW_TOLERANCE, 2 * tolerance):
            why = (f"a row has relative error {self.worst_row:.2e}, allowed "
                   f"{max(ROW_TOLERANCE, 2 * tolerance):.0e}")
        else:
            why = ""
        return Result(rel, self.worst_row, why)


def fresh_seed():
    seed = int.from_bytes(os.urandom(4), "little")
    import torch
    torch.manual_seed(seed)
    return seed


def poison(tensor):
    """Integers have no NaN: a number that no sum is."""
    tensor.fill_(math.nan if tensor.is_floating_point() else -2**31 + 1)


def unwritten(tensor):
    """How many elements are NaN. In pieces: isnan of a large tensor needs as much memory again."""
    flat = tensor.reshape(-1)
    step = 1 << 28
    return sum(flat[i:i + step].isnan().sum().item() for i in range(0, flat.numel(), step))


def _nan_result(out):
    count = unwritten(out)
    if not count:
        return None
    return Result(math.nan, math.nan, f"{count} of {out.numel()} elements are NaN or not written")


# ---- attention

@dataclass(frozen=True)
class AttentionProblem:
    name: str
    b: int
    h: int
    hk: int
    m: int
    n: int
    spiky: int = 0  # +1: keys grow towards the end, -1: towards the start
    strided: bool = False  # tensors lie as [B, S, H, D]


def attention_problems(causal):
    """Small problems that take the paths the timed ones do not."""
    p = AttentionProblem
    result = [
        p("ragged", 2, 4, 2, 1003, 1003),
        p("one query, one key", 1, 2, 1, 1, 1),
        p("one query", 3, 4, 4, 1, 517),
        p("few keys", 1, 3, 3, 400, 7),
        p("more keys than queries", 1, 4, 1, 300, 777),
        p("more queries than keys", 1, 4, 2, 777, 300),  # causal: rows that see no key
        # Maxima that jump by far more than any threshold of a lazy rescale, in either direction.
        p("logits grow", 1, 4, 2, 1003, 1003, 1),
        p("logits shrink", 1, 4, 2, 1003, 1003, -1),
        p("exact tiles", 1, 2, 2, 768, 960),
        p("heads inside rows", 2, 6, 3, 259, 301, strided=True),
    ]
    result += [p(f"group of {g}", 1, 2 * g, 2, 261, 333) for g in range(1, 9)]
    if causal:
        result.append(p("no key for most rows", 1, 2, 1, 1500, 64))
    return result


def attention_inputs(b, h, hk, m, n, d, spiky=0, strided=False, dtype="bf16"):
    """q, k, v and the output, which is bf16 whatever they are."""
    import torch

    def draw(heads, length):
        if strided:
            return draw_rows(b, length, heads, d).transpose(1, 2)
        return draw_rows(b, heads, length, d)

    def draw_rows(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    q, k, v = draw(h, m), draw(hk, n), draw(hk, n)
    if spiky:
        growth = torch.logspace(-1, 2, n, device="cuda")
        k = (k.float() * (growth if spiky > 0 else growth.flip(0))[:, None]).to(k.dtype)
    out = torch.empty_like(q)  # with the strides of q
    if dtype == "fp8":
        q, k, v = (t.to(torch.float8_e4m3fn) for t in (q, k, v))
    return q, k, v, out


def attention_rows(q, k, v, rule, b, h, rows):
    """Rows of one head, in float64. A query that sees no key gives zeros."""
    import torch
    hk = h // (q.shape[1] // k.shape[1])
    n = k.shape[2]
    s = (q[b, h, rows].double() @ k[b, hk].double().T) / math.sqrt(q.shape[-1])
    s = rule(s, b, h, rows[:, None], torch.arange(n, device=q.device)[None])
    # A row of -inf alone would give NaN.
    p = torch.softmax(s, -1).masked_fill((s == -math.inf).all(-1, keepdim=True), 0.0)
    return p[:, :n] @ v[b, hk].double()


def attention_check(run, q, k, v, o, rule, everything=None, tolerance=TOLERANCE):
    """Runs `run`, which writes o. Large problems are compared on rows of three heads: the first and
    the last ones, where masks and tails are, and random ones between."""
    import torch
    poison(o)
    run()
    torch.cuda.synchronize()
    bad = _nan_result(o)
    if bad:
        return bad
    batch, heads, m, _ = q.shape
    n = k.shape[2]
    if everything is None:
        everything = batch * heads * m * n <= FULL_SCORES
    pairs = [(b, h) for b in range(batch) for h in range(heads)]
    if not everything:
        pairs = sorted({pairs[0], pairs[len(pairs) // 2], pairs[-1]})
    error = Error()
    for b, h in pairs:
        if everything:
            rows = torch.arange(m, device=q.device)
        else:
            rows = torch.cat([torch.arange(min(m, 200), device=q.device),
                              torch.randint(0, m, (300,), device=q.device),
                              torch.arange(max(0, m - 200), m, device=q.device)])
        step = max(1, (1 << 25) // n)
        for i in range(0, len(rows), step):
            part = rows[i:i + step]
            error.add(o[b, h, part], attention_rows(q, k, v, rule, b, h, part))
    return error.result(tolerance)


# ---- matrix products

def gemm_problems():
    """(M, N, K, padding of the rows); strides are multiples of 8 elements, as tensor maps want."""
    return [(1, 8, 8, 0), (300, 520, 200, 0), (128, 256, 64, 0), (1000, 1000, 1000, 0),
            (257, 264, 1032, 0), (8, 4104, 72, 0), (2049, 136, 520, 0), (300, 520, 200, 24)]


def gemm_inputs(m, n, k, padding=0):
    import torch

    def draw(rows, columns):
        whole = torch.randn(rows, columns + padding, device="cuda", dtype=torch.bfloat16)
        return whole[:, :columns]

    return draw(m, k), draw(n, k), draw(m, n)


def epilogue_input(kind, c):
    import torch
    shape = c.shape[1:] if kind == "bias_gelu" else c.shape
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def gemm_check(run, a, b, c, kind="", extra=None):
    """All of C: the card's float64 is fast enough."""
    import torch

    def finished(product, i):
        if kind == "bias_gelu":
            return torch.nn.functional.gelu(product + extra.double())
        return product + extra[i:i + 2048].double() if kind == "residual" else product

    poison(c)
    run()
    torch.cuda.synchronize()
    bad = _nan_result(c)
    if bad:
        return bad
    wide = b.double().T
    error = Error()
    for i in range(0, a.shape[0], 2048):
        error.add(c[i:i + 2048], finished(a[i:i + 2048].double() @ wide, i))
    return error.result()


# ---- products of operands that do not have 16 bits

OPERAND_SCALE = 0.25


def operand_problems():
    """(M, N, K): rows of 8-bit elements are multiples of 16 bytes, as tensor maps want."""
    return [(1, 8, 16), (300, 520, 208), (128, 256, 128), (1000, 1000, 1008), (257, 264, 1040)]


def operand_inputs(kind, m, n, k):
    """({name: tensor}, the output)"""
    import torch

    def draw(*shape):
        return torch.randn(*shape, device="cuda")

    if kind == "tf32":
        return {"A": draw(m, k), "B": draw(n, k)}, draw(m, n)
    if kind.startswith("int8"):
        def element(rows):
            return torch.randint(-128, 128, (rows, k), dtype=torch.int8, device="cuda")
    else:
        def element(rows):
            return draw(rows, k).to(torch.float8_e4m3fn)
    inputs = {name: element(rows) for name, rows in (("A", m), ("B", n))}
    if kind == "int8":
        return inputs, torch.empty(m, n, dtype=torch.int32, device="cuda")
    if kind in ("fp8_rows", "int8_rows"):
        inputs["a_scale"] = draw(m).abs() + 0.5
        inputs["b_scale"] = draw(n).abs() + 0.5
    if kind == "fp8_blocks":
        blocks = (k + 127) // 128
        inputs["a_scale"] = draw(m, blocks).abs() + 0.5
        inputs["b_scale"] = draw((n + 127) // 128, blocks).abs() + 0.5
    return inputs, draw(m, n).to(torch.bfloat16)


def operand_check(run, kind, inputs, c):
    """All of C. Sums of products of 8-bit floats have 1.3e-4 of error, TF32 operands 3e-4; a result
    in 16 bits has 2e-3. Sums of integers are exact."""
    import torch
    poison(c)
    run()
    torch.cuda.synchronize()
    bad = _nan_result(c)
    if bad:
        return bad
    a, b = inputs["A"].double(), inputs["B"].double()
    if kind == "fp8_blocks":
        columns = torch.arange(a.shape[1], device="cuda") // 128
        blocks = torch.arange(b.shape[0], device="cuda") // 128
        a = a * inputs["a_scale"].double()[:, columns]
        b = b * inputs["b_scale"].double()[blocks][:, columns]
    error = Error()
    for i in range(0, c.shape[0], 2048):
        want = a[i:i + 2048] @ b.T
        if kind == "fp8":
            want *= OPERAND_SCALE
        if kind in ("fp8_rows", "int8_rows"):
            want *= inputs["a_scale"][i:i + 2048, None].double() * inputs["b_scale"].double()
        error.add(c[i:i + 2048], want)
    return error.result(0.0 if kind == "int8" else TOLERANCE)


# ---- rows

def rows_problems():
    return [(1, 8), (37, 104), (300, 1000), (5, 16384), (1000, 4096)]


def rows_inputs(kind, m, n, dtype):
    """The rows, the other tensors of the program by name, and the output."""
    import torch
    element = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    x = torch.randn(m, n, device="cuda").mul_(3).to(element)
    others = {}
    if kind in ("rmsnorm", "layernorm"):
        others["gamma"] = torch.randn(n, device="cuda").to(element)
    if kind == "layernorm":
        others["beta"] = torch.randn(n, device="cuda").to(element)
    if kind == "cross_entropy":
        others["target"] = torch.randint(n, (m,), device="cuda", dtype=torch.int32)
        others["loss"] = torch.empty((), device="cuda")
        return x, others, torch.empty(m, device="cuda")
    return x, others, torch.empty_like(x)


def rows_reference(kind, x, others):
    """In float64. `others` that have a value for each row must be cut to the rows of x."""
    import torch
    import torch.nn.functional as functional
    x = x.double()
    if kind == "softmax":
        return torch.softmax(x, -1)
    if kind == "layernorm":
        return functional.layer_norm(x, x.shape[-1:], others["gamma"].double(),
                                     others["beta"].double(), 1e-5)
    if kind == "cross_entropy":
        return functional.cross_entropy(x, others["target"].long(), reduction="none")
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * others["gamma"].double()


def rows_check(run, kind, x, others, y):
    import torch
    poison(y)
    run()
    torch.cuda.synchronize()
    bad = _nan_result(y)
    if bad:
        return bad
    error = Error()
    columns = x.shape[1]
    step = max(1, (1 << 25) // columns)
    for i in range(0, x.shape[0], step):
        cut = {name: t[i:i + step] if name == "target" else t for name, t in others.items()}
        wanted = rows_reference(kind, x[i:i + step], cut)
        error.add(y[i:i + step].reshape(wanted.shape[0], -1), wanted.reshape(wanted.shape[0], -1))
    return error.result(1e-5 if x.dtype == torch.float32 else TOLERANCE)
