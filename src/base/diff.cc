// SPDX-License-Identifier: Apache-2.0
//
// Lines become integers, then a list of flags says which lines of each side are common. A stretch
// without its common ends is solved by the table of longest common subsequences when that has at
// most kMaxCells entries; otherwise lines unique on both sides, in their longest increasing
// sequence, cut it into smaller stretches (patience diff), and what is still too large is
// replaced as a whole.
#include "base/diff.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace nautilus::base {

namespace {

// Entries are 16 bits wide: a common subsequence is never longer than the square root of this.
constexpr size_t kMaxCells = size_t{4000} * 4000;

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

// Half-open ranges of the two sides.
struct Stretch {
  size_t a_begin, a_end, b_begin, b_end;
};

class Matcher {
 public:
  Matcher(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b)
      : a_common(a.size()), b_common(b.size()) {
    std::unordered_map<std::string_view, int> ids;
    auto number = [&](const std::vector<std::string_view>& lines, std::vector<int>& out) {
      for (std::string_view line : lines) {
        out.push_back(ids.try_emplace(line, static_cast<int>(ids.size())).first->second);
      }
    };
    number(a, a_);
    number(b, b_);
    ids_ = ids.size();
    match({0, a.size(), 0, b.size()}, true);
  }

  // Which lines are common; the n-th common lines of the two sides belong together.
  std::vector<bool> a_common, b_common;

 private:
  void match(Stretch s, bool may_cut) {
    while (s.a_begin < s.a_end && s.b_begin < s.b_end && a_[s.a_begin] == b_[s.b_begin]) {
      pair(s.a_begin++, s.b_begin++);
    }
    while (s.a_begin < s.a_end && s.b_begin < s.b_end && a_[s.a_end - 1] == b_[s.b_end - 1]) {
      pair(--s.a_end, --s.b_end);
    }
    const size_t rows = s.a_end - s.a_begin, columns = s.b_end - s.b_begin;
    if (rows == 0 || columns == 0) return;
    if (rows <= kMaxCells / columns) {
      match_by_table(s);
    } else if (may_cut) {
      match_by_anchors(s);
    }
  }

  void pair(size_t i, size_t j) {
    a_common[i] = true;
    b_common[j] = true;
  }

