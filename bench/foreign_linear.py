# SPDX-License-Identifier: Apache-2.0
"""Foreign programs of which only sums of products are needed, products of mixed element types, and
rows shorter than a CTA: a part of foreign.py."""
from programs_problem import ATTENTION, OTHER, PRODUCT, normal, wide

torch = F = None  # as in foreign.py


def use_torch():
    global torch, F
    import torch
    import torch.nn.functional as F


def add_problems(add):
    _sums(add)
    _mixed(add)
    _short_rows(add)


def _sums(add):
    weights = dict(W=normal(0.03))
    add("linear_divide_sum", PRODUCT, "M=1024,N=8192,K=8192", "M=5,N=67,K=131",
        lambda X, W, b: (F.linear(X, W, b) / 2).sum(1) * 1.5, along="M", inputs=weights)
    add("linear_mean_residual", PRODUCT, "M=2048,N=8192,K=8192", "M=5,N=67,K=131",
        lambda X, W, b, shift: F.gelu((F.linear(X, W, b) - shift).mean(1, keepdim=True)) + X,
        along="M", inputs=weights)
    add("linear_pool_max", PRODUCT, "M=1024,K=8192", "M=5,K=131",
        lambda X, W, b: (F.gelu(F.avg_pool1d(F.linear(X, W, b)[:, None], 16)[:, 0]) * 2).amax(1),
        along="M", inputs=weights)
    few = "B=2,C=5,F=7,H=5,W=9"
    add("convt_mean_logsumexp", PRODUCT, "B=16,C=64,F=128,H=256,W=256", few,
        lambda x, w, b, bias: torch.logsumexp(
            F.conv_transpose2d(x, w, b).mean((2, 3)) + bias, 1) * 10, along="B")
    add("convt_scaled_mean", PRODUCT, "B=16,C=64,F=128,H=128,W=128", few,
        lambda x, w, b: (F.conv_transpose2d(x, w, b, stride=2, padding=1) * 0.5).mean((2, 3)),
        along="B")
    add("conv_channel_mean", PRODUCT, "B=64,C=64,F=128,H=128,W=128", few,
        lambda x, w, b: torch.tanh(F.conv2d(x, w, b, padding=1).mean(1)) * 2, along="B")


def _mixed(add):
    add("conv_valid_static", PRODUCT, "B=64", "B=2",
        lambda x, w, b: F.relu(F.conv2d(x, w, b)), along="B")
    add("attention_f32_values", ATTENTION, "B=4,H=16,N=2048", "B=1,H=2,N=67",
        lambda Q, K, V: wide(F.scaled_dot_product_attention(Q, K, V.to(Q.dtype))), along="B")
    add("product_scaled_columns", PRODUCT, "M=4096,N=4096,K=4096", "M=33,N=24,K=50",
        lambda X, Q, s: X @ (wide(Q) * s), along="M", inputs=dict(Q=normal(0.03)))
    add("debts", OTHER, "N=32768,T=4096", "N=3,T=1003",
        lambda x, start: start[:, None] + (-x).cumsum(1), along="N")


def _short_rows(add):
    add("softmax_short", OTHER, "M=1048576", "M=33", lambda X: torch.softmax(X, 1), along="M")
    add("query_norm", OTHER, "B=4,H=32,T=4096", "B=2,H=3,T=5",
        lambda x, gain: F.rms_norm(x, gain.shape, gain, 1e-6), along="B")
    add("router_weights", OTHER, "T=131072,E=64", "T=33,E=20",
        lambda x, bias: (torch.softmax(wide(x) + bias, 1), torch.logsumexp(wide(x) + bias, 1)),
        along="T")
    add("layernorm_channels", OTHER, "B=64,T=4096", "B=2,T=5",
        lambda x, gamma, beta: F.layer_norm(x, gamma.shape, gamma, beta, 1e-5), along="B")
