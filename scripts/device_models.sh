#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Attention layers of five models, 150 configurations, by everyone: builds on a machine with a GPU, then checks and times.
# Resumable: with the same --out it goes on with what is missing there. The exit status is 1 if ours failed somewhere or
# something was not reached.
#
# usage: scripts/device_models.sh [arguments of bench/models.py]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/device_build.sh nautilus nautilus_c
exec python3 bench/models.py --lib build-device/libnautilus.so "$@"
