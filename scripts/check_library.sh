#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Looks at a built libnautilus.so from outside: what it exports, what it needs, its name and its size. A process that
# loads it must see the functions of the C interface and nothing else of it.
#
# usage: scripts/check_library.sh [LIBRARY]     default: build/libnautilus.so
set -euo pipefail

library=${1:-build/libnautilus.so}
header=$(dirname "$0")/../include/nautilus.h
most_bytes=$((12 * 1024 * 1024))
bad=0
complain() {
  echo "library: $*" >&2
  bad=1
}

[ -e "$library" ] || { complain "there is no $library"; exit 1; }

exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort)
declared=$(grep -oE '\bnautilus_[a-z_]+\(' "$header" | tr -d '(' | LC_ALL=C sort -u)
others=$(grep -v '^nautilus_' <<<"$exported" || true)
[ -z "$others" ] || complain "exports $(wc -l <<<"$others") symbols that are not ours: $(head -3 <<<"$others" | tr '\n' ' ')"
missing=$(comm -13 <(echo "$exported") <(echo "$declared"))
[ -z "$missing" ] || complain "lacks functions of the header:" $missing
more=$(comm -23 <(grep '^nautilus_' <<<"$exported" || true) <(echo "$declared"))
[ -z "$more" ] || complain "exports functions that the header has not:" $more

# What a Linux system with a C++ runtime has. Everything else would be the user's to install.
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
for name in $needed; do
  case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | libgcc_s.so.* | libstdc++.so.* | ld-linux*) ;;
    *) complain "needs $name" ;;
  esac
done

soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p')
[[ $soname == libnautilus.so.[0-9]* ]] || complain "its name for the loader is '$soname', not libnautilus.so.N"

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$library"
bytes=$(stat -c %s "$stripped")
[ "$bytes" -le "$most_bytes" ] || complain "has $bytes bytes without symbols, more than $most_bytes"

[ "$bad" = 0 ] || exit 1
echo "library: ok, $(wc -l <<<"$exported") functions, $((bytes / 1024)) KiB without symbols, needs" $needed
