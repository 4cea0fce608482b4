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


def add_problems(add):
    random = dict(x=normal(1.0))
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
