#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of models of Hugging Face transformers by implementation of attention: nautilus,
sdpa, flex_attention. Layer sizes of published models, random weights, few layers, a small vocabulary.

    python3 bench/throughput.py --out throughput.jsonl      # Llama 3.1 8B and Gemma 2 9B, 4 layers each
    python3 bench/throughput.py --models llama,qwen3,gpt-oss --layers 8 --prompt 8192 --cache 32768

Prefill of a prompt, and decoding one token after the other with a cache, one sequence. Implementations
take turns. Everything else of a layer (projections, MLP, norms, Python) is the same, and is timed.
"""
import argparse
import datetime
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "python"), os.path.join(ROOT, "python", "gpu")]
sys.dont_write_bytecode = True  # no __pycache__ in the checkout

import report  # noqa: E402
import supervise  # noqa: E402
import timing  # noqa: E402

IMPLEMENTATIONS = ("nautilus", "sdpa", "flex_attention")
WARM_LIMIT = 60.0  # seconds; FlexAttention compiles
# What some leave out, and so compute another function.
LEFT_OUT = {("gemma2", "sdpa"): "without the cap of scores", ("gpt-oss", "sdpa"): "without sinks"}
BASES = ("sdpa", "eager")  # ratios refer to the first one that computes the model


def implementations_of(model, options):
    """Where sdpa leaves something out, or is refused by transformers, eager is timed as well."""
    names = options.implementations.split(",")
    has_base = (model, "sdpa") not in LEFT_OUT
    return names if has_base or "eager" in names else [*names, "eager"]


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--models", default="llama,gemma2",
                   help="of llama, qwen2, qwen3, glm4, gemma2, gpt-oss")
    p.add_argument("--implementations", default=",".join(IMPLEMENTATIONS))
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--prompt", type=int, default=4096, help="tokens of the prompt")
    p.add_argument("--cache", type=int, default=16384, help="tokens in the cache when decoding begins")
    p.add_argument("--steps", type=int, default=16, help="tokens that a turn decodes")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--budget-seconds", type=float, default=110, help="for everything")
    p.add_argument("--out", default="", help="append rows as JSON lines")
    p.add_argument("--lib", default="", help="the library (default: that of the installed package, or "
                   "build-device/libnautilus.so)")
    p.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)  # on the host, for tests
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--without", default="", help=argparse.SUPPRESS)  # "llama flex_attention,..."
    return p.parse_args(arguments)


# ---- the child: everything that touches the GPU

class Model:
    """One set of weights; the implementation of attention is switched in place."""

    def __init__(self, name, options):
        import torch
        import transformers
        from model_sizes import configuration
        torch.manual_seed(1)
        config = configuration(name, options.layers)
        if options.tiny:
            for key, value in dict(hidden_size=64, intermediate_size=96, num_attention_heads=4,
                                   num_key_value_heads=2, head_dim=16).items():
                setattr(config, key, value)
        self.device = "cpu" if options.tiny else "cuda"
        torch.set_default_dtype(torch.bfloat16)
        try:
            with torch.device(self.device):
                self.model = transformers.AutoModelForCausalLM.from_config(
                    config, attn_implementation="eager").eval()
        finally:
            torch.set_default_dtype(torch.float32)
        self.ids = torch.randint(3, config.vocab_size, (1, max(options.prompt, options.cache)),
                                 device=self.device)
        self.options = options
        self.caches = {}

    def use(self, implementation):
        self.model.set_attn_implementation(implementation)

    def prefill(self):
        return self.model(self.ids[:, :self.options.prompt], use_cache=True, logits_to_keep=1).logits

    def fill_cache(self, implementation):
        """In pieces: scores of long prompts need not fit for everybody."""
        past = None
        for start in range(0, self.options.cache, 4096):
            piece = self.ids[:, start:min(start + 4096, self.options.cache)]
            past = self.model(piece, past_key_values=past, use_cache=True,
                              logits_to_keep=1).past_key_values
        self.caches[implementation] = past

    def decode(self, implementation):
        for _ in range(self.options.steps):
            result = self.model(self.ids[:, :1], past_key_values=self.caches[implementation],
                                use_cache=True)
            self.caches[implementation] = result.past_key_values


def wait(model):
    if model.device == "cuda":
        import torch
        torch.cuda.synchronize()


def timed(model, function):
    """ms"""
    wait(model)
    start = time.perf_counter()
    function()
    wait(model)
    return (time.perf_counter() - start) * 1e3


def run_child(options):
    import torch
    import transformers
    import nautilus.integrations.transformers
    nautilus.integrations.transformers.register()
    card = "host" if options.tiny else torch.cuda.get_device_name()
    about = dict(gpu=card, torch=torch.__version__, transformers=transformers.__version__,
                 layers=options.layers)
    supervise.say(about=about)
    with torch.inference_mode():
        for name in options.models.split(","):
            supervise.begin(f"{name}: weights", 60)
            measure(name, Model(name, options), options)
            if not options.tiny:
                torch.cuda.empty_cache()
    supervise.say(done=True)
    return 0


def measure(name, model, options):
    able, first = [], None
    for implementation in implementations_of(name, options):
        key = f"{name} {implementation}"
        if key in options.without.split(","):
            continue
        supervise.begin(key, WARM_LIMIT)
        try:
            model.use(implementation)
            logits = model.prefill().float()
            model.fill_cache(implementation)
            model.decode(implementation)
            wait(model)
        except Exception as trouble:  # of another implementation: a row, not the end
            lines = str(trouble).strip().splitlines()
            supervise.say(failed=key, why=f"{type(trouble).__name__}: {lines[0] if lines else ''}"[:300])
            continue
        first = logits if first is None else first
        difference = ((logits - first).norm() / first.norm()).item()
        supervise.say(difference=key, value=difference)
        able.append(implementation)
    times = {(i, phase): [] for i in able for phase in ("prefill", "decode")}
    supervise.begin(f"{name}: timing", 60)
    for _ in range(options.turns):
        for implementation in able:
            model.use(implementation)
            times[implementation, "prefill"].append(timed(model, model.prefill))
            times[implementation, "decode"].append(
                timed(model, lambda i=implementation: model.decode(i)) / options.steps)
    for (implementation, phase), values in times.items():
        middle, low, high = timing.quartiles(values)
        tokens = options.prompt if phase == "prefill" else 1
        supervise.say(row=dict(model=name, implementation=implementation, phase=phase,
                               tokens=options.prompt if phase == "prefill" else options.cache,
                               ms_median=middle, ms_p25=low, ms_p75=high,
                               tokens_per_s=tokens / middle * 1e3, samples=len(values)))


# ---- the parent

class Run:
    def __init__(self):
        self.rows, self.failed, self.differences, self.about = [], {}, {}, {}

    def take(self, message):
        if "row" in message:
            row = message["row"]
            key = row["model"], row["implementation"], row["phase"]
            self.rows = [r for r in self.rows if (r["model"], r["implementation"], r["phase"]) != key]
            self.rows.append(row)
        elif "failed" in message:
            self.failed[message["failed"]] = message["why"]
        elif "difference" in message:
            self.differences[message["difference"]] = message["value"]
        elif "about" in message:
            self.about = message["about"]

    def finished(self):
        """Rows as they are written."""
        date = datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds")
        written = []
        for row in self.rows:
            key = f"{row['model']} {row['implementation']}"
            row = dict(row, difference=self.differences.get(key), **self.about, date=date)
            note = LEFT_OUT.get((row["model"], row["implementation"]))
            written.append(dict(row, note=note) if note else row)
        for key, why in self.failed.items():
            model, implementation = key.split(" ", 1)
            written.append(dict(model=model, implementation=implementation, failed=why, **self.about,
                                date=date))
        return written


def run_children(options, deadline):
    """A child that hangs or dies loses the implementation that was under way, and the models before it
    keep their rows."""
    run, without = Run(), []
    models = options.models.split(",")
    while models:
        arguments = [a for a in sys.argv[1:] if a != "--child"]
        command = [sys.executable, "-uB", os.path.abspath(__file__), *arguments, "--child", "--models",
                   ",".join(models), "--without", ",".join(without)]
        ended, doing = supervise.watch(command, deadline, run.take)
        if ended == "done":
            break
        done = {r["model"] for r in run.rows}
        models = [m for m in models if m not in done]
        implementation = "" if ":" in doing else doing.partition(" ")[2]
        if ended != "late" and implementation and doing not in run.failed:
            run.failed[doing] = f"{ended} at its first calls"
            without.append(doing)
            continue
        for name in models:
            for implementation in implementations_of(name, options):
                run.failed.setdefault(f"{name} {implementation}", f"not reached: {ended} at {doing}")
        break
    return run.finished()


def table(rows):
    lines = [("model", "phase", "implementation", "tokens/s", "ms", "speed to base", "base", "logits differ")]
    of = {(r["model"], r["phase"], r["implementation"]): r for r in rows if not r.get("failed")}
    for (model, phase, implementation), row in of.items():
        base = next((of[model, phase, b] for b in BASES if (model, phase, b) in of
                     and (model, b) not in LEFT_OUT), None)
        ratio = f"{base['ms_median'] / row['ms_median']:.2f}" if base else "-"
        name = implementation + (" *" if row.get("note") else "")
        difference = row.get("difference")
        lines.append((model, f"{phase} {row['tokens']}", name, f"{row['tokens_per_s']:.0f}",
                      f"{row['ms_median']:.3f}", ratio, base["implementation"] if base else "-",
                      f"{difference:.1e}" if difference is not None else "-"))
    text = [report.aligned(lines, 3)]
    text += [f"* {model} {implementation}: {note}, another function" for (model, implementation), note
             in LEFT_OUT.items() if (model, "prefill", implementation) in of]
    text += [f"failed: {r['model']} {r['implementation']}: {r['failed']}" for r in rows
             if r.get("failed")]
    return "\n".join(text)


def use_library(options):
    """Of --lib, of the environment, of the installed package, or of the build on a device."""
    if options.lib:
        os.environ["NAUTILUS_LIBRARY"] = os.path.abspath(options.lib)
    built = os.path.join(ROOT, "build-device", "libnautilus.so")
    packed = os.path.join(ROOT, "python", "nautilus", "lib", "libnautilus.so")
    if not os.environ.get("NAUTILUS_LIBRARY") and not os.path.exists(packed):
        os.environ["NAUTILUS_LIBRARY"] = built


def main():
    options = parse(sys.argv[1:])
    use_library(options)
    if options.child:
        return run_child(options)
    rows = run_children(options, time.monotonic() + options.budget_seconds)
    if options.out:
        with open(options.out, "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)
    about = next((r for r in rows if "gpu" in r), {})
    print(f"{about.get('gpu', '')}; PyTorch {about.get('torch', '?')}, transformers "
          f"{about.get('transformers', '?')}; {options.layers} layers, random weights, one sequence")
    print(table(rows))
    ours_failed = any(r.get("failed") and r["implementation"] == "nautilus" for r in rows)
    return 1 if ours_failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
