# SPDX-License-Identifier: Apache-2.0
"""nautilus.attention beyond the page about FlexAttention: shapes, caches, decoding, errors."""

import nautilus
import numpy as np
import pytest
import reference
from nautilus import _attention


def draw(rng, *shapes):
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_plain_scale_and_other_value_size(rng):
    q, k, v = draw(rng, (1, 2, 6, 16), (1, 2, 9, 16), (1, 2, 9, 8))
    close(nautilus.attention(q, k, v), reference.attention(q, k, v))
    close(nautilus.attention(q, k, v, scale=0.3), reference.attention(q, k, v, scale=0.3))
    close(nautilus.attention(q, k, v, scale=-0.3), reference.attention(q, k, v, scale=-0.3))


def test_grouped_queries_with_a_cache(rng):
    q, k, v = draw(rng, (2, 6, 5, 16), (2, 2, 12, 16), (2, 2, 12, 16))
    slope = rng.standard_normal(6).astype(np.float32)
    got = nautilus.attention(q, k, v, score="s + slope[h] * (j - i)", mask="causal(i, j, N - M)", slope=slope)
    want = reference.attention(q, k, v, score=lambda s, b, h, i, j: s + slope[h] * (j - i),
                               mask=lambda b, h, i, j: j <= i + 7)
    close(got, want)


