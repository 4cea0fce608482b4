#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the unit tests in as many processes as there are cores; each has its share of the tests.
#
# usage: scripts/run_unit_tests.sh PROGRAM [arguments of GoogleTest]
set -uo pipefail
shards=$(nproc)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
children=()
for ((i = 0; i < shards; i++)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$@" >"$logs/$i" 2>&1 &
  children+=($!)
done
status=0
for ((i = 0; i < shards; i++)); do
  wait "${children[i]}" || status=1
  cat "$logs/$i"
done
exit $status
