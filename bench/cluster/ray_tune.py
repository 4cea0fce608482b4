#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tunes a work list on a Ray cluster: a task for each worker, a GPU for each task, then merges what they found.

The list and the folder must be shared by the nodes.

    python3 bench/cluster/ray_tune.py --list jobs.txt --folder found --workers 8
    python3 bench/cluster/ray_tune.py --list jobs.txt --folder found --workers 2 --gpus 0 -- --emulate --trials 3
"""
import argparse
import glob
import os
import subprocess
import sys

import ray


@ray.remote(max_retries=0)
def work(command):
    """The exit status of a worker; Ray has set CUDA_VISIBLE_DEVICES."""
    return subprocess.run(command).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--gpus", type=float, default=1, help="of each worker")
    parser.add_argument("--cpus", type=int, default=1, help="of each worker, which compiles on so many")
    parser.add_argument("--nautilus", default="build/nautilus")
    parser.add_argument("arguments", nargs="*", help="of nautilus worker")
    args = parser.parse_args()
    path = os.path.abspath  # tasks begin in folders of their own
    os.makedirs(args.folder, exist_ok=True)
    ray.init(ignore_reinit_error=True)
    here = os.getcwd()
    tasks = []
    for k in range(args.workers):
        worker = [path(args.nautilus), "worker", "--list", path(args.list), "--jobs", str(args.cpus)]
        worker += ["--db", path(f"{args.folder}/{k}.db"), *args.arguments]
        # Programs of the list are named from where this was called.
        command = ["sh", "-c", 'cd "$0" && exec "$@"', here, *worker]
        tasks.append(work.options(num_cpus=args.cpus, num_gpus=args.gpus).remote(command))
    statuses = ray.get(tasks)
    found = sorted(set(glob.glob(f"{args.folder}/*.db")) - {f"{args.folder}/all.db"})
    merged = subprocess.run([args.nautilus, "db", "--db", f"{args.folder}/all.db", "merge", *found]).returncode
    sys.exit(max(max(statuses), merged))


if __name__ == "__main__":
    main()
