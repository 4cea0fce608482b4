#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A bundle made on one machine and run on another, which has a GPU, its driver and a C compiler, and nothing of this
# project but test/bundle/bundle_run.c:
#
#   scripts/device_bundle.sh make build-bundle           # here: the bundle, inputs, and what the oracle expects
#   scripts/device_bundle.sh run build-bundle            # there: cc, run, compare; a table
#   scripts/device_bundle.sh judge build-bundle          # here again, with what was computed: the oracle's error bounds
#
# `make` needs NVRTC and build/nautilus (or $NAUTILUS); a third argument is a pattern of the cases that are wanted. `run`
# copies to $OUT what was computed if that is set.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-}
folder=${2:-build-bundle}
wanted=${3:-.}
tool=${NAUTILUS:-build/nautilus}

# CASE FILE SIZES what bundle_run.c is told: scalars, tensors that lie badly.
cases() {
  grep -E "^[^ ]*($wanted)[^ ]* " <<'CASES'
gemm            examples/gemm.naut              M=256,N=384,K=256
gemm_odd        examples/gemm.naut              M=130,N=72,K=96
gemm_copied_a   examples/gemm.naut              M=130,N=72,K=96          !A
gemm_copied     examples/gemm.naut              M=130,N=77,K=33          !A !B !C
gelu            examples/gemm_bias_gelu.naut    M=300,N=256,K=128
attention       examples/attention.naut         B=2,H=3,M=130,N=257
causal          examples/attention_causal.naut  B=1,H=4,M=300,N=300
causal_strided  examples/attention_causal.naut  B=1,H=2,M=100,N=164      !Q !O
causal_long     examples/attention_causal.naut  B=1,H=2,M=64,N=2048
gqa             examples/attention_gqa.naut     -
window          examples/attention_window.naut  B=1,H=2,M=256,N=256
documents       examples/attention_documents.naut -
decode          examples/attention_decode.naut  B=2,Hk=2,N=500
decode_parts    examples/attention_decode.naut  B=1,Hk=2,N=8192
softmax         examples/softmax.naut           -
softmax_odd     examples/softmax.naut           M=37,N=1001
rmsnorm         examples/rmsnorm.naut           -
layernorm       examples/layernorm.naut         -
cross_entropy   examples/cross_entropy.naut     -
argmax          examples/argmax_row.naut        -
rope            examples/rope.naut              -
CASES
}

make_cases() {
  rm -rf "$folder"
  mkdir -p "$folder"
  mapfile -t files < <(cases | awk '{ print $2 }' | sort -u)
  "$tool" build "${files[@]}" -o "$folder/bundle" --name b
  cp test/bundle/bundle_run.c "$folder/"
  : >"$folder/cases"
  local name file sizes rest
  while read -r name file sizes rest; do
    local shape=()
    if [ "$sizes" != - ]; then shape=(--shape "$sizes"); fi
    "$tool" eval "$file" "${shape[@]}" --seed 3 --in-dir "$folder/$name" --out-dir "$folder/$name" >/dev/null
    echo "$name $(basename "$file" .naut) $rest" >>"$folder/cases"
  done < <(cases)
  echo "made $folder: $(wc -l <"$folder/cases") cases, $(du -sh "$folder" | cut -f1)"
}

run_cases() {
  cc -std=c11 -O2 -Wall -Wextra -Werror -I"$folder/bundle" "$folder/bundle_run.c" "$folder/bundle/b.c" \
    "$folder/bundle/b_kernels.c" -o "$folder/bundle_run" -ldl -lm
  local status=0
  "$folder/bundle_run" "$folder" || status=$?
  if [ -n "${OUT:-}" ]; then
    (cd "$folder" && find . -name '*.got.npy' -exec cp --parents {} "$OUT" \;)
  fi
  return "$status"
}

judge_cases() {
  local name file sizes rest failed=0
  while read -r name file sizes rest; do
    local shape=() expect=()
    if [ "$sizes" != - ]; then shape=(--shape "$sizes"); fi
    compgen -G "$folder/$name/*.got.npy" >/dev/null || continue
    for got in "$folder/$name"/*.got.npy; do
      expect+=(--expect "$(basename "$got" .got.npy)=$got")
    done
    if "$tool" eval "$file" "${shape[@]}" --seed 3 "${expect[@]}" >"$folder/$name/judged"; then
      echo "$name: accepted"
    else
      grep -h 'NOT' "$folder/$name/judged" | sed "s/^/$name: /"
      failed=1
    fi
  done < <(cases)
  return "$failed"
}

case $what in
  make) make_cases ;;
  run) run_cases ;;
  judge) judge_cases ;;
  *)
    sed -n '3,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
