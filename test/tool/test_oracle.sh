#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `run --oracle`: the text of every pass runs and is right, and a program of others is no oracle.
#
# usage: test_oracle.sh NAUTILUS
set -euo pipefail
nautilus=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "oracle: $1"
  exit 1
}

cat >norm.naut <<'EOF'
dims M, N
hint M = 3, N = 40
X: f32[M, N]
Y[i,j] = X[i,j] / sum[k] abs(X[i,k]) -> f32
EOF
cat >other.naut <<'EOF'
dims M, N
hint M = 3, N = 40
X: f32[M, N]
Z[i,j] = X[i,j] -> f32
EOF
"$nautilus" print --dump-dir dump norm.naut >/dev/null
for text in dump/*.spec dump/*.scalar dump/*.matile; do
  "$nautilus" run "$text" --emulate --check --oracle norm.naut >out.txt 2>&1 || fail "$text: $(cat out.txt)"
  grep -q "Y: ok" out.txt || fail "$text: $(cat out.txt)"
done
last=$(ls dump/*.matile | tail -1)
if "$nautilus" run "$last" --emulate --check >out.txt 2>&1; then fail "nothing was compared"; fi
grep -q -e "--oracle" out.txt || fail "the message does not say what helps: $(cat out.txt)"
if "$nautilus" run "$last" --emulate --check --oracle other.naut >out.txt 2>&1; then fail "the outputs differ"; fi
grep -q 'no output `Y`' out.txt || fail "the message does not name the output: $(cat out.txt)"
if "$nautilus" run "$last" --emulate --check --oracle "$last" >out.txt 2>&1; then fail "kernels are no oracle"; fi
echo "oracle: ok"
