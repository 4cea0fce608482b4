#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the unit tests in as many processes at a time as there are cores. Each process has a small share of the tests, so
# that no core waits long for one with slow tests.
#
# usage: scripts/run_unit_tests.sh PROGRAM [arguments of GoogleTest]
set -uo pipefail
cores=$(nproc)
shares=$((16 * cores))
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export GTEST_TOTAL_SHARDS=$shares
run_share='log=$1/$2; export GTEST_SHARD_INDEX=$2; shift 2; "$@" >"$log" 2>&1 || touch "$log.failed"'
seq 0 $((shares - 1)) | xargs -P "$cores" -I{} bash -c "$run_share" share "$logs" {} "$@"
status=$?
for ((i = 0; i < shares; i++)); do
  [ -e "$logs/$i" ] || status=1
  grep -v '^Running main()' "$logs/$i"
  [ -e "$logs/$i.failed" ] && status=1
done
exit $status
