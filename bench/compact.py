# SPDX-License-Identifier: Apache-2.0
"""The candidates' sustained ratios of a file of results, one short line each, and their means.

    python3 bench/compact.py results.jsonl
"""
import json
import math
import sys

PEERS = {"cudnn", "flash", "cublas", "cublas_nn", "cublas plain", "torch", "inductor", "copy", "flex",
         "plain"}

groups = {}
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        row = json.loads(line)
        if row["mode"] != "sustained" or row["candidate"] in PEERS:
            continue
        ratio = row["ratio_to_peer"] or math.nan
        rate = row.get("tflops") or row.get("gb_per_s")
        live = f" per live {row['per_live']:.3f}" if "per_live" in row else ""
        print(f"{row['work']} {row['shape']} {row['candidate']} {row['ms_median']:.4f} {rate:.0f} "
              f"{ratio:.3f}{live}")
        best = groups.setdefault(row["work"], {})
        best[row["shape"]] = max(best.get(row["shape"], 0), ratio)
for work, best in groups.items():
    known = [r for r in best.values() if r == r and r > 0]
    if known:
        mean = math.exp(sum(map(math.log, known)) / len(known))
        print(f"mean {work}: {mean:.3f} of {len(known)}, lowest {min(known):.3f}")
