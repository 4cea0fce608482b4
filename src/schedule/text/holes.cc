// SPDX-License-Identifier: Apache-2.0
#include "schedule/text/holes.h"

#include <fmt/format.h>

#include "schedule/text/schedule.h"
#include "schedule/text/text_lines.h"

namespace nautilus::schedule {
namespace {

constexpr std::string_view kOpen = "?{";

// The possible words of a hole; empty if it is not well formed.
std::vector<std::string> choices_of(std::string_view inside) {
  std::vector<std::string> out;
  while (true) {
    const size_t end = std::min(inside.find(','), inside.size());
    const std::string_view choice = inside.substr(0, end);
    if (choice.empty() || choice.find_first_of("?{} ;") != std::string_view::npos) return {};
    out.emplace_back(choice);
    if (end == inside.size()) return out;
    inside.remove_prefix(end + 1);
  }
}

// All fillings of one decision; itself if it has no hole, none if a hole is not well formed.
std::vector<std::string> fillings(const std::string& piece) {
  const size_t begin = piece.find('?');
  if (begin == std::string::npos) return {piece};
  const size_t end = piece.find('}', begin);
  if (end == std::string::npos || piece.compare(begin, kOpen.size(), kOpen) != 0) return {};
  const size_t inside = begin + kOpen.size();
  std::vector<std::string> out;
  for (const std::string& choice :
       choices_of(std::string_view(piece).substr(inside, end - inside))) {
    // The last hole changes fastest: what follows is filled for each choice.
    for (const std::string& rest : fillings(piece.substr(end + 1))) {
      out.push_back(piece.substr(0, begin) + choice + rest);
      if (out.size() > kMostFillings) return out;
    }
  }
  return out;
}

// The decision as one that tuning took.
std::string tuned(std::string piece) {
  for (const std::string_view by : decision::words(By())) {
    const std::string tail = " " + std::string(by);
    if (piece.ends_with(tail)) piece.resize(piece.size() - tail.size());
  }
  return piece + " tuned";
}

}  // namespace

Outcome<std::vector<Filling>> fill_holes(std::string_view text) {
  std::vector<Filling> out = {{}};
  for (const TextLine& line : text_lines(text)) {
    const std::string indent = line.is_indented ? "  " : "";
    std::string separator = indent;
    for (const std::string& piece : pieces_of(line.text)) {
      const std::vector<std::string> choices = fillings(piece);
      if (choices.empty())
        return Rejection{"holes",
                         fmt::format("line {}: `{}` has a hole that is not like `?{{64,128}}`",
                                     line.number, piece)};
      if (out.size() * choices.size() > kMostFillings)
        return Rejection{"holes", fmt::format("`{}`: the holes have more than {} fillings", piece,
                                              kMostFillings)};
      std::vector<Filling> longer;
      const bool is_open = choices.size() > 1 || choices[0] != piece;
      for (const Filling& begin : out) {
        for (const std::string& choice : choices) {
          Filling f = begin;
          f.text += separator + (is_open ? tuned(choice) : choice);
          if (is_open) f.name += (f.name.empty() ? "" : "; ") + choice;
          longer.push_back(std::move(f));
        }
      }
      out = std::move(longer);
      separator = "; ";
    }
    for (Filling& f : out) f.text += '\n';
  }
  return out;
}

}  // namespace nautilus::schedule
