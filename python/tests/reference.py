# SPDX-License-Identifier: Apache-2.0
"""Formulas of attention in NumPy and fp64, written without a look at the package."""

import numpy as np


def attention(q, k, v, score=None, mask=None, scale=None, sink=None):
    """`score` and `mask` are functions of arrays: (s, b, h, i, j) and (b, h, i, j), broadcast."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    batch, heads, queries, head = q.shape
    group = heads // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    keys = k.shape[2]
    s = np.einsum("bhid,bhjd->bhij", q, k) * (head**-0.5 if scale is None else scale)
    b = np.arange(batch)[:, None, None, None]
    h = np.arange(heads)[None, :, None, None]
    i = np.arange(queries)[None, None, :, None]
    j = np.arange(keys)[None, None, None, :]
    if score is not None:
        s = score(s, b, h, i, j)
    if mask is not None:
        s = np.where(np.broadcast_to(mask(b, h, i, j), s.shape), s, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, np.asarray(sink, np.float64)[None, :, None, None])
    top = np.where(np.isinf(top), 0, top)
    e = np.exp(s - top)
    total = e.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(np.asarray(sink, np.float64)[None, :, None, None] - top)
    p = e / np.where(total == 0, 1, total)
    return np.einsum("bhij,bhje->bhie", p, v)
