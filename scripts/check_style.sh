#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a compiler does not check: that includes point from higher folders to lower ones and rooms of
# a folder do not include each other in circles, that
# every file names its license, that names, namespaces and headers follow CONTRIBUTING.md, that
# files, functions and types are formatted and of a readable size, that tests say what they show and decisions whether
# they hold. Prints all findings, then fails if there were any.
#
# usage: scripts/check_style.sh            check
#        scripts/check_style.sh --format   format the sources in place instead
set -euo pipefail
cd "$(dirname "$0")/.."

# From the lowest to the highest: a file may include headers of its own folder and of those to the
# left of it. tools/ may include anything. A new folder of src/ must be added here.
folders="base page target estimate layout runtime emulator diag text expr ir decision algebra spec scalar schedule vrtile matile emit plan bundle lower choose compile driver tune lsp"

format_version=14
warn_lines=400
fail_lines=800
warn_files=40 # in one folder
most_lines=60       # of a function
most_test_lines=100 # of a function of a test
most_parameters=6   # of a function
most_methods=50     # of a type

failures=0
fail() {
  echo "$1"
  failures=$((failures + 1))
}

mapfile -t sources < <(find src tools test -type f \( -name '*.h' -o -name '*.cc' \) 2>/dev/null |
  LC_ALL=C sort)
