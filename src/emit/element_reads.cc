// SPDX-License-Identifier: Apache-2.0
// Elements of memory that are read once for several registers, before the loop over them.
#include "emit/element_text.h"

namespace nautilus::emit {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

void ElementText::read_early(Expr e, EarlyReads& arrays) {
  if (e.dtype() == DType::Bool && depends_on_axis(e)) {
    Writer nowhere;
    if (!limits(e, "limit", "reg", nowhere).empty()) return;
  }
  for (Expr a : e.args()) read_early(a, arrays);
  const std::string name = fmt::format("element{}", 2 * kFirstOfLanes + arrays.size());
  if (is_spread(e)) {
    const Expr read = of_lane(e);
    if (arrays.contains(read)) return;
    read_by_lanes(read, name, "here");
    arrays.emplace(read, std::make_pair(name, domain_.layout.shape()[1]));
  } else if (is_of_rows(e) && !arrays.contains(e)) {
    const Along along = along_axis(0);
    out_.line("int {}[{}];", name, along.count);
    out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", along.count, name,
              guarded(e, "(" + along.whole.text("digit") + ")", "here"));
    arrays.emplace(e, std::make_pair(name, domain_.layout.shape()[0]));
  }
}

ElementText::Along ElementText::along_axis(size_t axis) const {
  Along out;
  out.index = register_coordinate(axis);
  out.index.base = 0;
  for (size_t k = 0; k < out.index.digits.size(); ++k) {
    if (out.index.coefficients[k] == 0) continue;
    out.whole.digits.push_back({out.count, out.index.digits[k].extent});
    out.whole.coefficients.push_back(out.index.digits[k].stride);
    out.index.coefficients[k] = out.count;
    out.count *= out.index.digits[k].extent;
  }
  return out;
}

void ElementText::place_anew(Expr axis) {
  if (is_address_ || domain_.axes.size() != 1 || domain_.axes[0] != axis.name() ||
      !place_.empty() || domain_.layout.registers() < scope_.many_positions)
    return;
  place_ = fmt::format("place{}", first_limit_);
  out_.line("const int {} = anew({});", place_, matile::thread_coordinate(domain_.layout, 0));
}

void ElementText::read_along_axis(Expr e) {
  if (is_number_of_rows(e)) return read_numbers(e);
  if (!is_guarded_read(e) || !is_tile_of_products() || reads_.contains(e) || !is_memory(e[1]))
    return;
  const bool has_first = expr::depends_on(e, scope_.pool->index(domain_.axes[0]));
  if (has_first == expr::depends_on(e, scope_.pool->index(domain_.axes[1]))) return;
  const Along along = along_axis(has_first ? 0 : 1);
  if (const auto early = scope_.early.find(e); is_of_rows(e) && early != scope_.early.end() &&
                                               early->second.second == domain_.layout.shape()[0]) {
    reads_.emplace(e, std::make_pair(early->second.first, along.index));
    return;
  }
  const std::string name = fmt::format("element{}", first_limit_ + reads_.size());
  const std::string digits = "(" + along.whole.text("digit") + ")";
  const std::string value = is_spread(e) ? from_lanes(e, digits) : guarded(e, digits);
  out_.line("{} {}[{}];", e.dtype() == DType::I64 ? "long long" : "int", name, along.count);
  out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", along.count, name,
            value);
  reads_.emplace(e, std::make_pair(name, along.index));
}

bool ElementText::is_number_of_rows(Expr e) const {
  return e.op() == EK::Select && e[1].op() == EK::Read && e[2].op() == EK::FloatConst &&
         is_tile_of_products() && is_memory(e[1]) && expr::bytes(e.dtype()) <= 4 &&
         expr::depends_on(e, scope_.pool->index(domain_.axes[0])) &&
         !expr::depends_on(e, scope_.pool->index(domain_.axes[1]));
}

void ElementText::read_numbers(Expr e) {
  if (reads_.contains(e)) return;
  const Along along = along_axis(0);
  const std::string name = fmt::format("element{}", first_limit_ + reads_.size());
  out_.line("float {}[{}];", name, along.count);
  out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", along.count, name,
            at(e, "(" + along.whole.text("digit") + ")"));
  reads_.emplace(e, std::make_pair(name, along.index));
}

bool ElementText::is_of_rows(Expr e) const {
  return is_guarded_read(e) && is_tile_of_products() && is_memory(e[1]) &&
         e.dtype() != DType::I64 && expr::depends_on(e, scope_.pool->index(domain_.axes[0])) &&
         !expr::depends_on(e, scope_.pool->index(domain_.axes[1]));
}

std::string ElementText::from_lanes(Expr e, const std::string& reg) {
  const Expr read = of_lane(e);
  const auto early = scope_.early.find(read);
  std::string lanes;
  if (early != scope_.early.end() && early->second.second == domain_.layout.shape()[1]) {
    lanes = early->second.first;
  } else {
    lanes = fmt::format("element{}", kFirstOfLanes + first_limit_ + reads_.size());
    read_by_lanes(read, lanes);
  }
  const std::string column = register_coordinate(1).text(reg);
  return fmt::format("lane_from({}[({}) / {}], ({}) % {} + {})", lanes, column, kLanes, column,
                     kLanes, matile::thread_coordinate(domain_.layout, 1));
}

Expr ElementText::of_lane(Expr e) const {
  const Expr axis = scope_.pool->index(domain_.axes[1]);
  return expr::substitute(*scope_.pool, e, {{axis, scope_.pool->index(kLaneColumn)}});
}

void ElementText::read_by_lanes(Expr read, const std::string& name, const char* when) {
  const int parts = (domain_.layout.shape()[1] + kLanes - 1) / kLanes;
  out_.line("int {}[{}];", name, parts);
  out_.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", parts, name,
            guarded(read, kThreadOnly, when));
}

bool ElementText::is_spread(Expr e) const {
  return is_guarded_read(e) && is_tile_of_products() && is_memory(e[1]) &&
         e.dtype() != DType::I64 && domain_.layout.shape()[1] >= kLanes &&
         !expr::depends_on(e, scope_.pool->index(domain_.axes[0])) &&
         expr::depends_on(e, scope_.pool->index(domain_.axes[1])) && lanes_share_columns();
}

bool ElementText::lanes_share_columns() const {
  const auto column = [&](int warp, int lane, int reg) {
    return domain_.layout.coordinates_of({0, warp, lane, reg})[1];
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int warp = 1; warp < kWarps; ++warp) {
      if (column(warp, lane, 0) != column(0, lane, 0)) return false;
    }
    for (int reg = 0; reg < domain_.layout.registers(); ++reg) {
      const int own = column(0, 0, reg) % kLanes + column(0, lane, 0) - column(0, 0, 0);
      if (own < 0 || own >= kLanes) return false;
    }
  }
  return column(0, 0, 0) == 0;
}

}  // namespace nautilus::emit
