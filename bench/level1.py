# SPDX-License-Identifier: Apache-2.0
"""The 100 problems of KernelBench level 1: the programs of kernelbench/level1 at the public problems'
own sizes, each with what its module computes as an expression of PyTorch.

Small sizes, for the comparison with the oracle, are the program's hints and the second text of a line.
"""
import os

from programs_problem import (ATTENTION, CONVOLUTION, OTHER, PRODUCT, Problem, below, signs, uniform)

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernelbench", "level1")

torch = F = None  # the process that starts others does without


def use_torch():
    """Before an expression is evaluated."""
    global torch, F
    import torch
    import torch.nn.functional as F


def problems():
    found = []

    def add(number, kind, sizes, small, expression, **more):
        found.append(Problem(str(number), os.path.join(FOLDER, f"{number}.naut"), kind, sizes,
                             small, expression, **more))

    _products(add)
    _points(add)
    _norms(add)
    _pools_and_reductions(add)
    _convolutions(add)
    _transposed_convolutions(add)
    _depthwise_convolutions(add)
    _scans_and_losses(add)
    return sorted(found, key=lambda p: int(p.name))


def _products(add):
    def product(number, sizes, small, expression, along="M"):
        add(number, PRODUCT, sizes, small, expression, along=along)

    plain = lambda A, B: torch.matmul(A, B)
    product(1, "M=4096,N=4096,K=4096", "M=67,N=67,K=67", plain)
    product(2, "M=2048,N=4096,K=8192", "M=33,N=65,K=100", plain)
    product(3, "Z=128,M=512,N=2048,K=1024", "Z=2,M=5,N=67,K=131", lambda A, B: torch.bmm(A, B), "Z")
    product(4, "M=2048,K=1048576", "M=4,K=5000", plain)
    add(5, OTHER, "M=65536,N=16384", "M=5,N=1003", lambda A: A * 3.14, along="M")
    product(6, "M=256,N=256,K=524288", "M=8,N=8,K=4100", plain)
    product(7, "M=32768,N=32768,K=64", "M=67,N=65,K=7", plain)
    product(8, "M=8205,N=5921,K=2949", "M=5,N=7,K=1001", plain)
    product(9, "M=32768,N=32768,K=32", "M=67,N=67,K=5", plain)
    product(10, "Z=16,M=1024,K=2048,N=768", "Z=2,M=33,K=65,N=41", plain, "Z")
    product(11, "Z=8,I=256,J=512,L=256,K=768", "Z=1,I=3,J=11,L=65,K=41",
            lambda A, B: torch.einsum("bijl,lk->bijk", A, B), "Z")
    add(12, OTHER, "M=4096,N=4096", "M=1003,N=5", lambda A, B: A.unsqueeze(1) * B, along="N")
    product(13, "M=4096,N=4096,K=4096", "M=67,N=67,K=67", plain)
    product(14, "N=4096", "N=67", lambda A, B: torch.triu(torch.matmul(A, B)), None)
    product(15, "N=4096", "N=67", lambda A, B: torch.tril(torch.matmul(A, B)), None)
    product(16, "M=2048,N=4096,K=8192", "M=33,N=65,K=131", lambda A, B: torch.matmul(A.T, B))
    product(17, "M=2048,N=4096,K=8192", "M=33,N=65,K=131", lambda A, B: torch.matmul(A, B.T))
    product(18, "M=2048,N=4096,K=8192", "M=33,N=65,K=131", lambda A, B: torch.matmul(A.T, B.T))


