#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The C interface on a machine with a GPU: builds the library and runs bench/capi_check.c against it. Some seconds once
# the library is built. The exit status is 0 if everything was right.
#
# usage: scripts/device_capi.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/device_build.sh nautilus_c
cc -O2 -Iinclude bench/capi_check.c -o build-device/capi_check -Lbuild-device -lnautilus -ldl -lpthread -lm
LD_LIBRARY_PATH=$PWD/build-device exec build-device/capi_check examples
