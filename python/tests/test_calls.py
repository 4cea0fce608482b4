# SPDX-License-Identifier: Apache-2.0
"""The way of repeated calls on PyTorch's tensors, without a device: bench/call_cost.py puts host tensors in the place of CUDA's
and a C function that does nothing in the place of the launch."""

import sys
import threading

import nautilus
import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "bench"))
import call_cost  # noqa: E402


@pytest.fixture
def op(examples, monkeypatch):
    monkeypatch.setattr(call_cost._host, "run_torch", call_cost.on_the_host)
    monkeypatch.setattr(call_cost._torch, "_current_stream", lambda index: 7)
    return call_cost.stand_in(nautilus.compile(examples / "attention_window.naut", D=64))


def draw(length=8, dtype=torch.bfloat16):
    return [torch.randn(1, 2, length, 64).to(dtype) for _ in range(3)]


def last_call(op):
    return [prepared.pool[-1] for prepared in op._torch_runner._prepared.values()][-1]


def test_a_call_like_an_earlier_one(op):
    again = op._torch_runner.again
    q, k, v = draw()
    assert again((q, k, v), {"width": 3}, None) is None, "nobody has called it"
    op(q, k, v, width=3)
    (o,) = again((q, k, v), {"width": 4}, None)
    assert o.shape == q.shape and o.dtype == q.dtype and o.is_contiguous()
    call = last_call(op)
    assert [slot.data for slot in call.slots] == [t.data_ptr() for t in (q, k, v, o)]
    assert call.options.stream == 7 and call.numbers[0][0].integer == 4
    others = draw()
    (o,) = again(others, {"width": 4}, None)
    assert [slot.data for slot in call.slots] == [t.data_ptr() for t in (*others, o)]


def test_out(op):
    q, k, v = draw()
    out = torch.empty(1, 8, 2, 64, dtype=q.dtype).transpose(1, 2)
    assert op(q, k, v, width=3, out=out) is out
    again = op._torch_runner.again
    assert again((q, k, v), {"width": 3}, out) == (out,)
    assert again((q, k, v), {"width": 3}, [out])[0] is out
    assert last_call(op).slots[3].data == out.data_ptr()
    assert again((q, k, v), {"width": 3}, {"O": out}) is None, "by name: the longer way"
    assert again((q, k, v), {"width": 3}, out.contiguous()) is None, "other strides"
    assert again((q, k, v), {"width": 3}, [out, out]) is None


def test_what_is_looked_at_closer(op):
    q, k, v = draw()
    op(q, k, v, width=3)
    again = op._torch_runner.again
    wide = torch.empty(q.numel() + 1, dtype=q.dtype)
    for inputs, named in (
        ((q, k), {"width": 3}),
        ((q, k, v), {}),
        ((q, k, v), {"width": True}),
        ((q, k, v), {"width": 3.0}),
        ((q, k, v), {"width": 3, "scale": 0.5}),
        (draw(9), {"width": 3}),
        ((q.float(), k, v), {"width": 3}),
        ((q.transpose(1, 2).contiguous().transpose(1, 2), k, v), {"width": 3}),
        ((wide[1:].view(q.shape), k, v), {"width": 3}),
        ((torch.nn.Parameter(q), k, v), {"width": 3}),
        ((q.to("meta"), k, v), {"width": 3}),
    ):
        assert again(inputs, named, None) is None, named
    wants = q.clone().requires_grad_()
    assert again((wants, k, v), {"width": 3}, None) is None
    with torch.no_grad():
        assert again((wants, k, v), {"width": 3}, None) is not None


def test_numbers_of_either_kind(op):
    q, k, v = draw()
    op(q, k, v, width=3, scale=0.5)
    (_,) = op._torch_runner.again((q, k, v), {"width": 5, "scale": 2}, None)
    call = last_call(op)
    assert [n.integer if not is_float else n.number for n, is_float in call.numbers] == [5, 2.0]
    assert op._torch_runner.again((q, k, v), {"scale": 0.5, "width": 5}, None) is None, "another order is other names"


def test_sizes_by_name_are_part_of_the_key(monkeypatch):
    monkeypatch.setattr(call_cost._host, "run_torch", call_cost.on_the_host)
    op = call_cost.stand_in(nautilus.compile("dims M, N  X: f32[M]  Y[i, j < N] = X[i] -> f32\n"))
    monkeypatch.setattr(call_cost._torch, "_current_stream", lambda index: 0)
    x = torch.ones(3)
    assert op(x, N=2).shape == (3, 2) and op(x, N=5).shape == (3, 5)
    assert op._torch_runner.again((x,), {"N": 2}, None)[0].shape == (3, 2)
    assert op._torch_runner.again((x,), {"N": 6}, None) is None


def test_an_error_of_the_launch(op):
    q, k, v = draw()
    op(q, k, v, width=3)
    last_call(op).start = lambda: 3
    with pytest.raises(nautilus.NautilusError):
        op(q, k, v, width=3)
    op(q, k, v, width=3)  # with structs of its own


def test_threads(op):
    q, k, v = draw()
    op(q, k, v, width=1)
    failures = []

    def work(number):
        for _ in range(200):
            if op(q, k, v, width=number).shape != q.shape:
                failures.append(number)

    started = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert not failures
    assert len(next(iter(op._torch_runner._prepared.values())).pool) <= 4


def test_what_is_slow_is_said_at_the_line_of_the_call(examples):
    op = nautilus.compile(examples / "attention_window.naut", D=64)
    op._program.read = lambda kind: "W0000: slow"
    with pytest.warns(nautilus.SlowWarning, match="W0000") as told:
        assert op.torch_runner is not None
    assert [w.filename for w in told] == [__file__]


def test_functions_of_a_call(op):
    """Time is measured by bench/call_cost.py; what a test can hold on to is the number of Python's functions in a call."""
    q, k, v = draw()
    op(q, k, v, width=3)
    called = []

    def count(frame, event, _):
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        op(q, k, v, width=3)
    finally:
        sys.setprofile(None)
    assert len(called) <= 8, called