  void match_by_table(const Stretch& s) {
    const size_t rows = s.a_end - s.a_begin, columns = s.b_end - s.b_begin;
    // length[i][j] is that of the suffixes from i and j, so that the walk below goes forward and
    // prefers deletions before insertions.
    std::vector<uint16_t> length((rows + 1) * (columns + 1));
    auto at = [&](size_t i, size_t j) -> uint16_t& { return length[i * (columns + 1) + j]; };
    for (size_t i = rows; i-- > 0;) {
      for (size_t j = columns; j-- > 0;) {
        at(i, j) = a_[s.a_begin + i] == b_[s.b_begin + j]
                       ? static_cast<uint16_t>(at(i + 1, j + 1) + 1)
                       : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    for (size_t i = 0, j = 0; i < rows && j < columns;) {
      if (a_[s.a_begin + i] == b_[s.b_begin + j]) {
        pair(s.a_begin + i++, s.b_begin + j++);
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        ++i;
      } else {
        ++j;
      }
    }
  }

  void match_by_anchors(const Stretch& s) {
    struct Use {
      size_t a_count = 0, b_count = 0, b_index = 0;
    };
    std::vector<Use> uses(ids_);
    for (size_t i = s.a_begin; i < s.a_end; ++i) ++uses[static_cast<size_t>(a_[i])].a_count;
    for (size_t j = s.b_begin; j < s.b_end; ++j) {
      Use& use = uses[static_cast<size_t>(b_[j])];
      ++use.b_count;
      use.b_index = j;
    }

    struct Anchor {
      size_t a, b;
      ptrdiff_t previous;
    };
    std::vector<Anchor> anchors;
    // tails[n] is the anchor with the least b that ends an increasing sequence of n + 1 anchors.
    std::vector<size_t> tails;
    for (size_t i = s.a_begin; i < s.a_end; ++i) {
      const Use& use = uses[static_cast<size_t>(a_[i])];
      if (use.a_count != 1 || use.b_count != 1) continue;
      const auto place =
          std::lower_bound(tails.begin(), tails.end(), use.b_index,
                           [&](size_t tail, size_t b) { return anchors[tail].b < b; });
      const ptrdiff_t previous =
          place == tails.begin() ? -1 : static_cast<ptrdiff_t>(*std::prev(place));
      if (place == tails.end()) {
        tails.push_back(anchors.size());
      } else {
        *place = anchors.size();
      }
      anchors.push_back({i, use.b_index, previous});
    }
    if (tails.empty()) return;

    Stretch rest = s;
    for (auto k = static_cast<ptrdiff_t>(tails.back()); k >= 0;) {
      const Anchor& anchor = anchors[static_cast<size_t>(k)];
      pair(anchor.a, anchor.b);
      match({anchor.a + 1, rest.a_end, anchor.b + 1, rest.b_end}, false);
      rest.a_end = anchor.a;
      rest.b_end = anchor.b;
      k = anchor.previous;
    }
    match(rest, false);
  }

  std::vector<int> a_, b_;
  size_t ids_ = 0;
};

// A run of lines removed from `before` and of lines added in `after` at the same place.
using Change = Stretch;

std::vector<Change> find_changes(const Matcher& m) {
  std::vector<Change> changes;
  size_t i = 0, j = 0;
  while (i < m.a_common.size() || j < m.b_common.size()) {
    Change change{i, i, j, j};
    while (i < m.a_common.size() && !m.a_common[i]) ++i;
    while (j < m.b_common.size() && !m.b_common[j]) ++j;
    change.a_end = i;
    change.b_end = j;
    if (change.a_begin != i || change.b_begin != j) {
      changes.push_back(change);
    } else {
      ++i;
      ++j;
    }
  }
  return changes;
}

void append_line(std::string& out, char mark, std::string_view line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

// A side of a hunk header: lines count from 1, an empty side names the line before it, and a
// count of 1 is left out.
std::string range_text(size_t begin, size_t end) {
  const size_t count = end - begin;
  if (count == 1) return fmt::format("{}", begin + 1);
  return fmt::format("{},{}", count == 0 ? begin : begin + 1, count);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after,
                         std::string_view before_name, std::string_view after_name, int context) {
  if (before == after) return "";
  const std::vector<std::string_view> a = split_lines(before), b = split_lines(after);
  const std::vector<Change> changes = find_changes(Matcher(a, b));
  const size_t around = static_cast<size_t>(std::max(context, 0));

  std::string out = fmt::format("--- {}\n+++ {}\n", before_name, after_name);
  for (size_t first = 0; first < changes.size();) {
    size_t last = first;
    while (last + 1 < changes.size() &&
           changes[last + 1].a_begin - changes[last].a_end <= 2 * around) {
      ++last;
    }
    const size_t lead = std::min(around, changes[first].a_begin);
    const size_t trail = std::min(around, a.size() - changes[last].a_end);
    out += fmt::format("@@ -{} +{} @@\n",
                       range_text(changes[first].a_begin - lead, changes[last].a_end + trail),
                       range_text(changes[first].b_begin - lead, changes[last].b_end + trail));
    size_t i = changes[first].a_begin - lead;
    for (size_t c = first; c <= last; ++c) {
      for (; i < changes[c].a_begin; ++i) append_line(out, ' ', a[i]);
      for (; i < changes[c].a_end; ++i) append_line(out, '-', a[i]);
      for (size_t j = changes[c].b_begin; j < changes[c].b_end; ++j) append_line(out, '+', b[j]);
    }
    for (const size_t end = i + trail; i < end; ++i) append_line(out, ' ', a[i]);
    first = last + 1;
  }
  return out;
}

}  // namespace nautilus::base