def _points(add):
    def rows(number, expression, sizes="M=4096,N=393216"):
        add(number, OTHER, sizes, "M=3,N=4099", expression, along="M")

    rows(19, lambda x: torch.relu(x))
    rows(20, lambda x: F.leaky_relu(x, 0.01))
    rows(21, lambda x: torch.sigmoid(x))
    rows(22, lambda x: torch.tanh(x))
    rows(23, lambda x: torch.softmax(x, 1))
    rows(24, lambda x: F.log_softmax(x, 1))
    rows(25, lambda x: x * torch.sigmoid(x))
    rows(26, lambda x: F.gelu(x))
    rows(27, lambda x: torch.selu(x))
    rows(28, lambda x: F.hardsigmoid(x))
    rows(29, lambda x: F.softplus(x))
    rows(30, lambda x: x / (1 + torch.abs(x)))
    rows(31, lambda x: F.elu(x, 1.0))
    rows(32, lambda x: F.hardtanh(x, -1.0, 1.0))
    rows(88, lambda x: 0.5 * x * (1.0 + torch.tanh(
        0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0)))), "M=8192,N=8192")


def _norms(add):
    images, small = "B=112,C=64,H=512,W=512", "B=2,C=8,H=13,W=31"
    add(33, OTHER, "B=64,C=64,H=512,W=512", small, lambda x, gamma, beta: F.batch_norm(
        x, None, None, gamma, beta, training=True, eps=1e-5), along="C", out_axis=1)
    add(34, OTHER, images, small, lambda x: F.instance_norm(x, eps=1e-5), along="B")
    # The groups of the problem; the hints of the program have four.
    add(35, OTHER, "B=112,Cg=8,H=512,W=512,G=8", "B=2,Cg=2,H=13,W=9,G=8",
        lambda x, gamma, beta: F.group_norm(x, 8, gamma, beta, 1e-5), along="B")
    add(36, OTHER, images, small,
        lambda x: x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + 1e-5), along="B")
    add(37, OTHER, images, small, lambda x: x / torch.norm(x, p="fro"))
    long_rows = "M=32768,N=65535"
    add(38, OTHER, long_rows, "M=3,N=4099",
        lambda x: x / torch.mean(torch.abs(x), dim=1, keepdim=True), along="M")
    add(39, OTHER, long_rows, "M=3,N=4099",
        lambda x: x / torch.norm(x, p=2, dim=1, keepdim=True), along="M")
    add(40, OTHER, "B=16,C=64,H=256,W=256", small, lambda x, gamma, beta: F.layer_norm(
        x, gamma.shape, gamma, beta, 1e-5), along="B")


def _pools_and_reductions(add):
    def pool(number, sizes, small, expression):
        add(number, OTHER, sizes, small, expression, along="B")

    pool(41, "B=64,C=192,L=65536", "B=1,C=2,L=203",
         lambda x: F.max_pool1d(x, 8, stride=1, padding=4, dilation=3))
    pool(42, "B=32,C=64,H=512,W=512", "B=1,C=2,H=33,W=25",
         lambda x: F.max_pool2d(x, 4, stride=1, padding=1))
    pool(43, "B=16,C=32,D=128,H=128,W=128", "B=1,C=2,D=7,H=9,W=20",
         lambda x: F.max_pool3d(x, 3, stride=2, padding=1, dilation=3))
    pool(44, "B=64,C=128,L=65536", "B=1,C=2,L=203",
         lambda x: F.avg_pool1d(x, 8, stride=1, padding=4))
    pool(45, "B=16,C=64,H=2048,W=2048", "B=1,C=2,H=33,W=25", lambda x: F.avg_pool2d(x, 11))
    pool(46, "B=16,C=32,D=128,H=128,W=256", "B=1,C=2,D=7,H=9,W=20",
         lambda x: F.avg_pool3d(x, 3, stride=2, padding=1))

    def middle(number, expression, judged=None):
        add(number, OTHER, "B=128,M=4096,N=4095", "B=2,M=300,N=67", expression, along="B",
            judged=judged)

    # Of equal elements any may be named: the elements are compared, not their places.
    named = lambda tensors, y: tensors["x"].gather(1, y.clamp(
        0, tensors["x"].shape[1] - 1).unsqueeze(1))
    middle(47, lambda x: torch.sum(x, dim=1, keepdim=True))
    middle(48, lambda x: torch.mean(x, dim=1))
    middle(49, lambda x: torch.max(x, dim=1)[0])
    middle(51, lambda x: torch.argmax(x, dim=1), named)
    middle(52, lambda x: torch.argmin(x, dim=1), named)
    middle(53, lambda x: torch.min(x, dim=1)[0])


