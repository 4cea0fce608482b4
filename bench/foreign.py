# SPDX-License-Identifier: Apache-2.0
"""Programs that are no examples of ours, with what a user of PyTorch would write: reductions over odd
axes, short rows, columns, chains with broadcasts, pooling, losses, gathers, products with something
behind them, and variants of attention. They show how far what was tuned for examples carries.

Small sizes, for the comparison with the oracle, are the program's hints and the second text of a line.
"""
import os

import foreign_chains
import foreign_linear
import foreign_ranks
import foreign_scatter
from programs_problem import (ATTENTION, OTHER, PRODUCT, Problem, below, normal, uniform, wide)

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign")

torch = F = None  # the process that starts others does without


def use_torch():
    """Before an expression is evaluated."""
    global torch, F
    import torch
    import torch.nn.functional as F
    foreign_chains.use_torch()
    foreign_linear.use_torch()
    foreign_ranks.use_torch()
    foreign_scatter.use_torch()


def problems():
    found = []

    def add(name, kind, sizes, small, expression, **more):
        found.append(Problem(name, os.path.join(FOLDER, f"{name}.naut"), kind, sizes, small,
                             expression, **more))

    _reductions(add)
    _rows_and_points(add)
    _losses(add)
    _products(add)
    _long_rows(add)
    _chains(add)
    _attention(add)
    _recurrences(add)
    foreign_linear.add_problems(add)
    foreign_scatter.add_problems(add)
    foreign_ranks.add_problems(add)
    foreign_chains.add_problems(add)
    return found


def _reductions(add):
    def variance_and_mean(x):
        var, mu = torch.var_mean(x, (0, 2, 3), correction=0)
        return mu, var

    add("batchnorm_statistics", OTHER, "B=64,C=256,H=56,W=56", "B=2,C=5,H=13,W=31",
        variance_and_mean, along="C")
    add("groupnorm_silu", OTHER, "B=32,Cg=10,H=64,W=64,G=32", "B=2,Cg=3,H=5,W=9,G=32",
        lambda x, gamma, beta: F.silu(F.group_norm(x, 32, gamma, beta, 1e-5)), along="B")
    add("instancenorm_relu", OTHER, "B=32,C=64,H=256,W=256", "B=2,C=3,H=13,W=31",
        lambda x: F.relu(F.instance_norm(x, eps=1e-5)), along="B")
    add("softmax_channels", OTHER, "B=16,C=21,H=512,W=512", "B=1,C=7,H=13,W=31",
        lambda x: torch.softmax(x, 1), along="B")
    add("frobenius_norm", OTHER, "M=16384,N=8192", "M=3,N=1003",
        lambda x: torch.linalg.vector_norm(x))
    add("mean_and_peak", OTHER, "M=16384,N=8192", "M=3,N=1003",
        lambda x: (wide(x).abs().mean(), wide(x.abs().max())))
    # Of equal elements any may be named: the elements are compared, not their places.
    add("argmax_middle", OTHER, "B=64,M=1000,N=1024", "B=2,M=300,N=67",
        lambda x: torch.argmax(x, 1), along="B", judged=lambda tensors, y: tensors["x"].gather(
            1, y.clamp(0, tensors["x"].shape[1] - 1).unsqueeze(1)))

    def penalty(x):
        lse = torch.logsumexp(wide(x), -1)
        return lse, lse.square().mean()

    def moments(x):
        sigma, mu = torch.std_mean(wide(x), 0, correction=0)
        return mu, sigma

    add("logsumexp_z", OTHER, "M=8192,N=32000", "M=5,N=1003", penalty)
    add("column_moments", OTHER, "M=65536,N=1024", "M=300,N=17", moments)


