#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `nautilus new`: every kind checks and runs at once, and nothing is overwritten.
#
# usage: test_new.sh NAUTILUS
set -euo pipefail
nautilus=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "new: $1"
  exit 1
}

for kind in attention product rows points; do
  said=$("$nautilus" new "my_$kind" --kind "$kind")
  # The commands that it names work as they are written.
  mapfile -t commands < <(sed -nE 's/^  nautilus (.*[^ ]) +#.*/\1/p' <<<"$said")
  [ ${#commands[@]} = 2 ] || fail "two commands are wanted: $said"
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086
    "$nautilus" $command >out.txt 2>&1 || fail "nautilus $command: $(cat out.txt)"
  done
  "$nautilus" check "my_$kind.naut" >out.txt 2>&1 || fail "my_$kind.naut does not check: $(cat out.txt)"
  ! grep -q warning out.txt || fail "my_$kind.naut: $(cat out.txt)"
done

echo mine >kept.naut
if "$nautilus" new kept >out.txt 2>&1; then fail "a file was overwritten"; fi
[ "$(cat kept.naut)" = mine ] || fail "a file was changed"
grep -q "kept.naut" out.txt || fail "the message does not name the file: $(cat out.txt)"
"$nautilus" new with_suffix.naut >/dev/null
[ -f with_suffix.naut ] && [ ! -e with_suffix.naut.naut ] || fail "the suffix was added twice"
if "$nautilus" new x --kind nonsense >out.txt 2>&1; then fail "a kind that there is not"; fi
if "$nautilus" new no/such/folder/x >out.txt 2>&1; then fail "a folder that there is not"; fi
echo "new: ok"
