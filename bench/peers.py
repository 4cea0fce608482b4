# SPDX-License-Identifier: Apache-2.0
"""The libraries that kernels are held against, in the same process and on the same tensors.

A peer is (name, function); the function returns its output. The first peer of a list is the one
that ratios refer to, unless the caller takes the fastest.
"""
import contextlib

# Times to compare with, of something else than the candidate computes.
PLAIN_PRODUCT = "cublas plain"
YARDSTICKS = ("copy", PLAIN_PRODUCT)


@contextlib.contextmanager
def attention_scope(backend="CUDNN_ATTENTION"):
    """PyTorch's attention restricted to one backend. Entered once around many calls, because
    entering it takes longer than some kernels."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel(getattr(SDPBackend, backend)):
        yield


def attention(q, k, v, causal):
    """To be called within attention_scope. PyTorch aligns causal masks at the first row and key,
    the language at the last, so causal needs as many queries as keys."""
    import torch.nn.functional as functional
    assert not causal or q.shape[2] == k.shape[2]
    grouped = q.shape[1] != k.shape[1]

    def run():
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                       enable_gqa=grouped)

    return run


def attention_backend(q, k, v, causal):
    """The first backend that takes the problem, and why those before it do not."""
    notes = []
    for backend, name in (("CUDNN_ATTENTION", "cudnn"), ("FLASH_ATTENTION", "flash")):
        try:
            with attention_scope(backend):
                attention(q, k, v, causal)()
            return backend, name, notes
        except RuntimeError as problem:
            notes.append(f"{name}: {str(problem).splitlines()[0]}")
    return None, None, notes


def gemm(a, b):
    """C = A B^T with B as [N, K], and the same product from B as [K, N]."""
    import torch
    c = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    c_nn = torch.empty_like(c)
    b_nn = b.T.contiguous()
    return [("cublas", lambda: torch.matmul(a, b.T, out=c)),
            ("cublas_nn", lambda: torch.matmul(a, b_nn, out=c_nn))]


def operand_products(kind, inputs, scale):
    """The library's product of such operands: scales that it takes itself, sums in f32, or in i32
    of integers."""
    import torch
    a, b = inputs["A"], inputs["B"]
    if kind.startswith("int8"):
        # It takes no scales: with those of rows its plain product, to see what they cost.
        c = torch.empty(a.shape[0], b.shape[0], dtype=torch.int32, device=a.device)
        return [(PLAIN_PRODUCT if kind == "int8_rows" else "cublas",
                 lambda: torch._int_mm(a, b.T, out=c))]
    if kind == "tf32":
        def product():
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.matmul(a, b.T, out=c)
            torch.backends.cuda.matmul.allow_tf32 = False
            return c
        c = torch.empty(a.shape[0], b.shape[0], device=a.device)
        return [("cublas", product)]
    one = torch.ones((), device=a.device)
    rows = kind == "fp8_rows"
    scale_a = inputs["a_scale"][:, None] if rows else one * scale
    scale_b = inputs["b_scale"][None, :] if rows else one

    def product():
        return torch._scaled_mm(a, b.T, scale_a, scale_b, out_dtype=torch.bfloat16,
                                use_fast_accum=False)
    # With scales of blocks the plain product of the library: what the scales cost shows.
    return [(PLAIN_PRODUCT if kind == "fp8_blocks" else "cublas", product)]


def softmax(x):
    import torch
    return [("torch", lambda: torch.softmax(x, -1))]


def rmsnorm(x, gamma, eps):
    import torch.nn.functional as functional
    width = (x.shape[-1],)
    return [("torch", lambda: functional.rms_norm(x, width, gamma, eps))]


def layernorm(x, gamma, beta):
    import torch.nn.functional as functional
    width = (x.shape[-1],)
    return [("torch", lambda: functional.layer_norm(x, width, gamma, beta, 1e-5))]


def cross_entropy(x, target):
    import torch.nn.functional as functional
    wide = target.long()  # what PyTorch takes; made once, not timed
    return [("torch", lambda: functional.cross_entropy(x, wide, reduction="none"))]


def inductor(eager):
    """torch.compile of a peer; the first call compiles."""
    import torch
    name, run = eager
    return (name.replace("torch", "inductor"), torch.compile(run, dynamic=False))


def copy(nbytes, device="cuda"):
    """Moves as many bytes as a kernel that reads and writes `nbytes` together: the ceiling that
    memory allows."""
    import torch
    source = torch.randint(-100, 100, (int(nbytes) // 2,), dtype=torch.int8, device=device)
    target = torch.empty_like(source)

    def run():
        target.copy_(source)
        return target

    return ("copy", run)
