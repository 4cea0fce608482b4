# SPDX-License-Identifier: Apache-2.0
"""PyTorch: its tensors on the host, and operators of its dispatcher. What needs a GPU is marked, and checked in full by
python/gpu/check_torch.py."""

import nautilus
import numpy as np
import pytest
import reference

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def causal(request):
    from conftest import ROOT

    return nautilus.op("nautilus_test::causal", ROOT / "examples" / "attention_causal.naut", D=16)


def draw(*shapes, dtype=torch.bfloat16):
    torch.manual_seed(3)
    return [torch.randn(shape).to(dtype) for shape in shapes]


def test_host_tensors(examples):
    op = nautilus.compile(examples / "attention_causal.naut", D=16)
    q, k, v = draw((1, 2, 6, 16), (1, 2, 8, 16), (1, 2, 8, 16))
    want = reference.attention(q.double(), k.double(), v.double(), mask=lambda b, h, i, j: j <= i + 2)
    o = op(q, k, v)
    assert o.dtype == torch.bfloat16
    np.testing.assert_allclose(o.float(), want, rtol=1e-2, atol=1e-2)
    out = torch.empty(1, 6, 2, 16, dtype=torch.bfloat16).transpose(1, 2)
    assert op(q, k, v, out=out) is out
    assert torch.equal(out, o)
    strided = q.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(op(strided, k, v), o)
    with pytest.raises(nautilus.ArgumentError, match="Q"):
        op(q.int(), k, v)


def test_attention_on_host_tensors():
    q, k, v = draw((1, 4, 5, 16), (1, 2, 5, 16), (1, 2, 5, 16), dtype=torch.float32)
    slope = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    got = nautilus.attention(q, k, v, score="s + slope[h] * (j - i)", mask="j <= i", slope=slope)
    want = reference.attention(q, k, v, score=lambda s, b, h, i, j: s + slope.numpy()[h] * (j - i),
                               mask=lambda b, h, i, j: j <= i)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_schema(causal):
    assert str(causal._schema) == (
        "nautilus_test::causal(Tensor Q, Tensor K, Tensor V, *, float? scale=None) -> Tensor")
    with pytest.raises(nautilus.ArgumentError, match="registered already"):
        nautilus.op("nautilus_test::causal", "dims M X: f32[M] Y[i] = X[i] -> f32")
    with pytest.raises(nautilus.ArgumentError, match="namespace::name"):
        nautilus.op("causal", "dims M X: f32[M] Y[i] = X[i] -> f32")


def test_sizes_and_numbers_in_schemas():
    op = nautilus.op("nautilus_test::spread",
                     "dims M, N  n: i32  X: f32[M]  Y[i, j < N] = X[i] + f32(n) -> f32  Z[i] = X[i] -> f32\n")
    assert str(op._schema) == ("nautilus_test::spread(Tensor X, *, SymInt N, int n) -> (Tensor, Tensor)")
    y, z = op(torch.arange(3.0), N=2, n=4)
    assert torch.equal(y, torch.arange(3.0)[:, None].expand(3, 2) + 4) and torch.equal(z, torch.arange(3.0))
    torch.library.opcheck(op, (torch.arange(3.0),), dict(N=2, n=4))


def test_opcheck(causal):
    q, k, v = draw((1, 2, 6, 16), (1, 2, 8, 16), (1, 2, 8, 16))
    torch.library.opcheck(causal, (q, k, v))
    torch.library.opcheck(causal, (q, k, v), dict(scale=0.5))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(causal, dynamic):
    compilations = []

    def backend(graph, inputs):
        compilations.append(graph)
        return graph.forward

    torch._dynamo.reset()
    f = torch.compile(lambda q, k, v: causal(q, k, v) + 1, fullgraph=True, dynamic=dynamic, backend=backend)
    for length in (6, 8, 11):
        q, k, v = draw(*[(2, 2, length, 16)] * 3)
        assert torch.equal(f(q, k, v), causal(q, k, v) + 1)
    if dynamic:
        assert len(compilations) == 1, "symbols stay symbols"


def test_backward_is_refused(causal):
    q, k, v = (t.requires_grad_() for t in draw(*[(1, 2, 6, 16)] * 3))
    o = causal(q, k, v)
    with pytest.raises(NotImplementedError, match="nautilus_test::causal has no backward"):
        o.float().sum().backward()
    o = nautilus.compile("dims M X: f32[M] Y[i] = 2 * X[i] -> f32")(torch.ones(3, requires_grad=True))
    with pytest.raises(NotImplementedError, match="has no backward"):
        o.sum().backward()


@pytest.mark.gpu
def test_on_the_device(examples):
    op = nautilus.compile(examples / "attention_causal.naut", D=64)
    q, k, v = (t.cuda() for t in draw((1, 2, 72, 64), (1, 2, 96, 64), (1, 2, 96, 64)))
    want = reference.attention(*(t.double().cpu() for t in (q, k, v)), mask=lambda b, h, i, j: j <= i + 24)
    np.testing.assert_allclose(op(q, k, v).float().cpu(), want, rtol=2e-2, atol=1e-2)
