# SPDX-License-Identifier: Apache-2.0
"""docs/from_flexattention.md is run: our side of each section against a NumPy formula, FlexAttention's against ours."""

import pathlib
import re

import nautilus
import numpy as np
import pytest
import reference

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "from_flexattention.md"
SECTION = re.compile(r"^## (.+)$", re.M)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)

B, H, M, D = 2, 4, 48, 16


def sections():
    text = PAGE.read_text()
    parts = SECTION.split(text)
    found = {}
    for title, body in zip(parts[1::2], parts[2::2]):
        blocks = BLOCK.findall(body)
        if blocks:
            assert len(blocks) == 2, f"section {title} must have FlexAttention's block and ours"
            found[title] = blocks
    return found


SECTIONS = sections()


@pytest.fixture
def data(rng):
    return {
        "q": rng.standard_normal((B, H, M, D)).astype(np.float32),
        "k": rng.standard_normal((B, H, M, D)).astype(np.float32),
        "v": rng.standard_normal((B, H, M, D)).astype(np.float32),
        "slope": (2.0 ** -np.arange(1, H + 1)).astype(np.float32),
        "doc": np.sort(rng.integers(0, 4, (B, M)), axis=1).astype(np.int32),
        "prefix_length": np.array([5, 20], np.int32),
        "length": np.array([48, 17], np.int32),
        "table": rng.standard_normal((H, 9)).astype(np.float32),
        "bias": rng.standard_normal((H, M, M)).astype(np.float32),
        "sink": rng.standard_normal(H).astype(np.float32),
        "width": 8,
        "r": 1,
    }


def causal(b, h, i, j):
    return j <= i


def wanted(title, x):
    """The section's operator in NumPy."""
    q, k, v = x["q"], x["k"], x["v"]
    slope, doc, table, bias = x["slope"], x["doc"], x["table"], x["bias"]
    if title == "Causal":
        return reference.attention(q, k, v, mask=causal)
    if title == "Sliding window":
        return reference.attention(q, k, v, mask=lambda b, h, i, j: (j <= i) & (i - j <= 16))
    if title == "ALiBi":
        return reference.attention(q, k, v, score=lambda s, b, h, i, j: s + slope[h] * (j - i))
    if title == "Soft-capping":
        return reference.attention(q, k, v, score=lambda s, b, h, i, j: 30 * np.tanh(s / 30))
    if title == "Document mask":
        return reference.attention(q, k, v, mask=lambda b, h, i, j: (doc[b, i] == doc[b, j]) & (j <= i))
    if title == "Prefix LM":
        return reference.attention(q, k, v, mask=lambda b, h, i, j: (j < x["prefix_length"][b]) | (j <= i))
    if title == "Relative position bias":
        return reference.attention(q, k, v, score=lambda s, b, h, i, j: s + table[h, np.clip(i - j, 0, 8)])
    if title == "Full bias":
        return reference.attention(q, k, v, score=lambda s, b, h, i, j: s + bias[h, i, j])
    if title == "Sinks":
        return reference.attention(q, k, v, mask=causal, sink=x["sink"])
    if title == "NATTEN":
        return reference.attention(
            q, k, v, mask=lambda b, h, i, j: (abs(i // 8 - j // 8) <= 1) & (abs(i % 8 - j % 8) <= 1))
    if title == "Padding":
        return reference.attention(q, k, v, mask=lambda b, h, i, j: j < x["length"][b])
    if title == "All at once":
        return reference.attention(q, k, v, score=lambda s, b, h, i, j: 30 * np.tanh(s / 30) + slope[h] * (j - i),
                                   mask=lambda b, h, i, j: (j <= i) & (i - j < 16))
    raise AssertionError(f"the page has a section {title} that no formula is known for")


def test_page_has_its_sections():
    assert len(SECTIONS) == 12


@pytest.mark.parametrize("title", SECTIONS)
def test_ours(title, data):
    scope = {"nautilus": nautilus, **data}
    exec(SECTIONS[title][1], scope)
    np.testing.assert_allclose(scope["o"], wanted(title, data), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("title", SECTIONS)
def test_theirs(title, data):
    torch = pytest.importorskip("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    tensors = {name: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for name, x in data.items()}
    scope = {"torch": torch, "flex_attention": flex.flex_attention, "create_block_mask": flex.create_block_mask,
             "B": B, "M": M, "N": M, **tensors}
    exec(SECTIONS[title][0], scope)
    np.testing.assert_allclose(scope["o"].numpy(), wanted(title, data), rtol=1e-4, atol=1e-5)


def test_function_in_place_of_text(data):
    introduction = PAGE.read_text().split("\n## ")[0]
    (block,) = BLOCK.findall(introduction)
    scope = {"nautilus": nautilus, **data}
    exec(block, scope)
    want = reference.attention(data["q"], data["k"], data["v"], mask=lambda b, h, i, j: (j <= i) & (i - j < 256))
    np.testing.assert_allclose(scope["o"], want, rtol=1e-5, atol=1e-6)
