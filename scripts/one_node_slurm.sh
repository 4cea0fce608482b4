#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A Slurm of one node on this machine, for tests: its files are in FOLDER, its daemons end with
# `scripts/one_node_slurm.sh stop FOLDER`. Needs root and the packages slurm-wlm and munge.
#
# usage: scripts/one_node_slurm.sh start|stop FOLDER     then: export SLURM_CONF=FOLDER/slurm.conf
set -euo pipefail
action=$1 folder=$2

# Daemons write their state while they end: FOLDER can be removed when they are gone.
stop() {
  local pids=() pid
  for name in slurmd slurmctld munged; do
    if [ -s "$folder/$name.pid" ]; then pids+=("$(cat "$folder/$name.pid")"); fi
  done
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do
    for _ in $(seq 100); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
  done
}

start() {
  mkdir -p "$folder/state" "$folder/spool" "$folder/munge"
  chmod 755 "$folder"
  local host cores
  host=$(hostname -s)
  cores=$(nproc)
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
  chmod 700 "$folder/munge"
  chmod 600 "$folder/munge/key"
  munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munge/log" --seed-file="$folder/munge/seed"
  export SLURM_CONF=$folder/slurm.conf
  slurmctld
  slurmd
  for _ in $(seq 60); do
    if sinfo --noheader --format=%T 2>/dev/null | grep -q idle; then return 0; fi
    sleep 0.5
  done
  echo "slurm: the node is not idle after 30 s" >&2
  tail -5 "$folder/slurmctld.log" "$folder/slurmd.log" >&2
  return 1
}

case $action in
  start) start ;;
  stop) stop ;;
  *)
    echo "slurm: '$action' is neither start nor stop" >&2
    exit 2
    ;;
esac
