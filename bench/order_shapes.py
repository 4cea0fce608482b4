#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the largest K elements of rows, and where they are, beside torch.topk, and whole rows in
order beside torch.sort: shapes of samplers, routers and searches. A row of JSON for each; values
are compared with torch's before.

    python3 bench/order_shapes.py --lib build-device/libnautilus.so --out order.jsonl
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import nautilus_lib  # noqa: E402
import timing  # noqa: E402

# Rows, elements of a row, how many are asked for.
LARGEST = ((1, 1000000, 64), (16, 1000000, 64), (1, 128256, 50), (8, 128256, 50), (64, 32000, 64),
           (1024, 32000, 8), (256, 8192, 64), (4096, 4096, 32), (16384, 1024, 16), (65536, 256, 8),
           (262144, 64, 2))
# Rows, elements of a row.
SORTED = ((1, 4000000), (1, 1000000), (64, 131072), (8, 128256), (1024, 50257), (1024, 16384),
          (4096, 8192), (65536, 256))

PROGRAM = """dims M, N
x: {dtype}[M, N]
V[i,r < {places}] = max[j rank r] x[i,j]    -> {dtype}
I[i,r < {places}] = argmax[j rank r] x[i,j] -> i64
"""


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--lib", default="build-device/libnautilus.so", help="the library")
    p.add_argument("--out", default="", help="rows are appended, as JSON lines")
    p.add_argument("--suite", choices=("all", "largest", "sorted"), default="all")
    p.add_argument("--repetitions", type=int, default=25)
    return p.parse_args(arguments)


def suites(options):
    largest = ("largest, beside torch.topk", LARGEST)
    in_order = ("in order, beside torch.sort", [(rows, n, n) for rows, n in SORTED])
    return {"largest": [largest], "sorted": [in_order]}.get(options.suite, [largest, in_order])


def timed(torch, library, folder, dtype, rows, columns, k, repetitions):
    is_sorted = k == columns
    path = os.path.join(folder, f"order{k}_{dtype}.naut")
    with open(path, "w", encoding="utf-8") as f:
        f.write(PROGRAM.format(dtype=dtype, places="N" if is_sorted else k))

    def peer():
        if is_sorted:
            return torch.sort(x, dim=1, descending=True, stable=True)
        return torch.topk(x, k, dim=1)
    x = torch.randn(rows, columns, device="cuda").to(
        torch.float32 if dtype == "f32" else torch.bfloat16)
    values = torch.full((rows, k), float("nan"), device="cuda", dtype=x.dtype)
    places = torch.full((rows, k), -1, device="cuda", dtype=torch.int64)
    kernel = nautilus_lib.Kernel(f"{path}:M={rows},N={columns}", library)
    kernel(x=x, V=values, I=places)
    expected = peer()[0]
    right = torch.equal(values, expected) and torch.equal(x.gather(1, places), expected)
    kernel.bind(x=x, V=values, I=places)
    times = timing.interleaved({"ours": kernel.launch, "torch": peer}, repetitions,
                               head_start_each_turn=True)
    ours, theirs = (statistics.median(times[n]) for n in ("ours", "torch"))
    return dict(dtype=dtype, rows=rows, columns=columns, k=k, right=right, ours_ms=round(ours, 5),
                torch_ms=round(theirs, 5), ratio=round(theirs / ours, 3),
                gpu=torch.cuda.get_device_name())


def main(arguments):
    options = parse(arguments)
    import torch
    library = nautilus_lib.Library(options.lib)
    is_right = True
    with tempfile.TemporaryDirectory() as folder:
        for suite, shapes in suites(options):
            print(f"\n{suite}\n\n| dtype | rows x elements | first | ours, ms | torch, ms | ratio "
                  "| right |\n|---|---|---|---|---|---|---|")
            ratios = []
            for dtype in ("f32", "bf16"):
                for rows, columns, k in shapes:
                    row = timed(torch, library, folder, dtype, rows, columns, k,
                                options.repetitions)
                    ratios.append(row["ratio"])
                    is_right &= row["right"]
                    print(f"| {dtype} | {rows} x {columns} | {k} | {row['ours_ms']:.4f} | "
                          f"{row['torch_ms']:.4f} | {row['ratio']:.2f} | "
                          f"{'yes' if row['right'] else 'NO'} |", flush=True)
                    if options.out:
                        with open(options.out, "a", encoding="utf-8") as f:
                            f.write(json.dumps(dict(suite=suite, **row)) + "\n")
            print(f"{len(ratios)} shapes: geometric mean {statistics.geometric_mean(ratios):.3f}, "
                  f"lowest {min(ratios):.3f}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