mapfile -t others < <(find scripts .ci Makefile CMakeLists.txt -type f 2>/dev/null | LC_ALL=C sort)
if [ ${#sources[@]} -eq 0 ]; then
  echo "style: no sources found" >&2
  exit 1
fi

# Prints the name of a clang-format of the wanted major version; other versions format
# differently, and a check that depends on the machine is worse than none.
find_clang_format() {
  local tool
  for tool in "clang-format-$format_version" clang-format; do
    if command -v "$tool" >/dev/null 2>&1 &&
      [[ "$("$tool" --version)" =~ version\ $format_version\. ]]; then
      echo "$tool"
      return
    fi
  done
}
clang_format=$(find_clang_format)

if [ "${1:-}" = --format ]; then
  if [ -z "$clang_format" ]; then
    echo "style: clang-format $format_version is needed to format" >&2
    exit 1
  fi
  "$clang_format" -i "${sources[@]}"
  exit 0
elif [ $# -gt 0 ]; then
  echo "style: unknown option '$1'; the only one is --format" >&2
  exit 2
fi

# Include direction.
found=$(awk -v list="$folders" '
  BEGIN { n = split(list, names, " "); for (i = 1; i <= n; ++i) level[names[i]] = i }
  FNR == 1 {
    split(FILENAME, part, "/")
    folder = part[1] == "src" ? part[2] : ""
    if (folder != "" && !(folder in level)) {
      if (!(folder in told)) {
        printf "%s: folder %s is not in the list of scripts/check_style.sh\n", FILENAME, folder
      }
      told[folder] = 1
      folder = ""
    }
  }
  /^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0
    sub(/^[^"]*"/, "", path)
    sub(/".*/, "", path)
    if (split(path, to, "/") < 2) {
      if (FILENAME ~ /^src\//) printf "%s:%d: write \"%s\" relative to src\n", FILENAME, FNR, path
    } else if (folder != "" && !(to[1] in level)) {
      printf "%s:%d: \"%s\" is not in a folder of src\n", FILENAME, FNR, path
    } else if (folder != "" && level[to[1]] > level[folder]) {
      printf "%s:%d: %s must not include \"%s\": %s is above it\n", FILENAME, FNR, folder, path,
             to[1]
    }
  }' "${sources[@]}")
if [ -n "$found" ]; then fail "$found"; fi

# Rooms: folders of one folder of src/ do not include each other in circles.
found=$(awk '
  FNR == 1 {
    here = FILENAME
    sub(/\/[^\/]*$/, "", here)
    sub(/^src\//, "", here)
    split(here, top, "/")
  }
  /^#include "/ && FILENAME ~ /^src\// {
    split($0, quoted, "\"")
    there = quoted[2]
    sub(/\/[^\/]*$/, "", there)
    split(there, other, "/")
    if (other[1] == top[1] && there != here) {
      left[here] = left[there] = 1
      if (!((here, there) in edge)) edge[here, there] = FILENAME ":" FNR ": includes \"" quoted[2] "\""
    }
  }
  # A folder without an edge to others that are left, or from them, is in no circle.
  function is_free(folder, from,   pair, ends, other) {
    for (pair in edge) {
      split(pair, ends, SUBSEP)
      other = from ? ends[1] : ends[2]
      if (ends[from ? 2 : 1] == folder && other in left) return 0
    }
    return 1
  }
  END {
    do {
      count = 0
      for (folder in left) if (is_free(folder, 0) || is_free(folder, 1)) gone[++count] = folder
      for (i = 1; i <= count; ++i) delete left[gone[i]]
    } while (count > 0)
    for (pair in edge) {
      split(pair, ends, SUBSEP)
      if (ends[1] in left && ends[2] in left) {
        printf "%s, and %s leads back to %s\n", edge[pair], ends[2], ends[1]
      }
    }
  }' "${sources[@]}" | LC_ALL=C sort)
if [ -n "$found" ]; then fail "$found"; fi

# Machines: levels above the target know none by name, and none of their numbers. They ask
# ir::target_of(program).
found=$(grep -nriE '\b(hopper|sm_[0-9]{2,3}a?|[ah][12]00)\b' \
  src/spec src/scalar src/schedule src/vrtile src/lower || true)
if [ -n "$found" ]; then fail "$found"$'\n'"style: no machine by name here, see docs/targets.md"; fi
found=$(grep -nrE '(^|[^0-9A-Za-z_.])(232448|233472|65536|132)([^0-9A-Za-z_.]|$)' \
  src/spec src/scalar src/schedule src/vrtile src/lower src/matile src/emit |
  grep -vE ':[0-9]+: *//|_test\.cc:' || true)
if [ -n "$found" ]; then fail "$found"$'\n'"style: a number of a machine belongs to src/target"; fi
# Sizes of tiles, threads and bytes: where kernels are chosen and lowered they are fields of the
# target. Not meant: comments, strings, tables of problem sizes, and schedules of version 1.
found=$(grep -nrE '(^|[^0-9A-Za-z_.])(64|80|96|128|160|192|224|240|256|512)([^0-9A-Za-z_.]|$)' \
  src/schedule src/vrtile src/lower |
  grep -vE '_test\.cc:|schedule_version1\.cc:|\{[0-9]+, [0-9]+, [0-9]+(, [0-9]+)?\}' |
  sed -E 's|"([^"\\]\|\\.)*"||g; s|//.*||' |
  grep -E '^[^:]*:[0-9]+:(.*[^0-9A-Za-z_.])?(64|80|96|128|160|192|224|240|256|512)([^0-9A-Za-z_.]|$)' || true)
if [ -n "$found" ]; then fail "$found"$'\n'"style: sizes of a machine belong to src/target"; fi

# License line: the first of a source, one of the first two of a script.
found=$(awk '
  FNR == 1 { if (FILENAME != previous && previous != "" && !ok) print previous; previous = FILENAME; ok = 0 }
  FNR <= (FILENAME ~ /\.(h|cc)$/ ? 1 : 2) && /SPDX-License-Identifier: Apache-2\.0/ { ok = 1 }
  END { if (!ok) print previous }' "${sources[@]}" "${others[@]}" |
  sed 's|$|: the line "SPDX-License-Identifier: Apache-2.0" is missing at the top|')
for file in "${sources[@]}"; do
  if [ ! -s "$file" ]; then found+="${found:+$'\n'}$file: is empty"; fi
done
if [ -n "$found" ]; then fail "$found"; fi

# Names: files in snake_case, and a folder of src/ is a namespace and has a line in CONTRIBUTING.md.
found=$(printf '%s\n' "${sources[@]}" | grep -vE '/[a-z0-9_]+\.(h|cc)$' |
  sed 's|$|: name files in snake_case|') || true
for folder in $folders; do
  grep -q "^| \`$folder\` |" CONTRIBUTING.md ||
    found+="${found:+$'\n'}CONTRIBUTING.md: the table of folders has no line for src/$folder"
done
found+=$(awk '
  FNR == 1 { if (wanted != "" && !ok) print previous ": is not in namespace " wanted
             previous = FILENAME; ok = 0; wanted = ""
             if (split(FILENAME, part, "/") > 2 && part[1] == "src" && FILENAME !~ /_test\.cc$/) {
               wanted = "nautilus::" part[2]
             } }
  wanted != "" && index($0, "namespace " wanted) { ok = 1 }
  END { if (wanted != "" && !ok) print previous ": is not in namespace " wanted }' "${sources[@]}" |
  sed '1s|^|\n|')
found=${found#$'\n'}
if [ -n "$found" ]; then fail "$found"; fi

# Every header says what it is for: at the top, or above its first declaration.
found=$(awk '
  FNR == 1 { if (header && !ok) print previous; previous = FILENAME; ok = 0; header = FILENAME ~ /\.h$/ }
  FNR > 1 && FNR <= 25 && /^(\/\/ .|\/\*| \* )/ { ok = 1 }
  END { if (header && !ok) print previous }' "${sources[@]}" |
  sed 's|$|: no comment says what this header is for|')
if [ -n "$found" ]; then fail "$found"; fi

# Text goes through fmt; <iostream> and <regex> cost every file that includes them a second.
found=$(grep -nE '^#include <(iostream|regex)>|(^|[^a-z_:])f?printf\(' "${sources[@]}" |
  sed -E 's|^([^:]*:[0-9]*):.*|\1: use fmt instead of <iostream> and printf, and no <regex>|') || true
if [ -n "$found" ]; then fail "$found"; fi

# Wording: phrases that docs/glossary.md says to avoid, in comments of src/ and in docs/. Lines are
# joined first, because a phrase may be broken by one. The limits are the numbers that are left:
# lower them when a phrase goes, never raise them.
prose=$({
  sed -nE 's|"([^"\\]\|\\.)*"||g; s|^.*//||p' $(printf '%s\n' "${sources[@]}" | grep '^src/')
  find docs -name '*.md' -exec cat {} +
} | tr '\n' ' ' | tr -s ' ')
limit_phrase() { # PATTERN, matches that do not count, LIMIT, NAME
  local count
  count=$(grep -oiE "$1" <<<"$prose" | grep -cviE "$2" || true)
  if [ "$count" -gt "$3" ]; then
    fail "style: \"$4\" $count times, the limit is $3: docs/glossary.md has other words"
  fi
}
limit_phrase '([a-z]+ )?\bis no [a-z`]+' '^there |is no longer|is no X' 17 'is no'
limit_phrase ' beside ' '^$' 25 'beside'
limit_phrase 'behind each other' '^$' 1 'behind each other'

# Formatting.
if [ -n "$clang_format" ]; then
  found=$(printf '%s\0' "${sources[@]}" |
    xargs -0 "$clang_format" --dry-run 2>&1 |
    awk -F: '/clang-format-violations/ && !seen[$1]++ { print $1 ": not formatted" }' |
    LC_ALL=C sort) || fail "style: $clang_format failed"
  if [ -n "$found" ]; then fail "$found"$'\n'"style: make format formats all sources"; fi
else
  echo "style: formatting not checked, no clang-format $format_version here"
fi

# Claims: what a text case shows is a comment above its input, or the messages that `verify` expects
# on its lines (`#~`).
mapfile -t cases < <(find test -type f -exec awk 'FNR == 1 && /^# test:/ { print FILENAME }' {} + |
  LC_ALL=C sort)
found=$(awk '
  function finish() {
    if (first && !claimed) {
      printf "%s:%d: the case has no claim: say above its input what it shows\n", file, first
    }
    first = 0
  }
  function start(line) { first = line; claimed = 0; part = "head" }
  FNR == 1 { finish(); file = FILENAME; start(1) }
  /^====/ { finish(); start(FNR + 1); next }
  /^---- expect/ { part = "expect" }
  part == "expect" { next }
  /#~ / { claimed = 1 }
  /^# test:/ || NF == 0 { next }
  part == "head" && /^[ \t]*#/ { claimed = 1; next }
  { part = "input" }
  END { finish() }' "${cases[@]}")
if [ -n "$found" ]; then fail "$found"; fi

# Decisions say whether they still hold.
for file in docs/decisions/[0-9]*.md; do
  if ! sed -n 3p "$file" | grep -q '^\*\*Status\.\*\* \(Accepted\|Partly superseded\|Superseded\)'; then
    fail "$file: line 3 must be its status: **Status.** Accepted, Partly superseded or Superseded"
  fi
  if ! grep -q "(${file##*/})" docs/decisions/README.md; then
    fail "docs/decisions/README.md: $file is not in the list"
  fi
done

# Functions that fit a screen and take few parameters, and types that do one thing.
found=$(awk -v most_lines="$most_lines" -v most_test_lines="$most_test_lines" \
  -v most_parameters="$most_parameters" -v most_methods="$most_methods" \
  -f scripts/function_sizes.awk "${sources[@]}")
if [ -n "$found" ]; then fail "$found"; fi

# Sizes.
awk -v warn="$warn_lines" -v limit="$fail_lines" -v warn_files="$warn_files" '
  { ++lines[FILENAME] }
  END {
    for (file in lines) {
      folder = file
      sub(/\/[^\/]*$/, "", folder)
      test = file ~ /_test\.cc$/
      if (test) tests[folder] += lines[file]; else code[folder] += lines[file]
      ++files[folder]
      total_files += 1
      if (test) total_tests += lines[file]; else total_code += lines[file]
    }
    printf "%-20s %6s %8s %8s\n", "folder", "files", "lines", "tests"
    sorter = "LC_ALL=C sort"
    for (folder in files) {
      printf "%-20s %6d %8d %8d\n", folder, files[folder], code[folder], tests[folder] | sorter
    }
    close(sorter)
    printf "%-20s %6d %8d %8d\n", "total", total_files, total_code, total_tests
    print "largest files:"
    sorter = "LC_ALL=C sort -k1,1nr -k2 | head -10"
    for (file in lines) printf "%6d %s\n", lines[file], file | sorter
    close(sorter)
    for (folder in files) {
      if (files[folder] > warn_files) {
        printf "%s: warning: %d files, more than %d: divide it\n", folder, files[folder], warn_files
      }
    }
    for (file in lines) {
      if (lines[file] > limit) {
        printf "%s: %d lines, the limit is %d: split it\n", file, lines[file], limit
        bad = 1
      } else if (lines[file] > warn) {
        printf "%s: warning: %d lines, more than %d\n", file, lines[file], warn
      }
    }
    exit bad
  }' "${sources[@]}" || failures=$((failures + 1))

if [ "$failures" -gt 0 ]; then
  echo "style: failed"
  exit 1
fi
echo "style: ok"
