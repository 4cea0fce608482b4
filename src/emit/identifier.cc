// SPDX-License-Identifier: Apache-2.0
#include "emit/identifier.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "emit/emit.h"

namespace nautilus::emit {
namespace {

// Keywords of C++ and possible macros, names of the emitted text, and names that the prelude
// declares.
std::set<std::string, std::less<>> reserved_names() {
  std::set<std::string, std::less<>> names = {
      // clang-format off
      "thread", "group", "warp", "lane", "leader", "smem", "reg", "part", "p", "full", "digit",
      "step", "row", "half", "to", "x", "y", "from_a", "from_b", "counter", "is_last", "Params",
      "vec", "word", "words", "vector", "at", "other", "warps_at", "groups_at", "parts", "threadIdx",
      "blockIdx", "gridDim", "blockDim", "warpSize",
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
      "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
      "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
      "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
      "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
      "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
      "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static",
      "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
      "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "typeof", "restrict",
      "NULL", "linux", "unix", "assert", "min", "max", "INFINITY", "NAN"
      // clang-format on
  };
  // Declarations of the prelude: `DEVICE type name(`, `#define NAME`, `struct Name`.
  const std::string prelude = std::string(device_prelude()) + std::string(reads_prelude());
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::string previous;
  for (size_t i = 0; i < prelude.size();) {
    if (!is_word(prelude[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < prelude.size() && is_word(prelude[end])) ++end;
    const std::string word = prelude.substr(i, end - i);
    const bool is_call_form = end < prelude.size() && prelude[end] == '(';
    const size_t line = prelude.rfind('\n', i) + 1;
    const std::string_view head = std::string_view(prelude).substr(line, i - line);
    const bool is_function = is_call_form && head.find("DEVICE ") != std::string_view::npos &&
                             head.find('(') == std::string_view::npos;
    if (is_function || previous == "define" || previous == "struct" || head.starts_with("typedef"))
      names.insert(word);
    previous = word;
    i = end;
  }
  return names;
}

}  // namespace

std::string identifier(std::string_view name) {
  static const std::set<std::string, std::less<>> reserved = reserved_names();
  std::string out(name);
  std::replace(out.begin(), out.end(), '.', '_');
  // `limit0`, `limit1`, ... are conditions on coordinates, `element0`, ... elements along an axis.
  const auto is_numbered = [&](std::string_view stem) {
    return out.starts_with(stem) && out.size() > stem.size() &&
           std::all_of(out.begin() + static_cast<std::ptrdiff_t>(stem.size()), out.end(),
                       [](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
  };
  // Names with `_` in front, or with two of them together, belong to the compiler of the text;
  // those with one at the end are made here, and so are those with this ending.
  constexpr std::string_view kMade = "_n7";
  if (out.starts_with('_') || out.ends_with('_') || out.ends_with(kMade) ||
      out.find("__") != std::string::npos) {
    std::string parted = "n";
    for (char c : out) {
      if (c == '_' && parted.back() == '_') parted += 'u';
      parted += c;
    }
    return parted.append(parted.back() == '_' ? "u" : "").append(kMade);
  }
  if (is_numbered("limit") || is_numbered("element") || reserved.contains(out)) out += '_';
  return out;
}

std::string kernel_identifier(std::string_view name) {
  static const std::set<std::string_view> declared = {
      "main",  "std",    "printf", "malloc", "free",  "memcpy", "memset",  "assert",    "clock",
      "abs",   "acos",   "asin",   "atan",   "cbrt",  "ceil",   "cos",     "cosh",      "erf",
      "erfc",  "exp",    "exp2",   "exp10",  "expm1", "fabs",   "floor",   "fma",       "fmax",
      "fmin",  "fmod",   "hypot",  "j0",     "j1",    "jn",     "labs",    "ldexp",     "lgamma",
      "log",   "log10",  "log1p",  "log2",   "logb",  "modf",   "norm",    "normcdf",   "pow",
      "rnorm", "rint",   "round",  "rsqrt",  "sin",   "sincos", "sinh",    "sqrt",      "tan",
      "tanh",  "tgamma", "trunc",  "y0",     "y1",    "yn",     "signbit", "remainder", "rhypot"};
  std::string out = identifier(name);
  if (declared.contains(out)) out += '_';
  return out;
}

}  // namespace nautilus::emit
