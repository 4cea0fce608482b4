#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tunes a work list on several machines that share this folder, by GNU parallel over ssh; then merges
# what they found. A second run goes on with the jobs that are left.
#
# usage: bench/cluster/parallel.sh LIST FOLDER NODES GPUS [arguments of nautilus worker]
#   NODES  node1,node2; `:` is this machine, without ssh
#   GPUS   of each node
# Databases of the workers and all.db, their union, are in FOLDER. NAUTILUS is the program.
set -euo pipefail
list=$1 folder=$2 nodes=$3 gpus=$4
shift 4
nautilus=${NAUTILUS:-build/nautilus}
status=0
parallel --will-cite --nonall --sshlogin "$nodes" --workdir "$PWD" --line-buffer --tag \
  NAUTILUS="$nautilus" "$(dirname "$0")/node.sh" "$list" "$folder" "$gpus" "$@" || status=$?
mapfile -t databases < <(find "$folder" -name '*.db' ! -name all.db | sort)
"$nautilus" db --db "$folder/all.db" merge "${databases[@]}"
exit $status
