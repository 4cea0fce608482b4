# SPDX-License-Identifier: Apache-2.0
"""Foreign programs whose sums have terms at places that data name: a part of foreign.py."""
from programs_problem import OTHER, below, uniform, wide

torch = F = None  # as in foreign.py


def use_torch():
    global torch, F
    import torch
    import torch.nn.functional as F


def _sums_at(places, terms, count):
    return torch.zeros((count, *terms.shape[1:]), dtype=terms.dtype,
                       device=terms.device).index_add_(0, places, terms)


def _counts(x, slots):
    if x.is_meta:  # bincount does not say its shape
        return torch.empty(slots, dtype=torch.int32, device="meta")
    return torch.bincount(x, minlength=slots).to(torch.int32)


def add_problems(add):
    add("histogram", OTHER, "N=67108864,V=50000", "N=1003,V=17",
        lambda x, slots: _counts(x, slots.shape[0]), inputs=dict(x=below("V"), slots=below(2)))
    add("histogram_bytes", OTHER, "N=67108864", "N=1003",
        lambda x: _counts(x, 256), inputs=dict(x=below(256)))
    add("embedding_gradient", OTHER, "T=32768,V=50257,E=768", "T=67,V=50,E=24",
        lambda token, dY, slots: _sums_at(token, wide(dY), slots.shape[0]),
        inputs=dict(token=below("V"), slots=below(2)))
    add("graph_messages", OTHER, "N=100000,S=1600000,D=64", "N=13,S=67,D=24",
        lambda source, target, w, X: _sums_at(target, w[:, None] * X[source], X.shape[0]),
        inputs=dict(source=below("N"), target=below("N")))
    add("segment_extremes", OTHER, "N=33554432,S=100000", "N=1003,S=13",
        lambda segment, x, low: low.scatter_reduce(0, segment, x, "amax"),
        inputs=dict(segment=below("S"), low=uniform(-2, -1)))