def _rows_and_points(add):
    def residual_norm(x, r, gamma, beta):
        h = x + r
        return h, F.layer_norm(h, gamma.shape, gamma, beta, 1e-5)

    def modulated(x, r, scale, shift, gate):
        inner = x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)
        return r + torch.sigmoid(gate) * F.gelu(inner, approximate="tanh")

    def upsampled(u, s):
        return F.interpolate(u, scale_factor=2, mode="nearest") + s

    add("layernorm_short", OTHER, "M=32768,K=768", "M=7,K=33", residual_norm, along="M")
    add("softmax_columns", OTHER, "M=8192,N=4096", "M=300,N=5", lambda x: torch.softmax(x, 0),
        along="N", out_axis=1)
    add("modulate_gelu", OTHER, "B=16,N=4096,C=1152", "B=2,N=5,C=33", modulated, along="B")
    add("maxpool_stem", OTHER, "B=128,C=64,H=112,W=112", "B=1,C=2,H=16,W=25",
        lambda x: F.max_pool2d(x, 3, stride=2, padding=1), along="B")
    add("upsample_add", OTHER, "B=16,C=128,H=128,W=128", "B=1,C=2,H=5,W=9", upsampled, along="B")
    add("masked_softmax", OTHER, "B=8,H=16,M=1024,N=1024", "B=2,H=1,M=5,N=67",
        lambda x, seen: torch.softmax(
            (0.125 * x).masked_fill(~seen[:, None, None, :], float("-inf")), -1), along="B")
    add("embedding_bag", OTHER, "B=8192,L=32,V=100000,D=512", "B=3,L=7,V=20,D=33",
        lambda table, bag: F.embedding_bag(bag, table, mode="mean"), along="B",
        inputs=dict(bag=below("V")))
    add("vocabulary_softmax", OTHER, "M=8192,N=50257", "M=3,N=1003",
        lambda x, temperature: torch.softmax(wide(x) / temperature[:, None], -1).bfloat16(),
        along="M", inputs=dict(temperature=uniform(0.5, 2.0)))
    add("layernorm_odd", OTHER, "M=32768,K=4095", "M=3,K=67",
        lambda x, r, gamma, beta: r + F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-5), along="M")
    add("logsoftmax_long", OTHER, "M=2048,N=131072", "M=3,N=70000",
        lambda x: torch.log_softmax(x, -1), along="M")
    add("rmsnorm_long", OTHER, "M=4096,K=98304", "M=3,K=66000",
        lambda x, gain: (wide(x) * torch.rsqrt(
            (wide(x) * wide(x)).mean(-1, keepdim=True) + 1e-6) * wide(gain)).bfloat16(), along="M")
    add("cosine_rows", OTHER, "M=65536,N=1024", "M=3,N=133",
        lambda a, b: F.cosine_similarity(a, b, dim=1), along="M")


def _losses(add):
    add("smoothed_cross_entropy", OTHER, "M=8192,N=32000", "M=5,N=1003",
        lambda x, t: F.cross_entropy(wide(x), t, label_smoothing=0.1), inputs=dict(t=below("N")))
    add("distillation_kl", OTHER, "M=4096,N=32000", "M=5,N=1003",
        lambda student, teacher: F.kl_div(
            F.log_softmax(wide(student), -1), F.log_softmax(wide(teacher), -1),
            reduction="batchmean", log_target=True))
    add("weighted_huber", OTHER, "M=16384,N=8192", "M=3,N=133",
        lambda p, t, weight: (weight * F.huber_loss(
            p, t, reduction="none", delta=0.5).mean(1)).mean())


def _products(add):
    def experts(X, W, choice, weight):
        Y = X @ W[0]
        for e in range(1, W.shape[0]):
            Y = torch.where((choice == e)[:, None], X @ W[e], Y)
        return Y * weight[:, None].to(Y.dtype)

    small, weights = "M=33,N=24,K=50", normal(0.03)
    add("gemm_bias_swish_scale", PRODUCT, "M=4096,N=4096,K=4096", small,
        lambda X, W, bias, scale: scale * F.silu(F.linear(X, W, bias)), along="M",
        inputs=dict(W=weights))
    add("gemm_row_max", PRODUCT, "M=8192,N=8192,K=1024", small,
        lambda A, B: wide(torch.amax(A @ B.T, 1)), along="M", inputs=dict(B=weights))
    add("gemm_layernorm", PRODUCT, "M=16384,K=1024,N=1024", "M=33,K=50,N=40",
        lambda X, W, R, gamma, beta: F.layer_norm(F.linear(X, W) + R, gamma.shape, gamma, beta,
                                                  1e-5), along="M", inputs=dict(W=weights))
    add("gemm_small_batched", PRODUCT, "Z=8192,M=64,N=64,K=64", "Z=3,M=16,N=24,K=40",
        lambda A, B: torch.bmm(A, B), along="Z")
    add("gemm_f32", PRODUCT, "M=2048,N=2048,K=2048", "M=5,N=67,K=131",
        lambda X, W, bias: F.linear(X, W, bias), along="M")
    add("gemm_f16_transposed", PRODUCT, "M=4096,N=4096,K=4096", small,
        lambda A, B: A.T @ B.T, along="M", inputs=dict(B=weights))
    add("gemm_relu_operand", PRODUCT, "M=8192,N=4096,K=2048", small,
        lambda A, V: A @ F.relu(V), along="M", inputs=dict(V=weights))
    add("experts_masked", PRODUCT, "M=4096,N=2048,K=1024,E=8", "M=33,N=24,K=50,E=3", experts,
        along="M", inputs=dict(W=weights, choice=below("E")))


