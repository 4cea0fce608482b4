#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Bundles against the compiler's own runtime, without a GPU: a bundle of several examples is built, compiled by the C
# compiler alone and called for many shapes, strides and addresses. A driver that only writes down what it is asked to do
# (test/bundle/driver_stub.c) stands behind it, and behind plan::Executable for the same tensors: both must launch the
# same kernels with the same grids, parameters and tensor maps. The compiler of kernels is a stub, too, so neither CUDA
# nor a GPU is needed.
#
# usage: scripts/test_bundle.sh [BUILD]   (build)
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
strict=(-std=c11 -Wall -Wextra -Werror)

mkdir "$folder/lib" "$folder/home"
# What the runtime looks for and these tests do not use: refused.
sed -n 's/^CUDA_FUNCTION([a-z_]*, \([A-Za-z0-9_]*\),.*/\1/p' src/runtime/cuda_api.def | while read -r name; do
  grep -q " $name(" test/bundle/driver_stub.c || echo "int $name(void); int $name(void) { return 1; }"
done >"$folder/others.c"
cc "${strict[@]}" -shared -fPIC test/bundle/driver_stub.c "$folder/others.c" -o "$folder/lib/libcuda.so.1"
cc "${strict[@]}" -shared -fPIC test/bundle/nvrtc_stub.c -o "$folder/lib/libnvrtc.so.13"
# Caches and databases of the user stay out of it, and so does the real driver.
export LD_LIBRARY_PATH=$folder/lib NAUTILUS_NVRTC=$folder/lib/libnvrtc.so.13
export HOME=$folder/home XDG_CACHE_HOME=$folder/home XDG_DATA_HOME=$folder/home

fail() {
  echo "bundle: $1" >&2
  exit 1
}
# What a command that must fail says.
refused() {
  local want=$1 out
  shift
  if out=$("$@" 2>&1); then fail "was taken: $*"; fi
  case $out in
    *"$want"*) ;;
    *) fail "\"$*\" should say \"$want\", not \"$out\"" ;;
  esac
}

programs=(gemm attention_causal attention_decode attention_documents softmax rope)
# Kernels as the compiler makes them, once for both sides.
for program in "${programs[@]}"; do
  "$build/nautilus" print --level matile "examples/$program.naut" >"$folder/$program.matile" 2>"$folder/notes" ||
    fail "$(cat "$folder/notes")"
done
files=("${programs[@]/%/.matile}")
"$build/nautilus" build "${files[@]/#/$folder/}" -o "$folder/b" --copies all,gemm:A,gemm:B+C,attention_causal:Q

# The C compilers that are here, and the header in C++. link FOLDER [LAUNCHER]: the program that calls a bundle.
cc "${strict[@]}" -c "$folder/b/b_kernels.c" -o "$folder/b_kernels.o"
link() {
  cc "${strict[@]}" -I"$1" test/bundle/bundle_launches.c "${2:-$1/b.c}" "${3:-$folder/b_kernels.o}" -o "$folder/launches" \
    -ldl -lm
}
link "$folder/b"
if command -v clang >/dev/null; then clang "${strict[@]}" -fsyntax-only "$folder/b/b.c"; fi
echo '#include "b.h"' | c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$folder/b" -x c++ -

# Memory of the plan is numbered as it is met in a case: it may lie anywhere. Fills are the caller's business.
normal() {
  awk '/^case / { delete names; count = 0 }
    /^fill / { next }
    { out = ""
      rest = $0
      while (match(rest, /0x7[0-9a-f]+/)) {
        word = substr(rest, RSTART, RLENGTH)
        if (RLENGTH == 14) { if (!(word in names)) names[word] = "own#" count++; shown = names[word] } else shown = word
        out = out substr(rest, 1, RSTART - 1) shown
        rest = substr(rest, RSTART + RLENGTH)
      }
      print out rest }' "$1"
}

# What the bundle launches for the lines is what the plan launched.
same_launches() {
  rm -f "$folder/bundle"
  STUB_RECORD=$folder/bundle "$folder/launches" <"$folder/lines" || return 1
  normal "$folder/bundle" >"$folder/got"
  diff "$folder/want" "$folder/got" >"$folder/difference"
}

# compare PROGRAM CASE...: both records of all cases are the same.
compare() {
  local program=$1
  shift
  rm -f "$folder/plan"
  STUB_RECORD=$folder/plan "$build/nautilus_plan_launches" "$folder/$program.matile" - "$@" >"$folder/lines" ||
    fail "$program: the plan does not run"
  normal "$folder/plan" >"$folder/want"
  same_launches || fail "$program: the launcher and the plan disagree:
$(head -20 "$folder/difference")"
  echo "bundle: $program: $# cases, $(grep -c '^launch' "$folder/want") launches," \
    "$(grep -c ' element ' "$folder/want") maps"
}

gemm_cases=("M=96 N=80 K=64" "M=4096 N=4096 K=4096" "M=16 N=8192 K=4096" "M=1 N=8 K=8" "M=96 N=80 K=64 A:72,1"
  "M=96 N=80 K=63" "M=96 N=77 K=64" "M=96 N=80 K=64 A:1,96" "M=96 N=80 K=64 A@2" "M=0 N=80 K=64" "M=96 N=80 K=0")
compare gemm "${gemm_cases[@]}"
STUB_MULTIPROCESSORS=78 compare gemm "M=1024 N=1024 K=512"
compare attention_decode "B=1 Hk=2 N=500" "B=1 Hk=8 N=4096" "B=8 Hk=8 N=16384" "B=64 Hk=8 N=1024" "B=1 Hk=1 N=1"
compare attention_documents ""
compare softmax "" "M=7 N=1001" "M=4096 N=4096" "M=64 N=64 X@4"
compare rope "" "B=2 N=100 H=4"

