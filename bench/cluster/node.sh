#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The workers of one machine: one for each GPU, each with its own database. Ends when no job is left.
#
# usage: bench/cluster/node.sh LIST FOLDER GPUS [arguments of nautilus worker]
set -euo pipefail
list=$1 folder=$2 gpus=$3
shift 3
nautilus=${NAUTILUS:-build/nautilus}
mkdir -p "$folder"
workers=()
for ((gpu = 0; gpu < gpus; gpu++)); do
  CUDA_VISIBLE_DEVICES=$gpu "$nautilus" worker --list "$list" --db "$folder/$(hostname)-$gpu.db" \
    --jobs $((($(nproc) + gpus - 1) / gpus)) "$@" &
  workers+=($!)
done
trap 'kill "${workers[@]}" 2>/dev/null' INT TERM # they give their jobs back
status=0
for worker in "${workers[@]}"; do
  wait "$worker" || status=1
done
wait # a signal ends the wait above, not the workers
exit $status
