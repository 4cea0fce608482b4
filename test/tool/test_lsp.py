# SPDX-License-Identifier: Apache-2.0
"""The language server with a client of the protocol: pygls and lsprotocol, which editors and other servers use as well.

usage: test_lsp.py NAUTILUS
"""
import asyncio
import json
import pathlib
import subprocess
import sys

from lsprotocol import types
from pygls.lsp.client import LanguageClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
URI = "file:///tmp/some%20folder/op.naut"
PROGRAM = """# \U0001F41A a comment with a character of two units
dims M, N            static D = 8
hint M = 4, N = 6
X: bf16[M, N]        W: bf16[N, D]
scale = 1/sqrt(D)
fn twice(x) = 2 * x

P[i,j] = softmax[j](twice(X[i,j]) * scale)
Y[i,e] = sum[j] P[i,j] * W[j,e]  -> bf16
"""


class Client(LanguageClient):
    """Keeps what the server says about documents."""

    def __init__(self):
        super().__init__("test", "1")
        self.published = {}
        self.arrived = asyncio.Event()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: types.PublishDiagnosticsParams):
            self.published[params.uri] = params
            self.arrived.set()

    async def diagnostics(self, uri=URI, version=None):
        """Those of a version, as soon as they are there."""
        async def wait():
            while uri not in self.published or (version is not None and self.published[uri].version != version):
                self.arrived.clear()
                await self.arrived.wait()
            return self.published.pop(uri).diagnostics
        return await asyncio.wait_for(wait(), 20)


async def started(nautilus):
    client = Client()
    await client.start_io(nautilus, "lsp")
    reply = await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    return client, reply


def open_text(client, text, version=1, uri=URI):
    client.text_document_did_open(types.DidOpenTextDocumentParams(
        types.TextDocumentItem(uri=uri, language_id="nautilus", version=version, text=text)))


def change_text(client, text, version, uri=URI):
    client.text_document_did_change(types.DidChangeTextDocumentParams(
        types.VersionedTextDocumentIdentifier(version=version, uri=uri),
        [types.TextDocumentContentChangeWholeDocument(text=text)]))


