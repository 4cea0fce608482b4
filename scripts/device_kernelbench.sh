#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Whole programs beside PyTorch: builds on a machine with a GPU, then checks and times the programs of bench/level1.py
# (the 100 problems of KernelBench level 1) or bench/foreign.py. Resumable: with the same --out it goes on with what is
# missing there. The exit status is 1 if something was wrong or not reached.
#
# usage: scripts/device_kernelbench.sh [arguments of bench/programs.py]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/device_build.sh nautilus nautilus_c
exec python3 bench/programs.py --lib build-device/libnautilus.so "$@"
