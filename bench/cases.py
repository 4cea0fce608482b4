# SPDX-License-Identifier: Apache-2.0
"""What is measured: one row per problem, with the kernels that may solve it.

A candidate is a pattern over file names in the folder of golden kernels, so that a new schedule of
the same program is measured without a change here. With `--math` it is the program itself, with the
values of its static sizes ("attention_full.naut:D=128"): what the compiler makes of it untuned. The
order is the order of measuring: when the budget ends, the last ones are missing.
"""
import fnmatch
import os
import re
from dataclasses import dataclass, field

import variants

PLAIN = "plain"  # the row of Case.plain


@dataclass(frozen=True)
class Case:
    suite: str  # which run it belongs to; cases_of lists them
    work: str
    shape: str
    sizes: dict  # of the program's dimensions and what the generators need
    candidates: tuple  # patterns
    dtypes: dict = field(default_factory=dict)  # what a candidate must declare to be one
    flops: float = 0.0  # the yardstick, where there are any; else the bytes are
    bytes: float = 0.0
    math: str = ""  # the program, and after a colon its static sizes
    plain: str = ""  # a simpler program of ours, timed beside it; variants: without the variant
    plain_flops: float = 0.0
    model: str = ""  # whose layer it is

    @property
    def name(self):
        return f"{self.work} {self.shape}"


