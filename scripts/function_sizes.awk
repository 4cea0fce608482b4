# SPDX-License-Identifier: Apache-2.0
#
# Functions of more than `most_lines` lines and types of more than `most_methods` functions, in
# formatted C++ sources: there a body ends with a brace that stands as far in as its head. A table
# of data that a function gives (`static const ... = {`) counts as one line; texts in `R"(` are not
# looked at.
function indent_of(line) { match(line, /^ */); return RLENGTH }
function finish_type() {
  if (methods[depth] > most_methods) {
    printf "%s:%d: %s has %d functions, the limit is %d: divide it by phase\n", FILENAME,
           type_line[depth], type_name[depth], methods[depth], most_methods
  }
  --depth
}
FNR == 1 { depth = 0; inside = pending = table = text = 0 }
text { if (/\)"/) text = 0; if (inside) ++in_tables; next }
/R"\(/ && !/\)"/ { text = 1 }
table { if (indent_of($0) == table_indent && /^ *};?/) table = 0; else ++in_tables; next }
inside {
  if (indent_of($0) == indent && $0 ~ /^ *}/) {
    lines = FNR - start + 1 - in_tables
    if (lines > most_lines) {
      printf "%s:%d: a function of %d lines, the limit is %d: divide it\n", FILENAME, start, lines,
             most_lines
    }
    inside = 0
  } else if (/ = \{$/ && /static const|constexpr/) {
    table = 1
    table_indent = indent_of($0)
  }
  next
}
pending {
  if (/\{$/) { inside = 1; pending = in_tables = 0 } else if (/[;}]$/ || /^$/) pending = 0
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
  if (/\{$/) { inside = 1; in_tables = 0 } else if (!/[;}]$/) pending = 1
}
