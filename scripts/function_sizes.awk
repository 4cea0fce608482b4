# SPDX-License-Identifier: Apache-2.0
#
# Functions of more than `most_lines` lines or `most_parameters` parameters, and types of more than
# `most_methods` functions, in formatted C++ sources: there a body ends with a brace that stands as
# far in as its head. A table of data that a function gives (`static const ... = {`) counts as one
# line, and lines that only name a case do not count; texts in `R"(` are not looked at. A function
# of a test may have `most_test_lines`.
function limit_of_lines() { return FILENAME ~ /_test\.cc$/ ? most_test_lines : most_lines }
# Of a head: the commas between its parentheses that are in no brackets, and one.
function parameters_of(head,   k, c, round, angle, count) {
  sub(/^[^(]*(operator\(\))?/, "", head)
  for (k = 1; k <= length(head); ++k) {
    c = substr(head, k, 1)
    if (c == "(") { if (++round == 1 && substr(head, k + 1, 1) != ")") count = 1 }
    else if (c == ")") { if (--round == 0) return count + 0 }
    else if (c == "<" || c == "{" || c == "[") ++angle
    else if (c == ">" || c == "}" || c == "]") --angle
    else if (c == "," && round == 1 && angle == 0) ++count
  }
  return 0
}
function finish_head() {
  count = parameters_of(head)
  if (count > most_parameters && FILENAME !~ /emulator\/table\.cc$/) {
    printf "%s:%d: a function of %d parameters, the limit is %d: what goes together is a struct\n",
           FILENAME, start, count, most_parameters
  }
}
function indent_of(line) { match(line, /^ */); return RLENGTH }
function finish_type() {
  if (methods[depth] > most_methods) {
    printf "%s:%d: %s has %d functions, the limit is %d: divide it by phase\n", FILENAME,
           type_line[depth], type_name[depth], methods[depth], most_methods
  }
  --depth
}
FNR == 1 { depth = 0; inside = pending = table = text = 0 }
text { if (/\)[a-z]*"/) text = 0; if (inside) ++in_tables; next }
/R"[a-z]*\(/ && !/\)[a-z]*"/ { text = 1 }
table { if (indent_of($0) == table_indent && /^ *};?/) table = 0; else ++in_tables; next }
inside {
  if (indent_of($0) == indent && $0 ~ /^ *}/) {
    lines = FNR - start + 1 - in_tables
    if (lines > limit_of_lines()) {
      printf "%s:%d: a function of %d lines, the limit is %d: divide it\n", FILENAME, start, lines,
             limit_of_lines()
    }
    inside = 0
  } else if (/ = \{$/ && /static const|constexpr/) {
    table = 1
    table_indent = indent_of($0)
  } else if (/^ *(case .*|default):$/) {
    ++in_tables
  }
  next
}
pending {
  head = head $0
  if (/[{;}]$/ || /^$/) { finish_head(); pending = 0 }
  if (/\{$/) { inside = 1; in_tables = 0 }
  next
}
/^ *(template <.*> *)?(class|struct) [A-Za-z_:<>]+( final)?( : .*)? \{$/ {
  ++depth
  type_indent[depth] = indent_of($0)
  type_line[depth] = FNR
  match($0, /(class|struct) [A-Za-z_:]+/)
  type_name[depth] = substr($0, RSTART, RLENGTH)
  methods[depth] = 0
  next
}
depth && /^ *};/ && indent_of($0) == type_indent[depth] { finish_type(); next }
# A head: a name and what it takes, where a namespace or a type has its members.
/^ *[A-Za-z_~][^=;"]*\(/ && !/^ *(if|for|while|switch|return|else|using|namespace|static_assert|friend|case) ?/ {
  at = depth ? type_indent[depth] + 2 : 0
  if (indent_of($0) != at || /^ *(public|private|protected):/) next
  if (depth) ++methods[depth]
  start = FNR
  indent = at
  head = $0
  if (/[{;}]$/) finish_head(); else pending = 1
  if (/\{$/) { inside = 1; in_tables = 0 }
}
