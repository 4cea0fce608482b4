# SPDX-License-Identifier: Apache-2.0
"""A problem on the device: its tensors, how a kernel takes them, how its output is judged, and the
peers. One class per kind of work, all with the same members:

    bind(kernel)    gives the tensors to a Kernel
    check(run)      runs, compares the output with float64, returns a check.Result
    out             what `run` has to write
    peers(stack, note, inductor)    [(name, function that returns an output)]
"""
import check
import peers
import variants
from nautilus_lib import NautilusError


class Attention:
    def __init__(self, b, h, hk, m, n, d, causal, spiky=0, strided=False, dtype="bf16"):
        self.seed = check.fresh_seed()
        self.causal = causal
        self.group = h // hk
        self.q, self.k, self.v, self.out = check.attention_inputs(b, h, hk, m, n, d, spiky, strided,
                                                                  dtype)
        self.tolerance = check.TOLERANCE if dtype == "bf16" else check.TOLERANCE_FP8
        # Masks are aligned at the last query and the last key.
        self.rule = variants.causal(n - m) if causal else variants.full

    def bind(self, kernel):
        kernel.bind(Q=self.q, K=self.k, V=self.v, O=self.out)
        kernel.offer(G=self.group)

    def check(self, run):
        # Copies of 8 bits as 16 are exact, and all functions know them.
        q, k, v = (t if t.element_size() > 1 else t.bfloat16() for t in (self.q, self.k, self.v))
        return check.attention_check(run, q, k, v, self.out, self.rule, tolerance=self.tolerance)

    def peers(self, stack, note, inductor):
        del inductor  # its attention is the library's
        backend, name, notes = peers.attention_backend(self.q, self.k, self.v, self.causal)
        for n in notes:
            note(n)
        if backend is None:
            return []
        stack.enter_context(peers.attention_scope(backend))
        return [(name, peers.attention(self.q, self.k, self.v, self.causal))]


class Decode(Attention):
    """One query for each head. A program may have an axis for it or not."""

    def __init__(self, b, h, hk, n, d):
        super().__init__(b, h, hk, 1, n, d, False)

    def bind(self, kernel):
        try:
            super().bind(kernel)
        except NautilusError:
            kernel.bind(Q=self.q.squeeze(2), K=self.k, V=self.v, O=self.out.squeeze(2))


class Variant(Attention):
    """Attention of as many queries as keys, with something done to its scores."""

    def __init__(self, kind, b, h, s, d):
        super().__init__(b, h, h, s, s, d, False)
        self.variant = variants.make(kind, b, h, s)
        self.rule = self.variant.rule

    def bind(self, kernel):
        super().bind(kernel)
        kernel.bind(**self.variant.tensors, **self.variant.scalars)

    def bind_plain(self, kernel):
        """For the program without the variant, which writes the same output."""
        super().bind(kernel)

    def check_plain(self, run):
        return check.attention_check(run, self.q, self.k, self.v, self.out, self.variant.plain_rule)

    def peers(self, stack, note, inductor):
        del stack
        if not inductor:
            return []
        try:
            run = variants.flex_attention(self.variant, self.q, self.k, self.v)
            run()
            return [("flex", run)]
        except Exception as problem:  # any part of a foreign compiler may fail, in its own way
            note(f"flex: {str(problem).splitlines()[0]}")
            return []


class Gemm:
    def __init__(self, m, n, k, padding=0):
        self.seed = check.fresh_seed()
        self.a, self.b, self.out = check.gemm_inputs(m, n, k, padding)

    def bind(self, kernel):
        kernel.bind(A=self.a, B=self.b, C=self.out)

    def check(self, run):
        return check.gemm_check(run, self.a, self.b, self.out)

    def peers(self, stack, note, inductor):
        del stack, note, inductor
        return peers.gemm(self.a, self.b)


class Operands:
    """A product with operands of 8 bits, floats or integers, or in TF32."""

    def __init__(self, kind, m, n, k):
        self.kind = kind
        self.inputs, self.out = check.operand_inputs(kind, m, n, k)

    def bind(self, kernel):
        kernel.bind(C=self.out, **self.inputs)
        if self.kind == "fp8":
            kernel.bind(scale=check.OPERAND_SCALE)

    def check(self, run):
        return check.operand_check(run, self.kind, self.inputs, self.out)

    def peers(self, stack, note, inductor):
        del stack, note, inductor
        return peers.operand_products(self.kind, self.inputs, check.OPERAND_SCALE)


