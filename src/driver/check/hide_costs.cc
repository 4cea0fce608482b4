// SPDX-License-Identifier: Apache-2.0
#include "driver/check/hide_costs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "decision/lines.h"
#include "scalar/ops.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kHidden = "...";
constexpr std::string_view kUnits = ": matrix ";
constexpr std::string_view kKept = "kept ";
constexpr std::string_view kShare = "predicted to take ";
// Times follow from costs of the target, too.
constexpr std::array<std::string_view, 2> kTimes = {" cycles", " us"};

bool ends_in_digit(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.back()));
}

// The line without the numbers before a unit.
std::string hide_numbers(std::string_view line, std::string_view unit) {
  std::string out;
  while (true) {
    const size_t at = line.find(unit);
    if (at == std::string_view::npos) return out.append(line);
    std::string_view before = line.substr(0, at);
    const bool is_word = at + unit.size() == line.size() ||
                         !std::isalpha(static_cast<unsigned char>(line[at + unit.size()]));
    const bool is_number = is_word && ends_in_digit(before);
    while (is_number && (ends_in_digit(before) || before.ends_with('.'))) before.remove_suffix(1);
    out.append(before).append(is_number ? kHidden : "").append(unit);
    line.remove_prefix(at + unit.size());
  }
}

// The line without the numbers after these words.
std::string hide_behind(std::string_view line, std::string_view words) {
  std::string out;
  while (true) {
    const size_t at = line.find(words);
    if (at == std::string_view::npos) return out.append(line);
    out.append(line.substr(0, at + words.size()));
    line.remove_prefix(at + words.size());
    const size_t end = std::min(line.find_first_not_of("0123456789.e-+"), line.size());
    if (end > 0) out.append(kHidden);
    line.remove_prefix(end);
  }
}

// Nothing for a candidate that was not chosen: such lines are sorted by their cycles.
std::optional<std::string> hide_in_line(std::string_view line) {
  if (const size_t units = line.find(kUnits); units != std::string_view::npos) {
    if (line.find(kKept) == std::string_view::npos) return std::nullopt;
    return std::string(line.substr(0, units)) + ": " + std::string(kHidden);
  }
  std::string out(line);
  for (std::string_view unit : kTimes) out = hide_numbers(out, unit);
  return hide_behind(out, kShare);
}

}  // namespace

ir::Program without_costs(ir::Program program, expr::ExprPool& pool) {
  for (ir::Op& op : program.body) {
    const auto* loop = op.get<scalar::For>();
    if (!loop || !decision::cost_of(loop->body)) continue;
    scalar::For hidden = *loop;
    ir::Block lines = decision::lines(loop->body);
    for (ir::Op& line : lines) {
      if (line.is<decision::Cost>())
        line = ir::make(decision::Cost{pool.var(pool.name(kHidden), expr::DType::I64)});
    }
    hidden.body = decision::with_lines(std::move(hidden.body), lines);
    op = ir::make(std::move(hidden), op.span());
  }
  return program;
}

std::string without_cycles(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (const auto line = hide_in_line(text.substr(0, end))) {
      out += *line;
      if (end < text.size()) out += '\n';
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace nautilus::driver
