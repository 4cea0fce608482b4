# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="nautilus" in small models on the host, where the oracle computes attention: the structure, not
the kernels. python/gpu/check_transformers.py has layer sizes of published models."""

import nautilus
import nautilus.integrations.transformers as integration
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

COMMON = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              head_dim=16, vocab_size=50, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def model(name):
    more, other = {}, "sdpa"
    if name == "Gemma2":
        more, other = dict(sliding_window=5, attn_logit_softcapping=2.0, query_pre_attn_scalar=16), "eager"
    if name == "GptOss":
        more, other = dict(sliding_window=5, num_local_experts=2, num_experts_per_tok=1), "eager"
    if name == "Mistral":
        more = dict(sliding_window=5)
    if not hasattr(transformers, f"{name}Config"):
        pytest.skip(f"this version of transformers has no {name}")
    torch.manual_seed(5)
    config = getattr(transformers, f"{name}Config")(**COMMON, **more)
    made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=other).eval()
    for parameter_name, parameter in made.named_parameters():
        if parameter_name.endswith("sinks"):
            torch.nn.init.normal_(parameter)
    return made, other


def logits(made, ids, mask, steps):
    prompt = ids.shape[1] - steps
    with torch.no_grad():
        result = made(ids[:, :prompt], attention_mask=None if mask is None else mask[:, :prompt], use_cache=True)
        found = [result.logits]
        for step in range(prompt, ids.shape[1]):
            result = made(ids[:, step:step + 1], attention_mask=None if mask is None else mask[:, :step + 1],
                          past_key_values=result.past_key_values, use_cache=True)
            found.append(result.logits)
    return torch.cat(found, 1)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3", "Glm4", "Gemma2", "GptOss", "Mistral"])
def test_logits(name, padded):
    integration.register()
    made, other = model(name)
    ids = torch.randint(3, 50, (2, 14))
    mask = torch.ones_like(ids)
    if padded:
        mask[1, :4] = 0
    want = logits(made, ids, mask if padded else None, 3)
    made.set_attn_implementation("nautilus")
    got = logits(made, ids, mask if padded else None, 3)
    torch.testing.assert_close(got[mask.bool()], want[mask.bool()], rtol=1e-4, atol=1e-4)


def test_formulas():
    assert integration.formulas(causal=True, window=None, softcap=None, queries=1, padding=None) == (None, None, {})
    score, mask, numbers = integration.formulas(causal=True, window=5, softcap=2.0, queries=7, padding="keys")
    assert (score, mask) == ("softcap(s, cap)", "window(i, j, N - M, W) and keep[b,j]")
    assert numbers == {"cap": 2.0, "W": 5}


def test_what_is_refused():
    class Module:
        training = True
        is_causal = True

    q, k = torch.zeros(1, 4, 3, 16), torch.zeros(1, 2, 3, 16)
    with pytest.raises(nautilus.UnsupportedError, match="dropout"):
        integration.nautilus_attention(Module(), q, k, k, None, dropout=0.1)
    with pytest.raises(nautilus.UnsupportedError, match="static cache"):
        integration.nautilus_attention(Module(), q, k, k, torch.ones(1, 2))
    with pytest.raises(nautilus.UnsupportedError, match="head mask"):
        integration.nautilus_attention(Module(), q, k, k, None, head_mask=torch.ones(1))


def test_masks_of_four_dimensions():
    class Module:
        training = False
        is_causal = True

    torch.manual_seed(4)
    q, k, v = torch.randn(2, 4, 3, 16), torch.randn(2, 2, 5, 16), torch.randn(2, 2, 5, 16)
    keep = torch.rand(2, 1, 3, 5) > 0.3
    keep[..., 0] = True
    for mask in (keep, torch.zeros(keep.shape).masked_fill(~keep, -1e9)):
        want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        got, _ = integration.nautilus_attention(Module(), q, k, v, mask)
        torch.testing.assert_close(got.transpose(1, 2), want, rtol=1e-4, atol=1e-5)
