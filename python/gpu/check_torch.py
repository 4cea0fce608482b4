# SPDX-License-Identifier: Apache-2.0
"""The package on a GPU with PyTorch: run as `python python/gpu/check_torch.py`, with the package installed or
NAUTILUS_LIBRARY set and python/ on PYTHONPATH. Prints a table; the status is 1 if a part failed.

usage: check_torch.py [--quick]     --quick: no timing next to FlexAttention
"""

import argparse
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import torch  # noqa: E402
from report import Report, interleaved, microseconds  # noqa: E402

import nautilus  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAUSAL = ROOT / "examples" / "attention_causal.naut"
LSE = ROOT / "examples" / "attention_lse.naut"
WINDOW = ROOT / "examples" / "attention_window.naut"
B, H, M, D = 2, 8, 512, 128


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)


def qkv(batch=B, heads=H, key_heads=None, queries=M, keys=None, head=D, dtype=torch.bfloat16):
    key_heads, keys = key_heads or heads, keys or queries
    return (draw(batch, heads, queries, head, dtype=dtype), draw(batch, key_heads, keys, head, dtype=dtype),
            draw(batch, key_heads, keys, head, dtype=dtype))


def reference(q, k, v, score=None, mask=None, scale=None, sink=None):
    """fp64, on the GPU."""
    group = q.shape[1] // k.shape[1]
    q, k, v = q.double(), k.double().repeat_interleave(group, 1), v.double().repeat_interleave(group, 1)
    s = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    b = torch.arange(q.shape[0], device="cuda")[:, None, None, None]
    h = torch.arange(q.shape[1], device="cuda")[None, :, None, None]
    i = torch.arange(q.shape[2], device="cuda")[None, None, :, None]
    j = torch.arange(k.shape[2], device="cuda")[None, None, None, :]
    if score is not None:
        s = score(s, b, h, i, j)
    if mask is not None:
        s = s.masked_fill(~mask(b, h, i, j).expand_as(s), float("-inf"))
    if sink is not None:
        s = torch.cat([s, sink.double()[None, :, None, None].expand(*s.shape[:3], 1)], -1)
    p = torch.softmax(s, -1).nan_to_num(0)
    return p[..., :v.shape[2]] @ v


def error(got, want):
    """Of the whole tensor, relative: root of the mean square of the difference over that of the result."""
    return ((got.double() - want).square().mean().sqrt() / want.square().mean().sqrt()).item()


def near(got, want, limit=1e-2):
    found = error(got, want)
    if not found < limit:
        raise AssertionError(f"relative error {found:.2e}, allowed {limit:.0e}")
    return f"relative error {found:.1e}"


def call_and_out():
    op = nautilus.compile(CAUSAL, D=D)
    q, k, v = qkv()
    want = reference(q, k, v, mask=lambda b, h, i, j: j <= i)
    text = near(op(q, k, v), want)
    out = torch.empty(B, M, H, D, device="cuda", dtype=q.dtype).transpose(1, 2)
    if op(q, k, v, out=out) is not out:
        raise AssertionError("out= gives another tensor")
    near(out, want)
    near(op(Q=q, K=k, V=v, scale=0.2), reference(q, k, v, mask=lambda b, h, i, j: j <= i, scale=0.2))
    strided = draw(B, M, H, D).transpose(1, 2)
    near(op(strided, k, v), reference(strided, k, v, mask=lambda b, h, i, j: j <= i))
    return text


def several_outputs():
    op = nautilus.compile(LSE, D=64)
    q, k, v = qkv(head=64)
    o, lse = op(q, k, v)
    near(o, reference(q, k, v))
    s = q.double() @ k.double().transpose(-1, -2) * 64**-0.5
    return near(lse, torch.logsumexp(s, -1), 1e-4)


def misaligned():
    op = nautilus.compile(CAUSAL, D=D)
    q, k, v = qkv()
    storage = draw(q.numel() + 1)
    q = storage[1:].view(q.shape)
    return near(op(q, k, v), reference(q, k, v, mask=lambda b, h, i, j: j <= i))


def errors():
    op = nautilus.compile(CAUSAL, D=D)
    q, k, v = qkv()
    texts = []
    for arguments in ((q, k, v[:, :, :-1]), (q.float(), k, v), (q, k.cpu(), v), (q, k)):
        try:
            op(*arguments)
        except nautilus.ArgumentError as caught:
            texts.append(str(caught).split("\n")[0])
            continue
        raise AssertionError("a wrong call was accepted")
    return "; ".join(text[:60] for text in texts)


