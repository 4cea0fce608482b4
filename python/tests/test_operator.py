# SPDX-License-Identifier: Apache-2.0
"""nautilus.compile and calls of what it gives, on NumPy arrays."""

import re
import subprocess
import sys
import threading

import nautilus
import numpy as np
import pytest
import reference

TEXT = """
dims M, N
hint M = 4, N = 8
X: f32[M, N]
y: f32[N]
a = 2
Z[i,j] = a * X[i,j] + y[j]  -> f32
"""


@pytest.fixture
def op():
    return nautilus.compile(TEXT)


@pytest.fixture
def arrays(rng):
    return rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal(5).astype(np.float32)


def test_says_what_it_is(op):
    assert [str(t) for t in op.inputs] == ["X: f32[M, N]", "y: f32[N]"]
    assert [str(t) for t in op.outputs] == ["Z: f32[M, N]"]
    assert [v.name for v in op.sizes] == ["M", "N"]
    assert [(v.name, v.dtype) for v in op.scalars] == [("a", "f32")]
    assert op.scalars[0].default is not None
    assert all(v.bound for v in op.sizes)
    assert op.text == TEXT
    assert "X: f32[M, N]" in repr(op) and "Z: f32[M, N]" in repr(op)


def test_positional_named_and_scalars(op, arrays):
    x, y = arrays
    np.testing.assert_allclose(op(x, y), 2 * x + y, rtol=1e-6)
    np.testing.assert_allclose(op(y=y, X=x), 2 * x + y, rtol=1e-6)
    np.testing.assert_allclose(op(x, y=y, a=-3.5), -3.5 * x + y, rtol=1e-6)
    assert op(x, y).dtype == np.float32


def test_strides(op, rng):
    x = rng.standard_normal((5, 3)).astype(np.float32).T
    y = np.arange(10, dtype=np.float32)[::2]
    np.testing.assert_allclose(op(x, y), 2 * x + y, rtol=1e-6)


def test_empty(op):
    assert op(np.zeros((0, 5), np.float32), np.zeros(5, np.float32)).shape == (0, 5)


def test_out(op, arrays):
    x, y = arrays
    z = np.zeros((3, 5), np.float32)
    assert op(x, y, out=z) is z
    np.testing.assert_allclose(z, 2 * x + y, rtol=1e-6)
    z[:] = 0
    op(x, y, out={"Z": z})
    np.testing.assert_allclose(z, 2 * x + y, rtol=1e-6)
    with pytest.raises(nautilus.ArgumentError, match=r"`Z` has shape \(3, 5\), the array has \(3, 4\)"):
        op(x, y, out=np.zeros((3, 4), np.float32))
    with pytest.raises(nautilus.ArgumentError, match="outputs are `Z`"):
        op(x, y, out={"W": z})


@pytest.mark.parametrize("call, message", [
    (lambda op, x, y: op(x), "needs `y` as well"),
    (lambda op, x, y: op(x, y, y), "takes 2 tensors"),
    (lambda op, x, y: op(x, y, X=x), "`X` is given twice"),
    (lambda op, x, y: op(x, y, b=1), "has no input `b`"),
    (lambda op, x, y: op(x, y, Z=x), "an output is given as out="),
    (lambda op, x, y: op(x, y, a="two"), "`a` is a scalar"),
    (lambda op, x, y: op(x, y[:4]), "`?y`?"),
    (lambda op, x, y: op(x, x), "`?y`?"),
    (lambda op, x, y: op(x.astype(np.int32), y), "`X` is f32, the array has dtype int32"),
    (lambda op, x, y: op.run(x, y, on="gpu"), "'oracle'"),
])
def test_errors_name_the_argument(op, arrays, call, message):
    with pytest.raises(nautilus.ArgumentError, match=message):
        call(op, *arrays)


def test_errors_of_programs_have_carets():
    with pytest.raises(nautilus.ProgramError) as caught:
        nautilus.compile("dims M\nX: f32[M]\nY[i] = X[i] + Q[i]  -> f32\n", name="mine")
    text = str(caught.value)
    assert "mine:3:15" in text and "Q" in text and "^" in text
    assert re.search(r"Y\[i\] = X\[i\] \+ Q\[i\]", text)