def _long_rows(add):
    sizes, small = "M=4,N=1000000", "M=3,N=5003"
    add("softmax_long", OTHER, sizes, small, lambda X: torch.softmax(X, 1), along="M")
    add("layernorm_long", OTHER, sizes, small, lambda X, gamma, beta: F.layer_norm(
        X, gamma.shape, gamma, beta, 1e-5), along="M")
    named = lambda tensors, Y: tensors["X"].gather(1, Y.clamp(
        0, tensors["X"].shape[1] - 1).unsqueeze(1))
    add("argmax_long", OTHER, sizes, small, lambda X: torch.argmax(X, 1), along="M",
        judged=named)


def _chains(add):
    """Chains in f32, as in the second level of KernelBench, none of which is here."""
    images, few = "B=64,C=64,F=128,H=128,W=128", "B=2,C=5,F=7,H=9,W=11"
    add("chain_conv_bias_relu", PRODUCT, images, few,
        lambda x, w, b, c2: F.relu(F.conv2d(x, w, b, padding=1)) + c2[:, None, None], along="B")
    add("chain_conv_mean", PRODUCT, images, few,
        lambda x, w, b: F.gelu(F.conv2d(x, w, b)).mean((2, 3)), along="B")
    add("chain_linear_groupnorm", PRODUCT, "M=4096,K=2048,N=4096,G=16", "M=5,K=33,N=64,G=8",
        lambda X, W, b, gamma, beta: F.hardtanh(
            F.group_norm(F.linear(X, W, b), 16 if W.shape[0] == 4096 else 8, gamma, beta, 1e-5),
            -2.0, 2.0), along="M")
    add("chain_linear_sum", PRODUCT, "M=8192,N=4096,K=1024", "M=5,N=67,K=131",
        lambda X, W, b: (F.silu(F.linear(X, W, b)) * 0.5).sum(1), along="M")
    add("chain_mlp_f32", PRODUCT, "M=8192,K=1024,F=4096,N=1024", "M=5,K=33,F=64,N=32",
        lambda X, W1, W2, b1, b2: torch.softmax(
            F.linear(F.gelu(F.linear(X, W1, b1)), W2, b2), 1), along="M",
        inputs=dict(W1=normal(0.03), W2=normal(0.03)))
    add("attention_f32", ATTENTION, "B=4,H=16,N=2048", "B=1,H=2,N=50",
        lambda Q, K, V: F.scaled_dot_product_attention(Q, K, V), along="B")
    _chains_of_transposed(add)
    _chains_of_groups(add)
    _chains_of_few_channels(add)


def _chains_of_transposed(add):
    """Behind transposed convolutions with a step."""
    def normalised(x, w, mu, var, gamma, beta, res):
        z = F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)
        return F.relu(F.batch_norm(z, mu, var.abs(), gamma, beta, eps=1e-5) + res)

    images, few = "B=32,C=64,F=64,H=64,W=64", "B=2,C=5,F=7,H=5,W=9"
    add("chain_convt_relu_scale", PRODUCT, images, few,
        lambda x, w, b: torch.clamp(F.relu(
            F.conv_transpose2d(x, w, b, stride=2, padding=1)) * 1.5, 0, 4), along="B")
    add("chain_convt_residual", PRODUCT, images, few, normalised, along="B")
    add("chain_convt_mean", PRODUCT, "B=32,C=64,F=128,H=64,W=64", few,
        lambda x, w, b: F.gelu(F.conv_transpose2d(x, w, b, stride=2, padding=1)).mean((2, 3)),
        along="B")
    add("chain_convt_groupnorm", PRODUCT, "B=32,C=64,Fg=8,H=64,W=64,G=8",
        "B=2,C=5,Fg=3,H=5,W=9,G=8",
        lambda x, w, b, gamma, beta: F.silu(F.group_norm(
            F.conv_transpose2d(x, w, b, stride=2, padding=1), 8, gamma, beta, 1e-5)), along="B")
    boxes, small = "B=16,C=32,F=64,D=16,H=32,W=32", "B=2,C=5,F=7,D=3,H=4,W=9"
    add("chain_convt3d_softmax", PRODUCT, boxes, small,
        lambda x, w, b: torch.sigmoid(torch.softmax(F.conv_transpose3d(
            x, w, b, stride=2, padding=1, output_padding=1), 1)), along="B")
    add("chain_convt3d_pool", PRODUCT, boxes, small,
        lambda x, w, b: torch.clamp(0.5 * F.max_pool3d(F.conv_transpose3d(
            x, w, b, stride=2, padding=1), 2), -1, 1), along="B")


