# SPDX-License-Identifier: Apache-2.0
"""Programs written as Python expressions."""

import inspect

import nautilus
import numpy as np
import pytest
import reference


def attention():
    p = nautilus.Program()
    B, H, M, N = p.dims("B, H, M, N", B=1, H=2, M=64, N=80)
    D = p.static(D=64)
    b, h, i, j, d, e = p.axes("b h i j d e")
    Q = p.input("Q", "bf16", B, H, M, D)
    K, V = p.input("K, V", "bf16", B, H, N, D)
    scale = p.scalar("scale", 1 / nautilus.sqrt(D))
    p.fact(scale > 0)
    S, P = p.local("S, P")
    O = p.output("O", "bf16")
    S[b, h, i, j] = nautilus.sum(d, Q[b, h, i, d] * K[b, h, j, d]) * scale
    P[b, h, i, j] = nautilus.softmax(j, S[b, h, i, j])
    O[b, h, i, e] = nautilus.sum(j, P[b, h, i, j] * V[b, h, j, e])
    return p


def test_prints_the_text():
    assert str(attention()) == """\
dims B, H, M, N
hint B = 1, H = 2, M = 64, N = 80
static D = 64
Q: bf16[B, H, M, D]
K, V: bf16[B, H, N, D]
scale = 1 / sqrt(D)
fact scale > 0
S[b, h, i, j] = (sum[d] Q[b, h, i, d] * K[b, h, j, d]) * scale
P[b, h, i, j] = softmax[j](S[b, h, i, j])
O[b, h, i, e] = sum[j] P[b, h, i, j] * V[b, h, j, e]  -> bf16
"""


def test_runs(rng):
    op = attention().compile(D=16)
    q, k, v = (rng.standard_normal((1, 2, n, 16)).astype(np.float32) for n in (6, 9, 9))
    np.testing.assert_allclose(op(q, k, v), reference.attention(q, k, v), rtol=2e-2, atol=2e-2)
    assert nautilus.compile(attention(), D=32).inputs[0].dims[-1] == "32"


def test_operators():
    p = nautilus.Program()
    a, b = p.axes("a b")
    for expression, text in [
        ((a + b) * 2, "(a + b) * 2"),
        (a + b * 2, "a + b * 2"),
        (a - (b - 1), "a - (b - 1)"),
        (a - b - 1, "a - b - 1"),
        (2 - a, "2 - a"),
        (a * (b / 2), "a * (b / 2)"),
        (a // 2 % 3, "a / 2 % 3"),
        (-a * b, "-a * b"),
        (-(a + b), "-(a + b)"),
        (a * -1, "a * -1"),
        ((a < b) & ~(b == 2) | (a >= 1), "a < b and not b == 2 or a >= 1"),
        ((a < b) & ((b < 1) | (a > 2)), "a < b and (b < 1 or a > 2)"),
        (nautilus.sum(a, a + b) + 1, "sum[a] (a + b) + 1"),
        (2 * nautilus.max(a, a * b), "2 * (max[a] a * b)"),
        (-nautilus.sum(a, a), "-(sum[a] a)"),
        (nautilus.sum((a, b), a * b, acc="f64"), "sum[a, b acc f64] a * b"),
        (nautilus.max(a(3), a, start=0.5), "max[a < 3 from 0.5] a"),
        (nautilus.argmax(a(3), a, rank=b + 1), "argmax[a < 3 rank b + 1] a"),
        (nautilus.where(a < b, a, -nautilus.inf), "where(a < b, a, -inf)"),
        (nautilus.lib.softcap(a, 30), "softcap(a, 30)"),
        (nautilus.lib.rmsnorm[b](a, 1.0, 1e-5), "rmsnorm[b](a, 1.0, 1e-05)"),
        (a**2, "pow(a, 2)"),
        (abs(a), "abs(a)"),
    ]:
        assert str(expression) == text


def test_values_of_operators(rng):
    """Parentheses are where they have to be: numbers, not only texts."""
    p = nautilus.Program()
    M, N = p.dims("M, N")
    i, j, k = p.axes("i j k")
    X = p.input("X", "f64", M, N)
    Y = p.output("Y", "f64")
    row = nautilus.sum(k, X[i, k] - 1)
    Y[i, j] = 2 - (row * X[i, j] - (3 - row)) / (1 + X[i, j] * X[i, j]) * -nautilus.max(k, X[i, k])
    x = rng.standard_normal((4, 5))
    r = (x - 1).sum(1, keepdims=True)
    want = 2 - (r * x - (3 - r)) / (1 + x * x) * -x.max(1, keepdims=True)
    np.testing.assert_allclose(p.compile()(x), want, rtol=1e-12)


def test_axes_with_extents():
    p = nautilus.Program()
    M = p.dims("M")
    i, k = p.axes("i k")
    X = p.input("X", "f32", M + 2)
    Y = p.output("Y", "f32")
    Y[i(M)] = nautilus.sum(k(3), X[i + k])
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_allclose(p.compile()(x), x[:-2] + x[1:-1] + x[2:])


def test_errors_name_the_python_line():
    p = nautilus.Program()
    M = p.dims("M")
    i = p.axes("i")
    X = p.input("X", "f32", M)
    Y = p.output("Y", "f32")
    Y[i] = X[i] + nautilus.Expression("unknown")
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(nautilus.ProgramError) as caught:
        p.compile()
    text = str(caught.value)
    assert "unknown" in text and "^" in text
    assert f"line 3 of the program was written at {__file__}:{line}" in text


def test_mistakes():
    p = nautilus.Program()
    M = p.dims("M")
    i, j = p.axes("i j")
    X = p.input("X", "f32", M, M)
    Y = p.output("Y", "f32")
    with pytest.raises(TypeError, match="use & | ~"):
        bool(0 < i < 3)
    with pytest.raises(TypeError, match="use & | ~"):
        (i < 3) and (j < 3)
    with pytest.raises(nautilus.ArgumentError, match="`X` has 2 dimensions, 1 indices"):
        X[i]
    with pytest.raises(TypeError, match="no slices"):
        X[i, :]
    with pytest.raises(TypeError, match="are axes"):
        Y[i + 1] = X[i, j]
    with pytest.raises(TypeError, match="reduces over axes"):
        nautilus.sum(X[i, j], j)
    with pytest.raises(TypeError):
        X[i, j] + "1"