class Epilogue(Gemm):
    """A product with a bias and gelu, or with a residual."""

    def __init__(self, kind, m, n, k, padding=0):
        super().__init__(m, n, k, padding)
        self.kind = kind
        self.extra = check.epilogue_input(kind, self.out)

    def bind(self, kernel):
        super().bind(kernel)
        kernel.bind(**{"bias" if self.kind == "bias_gelu" else "R": self.extra})

    def check(self, run):
        return check.gemm_check(run, self.a, self.b, self.out, self.kind, self.extra)

    def peers(self, stack, note, inductor):
        del stack, note, inductor
        plain = peers.gemm(self.a, self.b)[0][1]
        return [(peers.PLAIN_PRODUCT, plain)]


class Rows:
    def __init__(self, kind, m, n, dtype, nbytes=0):
        self.seed = check.fresh_seed()
        self.kind = kind
        self.nbytes = nbytes
        self.x, self.others, self.out = check.rows_inputs(kind, m, n, dtype)

    def bind(self, kernel):
        kernel.bind(X=self.x, **self.others)
        kernel.bind(**{"nll" if self.kind == "cross_entropy" else "Y": self.out})

    def check(self, run):
        return check.rows_check(run, self.kind, self.x, self.others, self.out)

    def peers(self, stack, note, inductor):
        del stack
        if self.kind == "softmax":
            result = peers.softmax(self.x)
        elif self.kind == "layernorm":
            result = peers.layernorm(self.x, self.others["gamma"], self.others["beta"])
        elif self.kind == "cross_entropy":
            result = peers.cross_entropy(self.x, self.others["target"])
        else:
            result = peers.rmsnorm(self.x, self.others["gamma"], 1e-6)
        if inductor:
            try:
                compiled = peers.inductor(result[0])
                compiled[1]()
                result.append(compiled)
            except Exception as problem:  # any part of a foreign compiler may fail, in its own way
                note(f"inductor: {str(problem).splitlines()[0]}")
        return result + [peers.copy(self.nbytes)]


def timed(case):
    s = case.sizes
    if case.suite in ("attention", "prefill_grid", "prefill_fp8", "head_sizes"):
        return Attention(s["B"], s["H"], s["Hk"], s["M"], s["N"], s["D"], s["causal"],
                         dtype=s["dtype"])
    if case.suite in ("decode", "decode_grid"):
        return Decode(s["B"], s["H"], s["Hk"], s["N"], s["D"])
    if case.suite in ("variants", "documents"):
        return Variant(s["kind"], s["B"], s["H"], s["M"], s["D"])
    if case.suite == "epilogue":
        return Epilogue(s["kind"], s["M"], s["N"], s["K"])
    if case.suite in ("gemm", "gemm_other"):
        return Gemm(s["M"], s["N"], s["K"])
    if case.suite == "operands":
        return Operands(s["kind"], s["M"], s["N"], s["K"])
    return Rows(s["kind"], s["M"], s["N"], s["dtype"], case.bytes)


def small(case):
    """[(label, function that makes the work)]: what a candidate of the case has to solve before it
    is timed."""
    s = case.sizes
    if case.suite in ("attention", "prefill_grid", "prefill_fp8", "head_sizes"):
        return [(f"{p.name} (B{p.b} H{p.h}/{p.hk} {p.m}x{p.n})",
                 lambda p=p: Attention(p.b, p.h, p.hk, p.m, p.n, s["D"], s["causal"], p.spiky,
                                       p.strided, s["dtype"]))
                for p in check.attention_problems(s["causal"])]
    if case.suite in ("decode", "decode_grid"):
        g = s["G"]  # a program may have it as a static size
        return [(f"B{b} H{hk * g}/{hk} N{n}",
                 lambda b=b, hk=hk, n=n: Decode(b, hk * g, hk, n, s["D"]))
                for b, hk, n in ((1, 2, 1000), (2, 4, 1), (3, 1, 4097), (1, 8, 129))]
    if case.suite in ("variants", "documents"):
        return [(f"B{b} H{h} {m}x{m}", lambda b=b, h=h, m=m: Variant(s["kind"], b, h, m, s["D"]))
                for b, h, m in ((2, 3, 1003), (1, 2, 1), (1, 4, 512))]
    if case.suite == "epilogue":
        return [(f"{m}x{n}x{k}", lambda m=m, n=n, k=k: Epilogue(s["kind"], m, n, k))
                for m, n, k, pad in check.gemm_problems() if not pad]
    if case.suite == "operands":
        return [(f"{m}x{n}x{k}", lambda m=m, n=n, k=k: Operands(s["kind"], m, n, k))
                for m, n, k in check.operand_problems()]
    if case.suite in ("gemm", "gemm_other"):
        return [(f"{m}x{n}x{k}" + (f" rows padded by {pad}" if pad else ""),
                 lambda m=m, n=n, k=k, pad=pad: Gemm(m, n, k, pad))
                for m, n, k, pad in check.gemm_problems()]
    return [(f"{m}x{n}", lambda m=m, n=n: Rows(s["kind"], m, n, s["dtype"]))
            for m, n in check.rows_problems()]
