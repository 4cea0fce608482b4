# SPDX-License-Identifier: Apache-2.0
"""Foreign programs that are longer chains in f32, as in the second level of KernelBench: a product
or a convolution, and two to five operators behind it. A part of foreign.py."""
from programs_problem import PRODUCT, normal

torch = F = None  # as in foreign.py


def use_torch():
    global torch, F
    import torch
    import torch.nn.functional as F


def add_problems(add):
    _linear(add)
    _rows_of_linear(add)
    _images(add)
    _norms_of_images(add)
    _boxes(add)
    _transposed(add)
    _transposed_boxes(add)


def _trained(z, gamma, beta):
    """Batch normalisation with the statistics of the batch."""
    return F.batch_norm(z, None, None, gamma, beta, training=True, eps=1e-5)


def _linear(add):
    small, weights = "M=5,N=67,K=131", dict(W=normal(0.03))
    add("chain_linear_batchnorm", PRODUCT, "M=2048,N=4096,K=4096", "M=33,N=67,K=35",
        lambda X, W, b, gamma, beta: F.relu(F.gelu(_trained(F.linear(X, W, b), gamma, beta))),
        along="N", out_axis=1, inputs=weights)
    add("chain_linear_swish_min", PRODUCT, "M=2048,N=8192,K=8192", small,
        lambda X, W, b, scale: torch.clamp(F.silu(F.linear(X, W, b)) * scale, max=0.5) - 0.5,
        along="M", inputs=weights)

    def centred(X, W, b):
        z = F.linear(X, W, b)
        return F.gelu(z - z.mean(1, keepdim=True)) + X

    def normalised(A, B, R):
        return (F.instance_norm(torch.bmm(A, B)[:, None], eps=1e-5)[:, 0] + R) * R

    add("chain_linear_centred_residual", PRODUCT, "M=1024,N=8192", "M=5,N=67", centred, along="M",
        inputs=weights)
    add("chain_bmm_instancenorm", PRODUCT, "Z=64,M=512,N=1024,K=512", "Z=3,M=17,N=37,K=51",
        normalised, along="Z", inputs=dict(B=normal(0.05)))


def _rows_of_linear(add):
    """One number for each row, or what needs all of it."""
    def mlp(X, W1, W2, b1, b2):
        return torch.logsumexp(F.linear(torch.sigmoid(F.linear(X, W1, b1)), W2, b2), 1)

    def least(X, W, b, gamma, beta, bias):
        z = F.group_norm(F.linear(X, W, b), 256, gamma, beta, 1e-5)
        return z.amin(1, keepdim=True) + bias

    small, weights = "M=5,N=67,K=131", dict(W=normal(0.03))
    add("chain_linear_logsumexp", PRODUCT, "M=1024,N=8192,K=8192", small,
        lambda X, W, b: F.gelu(F.leaky_relu(
            torch.logsumexp(F.linear(X, W, b), 1) - 11, 0.2)), along="M", inputs=weights)
    add("chain_mlp_sigmoid_logsumexp", PRODUCT, "M=2048,K=4096,H=4096,N=4096",
        "M=5,K=33,H=67,N=35", mlp, along="M", inputs=dict(W1=normal(0.03), W2=normal(0.03)))
    add("chain_linear_maxpool_sum", PRODUCT, "M=2048,N=8192,K=4096", small,
        lambda X, W, b: F.max_pool1d(F.linear(X, W, b)[:, None], 4)[:, 0].sum(1) * 0.25,
        along="M", inputs=weights)
    add("chain_linear_gelu_softmax", PRODUCT, "M=1024,N=8192,K=8192", small,
        lambda X, W, b: torch.softmax(F.gelu(F.linear(X, W, b)), 1), along="M", inputs=weights)
    add("chain_linear_groupnorm_min", PRODUCT, "M=1024,K=8192,Ng=32,G=256", "M=5,K=33,Ng=3,G=256",
        least, along="M", inputs=weights)