def _convolutions(add):
    def convolution(number, sizes, small, expression):
        add(number, CONVOLUTION, sizes, small, expression, along="B")

    one = lambda x, w: F.conv1d(x, w)
    two = lambda x, w: F.conv2d(x, w)
    three = lambda x, w: F.conv3d(x, w)
    small2, small3 = "B=1,C=5,F=4,H=11,W=35", "B=1,C=5,F=4,D=6,H=8,W=19"
    convolution(50, "B=256,C=3,F=96,H=224,W=224", "B=1,C=3,F=5,H=29,W=35",
                lambda x, w, b: F.conv2d(x, w, b, stride=4, padding=2))
    convolution(54, "B=16,C=3,F=64,D=64,H=64,W=64", small3, three)
    convolution(55, "B=8,C=64,F=128,H=512,W=1024", small2, two)
    convolution(56, "B=8,C=64,F=128,H=512,W=256", small2, two)
    convolution(59, "B=16,C=3,F=64,D=256,H=256,W=10", small3, three)
    convolution(60, "B=16,C=3,F=64,D=64,H=64,W=64", small3, three)
    convolution(62, "B=8,C=32,F=64,H=512,W=512", small2, two)
    convolution(63, "B=16,C=16,F=128,H=1024,W=1024", small2, two)
    convolution(66, "B=8,C=3,F=64,D=16,H=128,W=128", small3, three)
    convolution(67, "B=32,C=64,F=128,L=131072", "B=1,C=5,F=4,L=131", one)
    convolution(76, "B=64,C=64,F=128,L=524280", "B=1,C=5,F=4,L=131",
                lambda x, w: F.conv1d(x, w, stride=3, dilation=4))
    convolution(80, "B=8,C=32,F=64,H=512,W=512", small2,
                lambda x, w: F.conv2d(x, w, padding=(2, 4), dilation=(2, 3)))
    convolution(87, "B=16,C=64,F=128,H=1024,W=1024", small2, two)


def _transposed_convolutions(add):
    def transposed(number, sizes, small, expression):
        add(number, CONVOLUTION, sizes, small, expression, along="B")

    two = lambda x, w: F.conv_transpose2d(x, w)
    three = lambda x, w: F.conv_transpose3d(x, w)
    small1, small2, small3 = "B=1,C=5,F=4,L=131", "B=1,C=5,F=4,H=11,W=35", "B=1,C=5,F=4,D=4,H=7,W=19"
    transposed(57, "B=8,C=64,F=64,H=1024,W=1024", small2, two)
    transposed(58, "B=16,C=32,F=16,D=16,H=32,W=64", small3, three)
    transposed(61, "B=8,C=48,F=48,D=64,H=64,W=64", small3, three)
    transposed(64, "B=64,C=128,F=128,L=65536", small1, lambda x, w: F.conv_transpose1d(x, w))
    transposed(65, "B=8,C=64,F=64,H=512,W=512", small2, two)
    transposed(68, "B=16,C=32,F=64,D=64,H=64,W=64", small3, three)
    transposed(69, "B=64,C=64,F=128,H=128,W=256", small2, two)
    transposed(70, "B=8,C=48,F=24,D=96,H=96,W=96", small3, three)
    transposed(71, "B=8,C=32,F=32,H=512,W=1024", small2, two)
    transposed(72, "B=8,Cg=8,Fg=8,D=12,H=24,W=48", "B=1,Cg=3,Fg=2,D=3,H=4,W=9",
               lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=(1, 2, 3),
                                               output_padding=1, groups=4))
    transposed(73, "B=4,C=32,F=32,D=32,H=64,W=128", small3,
               lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=1))
    transposed(74, "B=32,C=32,F=64,L=131072", small1,
               lambda x, w: F.conv_transpose1d(x, w, dilation=3))
    transposed(75, "B=16,Cg=8,Fg=16,H=128,W=256", "B=1,Cg=3,Fg=3,H=11,W=35",
               lambda x, w: F.conv_transpose2d(x, w, stride=(2, 3), padding=(1, 2),
                                               groups=4, dilation=(2, 1)))
    transposed(77, "B=16,C=32,F=64,D=16,H=32,W=32", small3,
               lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=1, dilation=2))
    transposed(78, "B=8,C=32,F=32,H=512,W=1024", small2,
               lambda x, w: F.conv_transpose2d(x, w, padding=(1, 3)))
    transposed(79, "B=16,C=32,F=64,L=131072", small1,
               lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1, dilation=2))
    transposed(81, "B=16,C=32,F=64,H=64,W=128", small2,
               lambda x, w: F.conv_transpose2d(x, w, stride=5, padding=1, dilation=2))


