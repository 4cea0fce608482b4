#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds targets in build-device/ on a machine with a GPU, where minutes count: several files at a time, on all cores.
# Everything must be installed already; such machines often cannot install packages.
#
# usage: scripts/device_build.sh TARGET...
set -euo pipefail
cd "$(dirname "$0")/.."
began=$SECONDS
cmake -S . -B build-device -G Ninja -DCMAKE_BUILD_TYPE=Quick -DNAUTILUS_UNITY=ON >/dev/null
cmake --build build-device --target "$@" -- --quiet
echo "built $* in $((SECONDS - began)) s"
