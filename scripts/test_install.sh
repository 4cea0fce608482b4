#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs a build into a folder of its own and uses it as somebody else would: a C and a C++ program, found by
# find_package and by pkg-config, and the tool. They evaluate on the host, so no GPU is needed.
#
# usage: scripts/test_install.sh [BUILD]     default: build
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
scripts/check_library.sh "$build/libnautilus.so"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" --strip >/dev/null
mv "$work/first" "$work/prefix" # what is installed may be moved
prefix=$work/prefix
libraries=$(dirname "$(find "$prefix" -name libnautilus.so)")
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# Nobody's trials decide what the programs print.
export NAUTILUS_DB=none

echo "install: find_package"
cmake -S test/install -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake" -- --quiet
"$work/cmake/evaluate_c"
"$work/cmake/evaluate_cc"

# As a subdirectory it is only configured: what it builds is the same.
echo "install: add_subdirectory"
cmake -S test/install -B "$work/sub" -G Ninja -DNAUTILUS_SOURCE="$PWD" -DNAUTILUS_TOOL=OFF >/dev/null

# Kernels are compiled once; the second time they come out of the cache, where there is no NVRTC any more.
echo "install: launches, with the stub of a driver"
launch() {
  env "$@" XDG_CACHE_HOME="$work/cache" LD_LIBRARY_PATH="$work/cmake/stub:$LD_LIBRARY_PATH" "$work/cmake/launch" examples
}
if launch; then
  launch NAUTILUS_NVRTC=/nowhere/libnvrtc.so
else
  [ $? = 77 ] || exit 1
  echo "install: there is no NVRTC, so nothing is launched"
fi

if command -v pkg-config >/dev/null 2>&1; then
  echo "install: pkg-config"
  export PKG_CONFIG_PATH=$libraries/pkgconfig
  # shellcheck disable=SC2046
  cc -std=c99 -Wall -Wextra -Werror -pedantic test/install/evaluate.c -o "$work/plain" \
    $(pkg-config --cflags --libs nautilus) -lm
  "$work/plain" >/dev/null
fi

echo "install: the tool"
"$prefix/bin/nautilus" check examples/softmax.naut >/dev/null
echo "install: ok"