def _depthwise_convolutions(add):
    def depthwise(number, sizes):
        add(number, CONVOLUTION, sizes, "B=1,C=5,H=11,W=35",
            lambda x, w: F.conv2d(x, w, groups=x.shape[1]), along="B")

    depthwise(82, "B=16,C=64,H=512,W=512")
    depthwise(83, "B=64,C=8,H=512,W=512")
    depthwise(84, "B=64,C=128,H=256,W=512")
    depthwise(85, "B=32,C=128,H=128,W=256")
    add(86, CONVOLUTION, "B=16,C=64,F=128,H=512,W=512", "B=1,C=3,F=7,H=5,W=37",
        lambda x, w, v: F.conv2d(F.conv2d(x, w, padding=1, groups=x.shape[1]), v), along="B")


def _scans_and_losses(add):
    square, small = "M=32768,N=32768", "M=3,N=133"

    def scan(number, expression, **more):
        add(number, OTHER, square, small, expression, along="M", **more)

    scan(89, lambda x: torch.cumsum(x, 1))
    # Numbers near 1: a product of 32768 others is 0.
    scan(90, lambda x: torch.cumprod(x, 1), inputs=dict(x=uniform(0.999, 1.001)))
    scan(91, lambda x: torch.cumsum(x.flip(1), 1).flip(1))
    scan(92, lambda x: torch.cumsum(torch.cat((torch.zeros_like(x[:, :1]), x), 1)[:, :-1], 1))
    scan(93, lambda x, mask: torch.cumsum(x * mask, 1))

    def loss(number, expression, sizes=square, small_sizes=small, **inputs):
        add(number, OTHER, sizes, small_sizes, expression, inputs=inputs)

    loss(94, lambda p, t: torch.mean((p - t) ** 2))
    loss(95, lambda p, t: F.cross_entropy(p, t), "M=32768,N=4096", "M=5,N=1030", t=below("N"))
    loss(96, lambda p, t: F.smooth_l1_loss(p, t))
    add(97, ATTENTION, "B=32,H=32,N=512,D=1024", "B=1,H=3,N=67,D=64",
        lambda Q, K, V: F.scaled_dot_product_attention(Q, K, V), along="B")
    loss(98, lambda p, t: F.kl_div(torch.log(p), t, reduction="batchmean"), "M=16384,N=16384",
         p=uniform(0.05, 1.0), t=uniform(0.05, 1.0))
    loss(99, lambda a, p, q: F.triplet_margin_loss(a, p, q, margin=1.0), "M=32768,N=8192")
    loss(100, lambda p, t: torch.mean(torch.clamp(1 - p * t, min=0)), small_sizes="M=133,N=133",
         t=signs)