def _chains_of_groups(add):
    """Behind convolutions of groups of channels."""
    def normalised(x, w, mu, var, gamma, beta):
        z = F.conv2d(x, w, padding=1, groups=8)
        return F.relu(F.batch_norm(z, mu, var.abs(), gamma, beta, eps=1e-5))

    add("chain_grouped_batchnorm", PRODUCT, "B=64,Cg=16,Fg=32,H=56,W=56,G=8",
        "B=2,Cg=3,Fg=5,H=7,W=9,G=8", normalised, along="B")
    add("chain_grouped_residual", PRODUCT, "B=64,Cg=8,H=56,W=56,G=32", "B=2,Cg=3,H=7,W=9,G=32",
        lambda x, w, b: F.relu(F.conv2d(x, w, b, padding=1, groups=32) + x), along="B")
    add("chain_grouped_convt_tanh", PRODUCT, "B=32,Cg=16,Fg=16,H=64,W=64,G=4",
        "B=2,Cg=3,Fg=5,H=5,W=9,G=4",
        lambda x, w, b: torch.tanh(F.conv_transpose2d(x, w, b, stride=2, padding=1, groups=4)),
        along="B")
    add("chain_grouped_conv3d", PRODUCT, "B=16,Cg=16,Fg=32,D=16,H=32,W=32,G=4",
        "B=2,Cg=3,Fg=5,D=4,H=5,W=9,G=4",
        lambda x, w, b: F.leaky_relu(F.conv3d(x, w, b, groups=4), 0.1).mean((2, 3, 4)), along="B")


def _chains_of_few_channels(add):
    """Behind convolutions of one or three channels, and a distance."""
    def stem(x, w, mu, var, gamma, beta):
        z = F.conv2d(x, w, stride=2, padding=3)
        return F.relu(F.batch_norm(z, mu, var.abs(), gamma, beta, eps=1e-5))

    def gated(x, w, b, g):
        z = F.conv3d(x, w, b)
        return (z * torch.sigmoid(z * g[:, None, None, None])).amax(2)

    add("chain_stem_batchnorm", PRODUCT, "B=64,C=3,F=64,H=224,W=224", "B=2,C=3,F=9,H=17,W=21",
        stem, along="B")
    add("chain_wave_gelu", PRODUCT, "B=16,F=512,T=160000", "B=2,F=9,T=101",
        lambda x, w, b: F.gelu(F.conv1d(x[:, None], w, b, stride=5)), along="B")
    add("chain_conv3d_gate_max", PRODUCT, "B=16,C=3,F=32,D=32,H=64,W=64",
        "B=2,C=3,F=9,D=6,H=9,W=10", gated, along="B")
    add("distance_l1", OTHER, "M=4096,N=4096,K=64", "M=33,N=41,K=17",
        lambda A, B: torch.cdist(A, B, p=1), along="M")


