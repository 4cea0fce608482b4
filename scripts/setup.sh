#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes sure that what the build needs is there: a C++20 compiler, CMake, Ninja and five libraries.
# On Debian and Ubuntu missing packages are installed, as root or through a sudo that asks no
# password; otherwise the one command to run is printed and the script fails. On systems without
# apt, or with libraries from elsewhere, finding the tools and headers is enough. With everything
# in place it looks at files only and is done at once.
#
# usage: scripts/setup.sh [--with-tests] [--with-clang] [--with-format] [--with-browser]
#                         [--with-cluster]
#   --with-tests   also GoogleTest, which the unit tests need
#   --with-clang   also clang and its sanitizer libraries
#   --with-format  also clang-format 14, the version whose formatting the style check enforces
#   --with-browser also Chromium, in which pages that the tool writes are opened
#   --with-cluster also GNU parallel and Slurm, whose recipes for tuning are tested
set -euo pipefail

with_tests=0
with_clang=0
with_format=0
with_browser=0
with_cluster=0
for arg in "$@"; do
  case "$arg" in
    --with-tests) with_tests=1 ;;
    --with-clang) with_clang=1 ;;
    --with-format) with_format=1 ;;
    --with-browser) with_browser=1 ;;
    --with-cluster) with_cluster=1 ;;
    *)
      echo "setup: unknown option '$arg'; known are --with-tests, --with-clang, --with-format, --with-browser and" \
        "--with-cluster" >&2
      exit 2
      ;;
  esac
done

missing=()

have() { command -v "$1" >/dev/null 2>&1; }

# True when one of the headers exists in a usual include folder or in one that the environment
# names for the compiler or CMake.
have_header() {
  local dir header
  local IFS=:
  for dir in /usr/include /usr/local/include /opt/homebrew/include \
    ${CPATH:-} ${CPLUS_INCLUDE_PATH:-} \
    ${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//://include:}/include}; do
    for header in "$@"; do
      if [ -n "$dir" ] && [ -e "$dir/$header" ]; then return 0; fi
    done
  done
  return 1
}

# The sanitizer libraries of clang, wherever this version keeps them.
have_clang_runtime() {
  local found
  for found in /usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.asan* \
    /usr/lib/clang/*/lib/*/libclang_rt.asan* \
    /usr/local/lib/clang/*/lib/*/libclang_rt.asan*; do
    if [ -e "$found" ]; then return 0; fi
  done
  # Other layouts: ask the compiler. Only reached where the globs above do not match.
  have clang++ && [ -e "$(clang++ -print-resource-dir 2>/dev/null)/lib/linux" ]
}

have g++ || have clang++ || missing+=(g++)
have make || missing+=(make)
have cmake || missing+=(cmake)
have ninja || missing+=(ninja-build)
have_header CLI/CLI.hpp || missing+=(libcli11-dev)
have_header fmt/core.h || missing+=(libfmt-dev)
have_header nlohmann/json.hpp || missing+=(nlohmann-json3-dev)
have_header sqlite3.h || missing+=(libsqlite3-dev)
have_header boost/context/detail/fcontext.hpp || missing+=(libboost-context-dev)
if [ "$with_tests" = 1 ]; then
  have_header gtest/gtest.h || missing+=(libgtest-dev)
fi
if [ "$with_clang" = 1 ]; then
  have clang++ || missing+=(clang)
  have_clang_runtime || missing+=(libclang-rt-dev)
fi
if [ "$with_browser" = 1 ]; then
  have chromium || have chromium-browser || have google-chrome || missing+=(chromium)
fi
if [ "$with_cluster" = 1 ]; then
  have parallel || missing+=(parallel)
  have slurmctld || missing+=(slurm-wlm munge)
fi
if [ "$with_format" = 1 ]; then
  have clang-format-14 || { have clang-format && clang-format --version | grep -q 'version 14\.'; } ||
    missing+=(clang-format-14)
fi

if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

if ! have apt-get; then
  # Headers may well be where CMake finds them and this script does not.
  if { have g++ || have clang++; } && have cmake; then
    echo "setup: not a Debian or Ubuntu system; not found here: ${missing[*]}"
    echo "setup: going on, since CMake may find them; install their equivalents if it does not"
    exit 0
  fi
  echo "setup: install a C++20 compiler and CMake, and the equivalents of: ${missing[*]}" >&2
  exit 1
fi

sudo=()
if [ "$(id -u)" != 0 ]; then
  if have sudo && sudo -n true 2>/dev/null; then
    sudo=(sudo -n)
  else
    echo "setup: missing packages; run this line, then try again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
fi

apt() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"; }

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; }

# Package lists may be absent (a fresh container) or stale: fetch them only when needed.
if ! install; then
  apt update >"$log" 2>&1 </dev/null || true
  # Names that differ between releases: some have the sanitizer libraries only with a version, and
  # an old clang-format may be gone, without which only the format check is skipped.
  known() { apt-cache show "$1" >/dev/null 2>&1; }
  wanted=()
  for package in "${missing[@]}"; do
    if [ "$package" = libclang-rt-dev ] && ! known "$package"; then
      package=$(apt-cache pkgnames libclang-rt- | grep -E '^libclang-rt-[0-9]+-dev$' | sort -V |
        tail -1)
    elif [ "$package" = clang-format-14 ] && ! known "$package"; then
      echo "setup: this system has no package clang-format-14; formatting will not be checked"
      continue
    elif [ "$package" = chromium ] && ! known "$package"; then
      echo "setup: this system has no package chromium; pages will not be opened"
      continue
    elif [[ $package =~ ^(parallel|slurm-wlm|munge)$ ]] && ! known "$package"; then
      echo "setup: this system has no package $package; its recipe for clusters will not be tested"
      continue
    fi
    wanted+=("$package")
  done
  missing=("${wanted[@]}")
  if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
  if ! install; then
    tail -20 "$log" >&2
    echo "setup: apt-get could not install: ${missing[*]}" >&2
    exit 1
  fi
fi