OPS = {}


def registered():
    OPS["causal"] = nautilus.op("nautilus_check::causal", CAUSAL, D=D)
    OPS["lse"] = nautilus.op("nautilus_check::lse", LSE, D=64)
    OPS["window"] = nautilus.op("nautilus_check::window", WINDOW, D=D)
    q, k, v = qkv()
    return near(torch.ops.nautilus_check.causal(q, k, v), reference(q, k, v, mask=lambda b, h, i, j: j <= i))


def opcheck():
    q, k, v = qkv(queries=128)
    torch.library.opcheck(OPS["causal"], (q, k, v))
    torch.library.opcheck(OPS["causal"], (q, k, v), dict(scale=0.1))
    torch.library.opcheck(OPS["window"], (q, k, v), dict(width=32))
    torch.library.opcheck(OPS["causal"], tuple(t.detach().requires_grad_() for t in (q, k, v)),
                          test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))
    q, k, v = qkv(queries=128, head=64)
    torch.library.opcheck(OPS["lse"], (q, k, v))
    return "schema, fake tensors, autograd registration, dynamic dispatch"


def compiled(dynamic):
    op = OPS["causal"]
    compilations = [0]

    def backend(graph, example_inputs):
        compilations[0] += 1
        return torch._inductor.compile(graph, example_inputs)

    def f(q, k, v):
        return op(q * 1.0, k, v) + 1.0

    torch._dynamo.reset()
    g = torch.compile(f, fullgraph=True, dynamic=dynamic, backend=backend)
    for queries in (256, 384, 640):
        q, k, v = qkv(queries=queries)
        near(g(q, k, v) - 1.0, reference(q, k, v, mask=lambda b, h, i, j: j <= i), 2e-2)
    if dynamic and compilations[0] > 2:
        raise AssertionError(f"{compilations[0]} compilations for three lengths")
    return f"{compilations[0]} compilations for three lengths"


def no_backward():
    q, k, v = (t.requires_grad_() for t in qkv(queries=128))
    for call in (OPS["causal"], nautilus.compile(CAUSAL, D=D)):
        o = call(q, k, v)
        try:
            o.float().sum().backward()
        except NotImplementedError as caught:
            text = str(caught)
            continue
        raise AssertionError("a backward that does not exist ran")
    return text[:70]


def cuda_graph():
    op = nautilus.compile(CAUSAL, D=D)
    q, k, v = qkv()
    for call in (op, OPS["causal"]):
        call(q, k, v)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            o = call(q, k, v)
        for _ in range(3):
            q.copy_(draw(*q.shape))
            graph.replay()
            near(o, reference(q, k, v, mask=lambda b, h, i, j: j <= i))
    # A decode step has parts and needs workspace.
    q, k, v = qkv(batch=1, heads=32, key_heads=8, queries=1, keys=8192)
    nautilus.attention(q, k, v)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = nautilus.attention(q, k, v)
    for _ in range(3):
        q.copy_(draw(*q.shape))
        graph.replay()
        near(o, reference(q, k, v))
    return "prefill and decode, replayed with other inputs"


def streams():
    op = nautilus.compile(CAUSAL, D=D)
    side = torch.cuda.Stream()
    q, k, v = qkv(queries=2048)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        scaled = q * 2.0
        o = op(scaled, k, v)  # wrong if it does not wait for the product on this stream
    torch.cuda.current_stream().wait_stream(side)
    return near(o, reference(q * 2.0, k, v, mask=lambda b, h, i, j: j <= i))


def threads():
    op = nautilus.compile(CAUSAL, D=D)
    q, k, v = qkv()
    want = reference(q, k, v, mask=lambda b, h, i, j: j <= i)
    failures = []

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                results = [op(q, k, v) for _ in range(50)]
                torch.cuda.current_stream().synchronize()
            for o in results[::10]:
                near(o, want)
        except BaseException as caught:  # noqa: B902
            failures.append(caught)

    torch.cuda.synchronize()
    started = [threading.Thread(target=work) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]
    return "4 threads, each with a stream, 50 calls"


