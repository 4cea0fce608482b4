# SPDX-License-Identifier: Apache-2.0
"""Layer sizes of published models, for transformers: of check_transformers.py and of bench/throughput.py."""

VOCABULARY = 4096


def configuration(name, layers):
    """Layer sizes of a published model; few layers, a small vocabulary, one kind of layer after the other."""
    import transformers

    common = dict(num_hidden_layers=layers, vocab_size=VOCABULARY, max_position_embeddings=65536, pad_token_id=0,
                  bos_token_id=1, eos_token_id=2)
    if name == "llama":  # 3.1 8B
        return transformers.LlamaConfig(hidden_size=4096, intermediate_size=14336, num_attention_heads=32,
                                        num_key_value_heads=8, head_dim=128, rope_theta=500000.0, **common)
    if name == "qwen2":  # 2.5 7B
        return transformers.Qwen2Config(hidden_size=3584, intermediate_size=18944, num_attention_heads=28,
                                        num_key_value_heads=4, rope_theta=1000000.0, **common)
    if name == "qwen3":  # 8B
        return transformers.Qwen3Config(hidden_size=4096, intermediate_size=12288, num_attention_heads=32,
                                        num_key_value_heads=8, head_dim=128, rope_theta=1000000.0, **common)
    if name == "glm4":  # 9B
        return transformers.Glm4Config(hidden_size=4096, intermediate_size=13696, num_attention_heads=32,
                                       num_key_value_heads=2, head_dim=128, **common)
    if name == "gemma2":  # 9B: softcap, every other layer a window
        return transformers.Gemma2Config(hidden_size=3584, intermediate_size=14336, num_attention_heads=16,
                                         num_key_value_heads=8, head_dim=256, query_pre_attn_scalar=256,
                                         sliding_window=4096, attn_logit_softcapping=50.0, **common)
    if name == "gpt-oss":  # 20B: sinks, every other layer a window of 128; fewer experts
        return transformers.GptOssConfig(hidden_size=2880, intermediate_size=2880, num_attention_heads=64,
                                         num_key_value_heads=8, head_dim=64, sliding_window=128, num_local_experts=4,
                                         num_experts_per_tok=2, **{**common, "max_position_embeddings": 131072})
    raise ValueError(name)
