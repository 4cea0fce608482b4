// SPDX-License-Identifier: Apache-2.0
#include "schedule/holes.h"

#include <fmt/format.h>

namespace nautilus::schedule {
namespace {

bool is_open(std::string_view word) { return word.starts_with('?'); }

bool is_open(const Decision& d) {
  for (const std::string& w : d.words)
    if (is_open(w)) return true;
  return false;
}

std::string text_of(const Decision& d) {
  std::string out = d.verb;
  for (const std::string& w : d.words) out += " " + w;
  return out;
}

}  // namespace

std::vector<std::string> choices_of(std::string_view word) {
  if (!is_open(word)) return {std::string(word)};
  if (!word.starts_with("?{") || !word.ends_with('}')) return {};
  word = word.substr(2, word.size() - 3);
  std::vector<std::string> out;
  while (true) {
    const size_t end = std::min(word.find(','), word.size());
    const std::string_view choice = word.substr(0, end);
    if (choice.empty() || choice.find_first_of("?{}") != std::string_view::npos) return {};
    out.emplace_back(choice);
    if (end == word.size()) return out;
    word.remove_prefix(end + 1);
  }
}

size_t count_fillings(const std::vector<std::string>& words) {
  size_t n = 1;
  for (const std::string& w : words) n = std::min(n * choices_of(w).size(), kMostFillings + 1);
  return n;
}

std::vector<std::vector<std::string>> fillings(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> out = {{}};
  for (const std::string& w : words) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& begin : out) {
      for (std::string& choice : choices_of(w)) {
        longer.push_back(begin);
        longer.back().push_back(std::move(choice));
      }
    }
    out = std::move(longer);
  }
  return out;
}

const Decision* find_hole(const Schedule& schedule) {
  for (const Decision& d : schedule.decisions)
    if (is_open(d)) return &d;
  return nullptr;
}

Outcome<std::vector<Filling>> fill_holes(const Schedule& schedule) {
  std::vector<Filling> out = {{{schedule.program, schedule.hash, {}}, ""}};
  for (const Decision& d : schedule.decisions) {
    if (out.size() * count_fillings(d.words) > kMostFillings)
      return Rejection{"holes", fmt::format("`{}`: the holes have more than {} fillings",
                                            text_of(d), kMostFillings)};
    const auto ways = fillings(d.words);
    std::vector<Filling> longer;
    for (const Filling& begin : out) {
      for (const auto& words : ways) {
        Filling f = begin;
        f.schedule.decisions.push_back({d.verb, words, d.provenance});
        if (is_open(d)) {
          Decision& filled = f.schedule.decisions.back();
          filled.provenance = Provenance::Tuned;
          f.name += (f.name.empty() ? "" : "; ") + text_of(filled);
        }
        longer.push_back(std::move(f));
      }
    }
    out = std::move(longer);
  }
  return out;
}

}  // namespace nautilus::schedule