def devices():
    if torch.cuda.device_count() < 2:
        return "one device here: not tried"
    op = nautilus.compile(CAUSAL, D=D)
    q, k, v = (t.to("cuda:1") for t in qkv())
    o = op(q, k, v)
    if o.device.index != 1:
        raise AssertionError(f"the result is on {o.device}")
    return near(o.to("cuda:0"), reference(*(t.to("cuda:0") for t in (q, k, v)), mask=lambda b, h, i, j: j <= i))


def overhead():
    """Host time of a call, beside the C call alone with structs that are filled already."""
    op = nautilus.compile(CAUSAL, D=D)
    q, k, v = qkv(batch=1, heads=2, queries=128)
    out = torch.empty_like(q)
    op(q, k, v, out=out)
    op(q, k, v)
    prepared = next(iter(op.torch_runner._prepared.values()))
    call = prepared.pool[0]
    for slot, tensor in zip(call.slots, (q, k, v, out)):
        slot.data = tensor.data_ptr()
    call.options.stream = torch.cuda.current_stream().cuda_stream
    workspace = torch.empty(max(call.workspace, 256), dtype=torch.uint8, device="cuda")
    call.options.workspace = workspace.data_ptr()
    c = microseconds(call.launch)
    direct, written = microseconds(lambda: op(q, k, v)), microseconds(lambda: op(q, k, v, out=out))
    scaled = microseconds(lambda: op(q, k, v, scale=0.1))
    with torch.no_grad():
        registered_ = microseconds(lambda: OPS["causal"](q, k, v))
    formula = microseconds(lambda: nautilus.attention(q, k, v, mask="j <= i"))
    sdpa = microseconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    text = (f"C call {c:.1f} us; over it: op(q,k,v) {direct - c:.1f}, out= {written - c:.1f}, scale= {scaled - c:.1f}, "
            f"torch.ops {registered_ - c:.1f}, nautilus.attention {formula - c:.1f} us (sdpa takes {sdpa:.1f} us)")
    if max(registered_, direct, written, scaled) - c > 10:
        raise AssertionError(text + "; 10 us are allowed")
    return text


def first_call():
    import time

    q, k, v = qkv(head=96)
    torch.cuda.synchronize()
    start = time.time()
    nautilus.attention(q, k, v, score="s + 0.125 * (j - i)", mask="j <= i")
    torch.cuda.synchronize()
    return f"{time.time() - start:.2f} s from formula to result (with the disk cache as it is)"