compare attention_causal "B=1 H=2 M=72 N=96" "B=2 H=16 M=1024 N=1024" "B=1 H=32 M=4096 N=4096" "B=1 H=1 M=1 N=1" \
  "B=2 H=4 M=100 N=333 Q:25600,64,256,1 O:25600,64,256,1" "B=1 H=2 M=72 N=96 scale=0.5" \
  "B=1 H=2 M=72 N=96 Q:9216,4608,65,1"

# A launcher that is wrong is found: one block too many, another stride, another scalar.
for change in 's/grid = grid_of(f, /grid = grid_of(f, 1 + /' 's/view.strides\[1\] += map_step(/view.strides[1] += 16 + map_step(/' \
  's/put_float(p + \([0-9]*\), /put_float(p + \1, 1 + /'; do
  sed "$change" "$folder/b/b.c" >"$folder/b/wrong.c"
  cmp -s "$folder/b/b.c" "$folder/b/wrong.c" && fail "the launcher has nothing that \"$change\" could change"
  link "$folder/b" "$folder/b/wrong.c"
  if same_launches >/dev/null; then fail "\"$change\" was not noticed"; fi
done
link "$folder/b"

# What callers do wrong.
call() { echo "$1" | "$folder/launches"; }
refused 'dimension 1 of tensor `B` is K = 64, the one given is 65' call "gemm A=96x64@0x100 B=65x80@0x200 C=96x80@0x300"
refused 'tensor `A` has 2 dimensions, 3 were given' call "gemm A=1x96x64@0x100 B=64x80@0x200 C=96x80@0x300"
refused 'tensor `B` has no address' call "gemm A=96x64@0x100 B=64x80 C=96x80@0x300"
refused 'the fact `scale > 0.0` does not hold (scale = -1)' call "attention_causal Q=1x2x72x64@0x100 K=1x2x96x64@0x100 \
V=1x2x96x64@0x100 O=1x2x72x64@0x100 scale=-1"
STUB_MAJOR=8 refused 'compute capability 8.0, the bundle was built for sm_90a' call ""
LD_LIBRARY_PATH=/nowhere refused 'no CUDA driver' call ""
# What the builder is told wrong.
refused 'two programs are called `gemm`' "$build/nautilus" build examples/gemm.naut examples/gemm.naut -o "$folder/c"
refused 'would both have `c_open`' "$build/nautilus" build open=examples/rope.naut -o "$folder/c"
refused 'there is no size `Q`' "$build/nautilus" build examples/rope.naut --shape Q=3 -o "$folder/c"
refused 'there is no program `rop`' "$build/nautilus" build examples/rope.naut --shape rop:D=32 -o "$folder/c"
refused 'no program has all of these tensors' "$build/nautilus" build examples/rope.naut --copies Q -o "$folder/c"
"$build/nautilus" build r32=examples/rope.naut r64=examples/rope.naut --shape r32:D=32 --name r -o "$folder/c" >/dev/null
grep -q 'int r_r32(' "$folder/c/r.h" || fail "two programs of one file have no functions of their own"
# Without copies a tensor that lies badly is refused, and the message says what to do.
"$build/nautilus" build examples/gemm.naut --copies none --name b -o "$folder/d" >/dev/null
link "$folder/d" "$folder/d/b.c" "$folder/d/b_kernels.c"
refused 'build the bundle with --copies A' call "gemm A=96x63@0x100 B=63x80@0x200 C=96x80@0x300"

# The manifest: hashes are those of the files, and the example of the documentation compiles and runs.
while read -r name hash; do
  [ "$(sha256sum "$folder/b/$name" | cut -d' ' -f1)" = "$hash" ] || fail "the manifest has another hash of $name"
done < <(sed -n '/^  "files"/,/}/s/^    "\(.*\)": "\(.*\)",\{0,1\}$/\1 \2/p' "$folder/b/manifest.json")
"$build/nautilus" build examples/gemm.naut examples/attention_causal.naut -o "$folder/kernels" >/dev/null
sed -n '/^```c$/,/^```$/p' docs/bundles.md | grep -v '^```' >"$folder/server.c"
cc "${strict[@]}" -I"$folder/kernels" "$folder/server.c" "$folder/kernels/kernels.c" "$folder/kernels/kernels_kernels.c" \
  -o "$folder/server" -L"$folder/lib" -l:libcuda.so.1 -ldl -lm
STUB_RECORD=$folder/server.record "$folder/server" >/dev/null || fail "the example of docs/bundles.md does not run"
grep -q '^launch' "$folder/server.record" || fail "the example of docs/bundles.md launches nothing"
cmake -S "$folder/kernels" -B "$folder/cmake" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$folder/cmake" >/dev/null
[ -f "$folder/cmake/libkernels.a" ] || fail "CMakeLists.txt makes no library"

# Machine code of several kernels: a file each.
"$build/nautilus" compile examples/attention_decode.naut --emit cubin -o "$folder/cubins/" >"$folder/list"
[ "$(wc -l <"$folder/list")" -gt 1 ] || fail "there should be several kernels"
while read -r file; do [ -s "$file" ] || fail "$file is empty"; done <"$folder/list"
"$build/nautilus" compile examples/attention_decode.naut --emit ptx -o "$folder/ptx/" | grep -q '\.ptx$' ||
  fail "--emit ptx into a folder"
refused '-o must be a folder' "$build/nautilus" compile examples/attention_decode.naut --emit cubin -o "$folder/list"
refused 'needs an output (-o)' "$build/nautilus" compile examples/gemm.naut --emit cubin
echo "bundle: ok"