def test_unknown_static_size():
    with pytest.raises(nautilus.NautilusError, match="K"):
        nautilus.compile(TEXT, K=3)


def test_text_without_line_ends_and_paths(examples, tmp_path):
    op = nautilus.compile("dims M X: f32[M] Y[i] = X[i] + 1 -> f32")
    np.testing.assert_array_equal(op(np.zeros(3, np.float32)), np.ones(3))
    assert [t.name for t in nautilus.compile(examples / "attention.naut").inputs] == ["Q", "K", "V"]
    assert [t.name for t in nautilus.compile(str(examples / "attention.naut")).inputs] == ["Q", "K", "V"]
    with pytest.raises(FileNotFoundError):
        nautilus.compile(tmp_path / "none.naut")
    with pytest.raises(FileNotFoundError):
        nautilus.compile("none.naut")


def test_static_sizes(examples):
    op = nautilus.compile(examples / "attention.naut", D=128)
    assert op.inputs[0].dims[-1] == "128"
    with pytest.raises(nautilus.ArgumentError, match="static size"):
        op(np.zeros((1, 1, 2, 128)), np.zeros((1, 1, 2, 128)), np.zeros((1, 1, 2, 128)), D=64)


def test_several_outputs_and_bf16(examples, rng):
    op = nautilus.compile(examples / "attention_lse.naut", D=16)
    q, k, v = (rng.standard_normal((1, 2, n, 16)).astype(np.float32) for n in (8, 12, 12))
    o, lse = op(q, k, v)
    assert o.dtype == np.float32 and lse.dtype == np.float32
    assert o.shape == (1, 2, 8, 16) and lse.shape == (1, 2, 8)
    np.testing.assert_allclose(o, reference.attention(q, k, v), rtol=2e-2, atol=2e-2)
    assert not np.any(o.view(np.uint32) & 0xFFFF), "values of bf16"


def test_sizes_that_shapes_do_not_bind():
    op = nautilus.compile("dims M, N\nX: f32[M]\nY[i, j < N] = X[i] + j  -> f32\n")
    assert op(np.zeros(3, np.float32), N=4).shape == (3, 4)
    assert op.shapes((3,), N=4) == {"Y": (3, 4)}
    with pytest.raises(nautilus.ArgumentError, match="N"):
        op(np.zeros(3, np.float32))
    with pytest.raises(nautilus.ArgumentError, match="`N` is a size and must be an integer"):
        op(np.zeros(3, np.float32), N=4.5)


def test_integers_and_flags():
    op = nautilus.compile("dims M, N\nX: f32[N]\nat: i32[M]\nkeep: bool[M]\nY[i] = where(keep[i], X[at[i]], 0)  -> f32\n")
    x = np.arange(5, dtype=np.float32)
    got = op(x, np.array([4, 0, 2]), np.array([True, False, True]))
    np.testing.assert_array_equal(got, [4, 0, 2])
    with pytest.raises(nautilus.ArgumentError, match="`at` is i32, the array has numbers beyond its range"):
        op(x, np.array([2**40, 0, 2]), np.array([True, False, True]))
    with pytest.raises(nautilus.ArgumentError, match="`keep` is bool"):
        op(x, np.array([1, 0, 2]), np.array([1, 0, 1]))


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3", "f8e5m2"])
def test_results_in_dtypes_that_numpy_has_not(dtype):
    op = nautilus.compile(f"dims M\nX: f32[M]\nY[i] = X[i]  -> {dtype}\n")
    # Numbers that all three have, the smallest of f8e5m2 that f8e4m3 has as well among them.
    x = np.array([0, 1, -1.5, 0.0625, 240, -448, 2.0**-9, 0.4375], np.float32)
    if dtype == "f8e5m2":
        x = np.where(np.isin(x, (240, 0.4375)), 0.5, x).astype(np.float32)
    if dtype == "f8e4m3":
        x[4] = 240
    np.testing.assert_array_equal(op(x), x)