def _images(add):
    images, few = "B=64,C=64,F=128,H=128,W=128", "B=2,C=5,F=7,H=9,W=13"
    small_images = "B=128,C=32,F=64,H=128,W=128"
    more = dict(along="B", inputs=dict(w=normal(0.05)))
    add("chain_conv_min_tanh", PRODUCT, images, few,
        lambda x, w, b: torch.tanh(F.conv2d(x, w, b).amin(1)) * 1.5, **more)
    add("chain_conv_avgpool_sum", PRODUCT, images, few,
        lambda x, w, b: torch.sigmoid(F.avg_pool2d(F.conv2d(x, w, b), 4)).sum((1, 2, 3)), **more)
    add("chain_conv_hardswish_maxpool", PRODUCT, images, few,
        lambda x, w, b: F.mish(F.max_pool2d(F.hardswish(
            F.conv2d(x, w, b, padding=1) - 0.75), 2)), **more)
    add("chain_conv_relu_hardswish", PRODUCT, small_images, few,
        lambda x, w, b, scale: F.hardswish(
            F.relu(F.conv2d(x, w, b)) * scale[:, None, None]), **more)


def _norms_of_images(add):
    def residual(x, w, b, gamma, beta):
        z = F.conv2d(x, w, b)
        a = F.hardswish(torch.tanh(F.group_norm(z, 16, gamma, beta, 1e-5)))
        return torch.logsumexp(z + a, 1)

    images, few = "B=64,C=64,F=128,H=128,W=128", "B=2,C=5,F=7,H=9,W=13"
    weights = dict(w=normal(0.05))
    add("chain_conv_groupnorm_logsumexp", PRODUCT, "B=64,C=64,Fg=8,H=128,W=128,G=16",
        "B=2,C=5,Fg=3,H=9,W=13,G=16", residual, along="B", inputs=weights)
    add("chain_conv_instancenorm_divide", PRODUCT, images, few,
        lambda x, w, b: F.hardtanh(F.instance_norm(F.conv2d(x, w, b), eps=1e-5) / 2),
        along="B", inputs=weights)
    add("chain_conv_batchnorm_scale", PRODUCT, images, few,
        lambda x, w, b, gamma, beta: _trained(F.conv2d(x, w, b, padding=1), gamma, beta) * 2,
        along="F", out_axis=1, inputs=weights)


def _boxes(add):
    def bounded(x, w, b, gamma, beta):
        z = F.group_norm(F.conv3d(x, w, b), 8, gamma, beta, 1e-5)
        return torch.clamp(z, -1, 1).mean((1, 2, 3, 4))

    def least(x, w, b, scale):
        z = F.hardtanh(F.instance_norm(F.conv3d(x, w, b), eps=1e-5))
        return torch.sigmoid((z * scale[:, None, None, None]).amin(1))

    few = "B=2,C=3,F=7,D=7,H=9,W=11"
    more = dict(along="B", inputs=dict(w=normal(0.05)))
    add("chain_conv3d_groupnorm_mean", PRODUCT, "B=64,C=3,Fg=4,D=24,H=32,W=32,G=8",
        "B=2,C=3,Fg=3,D=7,H=9,W=11,G=8", bounded, along="B", inputs=dict(w=normal(0.1)))
    add("chain_conv3d_max_softmax", PRODUCT, "B=16,C=8,F=32,D=32,H=32,W=32", few,
        lambda x, w, b: torch.softmax(F.hardswish(F.conv3d(x, w, b).amax(3)), 1), **more)
    add("chain_conv3d_mish_tanh", PRODUCT, "B=16,C=32,F=64,D=32,H=32,W=32", few,
        lambda x, w, b, scale: torch.tanh(
            F.mish(F.conv3d(x, w, b)) * scale[:, None, None, None]), **more)
    add("chain_conv3d_pool_logsumexp", PRODUCT, "B=16,C=32,F=64,D=24,H=32,W=32", few,
        lambda x, w, b: torch.logsumexp(F.leaky_relu(
            F.avg_pool3d(F.conv3d(x, w, b, padding=1), 2), 0.1), 1), **more)
    add("chain_conv3d_softmax_pools", PRODUCT, "B=16,C=8,F=64,D=32,H=32,W=32", few,
        lambda x, w, b: F.max_pool3d(F.avg_pool3d(
            torch.softmax(F.conv3d(x, w, b), 1), 2), 2), **more)
    add("chain_conv3d_instancenorm_min", PRODUCT, "B=16,C=32,F=32,D=24,H=32,W=32", few, least,
        **more)


