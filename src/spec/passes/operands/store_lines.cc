// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/store_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/exact_halves.h"
#include "base/check.h"

namespace nautilus::spec {
namespace {

using decision::StoredAs;

std::string list_of(const ir::Names& names) {
  std::string out;
  for (ir::Name n : names) out += (out.empty() ? "" : ", ") + std::string(n.str());
  return out;
}

bool has(const ir::Names& names, ir::Name name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool share_one(const ir::Names& a, const ir::Names& b) {
  return std::any_of(a.begin(), a.end(), [&](ir::Name n) { return has(b, n); });
}

// Whether it names all axes once, and otherwise only axes of one element.
bool is_order(const ir::Names& order, const StoreRule& rule) {
  for (size_t k = 0; k < order.size(); ++k) {
    const bool is_again = std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k),
                                    order[k]) != order.begin() + static_cast<std::ptrdiff_t>(k);
    if (is_again || (!has(rule.axes, order[k]) && !has(rule.units, order[k]))) return false;
  }
  return std::all_of(rule.axes.begin(), rule.axes.end(),
                     [&](ir::Name axis) { return has(order, axis); });
}

}  // namespace

// By their words, which are those of dtypes.
StoredAs stored_as(ir::DType dtype) {
  const auto& all = decision::words(StoredAs{});
  const auto word = std::find(all.begin(), all.end(), expr::name(dtype));
  NAUT_CHECK(word != all.end(), "no operands are stored as {}", expr::name(dtype));
  return static_cast<StoredAs>(word - all.begin());
}

ir::DType dtype_of(StoredAs as) {
  const auto dtype = expr::parse_dtype(decision::words(as)[static_cast<size_t>(as)]);
  NAUT_CHECK(dtype, "it is not stored");
  return *dtype;
}

std::vector<ir::DType> held_dtypes(ir::Expr value) {
  const algebra::ExactHalves held = algebra::exact_halves(value);
  std::vector<ir::DType> out;
  if (held.in_bf16) out.push_back(ir::DType::BF16);
  if (held.in_f16) out.push_back(ir::DType::F16);
  return out;
}

ir::Names names_of(const ir::Axes& axes) {
  ir::Names out;
  for (const ir::Axis& a : axes) out.push_back(a.name);
  return out;
}

std::vector<size_t> places(const ir::Names& order, const ir::Names& axes) {
  std::vector<size_t> out;
  for (ir::Name n : order)
    out.push_back(static_cast<size_t>(std::find(axes.begin(), axes.end(), n) - axes.begin()));
  return out;
}

ir::Axes in_order(const ir::Axes& axes, const ir::Names& order) {
  ir::Axes out;
  for (size_t k : places(order, names_of(axes))) out.push_back(axes[k]);
  return out;
}

StoreLines::StoreLines(const ir::Program& program, ir::PassContext& context)
    : context_(context), lines_(decision::lines(program.body)), is_read_(lines_.size()) {}

// Empty if the line can be followed.
std::string StoreLines::why_not(const decision::Store& asked, const StoreRule& rule) const {
  if (asked.tensors != rule.tensors)
    return fmt::format("these are stored alike: {}", list_of(rule.tensors));
  if (asked.as == StoredAs::Off) return asked.axes.empty() ? "" : "what is not stored has no order";
  const ir::DType dtype = dtype_of(asked.as);
  if (dtype != rule.dtype &&
      std::find(rule.others.begin(), rule.others.end(), dtype) == rule.others.end())
    return fmt::format("{} holds its numbers, {} does not", expr::name(rule.dtype),
                       expr::name(dtype));
  if (!asked.axes.empty() && rule.axes.empty()) return "its equation says the order of its axes";
  if (!asked.axes.empty() && !is_order(asked.axes, rule)) {
    const std::string units =
        rule.units.empty()
            ? ""
            : fmt::format(", and those of one element that it is to keep: {}", list_of(rule.units));
    return fmt::format("an order names {} {} once: {}{}", rule.axes.size(),
                       rule.axes.size() == 1 ? "axis" : "axes", list_of(rule.axes), units);
  }
  return "";
}

decision::Store StoreLines::choose(const StoreRule& rule) {
  decision::Store out{rule.tensors, stored_as(rule.dtype), rule.axes, {}};
  if (!rule.is_stored) out = {rule.tensors, StoredAs::Off, {}, {}};
  bool is_asked = false;
  for (size_t k = 0; k < lines_.size(); ++k) {
    const auto* asked = lines_[k].get<decision::Store>();
    if (!asked || is_read_[k] || !share_one(asked->tensors, rule.tensors)) continue;
    is_read_[k] = true;
    const std::string why = is_asked ? "another line is about it, too" : why_not(*asked, rule);
    if (!why.empty()) {
      decision::refuse(lines_[k], why, context_);
      is_refused_ = true;
      continue;
    }
    is_asked = true;
    out = *asked;
    if (asked->as != StoredAs::Off && asked->axes.empty()) out.axes = rule.axes;
  }
  decision::note(ir::make(out), context_);
  return out;
}

decision::Depth StoreLines::choose_depth(const decision::Depth& rule, const ir::Names& axes) {
  for (size_t k = 0; k < lines_.size(); ++k) {
    const auto* asked = lines_[k].get<decision::Depth>();
    if (!asked || asked->tensor != rule.tensor) continue;
    const auto count = [&](ir::Name axis) {
      return std::count(asked->axes.begin(), asked->axes.end(), axis);
    };
    const bool are_its_own =
        std::all_of(asked->axes.begin(), asked->axes.end(),
                    [&](ir::Name axis) { return has(axes, axis) && count(axis) == 1; });
    if (are_its_own && asked->axes.size() != 1) return *asked;
    if (is_read_[k]) continue;
    is_read_[k] = true;
    decision::refuse(
        lines_[k],
        fmt::format("a depth is none or several of the {} axes of the sum, once each: {}",
                    axes.size(), list_of(axes)),
        context_);
    is_refused_ = true;
  }
  return rule;
}

void StoreLines::took(const decision::Depth& depth) {
  for (size_t k = 0; k < lines_.size(); ++k) {
    const auto* asked = lines_[k].get<decision::Depth>();
    if (asked && asked->tensor == depth.tensor) is_read_[k] = true;
  }
  decision::note(ir::make(depth), context_);
}

std::optional<ir::Program> StoreLines::finish(ir::Program program) {
  if (is_refused_) return std::nullopt;
  ir::Block rest;
  for (size_t k = 0; k < lines_.size(); ++k) {
    if (!is_read_[k]) rest.push_back(lines_[k]);
  }
  program.body = decision::with_lines(std::move(program.body), rest);
  return program;
}

}  // namespace nautilus::spec
