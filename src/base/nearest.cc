// SPDX-License-Identifier: Apache-2.0
//
// Three rows of the edit table suffice, since an exchange looks back two rows at most.
#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace nautilus::base {

namespace {

bool equal_but_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view wanted, const std::vector<std::string>& candidates) {
  // Any short name is one edit away from any other: there only another case counts as near.
  if (wanted.size() < 3) {
    for (const std::string& candidate : candidates) {
      if (equal_but_case(wanted, candidate)) return candidate;
    }
    return "";
  }
  const int limit = static_cast<int>(wanted.size() / 3);
  std::string best;
  int best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const int longer = static_cast<int>(std::max(wanted.size(), candidate.size()));
    const int shorter = static_cast<int>(std::min(wanted.size(), candidate.size()));
    if (longer - shorter >= best_distance) continue;
    const int distance = edit_distance(wanted, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string no_such_name(std::string_view kind, std::string_view wanted,
                         const std::vector<std::string>& known) {
  const std::string near = nearest_name(wanted, known);
  return fmt::format("there is no {} `{}`; {} {}", kind, wanted,
                     near.empty() ? "there are" : fmt::format("did you mean `{}`? There are", near),
                     known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

}  // namespace nautilus::base
