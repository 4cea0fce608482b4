# SPDX-License-Identifier: Apache-2.0
"""Attention by everyone, on the same tensors.

What a system does not support it refuses by an exception, which becomes its row. Names say which
kernels run: PyTorch's attention by cuDNN and by FlashAttention-2, FlexAttention by each of its
backends, and torch.compile of the formula as one writes it, without a call of attention.
"""
OURS = "ours"
CUDNN, FLASH = "cudnn", "flash"
CASTS = "cudnn of casts"  # operands of 8 bits, converted to 16 in the time that counts
FORMULA = "compiled formula"
FLEX = {"flex triton": "TRITON", "flex decode": "TRITON_DECODE", "flex flash": "FLASH"}
# The first of these that was timed is what ratios of rows refer to.
PEERS = (CUDNN, FLASH, CASTS, *FLEX, FORMULA)

FORMULA_GB = 60.0  # the formula is not tried where its scores need more
SCORE_BYTES = 8  # in f32 and 16 bits, before and after the softmax


def wanted(case):
    """The systems that are timed, in the order of the table."""
    names = [OURS, CUDNN, FLASH]
    if case.sizes.get("dtype") == "fp8":
        names.append(CASTS)
    flex = [name for name in FLEX if name != "flex decode" or case.sizes["M"] == 1]
    return [*names, *flex, FORMULA]


class Refused(RuntimeError):
    """A system was not tried, and why."""


def flops_of(case):
    """Also of a case whose yardstick is bytes."""
    s = case.sizes
    return case.flops or 4.0 * s["B"] * s["H"] * s["M"] * s["N"] * s["D"]


def score_bytes(case):
    """What the formula keeps in memory."""
    s = case.sizes
    return SCORE_BYTES * s["B"] * s["H"] * s["M"] * s["N"]


def make(name, case):
    """A function of q, k, v: attention by a system of PyTorch. Its first call compiles."""
    causal = case.sizes["causal"]
    if name in (CUDNN, FLASH):
        return _library(name, causal)
    if name == CASTS:
        cudnn = _library(CUDNN, causal)
        return lambda q, k, v: cudnn(q.bfloat16(), k.bfloat16(), v.bfloat16())
    if name in FLEX:
        return _flex(FLEX[name], case.sizes)
    if score_bytes(case) > FORMULA_GB * 1e9:
        raise Refused(f"not tried: the scores need more than {FORMULA_GB:.0f} GB")
    return _formula(causal)


def _library(name, causal):
    """PyTorch's attention by one backend. Which one is two flags, set at each call: entering the
    scope that PyTorch has for this takes longer than some kernels."""
    import torch
    backends = torch.backends.cuda
    backends.enable_math_sdp(False)
    backends.enable_mem_efficient_sdp(False)
    attention = torch.nn.functional.scaled_dot_product_attention
    is_cudnn = name == CUDNN

    def run(q, k, v):
        backends.enable_cudnn_sdp(is_cudnn)
        backends.enable_flash_sdp(not is_cudnn)
        return attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

    return run


def _flex(backend, sizes):
    import torch
    from torch.nn.attention import flex_attention as flex
    blocks = None
    if sizes["causal"]:
        blocks = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, sizes["M"],
                                        sizes["N"], device="cuda")

    def run(q, k, v):
        return flex.flex_attention(q, k, v, block_mask=blocks, enable_gqa=sizes["G"] > 1,
                                   kernel_options={"BACKEND": backend})

    return torch.compile(run, dynamic=False, fullgraph=True)


def formula(q, k, v, causal):
    """As one writes it: heads that share keys are rows of one product, so that nothing is copied."""
    import torch
    if q.element_size() == 1:
        q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()
    batch, heads, queries, head = q.shape
    key_heads, keys = k.shape[1:3]
    group = heads // key_heads
    rows = q.reshape(batch, key_heads, group * queries, head)
    s = (rows @ k.transpose(-1, -2)).float() * head ** -0.5
    if causal:
        i = torch.arange(queries, device=q.device).repeat(group)[:, None]
        j = torch.arange(keys, device=q.device)[None]
        s = torch.where(j <= i, s, float("-inf"))
    p = torch.softmax(s, -1).to(v.dtype)
    return (p @ v).reshape(batch, heads, queries, v.shape[-1])


def _formula(causal):
    """Inductor may know the pattern and call a library instead: `rewritten` says so."""
    import torch
    compiled = torch.compile(lambda q, k, v: formula(q, k, v, causal), dynamic=False,
                             fullgraph=True)

    def run(q, k, v):
        # That library is free to be any.
        torch.backends.cuda.enable_cudnn_sdp(True)
        torch.backends.cuda.enable_flash_sdp(True)
        return compiled(q, k, v)

    return run


def rewritten():
    """How many formulas Inductor has replaced by a library's attention in this process."""
    try:
        from torch._dynamo.utils import counters
        return int(counters["inductor"]["fuse_attention"])
    except (ImportError, KeyError):
        return 0
