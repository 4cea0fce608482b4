# SPDX-License-Identifier: Apache-2.0
"""Variants of attention: what each does to the scores, for the float64 reference and for the peer,
FlexAttention.

A rule maps scores of rows i (a column of numbers) and keys j (a row) to what the softmax sees; a
column more than there are keys takes part in the sum and has no value (a sink).
"""
import math
import random


def full(s, b, h, i, j):
    del b, h, i, j
    return s


def causal(offset):
    """Key j is seen by query i if j <= i + offset."""
    return lambda s, b, h, i, j: s.masked_fill(j > i + offset, -math.inf)


class Variant:
    """The tensors and scalars a program takes beside Q, K, V; `live(m, n)` scores that count."""

    def __init__(self, tensors=None, scalars=None):
        self.tensors = tensors or {}
        self.scalars = scalars or {}

    plain_rule = staticmethod(full)  # of the program without the variant
    has_batch_mask = False  # the mask is another one in each sequence of a batch

    def rule(self, s, b, h, i, j):
        raise NotImplementedError

    def score_mod(self):
        """For FlexAttention: a function of (score, b, h, q, k), or None."""

    def mask_mod(self):
        """For FlexAttention: a function of (b, h, q, k), or None."""

    def finish(self, out, lse):
        """What is left to do with FlexAttention's output."""
        del lse
        return out


class Causal(Variant):
    """Variants here have as many queries as keys."""

    plain_rule = staticmethod(causal(0))

    def rule(self, s, b, h, i, j):
        return self.visible(s, b, h, i, j).masked_fill(j > i, -math.inf)

    def visible(self, s, b, h, i, j):
        del b, h, i, j
        return s

    def mask_mod(self):
        return lambda b, h, q, k: q >= k


class Softcap(Causal):
    CAP = 30.0

    def visible(self, s, b, h, i, j):
        return self.CAP * (s / self.CAP).tanh()

    def score_mod(self):
        import torch
        cap = self.CAP
        return lambda score, b, h, q, k: cap * torch.tanh(score / cap)


class Alibi(Causal):
    def visible(self, s, b, h, i, j):
        return s - self.tensors["slope"][h].double() * (i - j)

    def score_mod(self):
        slope = self.tensors["slope"]
        return lambda score, b, h, q, k: score - slope[h] * (q - k)


class Window(Causal):
    def rule(self, s, b, h, i, j):
        return super().rule(s, b, h, i, j).masked_fill(i - j >= self.scalars["width"], -math.inf)

    def mask_mod(self):
        width = self.scalars["width"]
        return lambda b, h, q, k: (q >= k) & (q - k < width)


class Sink(Causal):
    def rule(self, s, b, h, i, j):
        import torch
        s = super().rule(s, b, h, i, j)
        sink = self.tensors["sink"][h].double().expand(s.shape[0], 1)
        return torch.cat([s, sink], -1)

    def finish(self, out, lse):
        import torch
        sink = self.tensors["sink"][None, :, None]
        return out * torch.sigmoid(lse - sink).unsqueeze(-1).to(out.dtype)


class Bias(Variant):
    def rule(self, s, b, h, i, j):
        return s + self.tensors["bias"][h, i[:, 0]].double()

    def score_mod(self):
        bias = self.tensors["bias"]
        return lambda score, b, h, q, k: score + bias[h, q, k]


class Documents(Variant):
    """Rows see the keys of their own document."""

    has_batch_mask = True

    def rule(self, s, b, h, i, j):
        doc = self.tensors["doc"][b]
        return s.masked_fill(doc[i] != doc[j], -math.inf)

    def mask_mod(self):
        doc = self.tensors["doc"]
        return lambda b, h, q, k: doc[b, q] == doc[b, k]


class DocumentsCausal(Documents):
    plain_rule = staticmethod(causal(0))

    def rule(self, s, b, h, i, j):
        return super().rule(s, b, h, i, j).masked_fill(j > i, -math.inf)

    def mask_mod(self):
        same = super().mask_mod()
        return lambda b, h, q, k: same(b, h, q, k) & (q >= k)


DOCUMENT_ROWS = 2048  # of a document, on average
DOCUMENT_GRAIN = 384  # of aligned documents: a multiple of the rows and steps of most tiles


def document_lengths(kind, s, sequence):
    """Random, but always the same for a length and the number of a sequence in its batch: the work
    of a case is known before its tensors are. Two further kinds take apart what documents cost:
    `documents_equal` have one length, so that tiles have the same work, and `documents_aligned`
    random lengths, but no tile that straddles two of them."""
    count = round(s / DOCUMENT_ROWS) if s >= 2 * DOCUMENT_ROWS else min(5, s)
    chosen = random.Random(1000 * s + sequence)
    if kind.startswith("documents_equal"):
        cuts = [n * s // count for n in range(1, count)]
    elif kind.startswith("documents_aligned") and s > count * DOCUMENT_GRAIN:
        places = range(DOCUMENT_GRAIN, s, DOCUMENT_GRAIN)
        cuts = sorted(chosen.sample(places, min(count, len(places)) - 1))
    else:
        cuts = sorted(chosen.sample(range(1, s), count - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, s])]


def document_numbers(kind, b, s):
    import torch
    numbers = [torch.repeat_interleave(torch.arange(len(lengths), dtype=torch.int32),
                                       torch.tensor(lengths))
               for lengths in (document_lengths(kind, s, n) for n in range(b))]
    return torch.stack(numbers).cuda()


def is_documents(kind):
    return kind.startswith("documents")


def is_causal(kind):
    return kind.endswith("_causal") if is_documents(kind) else kind != "bias"


def make(kind, b, h, s):
    import torch
    if is_documents(kind):
        made = DocumentsCausal if is_causal(kind) else Documents
        return made({"doc": document_numbers(kind, b, s)})
    if kind == "softcap":
        return Softcap()
    if kind == "alibi":
        return Alibi({"slope": torch.rand(h, device="cuda") * 0.1})
    if kind == "window":
        return Window(scalars={"width": min(4096, max(1, s // 4))})
    if kind == "sink":
        return Sink({"sink": torch.randn(h, device="cuda")})
    return Bias({"bias": torch.randn(h, s, s, device="cuda", dtype=torch.bfloat16)})


def live_scores(kind, b, s):
    """Scores of one head, of all sequences of a batch, that are not masked, the diagonal counted as
    half."""
    if kind == "window":
        width = min(4096, max(1, s // 4))
        return b * (s * width - width * width / 2)
    half = 2 if is_causal(kind) else 1
    if is_documents(kind):
        return sum(rows * rows for n in range(b) for rows in document_lengths(kind, s, n)) / half
    return b * s * s / half


def flex_attention(variant, q, k, v):
    """The peer: a function that returns the output; its first call compiles."""
    import torch
    from torch.nn.attention import flex_attention as flex
    mask = variant.mask_mod()
    blocks = None
    if mask:
        sequences = q.shape[0] if variant.has_batch_mask else None
        blocks = flex.create_block_mask(mask, sequences, None, q.shape[2], k.shape[2],
                                        device="cuda")
    score = variant.score_mod()

    @torch.compile(dynamic=False)
    def run(q, k, v):
        out, lse = flex.flex_attention(q, k, v, score_mod=score, block_mask=blocks, return_lse=True)
        return variant.finish(out, lse)

    return lambda: run(q, k, v)
