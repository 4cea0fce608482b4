# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="nautilus" next to "sdpa" (and "eager" where sdpa does not know the variant) on a GPU: random
weights, layer sizes of published models, fewer layers. Prints a table; the status is 1 if a part failed.

usage: check_transformers.py [--layers 4] [--only llama,gpt-oss] [--no-timing] [--prompt 4096] [--cache 16384]

What is compared are logits of valid tokens. Tolerance: with logits of a model computed in float32 as the truth, the root
mean square error of nautilus may be at most 1.5 times that of the other implementation, in bf16 both (plus 1e-3 of the
logits' root mean square), so that it is not an opinion which of two bf16 results is right.
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import torch  # noqa: E402
from model_sizes import VOCABULARY, configuration  # noqa: E402
from report import Report  # noqa: E402

import nautilus.integrations.transformers  # noqa: E402

# sdpa has no softcap and no sinks.
OTHER = {"gemma2": "eager", "gpt-oss": "eager"}
NAMES = ("llama", "qwen2", "qwen3", "glm4", "gemma2", "gpt-oss")


class Models:
    """One set of weights; the implementation of attention is switched in place."""

    def __init__(self, name, layers):
        from transformers import AutoModelForCausalLM

        torch.manual_seed(1)
        config = configuration(name, layers)
        config._attn_implementation = OTHER.get(name, "sdpa")
        torch.set_default_dtype(torch.bfloat16)
        try:
            with torch.device("cuda"):
                self.model = AutoModelForCausalLM.from_config(config, attn_implementation=config._attn_implementation)
        finally:
            torch.set_default_dtype(torch.float32)
        self.model.eval()
        for parameter_name, parameter in self.model.named_parameters():
            if parameter_name.endswith("sinks"):
                torch.nn.init.normal_(parameter)

    def use(self, implementation):
        if hasattr(self.model, "set_attn_implementation"):
            self.model.set_attn_implementation(implementation)
        else:
            self.model.config._attn_implementation = implementation
        return self.model


def logits(model, ids, mask=None, steps=0):
    """Of the prompt, and of `steps` further tokens decoded with a cache (given tokens, not sampled ones)."""
    prompt = ids.shape[1] - steps
    result = model(ids[:, :prompt], attention_mask=None if mask is None else mask[:, :prompt], use_cache=True)
    found = [result.logits]
    for step in range(prompt, ids.shape[1]):
        result = model(ids[:, step:step + 1], attention_mask=None if mask is None else mask[:, :step + 1],
                       past_key_values=result.past_key_values, use_cache=True)
        found.append(result.logits)
    return torch.cat(found, 1).float()


def compare(models, name, batch, length, steps, padded):
    torch.manual_seed(2)
    ids = torch.randint(3, VOCABULARY, (batch, length), device="cuda")
    mask, valid = None, torch.ones(batch, length, dtype=torch.bool, device="cuda")
    if padded:  # on the left, as for generation
        mask = torch.ones(batch, length, dtype=torch.long, device="cuda")
        for row in range(batch):
            mask[row, :row * (length // (2 * batch))] = 0
        valid = mask.bool()
    other = OTHER.get(name, "sdpa")
    with torch.no_grad():
        ours = logits(models.use("nautilus"), ids, mask, steps)[valid]
        theirs = logits(models.use(other), ids, mask, steps)[valid]
        models.model.float()
        truth = logits(models.use(other), ids, mask, steps)[valid]
        models.model.bfloat16()
    size = truth.square().mean().sqrt().item()
    error = (ours - truth).square().mean().sqrt().item() / size
    allowed = 1.5 * (theirs - truth).square().mean().sqrt().item() / size + 1e-3
    same = (ours.argmax(-1) == theirs.argmax(-1)).float().mean().item()
    text = f"error {error:.2e}, allowed {allowed:.2e} (1.5 x {other}'s + 1e-3); same best token {100 * same:.1f} %"
    if not error <= allowed:
        raise AssertionError(text)
    return text


def seconds(function, rounds):
    function()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def throughput(models, name, prompt, cache, steps=16):
    """Tokens per second of prefill, and of decoding with a cache of so many tokens; implementations take turns."""
    ids = torch.randint(3, VOCABULARY, (1, prompt), device="cuda")
    long = torch.randint(3, VOCABULARY, (1, cache), device="cuda")
    names = ["nautilus", OTHER.get(name, "sdpa")]
    if name not in OTHER and not NO_FLEX:
        names.append("flex_attention")
    lines = []
    for implementation in names:
        try:
            model = models.use(implementation)
            with torch.no_grad():
                prefill = seconds(lambda: model(ids, use_cache=True, logits_to_keep=1), 5)
                past = None
                for start in range(0, cache, 4096):
                    past = model(long[:, start:start + 4096], past_key_values=past, use_cache=True,
                                 logits_to_keep=1).past_key_values
                state = [past]

                def decode():
                    for _ in range(steps):
                        result = model(ids[:, :1], past_key_values=state[0], use_cache=True)
                        state[0] = result.past_key_values

                step = seconds(decode, 5) / steps
            lines.append(f"{implementation}: prefill {prompt / prefill:.0f} tok/s, decode at {cache} {1 / step:.1f} tok/s")
        except Exception as caught:  # noqa: B902  of another implementation: a line, not a failure
            if implementation == "nautilus":
                raise
            lines.append(f"{implementation}: {type(caught).__name__}: {str(caught)[:80]}")
    return "; ".join(lines)


NO_FLEX = False


def main():
    global NO_FLEX
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("--no-flex", action="store_true")
    parser.add_argument("--prompt", type=int, default=4096)
    parser.add_argument("--cache", type=int, default=16384)
    options = parser.parse_args()
    NO_FLEX = options.no_flex
    import transformers

    nautilus.integrations.transformers.register()
    print(f"nautilus {nautilus.library_version()}, PyTorch {torch.__version__}, transformers {transformers.__version__}, "
          f"{torch.cuda.get_device_name()}; {options.layers} layers")
    report = Report(f'attn_implementation="nautilus", {options.layers} layers')
    for name in options.only.split(","):
        holder = {}

        def make(name=name, holder=holder):
            holder["models"] = Models(name, options.layers)
            count = sum(p.numel() for p in holder["models"].model.parameters())
            return f"{count / 1e9:.2f} billion random weights"

        report.part(f"{name}: model", make)
        if "models" not in holder:
            continue
        models = holder["models"]
        report.part(f"{name}: prefill 300", compare, models, name, 2, 300, 0, False)
        report.part(f"{name}: prefill 290, decode 10", compare, models, name, 2, 300, 10, False)
        report.part(f"{name}: padded, prefill 290, decode 10", compare, models, name, 3, 300, 10, True)
        if not options.no_timing:
            report.part(f"{name}: throughput", throughput, models, name, options.prompt, options.cache)
        del models
        holder.clear()
        torch.cuda.empty_cache()
    report.finish()


if __name__ == "__main__":
    main()