def place(text, part, nth=0):
    """Where the nth occurrence of a part of the text begins, in units of UTF-16."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(part, at + 1)
    line = text.count("\n", 0, at)
    begin = text.rfind("\n", 0, at) + 1
    return types.Position(line, len(text[begin:at].encode("utf-16-le")) // 2)


async def hover(client, position, uri=URI):
    got = await client.text_document_hover_async(types.HoverParams(types.TextDocumentIdentifier(uri), position))
    return got.contents.value if got else None


async def test_session(nautilus):
    client, reply = await started(nautilus)
    assert reply.server_info.name == "nautilus"
    assert reply.capabilities.position_encoding == types.PositionEncodingKind.Utf16

    open_text(client, PROGRAM)
    found = await client.diagnostics(version=1)
    assert not found, found

    # Extents, shapes, dtypes; meanings of library and built-in functions, of words.
    wanted = {
        ("X[i,j]", 0): "X: bf16[M, N]",
        ("P[i,j] *", 0): "P: f32[M, N]",
        ("Y[i", 0): "Y: bf16[M, 8]",
        ("softmax", 0): "fn softmax[j](x)",
        ("twice(X", 0): "fn twice(x) = 2 * x",
        ("scale)", 0): "scale: f32 = 1/sqrt(D)",
        ("M, N  ", 0): "4 by its hint",
        ("D = 8", 0): "static D = 8",
        ("sum[j]", 0): "the sum over an axis",
        ("sqrt(D)", 0): "the square root",
        ("bf16[N", 0): "floats of 16 bits",
    }
    for (part, nth), text in wanted.items():
        got = await hover(client, place(PROGRAM, part, nth))
        assert got and text in got, (part, got)
    assert "[4, 8], 64 bytes" in await hover(client, place(PROGRAM, "Y[i"))
    assert "e < 8" in await hover(client, types.Position(8, 4))  # the axis of Y
    assert "j < N" in await hover(client, types.Position(8, 13))  # the axis of the sum
    assert await hover(client, types.Position(0, 3)) is None  # in a comment
    assert await hover(client, types.Position(99, 99)) is None

    # Definitions: of a tensor, of an axis, of a function of the program; the library has none here.
    async def definition(position):
        return await client.text_document_definition_async(
            types.DefinitionParams(types.TextDocumentIdentifier(URI), position))
    got = await definition(place(PROGRAM, "P[i,j] *"))
    assert got.uri == URI and got.range.start == types.Position(7, 0), got
    got = await definition(place(PROGRAM, "twice(X"))
    assert got.range.start == types.Position(5, 3), got
    assert await definition(place(PROGRAM, "softmax")) is None

    symbols = await client.text_document_document_symbol_async(
        types.DocumentSymbolParams(types.TextDocumentIdentifier(URI)))
    names = {s.name: s for s in symbols}
    assert set(names) == {"M", "N", "D", "X", "W", "scale", "twice", "P", "Y"}, names
    assert names["twice"].kind == types.SymbolKind.Function and names["Y"].detail == "bf16[M, 8]"

    # A mistake behind characters of two units, with its code, its place and the other place.
    broken = "dims M, N\nX: f32[M, N]   Z: f32[N]\nY[i] = X[i,i] + Z[i] -> f32 # \U0001F41A\n"
    change_text(client, broken, 2)
    found = await client.diagnostics(version=2)
    assert found and found[0].code.startswith("E0") and found[0].source == "nautilus", found
    assert found[0].severity == types.DiagnosticSeverity.Error and found[0].range.start.line == 2, found

    odd = "dims M\nX: f32[M]\nlet\U0001F41A"  # the lexer's own message
    change_text(client, odd, 3)
    found = await client.diagnostics(version=3)
    assert found and found[0].range.start == types.Position(2, 3), found
    assert found[0].range.end.character in (4, 5), found

    # Many changes at once are one look: the last one is what counts.
    for version in range(4, 60):
        change_text(client, PROGRAM + "#" * version, version)
    assert not await client.diagnostics(version=59)

    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
    assert not await client.diagnostics()
    try:
        await hover(client, types.Position(1, 1))
        raise AssertionError("a closed document was answered for")
    except Exception as e:  # pygls has a class for each code
        assert "not open" in str(e), e

    await client.shutdown_async(None)
    client.exit(None)
    await asyncio.wait_for(client.stop(), 20)


def raw(nautilus, messages, environment=None):
    """What the server answers to bytes, and its exit status."""
    done = subprocess.run([nautilus, "lsp"], input=b"".join(messages), capture_output=True, timeout=60,
                          env=environment, check=False)
    out = []
    rest = done.stdout
    while rest:
        head, rest = rest.split(b"\r\n\r\n", 1)
        size = int(head.split(b":")[1])
        out.append(json.loads(rest[:size]))
        rest = rest[size:]
    return out, done.returncode


def framed(message):
    text = json.dumps(message).encode() if not isinstance(message, bytes) else message
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


INITIALIZE = framed({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
END = framed({"jsonrpc": "2.0", "id": 99, "method": "shutdown"}) + framed({"jsonrpc": "2.0", "method": "exit"})


def test_malformed(nautilus):
    """Whatever a client sends, the server goes on and answers what follows."""
    request = {"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover"}
    bad = [b"{", b"[]", b"17", b"null", b'{"id": 1}', b'{"id": {}, "method": "x"}', b"\xff\xfe", b'"\\ud800"',
           b'{"jsonrpc":"2.0","method":17}', b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
           b'{"jsonrpc":"2.0","method":"no/such"}', b'{"jsonrpc":"2.0","id":3,"result":null}',
           json.dumps(request).encode(),
           json.dumps({**request, "params": [1, 2]}).encode(),
           json.dumps({**request, "params": {"textDocument": {"uri": 3}, "position": {"line": "x"}}}).encode(),
           b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":17}}',
           b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","text":4}}}',
           b'{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"contentChanges":{}}}',
           b'{"jsonrpc":"2.0","method":"textDocument/didClose"}',
           b"[" * 20000]
    heads = [b"Content-Length: x\r\n\r\n", b"Nonsense\r\n\r\n", b"Content-Length: 99999999999999999999\r\n\r\n"]
    out, status = raw(nautilus, [INITIALIZE] + heads + [framed(b) for b in bad] + [END])
    assert status == 0, status
    assert out[-1] == {"jsonrpc": "2.0", "id": 99, "result": None}, out[-1]
    codes = [m["error"]["code"] for m in out if "error" in m]
    assert -32700 in codes and -32600 in codes and -32601 in codes and -32602 in codes, codes


def test_order(nautilus):
    out, status = raw(nautilus, [framed({"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover"})])
    assert out[0]["error"]["code"] == -32002 and status == 1, (out, status)
    _, status = raw(nautilus, [INITIALIZE, framed({"jsonrpc": "2.0", "method": "exit"})])
    assert status == 1, "exit without shutdown"
    out, _ = raw(nautilus, [INITIALIZE, framed({"jsonrpc": "2.0", "id": "a", "method": "shutdown"}),
                            framed({"jsonrpc": "2.0", "id": "b", "method": "textDocument/hover"})])
    assert out[-1]["id"] == "b" and out[-1]["error"]["code"] == -32600, out


def test_cancelled(nautilus):
    """A request that is taken back while it waits is answered as such."""
    opened = framed({"jsonrpc": "2.0", "method": "textDocument/didOpen",
                     "params": {"textDocument": {"uri": URI, "version": 1, "text": PROGRAM}}})
    ask = framed({"jsonrpc": "2.0", "id": 5, "method": "textDocument/documentSymbol",
                  "params": {"textDocument": {"uri": URI}}})
    cancel = framed({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 5}})
    out, status = raw(nautilus, [INITIALIZE + opened + ask + cancel + END])
    assert status == 0
    assert [m["error"]["code"] for m in out if m.get("id") == 5] == [-32800], out


def test_every_example(nautilus):
    """No example, test or damaged program is too much; each gets an answer."""
    texts = [p.read_text() for p in sorted((ROOT / "examples").glob("*.naut"))]
    texts += [p.read_text(errors="replace") for p in sorted((ROOT / "test" / "diag").glob("*.naut"))]
    texts += [texts[0][:n] for n in range(0, len(texts[0]), 17)]
    texts += ["", "\n", "(" * 3000, "dims " + "M" * 100000, "\r\r\n\r", "spec.program @x\n  nonsense\n"]
    messages = [INITIALIZE]
    for k, text in enumerate(texts):
        uri = f"file:///t/{k}.naut"
        messages.append(framed({"jsonrpc": "2.0", "method": "textDocument/didOpen",
                                "params": {"textDocument": {"uri": uri, "version": 1, "text": text}}}))
        messages.append(framed({"jsonrpc": "2.0", "id": k + 1000, "method": "textDocument/documentSymbol",
                                "params": {"textDocument": {"uri": uri}}}))
    out, status = raw(nautilus, messages + [END])
    assert status == 0, status
    answered = {m["id"] for m in out if "result" in m}
    assert all(k + 1000 in answered for k in range(len(texts)))
    internal = [m for m in out for d in m.get("params", {}).get("diagnostics", []) if d["code"] == "internal"]
    assert not internal, internal[:1]


def main():
    nautilus = str(pathlib.Path(sys.argv[1]).resolve())
    asyncio.run(test_session(nautilus))
    for test in (test_malformed, test_order, test_cancelled, test_every_example):
        test(nautilus)
    print("language server: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
