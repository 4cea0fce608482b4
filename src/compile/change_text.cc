// SPDX-License-Identifier: Apache-2.0
#include "compile/change_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "decision/decisions.h"
#include "diag/diagnostic.h"
#include "ir/walk.h"
#include "matile/ops.h"

namespace nautilus::compile {
namespace {

// Kinds of ops, in the order in which they were seen first.
template <class T>
class ByKind {
 public:
  T& operator[](std::string_view kind) {
    const auto found = std::find_if(list_.begin(), list_.end(),
                                    [&](const auto& entry) { return entry.first == kind; });
    return found != list_.end() ? found->second : list_.emplace_back(std::string(kind), T{}).second;
  }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<std::pair<std::string, T>> list_;
};

// Ops as lines without indentation, how often each is there; lines of decisions left out. `order`:
// with indentation, one after the other.
std::map<std::string_view, int> lines_of(std::string_view text, ByKind<int>* kinds,
                                         std::vector<std::string_view>* order) {
  std::map<std::string_view, int> out;
  size_t decisions_at = std::string_view::npos;  // indentation of the block that is left out
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos) continue;
    if (decisions_at != std::string_view::npos && indent > decisions_at) continue;
    const std::string_view indented = line;
    line.remove_prefix(indent);
    const std::string_view kind = line.substr(0, line.find(' '));
    decisions_at = kind == decision::Decisions::info().mnemonic() ? indent : std::string_view::npos;
    if (decisions_at != std::string_view::npos) continue;
    ++out[line];
    order->push_back(indented);
    (*kinds)[kind];
  }
  return out;
}

struct Change {
  int added = 0;
  int removed = 0;
};

}  // namespace

std::string contents_text(const ir::Block& block) {
  ByKind<int> counts;
  size_t all = 0;
  const auto& lines = decision::kernel_vocabulary();
  ir::for_each_op(block, [&](const ir::Op& op) {
    const bool is_line = op.is<decision::Decisions>() || op.is<matile::EachPoints>() ||
                         std::find(lines.begin(), lines.end(), &op.info()) != lines.end();
    if (is_line) return;
    ++counts[op.info().mnemonic()];
    ++all;
  });
  std::string out;
  for (const auto& [kind, count] : counts)
    out += fmt::format("{} {} {}", out.empty() ? "" : ",", count, kind);
  return diag::counted(all, "op", "ops") + ":" + out;
}

std::string change_text(std::string_view before, std::string_view after) {
  ByKind<int> kinds;
  std::vector<std::string_view> order;
  std::vector<std::string_view> old_order;
  const auto new_lines = lines_of(after, &kinds, &order);
  const auto old_lines = lines_of(before, &kinds, &old_order);
  std::map<std::string_view, Change> changes;
  const auto count = [&](const auto& lines, const auto& others, int Change::*into) {
    for (const auto& [line, times] : lines) {
      const auto other = others.find(line);
      const int more = times - (other == others.end() ? 0 : other->second);
      if (more > 0) changes[line.substr(0, line.find(' '))].*into += more;
    }
  };
  count(new_lines, old_lines, &Change::added);
  count(old_lines, new_lines, &Change::removed);
  if (changes.empty()) return order == old_order ? "lines alone" : "ops move";
  std::string counted;
  std::string rewritten;
  const auto add = [](std::string& to, const std::string& piece) {
    to += (to.empty() ? "" : ", ") + piece;
  };
  for (const auto& [kind, unused] : kinds) {
    const auto change = changes.find(kind);
    if (change == changes.end()) continue;
    const int net = change->second.added - change->second.removed;
    if (net != 0) add(counted, fmt::format("{:+} {}", net, kind));
    const int same = std::min(change->second.added, change->second.removed);
    if (same > 0) add(rewritten, fmt::format("{} {}", same, kind));
  }
  const std::string_view between = counted.empty() || rewritten.empty() ? "" : "; ";
  return fmt::format("{}{}{}{}", counted, between, rewritten,
                     rewritten.empty() ? "" : " rewritten");
}

}  // namespace nautilus::compile
