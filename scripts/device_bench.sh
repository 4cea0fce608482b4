#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds on a machine with a GPU, checks every golden kernel there against its oracle at several
# shapes, then measures. Arguments go to bench/run.py; results are appended to the file of --out.
#
# usage: scripts/device_bench.sh [--check-only | --no-check] [arguments of bench/run.py]
set -uo pipefail
cd "$(dirname "$0")/.."
mode=all
case "${1:-}" in
  --check-only | --no-check)
    mode=${1#--}
    shift
    ;;
esac
scripts/device_build.sh nautilus nautilus_c || exit 1

# One process per kernel and shape, with a time limit: a hang costs one line.
check() {
  local line
  line=$(timeout 60 build-device/nautilus run "$1" --check ${2:+--shape "$2"} --seed "$RANDOM" 2>&1) &&
    return 0
  echo "FAILED $1 $2: $line"
  return 1
}
failures=0
if [ "$mode" != no-check ]; then
  for file in golden/*.matile; do
    case "$(basename "$file")" in
      gemm*) shapes=("M=300,N=520,K=200" "M=1,N=8,K=8" "M=777,N=264,K=1000") ;;
      attention_decode*) shapes=("B=1,Hk=2,G=8,N=3000" "B=2,Hk=1,G=1,N=1") ;;
      attention*) shapes=("B=2,Hk=2,G=2,M=229,N=253" "B=1,Hk=1,G=8,M=300,N=777" "B=1,Hk=2,G=3,M=500,N=129") ;;
      conversions*) shapes=("B=1" "B=5" "B=700") ;;
      *) shapes=("" "M=37,N=104") ;;
    esac
    for shape in "${shapes[@]}"; do check "$file" "$shape" || failures=$((failures + 1)); done
  done
  echo "golden kernels on the device: $failures failures"
fi
[ "$mode" = check-only ] && exit "$failures"
python3 bench/run.py --lib build-device/libnautilus.so "$@"
