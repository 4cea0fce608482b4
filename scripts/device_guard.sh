#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The guard for speed: builds on a machine with a GPU, checks and times the fixed sample of bench/guard.json beside the
# libraries, and names what fell by more than 3 % of its recorded ratio. Two to three minutes. To be run after every
# change of the compiler. The exit status is 1 if something fell, was wrong or could not be measured.
#
# usage: scripts/device_guard.sh [arguments of bench/guard.py]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/device_build.sh nautilus nautilus_c
exec python3 bench/guard.py --lib build-device/libnautilus.so "$@"