def _transposed(add):
    def normalised(x, w, b, gamma, beta, gain, offset):
        z = torch.tanh(_trained(F.conv_transpose2d(x, w, b), gamma, beta))
        return F.group_norm(F.max_pool2d(z, 2), 8, gain, offset, 1e-5)

    def summed(x, w, b, scale):
        z = F.leaky_relu(F.conv_transpose2d(x, w, b, stride=2, padding=1), 0.2)
        return (z + z.sum(1, keepdim=True)) * scale[:, None, None]

    few = "B=2,C=5,F=7,H=5,W=9"
    more = dict(along="B", inputs=dict(w=normal(0.05)))
    add("chain_convt_softmax_bias", PRODUCT, "B=64,C=64,F=64,H=64,W=64", few,
        lambda x, w, b, bias: torch.sigmoid((torch.softmax(F.conv_transpose2d(
            x, w, b, stride=2, padding=1), 1) + bias[:, None, None]) * 3), **more)
    add("chain_convt_min_sum", PRODUCT, "B=64,C=64,F=128,H=64,W=64", few,
        lambda x, w, b: F.gelu(F.conv_transpose2d(
            x, w, b, stride=2, padding=1, output_padding=1).amin(1).sum(1) * 0.01), **more)
    add("chain_convt_batchnorm_pool", PRODUCT, "B=64,C=64,Fg=16,H=64,W=64,G=8",
        "B=2,C=5,Fg=3,H=7,W=9,G=8", normalised, inputs=dict(w=normal(0.05)))
    add("chain_convt_channel_sum", PRODUCT, "B=32,C=64,F=128,H=64,W=64", few, summed, **more)


def _transposed_boxes(add):
    def swished(x, w, b, gamma, beta):
        z = F.silu(F.conv_transpose3d(x, w, b))
        return F.hardswish(F.group_norm(z, 8, gamma, beta, 1e-5))

    boxes, small = "B=16,C=32,F=64,D=16,H=32,W=32", "B=2,C=5,F=7,D=3,H=4,W=9"
    more = dict(along="B", inputs=dict(w=normal(0.05)))
    add("chain_convt3d_pools_sum", PRODUCT, boxes, "B=2,C=5,F=7,D=3,H=5,W=7",
        lambda x, w, b: F.max_pool3d(F.max_pool3d(F.conv_transpose3d(
            x, w, b, stride=2, padding=1), 3), 2).sum(1), **more)
    add("chain_convt3d_layernorm_pool", PRODUCT, boxes, small,
        lambda x, w, b, gamma, beta: F.gelu(F.avg_pool3d(F.layer_norm(F.conv_transpose3d(
            x, w, b, stride=2, padding=1, output_padding=1), gamma.shape, gamma, beta, 1e-5), 2)),
        **more)
    add("chain_convt3d_clamp_min", PRODUCT, "B=16,C=64,F=32,D=24,H=32,W=32", small,
        lambda x, w, b: torch.clamp(F.conv_transpose3d(
            x, w, b, stride=2, padding=1), -1, 1.5).amin(2) / 3, **more)
    add("chain_convt3d_swish_groupnorm", PRODUCT, "B=16,C=32,Fg=8,D=24,H=32,W=32,G=8",
        "B=2,C=5,Fg=3,D=3,H=4,W=9,G=8", swished, along="B", inputs=dict(w=normal(0.05)))
