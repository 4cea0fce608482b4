# SPDX-License-Identifier: Apache-2.0
"""Foreign programs that ask for elements by their rank: a part of foreign.py."""
from programs_problem import OTHER, normal

torch = F = None  # as in foreign.py


def use_torch():
    global torch, F
    import torch
    import torch.nn.functional as F


def _at_places(tensors, output):
    """Of equal elements any may be named: the elements are compared, not their places."""
    x = tensors["x"]
    return output if output.dtype.is_floating_point else x.gather(
        1, output.clamp(0, x.shape[1] - 1))


def _routed(x):
    values, places = torch.topk(x, 8)
    return torch.softmax(values, 1), places


def _router_of_groups(x):
    s = torch.sigmoid(x)
    best = s.topk(2, dim=2).values.sum(2)
    groups = best.topk(4, dim=1).indices
    open_ = torch.zeros_like(best, dtype=torch.bool).scatter(1, groups, True)
    w = torch.where(open_[:, :, None], s, 0.0).flatten(1).topk(8, dim=1).values
    return w / w.sum(1, keepdim=True)


def _sparsemax(x):
    z = torch.sort(x, dim=1, descending=True).values
    c = z.cumsum(1)
    r = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)
    k = (1 + r * z > c).sum(1, keepdim=True)
    tau = (c.gather(1, k - 1) - 1) / k
    return torch.clamp(x - tau, min=0)


def _trimmed_mean(x):
    n = x.shape[1]
    return torch.sort(x, dim=1).values[:, n // 10:n - n // 10].mean(1)


def _spearman(x, y):
    n = x.shape[1]
    a, b = (torch.argsort(torch.argsort(t, dim=1), dim=1) for t in (x, y))
    return 1 - 6 * ((a - b) ** 2).sum(1) / (n * (n * n - 1))


def _top_p(x):
    p = torch.softmax(x.topk(50, dim=1).values.float(), 1)
    p = torch.where(p.cumsum(1) - p < 0.9, p, 0.0)
    return p / p.sum(1, keepdim=True)


def _beams(x, prev):
    s = (torch.log_softmax(x, 2) + prev[:, :, None]).flatten(1)
    return s.topk(5, dim=1).values


def _two_of_four(x):
    places = x.abs().topk(2, dim=2).indices
    return x * torch.zeros_like(x).scatter(2, places, 1.0)


def add_problems(add):
    random = dict(x=normal(1.0))
    pairs = dict(x=normal(1.0), y=normal(1.0))
    add("router_top8", OTHER, "T=131072,E=64", "T=7,E=19", _routed, along="T", inputs=random,
        judged=_at_places)
    add("top8", OTHER, "M=64,N=50257", "M=3,N=1003", lambda x: torch.topk(x, 8), along="M",
        inputs=random, judged=_at_places)
    add("top64", OTHER, "M=64,N=131072", "M=2,N=1003", lambda x: torch.topk(x, 64), along="M",
        inputs=random, judged=_at_places)
    add("top32_one_row", OTHER, "M=1,N=1000000", "M=1,N=1003", lambda x: torch.topk(x, 32),
        inputs=random, judged=_at_places)
    add("sort_short", OTHER, "M=65536,N=256", "M=5,N=67",
        lambda x: torch.sort(x, descending=True, stable=True), along="M", inputs=random,
        judged=_at_places)
    add("row_median", OTHER, "M=65536,N=511", "M=5,N=67",
        lambda x: torch.median(x, 1).values, along="M", inputs=random)
    add("median_of_clients", OTHER, "C=64,N=1000000", "C=9,N=33",
        lambda x: torch.median(x, 0).values, along="N", inputs=random)
    add("router_of_groups", OTHER, "T=16384", "T=9", _router_of_groups, along="T", inputs=random)
    add("sparsemax_sorted", OTHER, "M=4096,N=512", "M=5,N=61", _sparsemax, along="M",
        inputs=random)
    add("trimmed_mean", OTHER, "M=65536,N=500", "M=5,N=61", _trimmed_mean, along="M",
        inputs=random)
    add("spearman", OTHER, "M=16384,N=256", "M=5,N=61", _spearman, along="M", inputs=pairs)
    add("top_p", OTHER, "B=256,V=32000", "B=3,V=700", _top_p, along="B", inputs=random)
    add("beam_search", OTHER, "B=64,V=32000", "B=3,V=300", _beams, along="B",
        inputs=dict(x=normal(1.0), prev=normal(1.0)))
    add("two_of_four", OTHER, "M=8192,N=2048", "M=3,N=70", _two_of_four, along="M", inputs=random)
    add("nearest_points", OTHER, "Q=4096,N=8192", "Q=5,N=90",
        lambda x, y: ((y * y).sum(1) - 2 * x @ y.T).topk(16, dim=1, largest=False).values,
        along="Q", inputs=pairs)
