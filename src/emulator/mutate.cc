// SPDX-License-Identifier: Apache-2.0
#include "emulator/mutate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace nautilus::emulator {
namespace {

constexpr std::array<std::string_view, 12> kMethods = {"get",     "release", "fill",    "fill_copy",
                                                       "advance", "jump",    "skip",    "enter",
                                                       "leave",   "claim",   "publish", "init"};
constexpr std::array<std::string_view, 16> kFunctions = {
    "wgmma_fence", "wgmma_commit",  "wgmma_wait",      "bar_sync",
    "bar_arrive",  "sync_cta",      "fence_async",     "tma_commit",
    "mbar_init",   "tma_wait_read", "mbar_init_fence", "mbar_wait",
    "mbar_expect", "mbar_arrive",   "sync_cluster",    "wait_for_kernels_in_front"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The text with comments and literals blanked, so that positions stay.
std::string without_comments(std::string_view text) {
  std::string out(text);
  for (size_t i = 0; i < out.size();) {
    size_t end = i + 1;
    if (out.compare(i, 2, "//") == 0) {
      end = std::min(out.find('\n', i), out.size());
    } else if (out.compare(i, 2, "/*") == 0) {
      const size_t close = out.find("*/", i + 2);
      end = close == std::string::npos ? out.size() : close + 2;
    } else if (out[i] == '"' || out[i] == '\'') {
      while (end < out.size() && out[end] != out[i]) end += out[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, out.size());
    } else {
      i = end;
      continue;
    }
    for (; i < end; ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
  }
  return out;
}

// The position after the parenthesis that closes the one at `open`, npos if there is none.
size_t after_closing(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

// Steps back over the object of a call: names, `.`, `->`, `::`, template arguments and subscripts.
size_t begin_of_object(std::string_view text, size_t at) {
  while (at > 0) {
    const char c = text[at - 1];
    if (is_word(c) || c == '.' || c == ':') {
      --at;
    } else if (c == '>' && at >= 2 && text[at - 2] == '-') {
      at -= 2;
    } else if (c == '>' || c == ']') {
      const char open = c == '>' ? '<' : '[';
      int depth = 0;
      do {
        --at;
        depth += text[at] == c ? 1 : text[at] == open ? -1 : 0;
      } while (at > 0 && depth > 0);
    } else {
      break;
    }
  }
  return at;
}

// Whether a statement can begin here: after `;`, a brace, a label, the head of an if or a loop,
// else or UNROLL.
bool is_statement_begin(std::string_view text, size_t at) {
  while (at > 0 && std::isspace(static_cast<unsigned char>(text[at - 1])) != 0) --at;
  if (at == 0) return true;
  const char c = text[at - 1];
  if (c == ';' || c == '{' || c == '}' || c == ')' || c == ':') return true;
  size_t word = at;
  while (word > 0 && is_word(text[word - 1])) --word;
  const std::string_view before = text.substr(word, at - word);
  return before == "else" || before == "do" || before == "UNROLL" || before == "NO_UNROLL";
}

struct Call {
  size_t begin = 0;  // of the object
  size_t name = 0;
  size_t end = 0;  // after the closing parenthesis
  std::string_view word;
};

// Calls of the functions and methods above.
std::vector<Call> find_calls(std::string_view text) {
  std::vector<Call> out;
  for (size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      ++i;
      continue;
    }
    Call call;
    call.name = i;
    while (i < text.size() && is_word(text[i])) ++i;
    call.word = text.substr(call.name, i - call.name);
    const char before = call.name > 0 ? text[call.name - 1] : ' ';
    const bool is_member = before == '.' || before == ':' || before == '>';
    const auto is_among = [&](const auto& names) {
      return std::find(names.begin(), names.end(), call.word) != names.end();
    };
    if (!(is_member ? is_among(kMethods) : is_among(kFunctions))) continue;
    size_t open = i;
    if (open < text.size() && text[open] == '<')
      open = std::min(text.find('>', open), text.size()) + 1;
    if (open >= text.size() || text[open] != '(') continue;
    call.end = after_closing(text, open);
    if (call.end == std::string_view::npos) continue;
    call.begin = begin_of_object(text, call.name);
    out.push_back(call);
  }
  return out;
}

}  // namespace

std::vector<Mutant> mutants(std::string_view body) {
  const std::string text = without_comments(body);
  std::vector<Mutant> out;
  for (const Call& call : find_calls(text)) {
    const int line =
        1 + static_cast<int>(std::count(
                text.begin(), text.begin() + static_cast<std::ptrdiff_t>(call.name), '\n'));
    const std::string source(body.substr(call.begin, call.end - call.begin));
    const auto add = [&](std::string what, size_t begin, size_t end, std::string_view instead) {
      Mutant mutant;
      mutant.line = line;
      mutant.description = fmt::format("line {}: deleted {}", line, what);
      mutant.deleted = std::move(what);
      mutant.body = fmt::format("{}{}{}", body.substr(0, begin), instead, body.substr(end));
      out.push_back(std::move(mutant));
    };
    if (call.word == "fill" || call.word == "fill_copy") {
      const size_t end = call.name + call.word.size();
      add(fmt::format("the wait of `{}`", source), end, end, "_without_wait");
      add(fmt::format("the announcement of `{}`", source), end, end, "_without_expect");
      continue;
    }
    // A call with a used value cannot be deleted; the calls above have no value.
    const size_t semicolon = text.find_first_not_of(" \n\t", call.end);
    if (semicolon == std::string::npos || text[semicolon] != ';') continue;
    if (!is_statement_begin(text, call.begin)) continue;
    // Line breaks stay, so that reports name the lines of the original.
    const std::string breaks(static_cast<size_t>(std::count(source.begin(), source.end(), '\n')),
                             '\n');
    add(fmt::format("`{};`", source), call.begin, call.end, breaks);
  }
  return out;
}

}  // namespace nautilus::emulator
