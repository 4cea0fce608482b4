#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Opens pages that the tool writes, and the page of benchmarks, in a real browser: they need nothing else, their script runs
# without an error, and of several kernels one is shown. Left out where there is no Chromium.
#
# usage: scripts/test_pages.sh PATH-OF-NAUTILUS
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(realpath "${1:?usage: scripts/test_pages.sh PATH-OF-NAUTILUS}")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "pages: $1"
  exit 1
}

cat >"$work/cliff.naut" <<'PROGRAM'
dims M, N
static D = 64
hint M = 128, N = 128
Q: bf16[M, D]
numerics exact
K, V: f32[N, D]
S[i, j] = sum[d] Q[i, d] * bf16(K[j, d])
O[i, e] = sum[j] softmax[j](S[i, j]) * sin(V[j, e]) -> f32
PROGRAM
"$tool" explain --html "$work/page.html" "$work/cliff.naut" 2>/dev/null || fail "explain --html failed"
grep -q 'W0101' "$work/page.html" || fail "the page has no warning"
if grep -qE '(src|href)="?(http|//)' "$work/page.html"; then fail "the page needs the network"; fi

python3 bench/models_page.py bench/results/2026-11-18_h200_grids_complete.jsonl --out "$work/models.html" >/dev/null ||
  fail "the page of benchmarks was not written"
if grep -E '(src|href)=' "$work/models.html" | grep -q .; then fail "the page of benchmarks needs other files"; fi

if [ -z "$browser" ]; then
  echo "pages: ok (no Chromium: not opened)"
  exit 0
fi
timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-logging=stderr --v=0 --dump-dom \
  --user-data-dir="$work/profile" "file://$work/page.html" >"$work/dom.html" 2>"$work/log" || fail "the browser failed"
if grep -q 'CONSOLE' "$work/log"; then
  grep 'CONSOLE' "$work/log"
  fail "the script reports an error"
fi
grep -q 'data-kernel="[^"]*" hidden' "$work/dom.html" || fail "levels of kernels that were not chosen are shown"
grep -q 'class="level" data-kernel="[^"]*"><h3>' "$work/dom.html" || fail "no level of the chosen kernel is shown"
timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --window-size=1180,1400 \
  --user-data-dir="$work/profile" --screenshot="$work/models.png" "file://$work/models.html" >/dev/null 2>"$work/log" ||
  fail "the browser failed on the page of benchmarks"
# A page on which nothing is drawn is a picture of a few kilobytes.
[ "$(stat -c %s "$work/models.png")" -gt 40000 ] || fail "the picture of the page of benchmarks is empty"
echo "pages: ok"