def variants():
    """name: (arguments of attention, score and mask of the reference, others)."""
    slope = 2.0 ** -torch.arange(1, H + 1, device="cuda", dtype=torch.float32)
    doc = torch.sort(torch.randint(0, 5, (B, M), device="cuda", dtype=torch.int32), dim=1).values
    length = torch.tensor([M, M // 3], device="cuda", dtype=torch.int32)
    bias = draw(H, M, M)
    sink = draw(H, dtype=torch.float32)
    table = draw(H, 65, dtype=torch.float32)
    return {
        "causal": (dict(mask="j <= i"), None, lambda b, h, i, j: j <= i, {}),
        "window": (dict(mask="j <= i and i - j < W", W=100), None, lambda b, h, i, j: (j <= i) & (i - j < 100), {}),
        "ALiBi": (dict(score="s + slope[h] * (j - i)", mask="j <= i", slope=slope),
                  lambda s, b, h, i, j: s + slope[h] * (j - i), lambda b, h, i, j: j <= i, {}),
        "softcap": (dict(score="softcap(s, 30)", mask="j <= i"), lambda s, b, h, i, j: 30 * torch.tanh(s / 30),
                    lambda b, h, i, j: j <= i, {}),
        "softcap + ALiBi + window": (
            dict(score="softcap(s, 30) + slope[h] * (j - i)", mask="j <= i and i - j < W", slope=slope, W=100),
            lambda s, b, h, i, j: 30 * torch.tanh(s / 30) + slope[h] * (j - i),
            lambda b, h, i, j: (j <= i) & (i - j < 100), {}),
        "documents": (dict(mask="doc[b,i] == doc[b,j] and j <= i", doc=doc), None,
                      lambda b, h, i, j: (doc[b, i] == doc[b, j]) & (j <= i), {}),
        "prefix": (dict(mask="j < n[b] or j <= i", n=length), None, lambda b, h, i, j: (j < length[b]) | (j <= i), {}),
        "padding": (dict(mask="j < n[b]", n=length), None, lambda b, h, i, j: j < length[b], {}),
        "full bias": (dict(score="s + bias[h,i,j]", bias=bias), lambda s, b, h, i, j: s + bias.double()[h, i, j], None, {}),
        "relative bias": (dict(score="s + table[h, clamp(i - j, 0, table_1 - 1)]", table=table),
                          lambda s, b, h, i, j: s + table[h, (i - j).clamp(0, 64)], None, {}),
        "sinks": (dict(mask="j <= i", sink=sink), None, lambda b, h, i, j: j <= i, dict(sink=sink)),
        "NATTEN": (dict(mask="abs(i / w - j / w) <= r and abs(i % w - j % w) <= r", w=32, r=3), None,
                   lambda b, h, i, j: ((i // 32 - j // 32).abs() <= 3) & ((i % 32 - j % 32).abs() <= 3), {}),
    }


def variant(arguments, score, mask, others):
    q, k, v = qkv()
    return near(nautilus.attention(q, k, v, **arguments), reference(q, k, v, score, mask, **others))


def grouped(queries, dtype):
    q, k, v = qkv(heads=16, key_heads=2, queries=queries, keys=1000, dtype=dtype)
    got = nautilus.attention(q, k, v, mask="causal(i, j, N - M)")
    return near(got, reference(q, k, v, mask=lambda b, h, i, j: j <= i + 1000 - queries))


def beside_flex(name):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.reset()
    flex = torch.compile(flex_attention, dynamic=False)
    length, heads = 4096, 16
    q, k, v = qkv(batch=2, heads=heads, queries=length)
    slope = 2.0 ** -torch.arange(1, heads + 1, device="cuda", dtype=torch.float32)

    def causal(b, h, i, j):
        return i >= j

    def window(b, h, i, j):
        return (i >= j) & (i - j < 1024)

    arguments, score, mask = {
        "softcap, causal": (dict(score="softcap(s, 30)", mask="j <= i"), lambda s, b, h, i, j: 30 * torch.tanh(s / 30),
                            causal),
        "ALiBi, causal": (dict(score="s + slope[h] * (j - i)", mask="j <= i", slope=slope),
                          lambda s, b, h, i, j: s + slope[h] * (j - i), causal),
        "window of 1024": (dict(mask="j <= i and i - j < W", W=1024), None, window),
    }[name]
    block_mask = create_block_mask(mask, None, None, length, length, device="cuda")

    def theirs():
        return flex(q, k, v, score_mod=score, block_mask=block_mask)

    def ours():
        return nautilus.attention(q, k, v, **arguments)

    text = near(ours(), theirs().double(), 2e-2)
    mine, other = interleaved([ours, theirs])
    return f"{mine:.3f} ms, FlexAttention {other:.3f} ms, ratio {other / mine:.2f}; to each other: {text}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="no timing next to FlexAttention")
    quick = parser.parse_args().quick
    torch.manual_seed(0)
    print(f"nautilus {nautilus.library_version()}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    report = Report("nautilus with PyTorch")
    report.part("op(q, k, v), out=, names, strides", call_and_out)
    report.part("several outputs", several_outputs)
    report.part("misaligned tensor", misaligned)
    report.part("errors name the argument", errors)
    report.part("nautilus.op", registered)
    report.part("opcheck", opcheck)
    report.part("torch.compile fullgraph, static", compiled, False)
    report.part("torch.compile fullgraph, dynamic", compiled, True)
    report.part("backward is refused", no_backward)
    report.part("CUDA graphs", cuda_graph)
    report.part("streams", streams)
    report.part("threads", threads)
    report.part("another device", devices)
    report.part("overhead", overhead)
    report.part("first call", first_call)
    for name, arguments in variants().items():
        report.part(f"attention: {name}", variant, *arguments)
    for dtype in (torch.bfloat16, torch.float16):
        for queries in (1, 7, 300):
            report.part(f"attention: GQA 8, {queries} queries, {dtype}".replace("torch.", ""), grouped, queries, dtype)
    if not quick:
        for name in ("softcap, causal", "ALiBi, causal", "window of 1024"):
            report.part(f"beside FlexAttention: {name}", beside_flex, name)
    report.finish()


if __name__ == "__main__":
    main()
