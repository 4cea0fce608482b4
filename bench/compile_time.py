#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the compiler takes: blocks of a transformer stacked by text, and any programs given as files.

  bench/compile_time.py                                    the stacked blocks
  bench/compile_time.py --files examples/*.naut            those files instead
  bench/compile_time.py --write DIR                        only writes the stacked programs

Each program is lowered by a process of its own, which has --limit seconds. The time is that of the process,
with its start; `cpu` is what it computed, which does not depend on what else runs on the machine.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

HEADER = """# {blocks} pre-norm blocks of a transformer of width {width}, {casts} casts.
dims B, T
static C = {width}, H = {heads}, D = {head}, F = {hidden}
hint B = 1, T = 80
X0: bf16[B, T, C]
scale = 1/sqrt(D)
eps = 1e-6
fact scale > 0, eps > 0
"""

BLOCK = """
Wq{n}, Wk{n}, Wv{n}: bf16[C, H, D]    Wo{n}: bf16[H, D, C]    Wg{n}, Wu{n}: bf16[C, F]    Wd{n}: bf16[F, C]
ga{n}, gf{n}: bf16[C]
A{n}[b,t,c] = {cast}(rmsnorm[c](X{before}[b,t,c], ga{n}[c], eps))
Q{n}[b,h,t,d] = {cast}(sum[c] A{n}[b,t,c] * Wq{n}[c,h,d])
K{n}[b,h,t,d] = {cast}(sum[c] A{n}[b,t,c] * Wk{n}[c,h,d])
V{n}[b,h,t,d] = {cast}(sum[c] A{n}[b,t,c] * Wv{n}[c,h,d])
S{n}[b,h,i,j] = sum[d] Q{n}[b,h,i,d] * K{n}[b,h,j,d] * scale
P{n}[b,h,i,j] = softmax[j](where(causal(i, j, 0), S{n}[b,h,i,j], -inf))
O{n}[b,t,h,d] = {cast}(sum[j] P{n}[b,h,t,j] * V{n}[b,h,j,d])
R{n}[b,t,c] = {cast}(X{before}[b,t,c] + sum[h,d] O{n}[b,t,h,d] * Wo{n}[h,d,c])
N{n}[b,t,c] = {cast}(rmsnorm[c](R{n}[b,t,c], gf{n}[c], eps))
G{n}[b,t,f] = {cast}(swiglu(sum[c] N{n}[b,t,c] * Wg{n}[c,f], sum[c] N{n}[b,t,c] * Wu{n}[c,f]))
X{n}[b,t,c] = {last}R{n}[b,t,c] + sum[f] G{n}[b,t,f] * Wd{n}[f,c]{end}
"""


def program(blocks, width, casts):
    heads = max(1, width // 64)
    text = HEADER.format(blocks=blocks, width=width, casts="with" if casts else "without",
                         heads=heads, head=width // heads, hidden=4 * width)
    for n in range(1, blocks + 1):
        is_last = n == blocks
        text += BLOCK.format(n=n, before=n - 1, cast="bf16" if casts else "",
                             last="" if is_last else "bf16(" if casts else "(",
                             end="  -> bf16" if is_last else ")")
    return text


def stacked(folder, counts, widths):
    """The paths of the programs, and their names."""
    found = []
    for casts in (True, False):
        for width in widths:
            for blocks in counts:
                name = f"{'casts' if casts else 'plain'}_c{width}_x{blocks}"
                path = os.path.join(folder, name + ".naut")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(program(blocks, width, casts))
                found.append((name, path))
    return found


def timed(command, limit):
    """Seconds of the clock, seconds of computing, and how it ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    end = "ok"
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              timeout=limit, check=False)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            end = f"exit {done.returncode}: {said[0] if said else ''}"
    except subprocess.TimeoutExpired:
        end = f"over {limit:g} s"
    took = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, cpu, end


COMMANDS = {
    "check": ["check"],
    "matile": ["print", "--level", "matile"],
    "explain": ["explain"],
    "cuda": ["compile", "--no-cache", "--emit", "cuda", "-o", os.devnull],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default="build/nautilus")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each process")
    parser.add_argument("--commands", nargs="+", choices=sorted(COMMANDS), default=["cuda", "explain"])
    parser.add_argument("--blocks", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--widths", nargs="+", type=int, default=[64, 256])
    parser.add_argument("--files", nargs="+", default=[])
    parser.add_argument("--over", type=float, default=0, help="shows only what took longer")
    parser.add_argument("--write", metavar="DIR", help="writes the stacked programs, runs nothing")
    args = parser.parse_args()
    if args.write:
        os.makedirs(args.write, exist_ok=True)
        stacked(args.write, args.blocks, args.widths)
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        programs = [(os.path.basename(f), f) for f in args.files] or stacked(folder, args.blocks, args.widths)
        print(f"{'program':44} {'command':8} {'seconds':>8} {'cpu':>8}  end")
        for name, path in programs:
            for command in args.commands:
                took, cpu, end = timed([args.tool, *COMMANDS[command], path], args.limit)
                bad += end != "ok"
                if took >= args.over or end != "ok":
                    print(f"{name:44} {command:8} {took:8.2f} {cpu:8.2f}  {end}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
