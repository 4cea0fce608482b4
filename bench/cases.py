# SPDX-License-Identifier: Apache-2.0
"""What is measured: one row per problem, with the golden kernels that may solve it.

A candidate is a pattern over file names in the folder of golden kernels, so that a new schedule of
the same program is measured without a change here. The order is the order of measuring: when the
budget ends, the last ones are missing.
"""
import fnmatch
import os
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    suite: str  # attention, gemm, epilogue, decode, rows
    work: str
    shape: str
    sizes: dict  # of the program's dimensions and what the generators need
    candidates: tuple  # patterns
    dtypes: dict = field(default_factory=dict)  # what a candidate must declare to be one
    flops: float = 0.0  # one of the two is the yardstick
    bytes: float = 0.0

    @property
    def name(self):
        return f"{self.work} {self.shape}"


def attention(b, h, hk, s, d, causal):
    heads = f"H{h}" if h == hk else f"H{h}/{hk}"
    kind = "causal" if causal else "full"
    # By convention half of the square is counted for causal attention, the diagonal not in full.
    return Case(
        suite="attention",
        work=f"attention d{d} {kind}",
        shape=f"B{b} {heads} S{s}",
        sizes=dict(B=b, H=h, Hk=hk, G=h // hk, M=s, N=s, D=d, causal=causal),
        candidates=(f"attention_d{d}_{kind}*.matile",),
        flops=4.0 * b * h * s * s * d / (2 if causal else 1),
    )


def gemm(m, n, k):
    return Case(
        suite="gemm",
        work="gemm bf16 nt",
        shape=f"{m}x{n}x{k}",
        sizes=dict(M=m, N=n, K=k),
        candidates=("gemm_coop*.matile", "gemm_pp*.matile"),
        flops=2.0 * m * n * k,
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
    )


def decode(b, h, hk, n, d):
    return Case(
        suite="decode",
        work=f"decode d{d}",
        shape=f"B{b} H{h}/{hk} N{n}",
        sizes=dict(B=b, H=h, Hk=hk, G=h // hk, M=1, N=n, D=d, causal=False),
        candidates=(f"attention_decode_d{d}*.matile",),
        bytes=2.0 * b * hk * n * d * 2,
    )


def rows(work, m, n, dtype):
    width = {"f32": 4, "bf16": 2}[dtype]
    return Case(
        suite="rows",
        work=f"{work} {dtype}",
        shape=f"{m}x{n}",
        sizes=dict(M=m, N=n, K=n, kind=work, dtype=dtype),
        candidates=(f"{work}*.matile",),
        dtypes={"X": dtype, "Y": dtype},
        bytes=2.0 * m * n * width + (n * width if work == "rmsnorm" else 0),
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
ROWS_SHAPES = [(16384, 4096), (8192, 16384)]


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
    for work, dtype in (("softmax", "f32"), ("softmax", "bf16"), ("rmsnorm", "bf16")):
        result += [rows(work, m, n, dtype) for m, n in ROWS_SHAPES]
    return result


def cases_of(suite):
    """All cases of a suite, or of several: "gemm", "gemm,rows", "all"."""
    wanted = set(suite.split(","))
    known = {"attention", "gemm", "epilogue", "decode", "rows", "all"}
    if not wanted <= known:
        raise SystemExit(f"no suite {', '.join(sorted(wanted - known))}; there are "
                         f"{', '.join(sorted(known))}")
    return [c for c in all_cases() if "all" in wanted or c.suite in wanted]


def declared_dtypes(path):
    """The element types that a program's text declares: {"Q": "bf16", ...}."""
    with open(path, encoding="utf-8") as file:
        return dict(re.findall(r"^\s*tensor\s+(\w+)\s*:\s*(\w+)\s*\[", file.read(), re.MULTILINE))


def takes(case, path):
    """True if a file may solve the case: by its name, and by the element types it declares."""
    name = os.path.basename(path)
    if not any(fnmatch.fnmatch(name, pattern) for pattern in case.candidates):
        return False
    declared = declared_dtypes(path)
    return all(declared.get(t, want) == want for t, want in case.dtypes.items())


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
    return [f for f in files if os.path.isfile(f) and takes(case, f)], notes