def attention(b, h, hk, s, d, causal, suite="attention", dtype="bf16", model=""):
    heads = f"H{h}" if h == hk else f"H{h}/{hk}"
    kind = "causal" if causal else "full"
    ending = "" if dtype == "bf16" else f"_{dtype}"
    width = {"bf16": 2, "fp8": 1}[dtype]
    # By convention half of the square is counted for causal attention, the diagonal not in full.
    return Case(
        suite=suite,
        work=f"attention d{d} {kind}{ending.replace('_', ' ')}",
        shape=f"B{b} {heads} S{s}",
        sizes=dict(B=b, H=h, Hk=hk, G=h // hk, M=s, N=s, D=d, causal=causal, dtype=dtype),
        candidates=(f"attention_d{d}_{kind}*.matile",) if dtype == "bf16" else (),
        flops=4.0 * b * h * s * s * d / (2 if causal else 1),
        # The output has 16 bits.
        bytes=float(b * s * d * (h * width + 2 * hk * width + 2 * h)),
        math=f"attention_{kind}{ending}.naut:D={d}",
        model=model,
    )


def variant(kind, b, h, s, d, suite="variants"):
    """The yardstick beside the peer is our own kernel without the variant, with the same half of the
    scores where that is masked: what a score that counts costs, against that."""
    program = f"../examples/attention_{kind}.naut"
    if variants.is_documents(kind):
        program = ("../examples/attention_documents.naut" if variants.is_causal(kind)
                   else "attention_documents_given.naut")
    plain = "causal" if variants.is_causal(kind) else "full"
    return Case(
        suite=suite,
        work=f"attention d{d} {kind}",
        shape=f"B{b} H{h} S{s}",
        sizes=dict(B=b, H=h, Hk=h, G=1, M=s, N=s, D=d, kind=kind),
        candidates=(f"attention_{kind}*.matile",),
        flops=4.0 * h * variants.live_scores(kind, b, s) * d,
        math=f"{program}:D={d}",
        plain=f"attention_{plain}.naut:D={d}",
        plain_flops=4.0 * b * h * s * s * d / (2 if plain == "causal" else 1),
    )


def gemm(m, n, k, suite="gemm"):
    return Case(
        suite=suite,
        work="gemm bf16 nt",
        shape=f"{m}x{n}x{k}",
        sizes=dict(M=m, N=n, K=k),
        candidates=("gemm_coop*.matile", "gemm_pp*.matile"),
        flops=2.0 * m * n * k,
        # Products that fill no machine are told their sizes, as hints: they are computed in parts.
        math=f"gemm_nt.naut:M={m},N={n},K={k}" if suite == "gemm_other" else "gemm_nt.naut",
    )


def operands(kind, m, n, k):
    """Products whose operands do not have 16 bits, at the same numerics as the peer's."""
    return Case(
        suite="operands",
        work=f"gemm {kind}",
        shape=f"{m}x{n}x{k}",
        sizes=dict(M=m, N=n, K=k, kind=kind),
        candidates=(),
        flops=2.0 * m * n * k,
        math=f"../bench/operands/gemm_{kind}.naut",
    )


def epilogue(kind, m, n, k):
    """The peer is the plain product of the library: what the epilogue costs shows in the ratio."""
    return Case(
        suite="epilogue",
        work=f"gemm {kind}",
        shape=f"{m}x{n}x{k}",
        sizes=dict(M=m, N=n, K=k, kind=kind),
        candidates=(f"gemm_{kind}*.matile",),
        flops=2.0 * m * n * k,
        math=f"gemm_nt_{kind}.naut",
    )


def decode(b, h, hk, n, d, suite="decode", model=""):
    return Case(
        suite=suite,
        work=f"decode d{d}",
        shape=f"B{b} H{h}/{hk} N{n}",
        sizes=dict(B=b, H=h, Hk=hk, G=h // hk, M=1, N=n, D=d, causal=False),
        candidates=(f"attention_decode_d{d}*.matile",),
        bytes=2.0 * b * hk * n * d * 2,
        math=f"../examples/attention_decode.naut:D={d},G={h // hk},Hk={hk},N={n}",
        model=model,
    )


def rows(work, m, n, dtype):
    width = {"f32": 4, "bf16": 2}[dtype]
    per_column = {"rmsnorm": 1, "layernorm": 2}.get(work, 0)
    has_one_number_per_row = work == "cross_entropy"
    written = 4 * m if has_one_number_per_row else m * n * width
    programs = {("softmax", "f32"): "softmax_f32.naut",
                ("layernorm", "bf16"): "../examples/layernorm.naut",
                ("cross_entropy", "bf16"): "../examples/cross_entropy.naut"}
    return Case(
        suite="rows",
        work=f"{work} {dtype}",
        shape=f"{m}x{n}",
        sizes=dict(M=m, N=n, K=n, kind=work, dtype=dtype),
        candidates=(f"{work}*.matile",),
        dtypes={"X": dtype, "Y": dtype},
        bytes=float(m * n * width + written + per_column * n * width),
        math=programs.get((work, dtype), f"{work}.naut"),
    )


ATTENTION_SHAPES = [
    (1, 16, 16, 16384),
    (4, 16, 16, 4096),
    (4, 32, 32, 1024),
    (1, 32, 8, 4096),
    (1, 32, 8, 16384),
    (4, 16, 16, 4001),
    (1, 16, 16, 1024),
]
GEMM_SHAPES = [
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (2048, 2048, 2048),
    (16384, 4096, 4096),
    (8192, 8192, 512),
    (4096, 4096, 14336),
    (4000, 4104, 1000),
]
# Products of few rows or little depth, and rectangles: what models have beside squares.
OPERAND_KINDS = ("fp8", "fp8_rows", "fp8_blocks", "tf32", "int8", "int8_rows")
OPERAND_SHAPES = [
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (2048, 8192, 4096),
    (1024, 8192, 8192),
]
GEMM_OTHER_SHAPES = [
    (16, 8192, 8192),
    (64, 8192, 8192),
    (128, 8192, 8192),
    (1024, 1024, 1024),
    (512, 512, 8192),
    (4096, 11008, 4096),
    (8192, 28672, 8192),
]
ROWS_SHAPES = [(16384, 4096), (8192, 16384)]
# (name, heads, heads of keys, head size, causal): attention layers of well-known models.
MODELS = [
    ("vit", 24, 24, 64, False),
    ("llama2", 32, 32, 128, True),
    ("qwen2", 28, 4, 128, True),
    ("qwen3", 32, 8, 128, True),
    ("glm4", 32, 2, 128, True),
]


def grid_of_models():
    """150 layers: prefill of 1k to 32k in bf16 and fp8, decoding at 4k to 64k, batches of 1 and 8."""
    result = []
    lengths = (4096, 1024, 2048, 8192, 16384, 32768)
    for suite, dtype in (("prefill_grid", "bf16"), ("prefill_fp8", "fp8")):
        result += [attention(b, h, hk, s, d, causal, suite, dtype, model)
                   for s in lengths for model, h, hk, d, causal in MODELS for b in (1, 8)]
    result += [decode(b, h, hk, n, d, "decode_grid", model)
               for n in (4096, 16384, 65536) for model, h, hk, d, _ in MODELS for b in (1, 8)]
    return result


def all_cases():
    result = []
    for d in (128, 64, 256):
        for causal in (False, True):
            result += [attention(b, h, hk, s, d, causal) for b, h, hk, s in ATTENTION_SHAPES]
    result += [gemm(*shape) for shape in GEMM_SHAPES]
    for kind in ("bias_gelu", "residual"):
        result += [epilogue(kind, *shape) for shape in GEMM_SHAPES[:4]]
    for n in (4096, 16384, 65536):
        result += [decode(b, 32, 8, n, 128) for b in (1, 8)]
    for work, dtype in (("softmax", "f32"), ("softmax", "bf16"), ("rmsnorm", "bf16"),
                        ("layernorm", "bf16"), ("cross_entropy", "bf16")):
        result += [rows(work, m, n, dtype) for m, n in ROWS_SHAPES]
    result += grid_of_models()
    for kind in ("softcap", "alibi", "window", "sink", "documents", "documents_causal"):
        result.append(variant(kind, 1, 16, 16384, 128))
    result.append(variant("bias", 4, 16, 4096, 128))
    for shape in ("", "_equal", "_aligned"):
        for causal in ("", "_causal"):
            result.append(variant(f"documents{shape}{causal}", 1, 16, 16384, 128, "documents"))
    result += [gemm(*shape, suite="gemm_other") for shape in GEMM_OTHER_SHAPES]
    for kind in OPERAND_KINDS:
        result += [operands(kind, *shape) for shape in OPERAND_SHAPES]
    for d in (32, 80, 96, 112, 160, 192):
        result += [attention(4, 16, 16, 4096, d, causal, "head_sizes") for causal in (False, True)]
    return result


def cases_of(suite):
    """All cases of a suite, or of several: "gemm", "gemm,rows", "all" (but the grids of
    models and of shapes, which are asked for by name)."""
    wanted = set(suite.split(","))
    main = {"attention", "gemm", "epilogue", "decode", "rows"}
    known = main | {"all", "prefill_grid", "prefill_fp8", "decode_grid", "gemm_other", "variants",
                    "documents", "head_sizes", "operands"}
    if "all" in wanted:
        wanted |= main
    if not wanted <= known:
        raise SystemExit(f"no suite {', '.join(sorted(wanted - known))}; there are "
                         f"{', '.join(sorted(known))}")
    return [c for c in all_cases() if c.suite in wanted]


def declared_dtypes(path):
    """The element types that a program's text declares: {"Q": "bf16", ...}."""
    with open(path, encoding="utf-8") as file:
        return dict(re.findall(r"^\s*tensor\s+(\w+)\s*:\s*(\w+)\s*\[", file.read(), re.MULTILINE))


def takes(case, path):
    """True if a file may solve the case: by its name, and by the element types it declares."""
    if ".naut" in path:
        return path.endswith(case.math)
    name = os.path.basename(path)
    if not any(fnmatch.fnmatch(name, pattern) for pattern in case.candidates):
        return False
    declared = declared_dtypes(path)
    return all(declared.get(t, want) == want for t, want in case.dtypes.items())


def math_candidates(case, folder):
    """The program of the case with its static sizes, as `candidate_files` gives files."""
    path = os.path.join(folder, case.math)
    if os.path.isfile(path.split(":")[0]):
        return [path], []
    return [], [f"{case.work}: no file {path.split(':')[0]}"]


def plain_file(case, folder):
    """The path of Case.plain, or nothing."""
    return os.path.join(folder, case.plain) if case.plain else ""


def candidate_files(case, golden, only):
    """The files of `golden` that may solve the case, and notes about patterns without any."""
    try:
        present = sorted(os.listdir(golden))
    except OSError as problem:
        return [], [f"{golden}: {problem.strerror}"]
    notes = [f"{case.work}: no file {os.path.join(golden, pattern)}" for pattern in case.candidates
             if not fnmatch.filter(present, pattern)]
    files = [os.path.join(golden, name) for name in present
             if not only or any(fnmatch.fnmatch(name, o) for o in only)]
    files = [f for f in files if f.endswith(".matile") and os.path.isfile(f)]
    return [f for f in files if takes(case, f)], notes
