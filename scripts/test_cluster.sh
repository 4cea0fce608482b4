#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The recipes of docs/tuning_cluster.md on this machine, with the emulator: two small programs, two
# workers, one merged database. A recipe whose tool is not installed is left out, and said so. Slurm
# is started here if it is installed and does not run.
#
# usage: scripts/test_cluster.sh [PROGRAM]   (build/nautilus)
#   PYTHON names the Python that has Ray.
set -euo pipefail
cd "$(dirname "$0")/.."
export NAUTILUS=${1:-build/nautilus}
python=${PYTHON:-python3}
folder=$(mktemp -d)
finish() {
  if [ -e "$folder/own_slurm" ]; then scripts/one_node_slurm.sh stop "$folder/own_slurm"; fi
  rm -rf "$folder"
}
trap finish EXIT

new_list() {
  printf '%s\n' '# two small programs' 'examples/rmsnorm.naut M=5' 'examples/softmax.naut' >"$folder/$1.list"
}

# All jobs are done, and the merged database has both problems.
check() {
  local name=$1 done_jobs problems
  done_jobs=$("$NAUTILUS" worker --list "$folder/$name.list" --status | grep -c '^done')
  problems=$("$NAUTILUS" db --db "$folder/$name/all.db" list | wc -l)
  if [ "$done_jobs" != 2 ] || [ "$problems" != 2 ]; then
    echo "cluster: $name: $done_jobs jobs done and $problems problems found, of 2" >&2
    exit 1
  fi
  echo "cluster: $name: ok"
}
small=(--emulate --trials 2)

# What the first recipe does on each node; needs nothing.
new_list node
bench/cluster/node.sh "$folder/node.list" "$folder/node" 2 "${small[@]}"
"$NAUTILUS" db --db "$folder/node/all.db" merge "$folder"/node/*.db
check node

if command -v parallel >/dev/null 2>&1 && parallel --version 2>/dev/null | grep -q '^GNU'; then
  new_list parallel
  bench/cluster/parallel.sh "$folder/parallel.list" "$folder/parallel" : 2 "${small[@]}"
  check parallel
else
  echo "cluster: parallel: not tested, GNU parallel is not installed"
fi

if command -v slurmctld >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && ! sinfo >/dev/null 2>&1; then
  scripts/one_node_slurm.sh start "$folder/own_slurm"
  export SLURM_CONF=$folder/own_slurm/slurm.conf
fi
# A Slurm that runs; its array is of two tasks without GPUs.
if command -v sbatch >/dev/null 2>&1 && sinfo >/dev/null 2>&1; then
  new_list slurm
  sbatch --wait --array=0-1 --gpus-per-task=0 --cpus-per-task=1 --output="$folder/slurm-%a.log" \
    bench/cluster/slurm.sbatch "$folder/slurm.list" "$folder/slurm" "${small[@]}" ||
    { cat "$folder"/slurm-*.log; exit 1; }
  "$NAUTILUS" db --db "$folder/slurm/all.db" merge "$folder"/slurm/*.db
  check slurm
else
  echo "cluster: slurm: not tested, no Slurm runs here"
fi

if "$python" -c 'import ray' >/dev/null 2>&1; then
  new_list ray
  "$python" bench/cluster/ray_tune.py --nautilus "$NAUTILUS" --list "$folder/ray.list" --folder "$folder/ray" \
    --workers 2 --gpus 0 -- "${small[@]}"
  check ray
else
  echo "cluster: ray: not tested, $python has no Ray"
fi