def test_shapes_launches_workspace(examples):
    op = nautilus.compile(examples / "attention_gqa.naut", D=64, G=4)
    shapes = ((2, 8, 256, 64), (2, 2, 256, 64), (2, 2, 256, 64))
    assert op.shapes(*shapes) == {"O": (2, 8, 256, 64)}
    launches = op.launches(*shapes)
    assert launches and all(launch.threads > 0 for launch in launches)
    assert any(launch.grid > 0 for launch in launches)
    assert op.workspace(*shapes) >= 0
    assert "<table>" in launches._repr_html_()


def test_texts(examples):
    op = nautilus.compile(examples / "softmax.naut")
    assert "__global__" in op.source
    assert op.explain()
    assert "<div" in op.explain()._repr_html_()
    assert "softmax" in op._repr_html_()
    again = nautilus.compile(examples / "softmax.naut", schedule=op.schedule)
    assert again.source == op.source


def test_emulator_and_definition_agree_with_the_oracle(examples, rng):
    op = nautilus.compile(examples / "attention_causal.naut", D=64)
    q, k, v = (rng.standard_normal((1, 1, n, 64)).astype(np.float32) for n in (40, 72, 72))
    want = op(q, k, v)
    np.testing.assert_allclose(op.run(q, k, v, on="definition"), want, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(op.run(q, k, v, on="emulator"), want, rtol=2e-2, atol=1e-2)


def test_threads(op, arrays):
    x, y = arrays
    failures = []

    def work(seed):
        a = float(seed)
        for _ in range(50):
            if not np.allclose(op(x, y, a=a), a * x + y, rtol=1e-5):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_import_needs_no_library():
    code = ("import os; os.environ['NAUTILUS_LIBRARY'] = '/nowhere/libnautilus.so'\n"
            "import nautilus\n"
            "try:\n    nautilus.compile('dims M X: f32[M] Y[i] = X[i] -> f32')\n"
            "except nautilus.NautilusError as e:\n    print(e)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "there is no library at /nowhere/libnautilus.so" in done.stdout
    assert "torch" not in done.stderr


def test_versions_agree():
    assert nautilus.library_version() == nautilus.__version__


def test_what_is_slow_is_said_with_a_cure() -> None:
    text = "dims M, N, K\nhint M = 512, N = 512, K = 512\nA: {0}[M, K]\nB: {0}[K, N]\nC[i,j] = sum[k] A[i,k] * B[k,j] -> f32\n"
    slow = nautilus.compile("numerics exact\n" + text.format("f32"))
    assert "W0101" in slow.warnings and "bf16(...)" in slow.warnings
    assert not nautilus.compile(text.format("bf16")).warnings
    with pytest.warns(nautilus.SlowWarning, match="W0101"):
        slow._warn()


def test_f32_products_have_the_infinities_of_f32(rng):
    """Operands are split into 16-bit numbers on the way to the matrix unit: what is not finite comes out as in f32."""
    op = nautilus.compile("""
dims M, N, K
hint M = 512, N = 512, K = 512
A: f32[M, K]
B: f32[K, N]
C[i,j] = sum[k] A[i,k] * B[k,j] -> f32
""")
    a = rng.standard_normal((72, 96)).astype(np.float32)
    b = rng.standard_normal((96, 80)).astype(np.float32)
    a[3, 5], a[4, 6], a[5, 7] = np.inf, -np.inf, np.nan
    a[6, 8], b[8, 9], b[8, 10] = np.inf, 0, -1e-30
    a[7, 9], a[8, 9] = 3.4e38, -3.4028e38
    b[20, 11], b[21, 12] = np.inf, np.nan
    a[10, 30], b[30, 13], a[11, 31], b[31, 14] = np.inf, np.inf, np.inf, -np.inf
    b[9] *= 1e-3
    got = op.run(a, b, on="emulator")
    with np.errstate(all="ignore"):
        want = np.zeros_like(got)
        for k in range(a.shape[1]):
            want = want + a[:, k:k + 1] * b[k]
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
    finite = np.isfinite(want)
    assert np.isfinite(got[finite]).all()
    rest = np.ones(72, bool)
    rest[[3, 4, 5, 6, 7, 8, 10, 11]] = False
    columns = np.isfinite(b).all(axis=0)
    exact = a[rest].astype(np.float64) @ b[:, columns].astype(np.float64)
    np.testing.assert_allclose(got[rest][:, columns], exact, rtol=1e-4, atol=1e-5)
