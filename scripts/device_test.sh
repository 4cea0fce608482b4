#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds on a machine with a GPU and runs the tests that need one.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/device_build.sh nautilus nautilus_unit_tests
build-device/nautilus doctor
build-device/nautilus_unit_tests --gtest_brief=1 --gtest_filter='*Device*:*Nvrtc*:*HopperCapture*'
# Tiles that change their layout, by lanes and through shared memory, with one and with several tiles to a CTA.
for file in golden/conversions_*.matile; do
  for shape in B=1 B=5 B=700; do
    timeout 60 build-device/nautilus run "$file" --target sm_90a --check --shape "$shape"
  done
done
# The kernels of all text tests, a process for each file: a fault takes the GPU from its process.
ls test/kernels/*.naut test/catalogue/*.naut |
  xargs -P "$(nproc)" -n 1 timeout 300 build-device/nautilus test --device --threads 1
# A plan whose kernels overlap, replayed from a captured graph.
build-device/nautilus bench examples/attention_decode.naut --graph --mode burst --reps 10