def test_sizes_and_heads_of_keys_in_formulas(rng):
    q, k, v = draw(rng, (1, 4, 5, 16), (1, 2, 5, 16), (1, 2, 5, 16))
    temperature = np.array([0.5, 2.0], np.float32)
    got = nautilus.attention(q, k, v, score="s * temperature[hk] / f32(H)", temperature=temperature)
    want = reference.attention(q, k, v, score=lambda s, b, h, i, j: s * temperature[h // 2] / 4)
    close(got, want)


@pytest.mark.parametrize("group", [1, 3])
def test_one_query(rng, group):
    q, k, v = draw(rng, (2, 2 * group, 1, 16), (2, 2, 12, 16), (2, 2, 12, 16))
    keep = np.arange(12)[None] >= np.array([[0], [5]])
    got = nautilus.attention(q, k, v, mask="keep[b,j] and window(i, j, N - M, W)", keep=keep, W=9)
    want = reference.attention(q, k, v, mask=lambda b, h, i, j: keep[b, j] & (j > 11 - 9))
    assert got.shape == q.shape
    close(got, want)
    bias = rng.standard_normal((2, 1, 12)).astype(np.float32)
    close(nautilus.attention(q, k, v, score="s + bias[b,i,j]", bias=bias),
          reference.attention(q, k, v, score=lambda s, b, h, i, j: s + bias[b, i, j]))
    out = np.zeros_like(q)
    nautilus.attention(q, k, v, out=out)
    close(out, reference.attention(q, k, v))
    text = nautilus.attention_operator(q, k, v).text
    assert "M" not in text.split("\n")[0], "no axis of queries"


def test_log_sum_exp(rng):
    q, k, v = draw(rng, (1, 2, 4, 16), (1, 2, 6, 16), (1, 2, 6, 16))
    o, lse = nautilus.attention(q, k, v, return_lse=True)
    s = np.einsum("bhid,bhjd->bhij", q.astype(np.float64), k) / 4
    close(o, reference.attention(q, k, v))
    np.testing.assert_allclose(lse, np.log(np.exp(s).sum(-1)), rtol=1e-5)
    o, lse = nautilus.attention(q[:, :, :1], k, v, return_lse=True)
    assert o.shape == (1, 2, 1, 16) and lse.shape == (1, 2, 1)


def test_query_that_sees_nothing(rng):
    q, k, v = draw(rng, (1, 1, 4, 16), (1, 1, 4, 16), (1, 1, 4, 16))
    got = nautilus.attention(q, k, v, mask="j < i")
    assert not np.any(got[:, :, 0]) and np.all(np.isfinite(got))


def test_dtypes(rng):
    q, k, v = (x.astype(np.float16) for x in draw(rng, *[(1, 1, 4, 16)] * 3))
    assert nautilus.attention(q, k, v).dtype == np.float16
    assert nautilus.attention(q, k, v, dtype="f32").dtype == np.float32


def test_emulator(rng):
    """The kernel itself, not only the definition."""
    q, k, v = (x.astype(np.float16) for x in draw(rng, (1, 2, 24, 64), (1, 1, 40, 64), (1, 1, 40, 64)))
    arguments = dict(score="softcap(s, 30)", mask="window(i, j, N - M, W)", W=20)
    want = reference.attention(q, k, v, score=lambda s, b, h, i, j: 30 * np.tanh(s / 30),
                               mask=lambda b, h, i, j: (j <= i + 16) & (j > i + 16 - 20))
    np.testing.assert_allclose(nautilus.attention(q, k, v, on="emulator", **arguments), want, rtol=1e-2, atol=5e-3)


def test_programs_are_kept(rng):
    q, k, v = draw(rng, *[(1, 2, 4, 16)] * 3)
    nautilus.attention(q, k, v, mask="i - j < W", W=3)
    before = len(_attention._operators)
    for length, width in ((5, 2), (9, 7)):
        q, k, v = draw(rng, *[(1, 2, length, 16)] * 3)
        nautilus.attention(q, k, v, mask="i - j < W", W=width)
    assert len(_attention._operators) == before
    nautilus.attention(q, k, v, mask="i - j <= W", W=3)
    assert len(_attention._operators) == before + 1


@pytest.mark.parametrize("arguments, message", [
    (dict(score="s + slope"), "`slope`"),
    (dict(mask="j <= i", W=3), "neither the score nor the mask uses `W`"),
    (dict(score="s + bias[h]", bias=np.zeros((2, 2), np.float32)), r"`bias\[h\]` has 1 indices, the tensor has shape"),
    (dict(score="s + bias[h]", bias=np.zeros(3, np.float32)), "bias"),
    (dict(score="s", slope=np.zeros(2, np.float32)), "reads the tensor `slope`"),
    (dict(score="s + S", S=1.0), "`S` cannot be a name"),
    (dict(score="s + x", x="1"), "`x` must be a tensor or a number"),
    (dict(score="s +"), "attention:"),
    (dict(score="s + table[h, i - j]", table=np.zeros((2, 9), np.float32)), "table"),
    (dict(mask=lambda b, h, i, j: j <= i and i < 5), "use & | ~"),
    (dict(mask=lambda b, h, i, j: "j"), "must give an expression"),
])
def test_errors(rng, arguments, message):
    q, k, v = draw(rng, *[(1, 2, 4, 16)] * 3)
    with pytest.raises((nautilus.NautilusError, TypeError), match=message):
        nautilus.attention(q, k, v, **arguments)


def test_errors_of_shapes(rng):
    q, k, v = draw(rng, (1, 3, 4, 16), (1, 2, 4, 16), (1, 2, 4, 16))
    with pytest.raises(nautilus.ArgumentError, match="must be a multiple"):
        nautilus.attention(q, k, v)
    with pytest.raises(nautilus.ArgumentError, match="`q` must have shape"):
        nautilus.attention(q[0], k, v)
    with pytest.raises(nautilus.ArgumentError, match="V"):
        nautilus.attention(q[:, :2], k, v[:, :, :3])


def test_programs_with_errors_are_shown(rng):
    q, k, v = draw(rng, *[(1, 2, 4, 16)] * 3)
    with pytest.raises(nautilus.ProgramError) as caught:
        nautilus.attention(q, k, v, score="s + unknown")
    assert "unknown" in str(caught.value) and "^" in str(caught.value) and "sum[d] Q[b,h,i,d]" in str(caught.value)
