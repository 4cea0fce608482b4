# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="nautilus" for Hugging Face transformers.

    import nautilus.integrations.transformers
    nautilus.integrations.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(..., attn_implementation="nautilus")

Prefill and decoding with a dynamic cache: grouped queries, causal masks, sliding windows, capped scores, sinks, padding
masks of two dimensions, and masks of four dimensions as they are. Not supported, with an error that says so: dropout
in training, head masks, a static cache. There is no backward.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, Optional

from .._attention import attention
from .._errors import UnsupportedError

NAME = "nautilus"
_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=3)


@lru_cache(maxsize=256)
def formulas(*, causal: bool, window: Optional[int], softcap: Optional[float], queries: int,
             padding: Optional[str]) -> tuple[Optional[str], Optional[str], dict[str, Any]]:
    """Score and mask of a layer as texts, with the numbers that they name. The last query meets the last key: a cache
    has put earlier keys before those of the queries."""
    numbers: dict[str, Any] = {}
    score = None
    if softcap is not None:
        score = "softcap(s, cap)"
        numbers["cap"] = float(softcap)
    conditions = []
    if causal and window is not None:
        conditions.append("window(i, j, N - M, W)")
        numbers["W"] = int(window)
    elif causal and queries > 1:
        conditions.append("causal(i, j, N - M)")
    elif window is not None:
        conditions.append("j - i - N + M < W and i + N - M - j < W")
        numbers["W"] = int(window)
    if padding == "keys":
        conditions.append("keep[b,j]")
    elif padding == "pairs":
        conditions.append("keep[b,i,j]")
    elif padding == "bias":
        score = f"{score or 's'} + bias[b,i,j]"
    return score, " and ".join(conditions) or None, numbers


def nautilus_attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: Optional[float] = None,
                       dropout: float = 0.0, sliding_window: Optional[int] = None, softcap: Optional[float] = None,
                       is_causal: Optional[bool] = None, s_aux: Any = None, **others: Any) -> tuple[Any, None]:
    """The function that transformers calls: tensors [B, heads, length, D]; gives [B, length, heads, D]."""
    if dropout and getattr(module, "training", False):
        raise UnsupportedError("attn_implementation='nautilus' has no dropout: set attention_dropout=0, or model.eval()")
    if others.get("head_mask") is not None:
        raise UnsupportedError("attn_implementation='nautilus' takes no head mask")
    if others.get("output_attentions"):
        _warn_once("attn_implementation='nautilus' gives no attention weights: they are None")
    batch, _, queries, _ = query.shape
    keys = key.shape[2]
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    tensors: dict[str, Any] = {}
    padding = None
    if attention_mask is not None and attention_mask.dim() == 2:
        mask = attention_mask[:, :keys]
        if mask.shape[1] != keys:
            raise UnsupportedError(f"attn_implementation='nautilus': the padding mask has {attention_mask.shape[1]} "
                                   f"columns, there are {keys} keys; a static cache is not supported, use a dynamic one")
        padding, tensors["keep"] = "keys", mask.bool()
    elif attention_mask is not None:
        # All of the mask is in it, causality and windows too.
        mask = attention_mask[..., :keys]
        if mask.dim() != 4 or mask.shape[1] != 1:
            raise UnsupportedError(f"attn_implementation='nautilus': a mask of shape {tuple(attention_mask.shape)}; "
                                   f"[B, N] and [B, 1, M, N] are known")
        mask = mask[:, 0].expand(batch, queries, keys)
        causal, sliding_window = False, None
        import torch

        if mask.dtype == torch.bool:
            padding, tensors["keep"] = "pairs", mask
        else:
            padding, tensors["bias"] = "bias", mask
    if sliding_window is not None and keys <= sliding_window and causal:
        sliding_window = None  # every key before a query is inside of the window
    score, mask_text, numbers = formulas(causal=causal, window=sliding_window, softcap=softcap, queries=queries,
                                         padding=padding)
    if queries == 1:  # what is computed has this order already
        result = attention(query, key, value, score=score, mask=mask_text, scale=scaling, sink=s_aux, **tensors, **numbers)
        return result.transpose(1, 2), None
    out = query.new_empty((batch, queries, query.shape[1], value.shape[3]))
    attention(query, key, value, score=score, mask=mask_text, scale=scaling, sink=s_aux, out=out.transpose(1, 2),
              **tensors, **numbers)
    return out, None


def register(name: str = NAME) -> None:
    """Makes `attn_implementation="nautilus"` known to transformers. May be called more than once."""
    try:
        from transformers import AttentionInterface
    except ImportError as error:
        raise UnsupportedError("transformers with AttentionInterface (4.48 or later) is needed: "
                               f"{error}") from error
    AttentionInterface.register(name, nautilus_attention)
    try:
        from transformers import AttentionMaskInterface
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    except ImportError:
        return  # earlier versions hand over the mask of four dimensions
    # No mask where nothing is padded, else the padding mask itself: causality and windows are formulas.
    AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS["flash_attention_2"])