def _attention(add):
    def attention(name, sizes, small, expression, **inputs):
        add(name, ATTENTION, sizes, small, expression, along="B", inputs=inputs)

    def with_entropy(Q, K, V):
        S = wide(Q @ K.mT) * Q.shape[-1] ** -0.5
        P = torch.softmax(S, -1)
        return P.to(V.dtype) @ V, torch.logsumexp(S, -1) - (P * S).sum(-1)

    def differential(Qa, Qb, Ka, Kb, V):
        return (F.scaled_dot_product_attention(Qa, Ka, V) -
                0.4 * F.scaled_dot_product_attention(Qb, Kb, V))

    def two_biases(Q, K, V, pair, key):
        return F.scaled_dot_product_attention(Q, K, V, attn_mask=pair + key[:, None, None, :])

    def blocks(Q, K, V, width):
        parts = [x.unflatten(2, (-1, width)).flatten(1, 2) for x in (Q, K, V)]
        return F.scaled_dot_product_attention(*parts).unflatten(
            1, (Q.shape[1], -1)).flatten(2, 3)

    def with_prefix(Q, K, V, length):
        place = torch.arange(Q.shape[2], device=Q.device)
        seen = (place < length[:, None, None, None]) | (place <= place[:, None])
        return F.scaled_dot_product_attention(Q, K, V, attn_mask=seen)

    def turned(x):
        half = x.shape[-1] // 2
        kind = wide(x).dtype
        pair = torch.arange(half, device=x.device, dtype=kind)
        place = torch.arange(x.shape[2], device=x.device, dtype=kind)
        angle = place[:, None] * 10000.0 ** (-pair / half)
        cos, sin = torch.cos(angle), torch.sin(angle)
        first, second = wide(x[..., :half]), wide(x[..., half:])
        return torch.cat((first * cos - second * sin, first * sin + second * cos), -1).to(x.dtype)

    def with_rope(Q, K, V):
        return F.scaled_dot_product_attention(turned(Q), turned(K), V, is_causal=True)

    small = "B=1,H=3,M=33,N=67,D=32"
    attention("attention_entropy", "B=4,H=16,M=2048,N=2048,D=64", small, with_entropy)
    attention("attention_differential", "B=4,H=16,M=2048,N=2048,D=64", small, differential)
    attention("attention_two_biases", "B=8,H=8,M=1024,N=1024,D=32", small, two_biases)
    attention("attention_blocks", "B=4,H=16,M=8192,D=64,T=256", "B=1,H=3,M=768,D=16,T=256",
              lambda Q, K, V: blocks(Q, K, V, 256))
    attention("attention_prefix", "B=4,H=16,M=2048,D=128", "B=2,H=3,M=67,D=32", with_prefix,
              length=below("M"))
    attention("attention_rope", "B=2,H=16,M=4096,D=128", "B=1,H=3,M=67,D=32", with_rope)


def _in_chunks(q, k, v, log_a, length=64):
    """S = exp(log_a) S + k v^T in each step, and q S, as libraries of PyTorch write it: products of
    chunks, and a loop over their states. Everything is [.., T, features], log_a [.., T]."""
    steps = q.shape[-2]
    more = -steps % length
    q, k, v = (F.pad(x, (0, 0, 0, more)).unflatten(-2, (-1, length)) for x in (q, k, v))
    log_a = F.pad(log_a, (0, more)).unflatten(-1, (-1, length))
    total = log_a.cumsum(-1)
    place = torch.arange(length, device=q.device)
    apart = (total[..., :, None] - total[..., None, :]).masked_fill(
        place[:, None] < place, float("-inf"))
    inside = ((q @ k.mT) * apart.exp().to(q.dtype)) @ v
    left = (total[..., -1:] - total).exp().to(k.dtype)
    added = wide((k * left[..., None]).mT @ v)
    state = torch.zeros_like(added[..., 0, :, :])
    before = []
    for c in range(added.shape[-3]):
        before.append(state)
        state = state * total[..., c, -1, None, None].exp() + added[..., c, :, :]
    of_state = (q @ torch.stack(before, -3).to(q.dtype)) * total.exp().to(q.dtype)[..., None]
    return (inside + of_state).flatten(-3, -2)[..., :steps, :]


def _recurrences(add):
    def causal(Q, K, V):
        return _in_chunks(Q, K, V, wide(Q[..., 0]) * 0) / Q.shape[-1]

    def retention(Q, K, V):
        kind = wide(Q).dtype
        head = torch.arange(Q.shape[1], device=Q.device, dtype=kind)
        fade = torch.log1p(-torch.exp2(-5 - head % 8))
        return _in_chunks(Q, K, V, fade[:, None].expand(Q.shape[:3])) / Q.shape[-1]

    def state_space(X, Bm, Cm, raw, A, Dp):
        dt = F.softplus(wide(raw)).mT
        heads = (X.shape[0], X.shape[2], *Bm.shape[1:])
        y = _in_chunks(Cm[:, None].expand(heads), Bm[:, None].expand(heads),
                       (dt[..., None] * X.transpose(1, 2)).to(X.dtype),
                       -dt * torch.exp(A)[:, None])
        return (y.transpose(1, 2) + Dp[:, None] * X).to(X.dtype)

    add("linear_attention_causal", OTHER, "B=8,H=32,T=8192,D=64", "B=1,H=3,T=133,D=64", causal,
        along="B")
    add("retention", OTHER, "B=8,H=32,T=8192,D=64", "B=1,H=3,T=133,D=64", retention, along="B")
    add("state_space", OTHER, "B=8,H=32,T=8192,N=64,P=64", "B=1,H=3,T=133,N=64,P=64", state_space,
        along="B")
