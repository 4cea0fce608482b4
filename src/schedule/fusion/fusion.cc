// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/fusion.h"

#include <algorithm>
#include <numeric>

#include "ir/operand_width.h"
#include "schedule/fusion/axis_list.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::Op;

bool Member::has(Expr axis) const { return contains(axes, axis); }

int Dot::operand_bytes() const { return expr::bytes(column_element.dtype()); }

bool Dot::has_stored_rows() const {
  return row_element && expr::is_operand(row_element.dtype()) &&
         expr::is_int(row_element.dtype()) == expr::is_int(operand_dtype()) &&
         expr::bytes(row_element.dtype()) == operand_bytes();
}

// The matrix unit takes operands of 8 bits of two dtypes, not so 16-bit ones.
bool Dot::is_plain() const {
  return has_stored_rows() && expr::are_operands_together(row_element.dtype(), operand_dtype());
}

const Member* Fusion::find(Expr read) const {
  for (const Member& m : members) {
    if (m.read == read) return &m;
  }
  return nullptr;
}

const Member* Fusion::by_name(expr::Name name) const {
  for (const Member& m : members) {
    if (m.target == name) return &m;
  }
  return nullptr;
}

const Dot* Fusion::dot_of(size_t member) const {
  for (const Dot& d : dots) {
    if (d.member == member) return &d;
  }
  return nullptr;
}

std::span<const Dot> Fusion::dots_of(size_t member) const {
  const auto is_other = [&](const Dot& d) { return d.member != member; };
  const auto first = std::find_if_not(dots.begin(), dots.end(), is_other);
  return {first, std::find_if(first, dots.end(), is_other)};
}

bool Fusion::is_added_apart(const Dot& dot) const {
  const target::OperandWidth* width = ir::operand_width(target->matrix, dot.operand_dtype());
  const bool is_exact = expr::is_int(members[dot.member].dtype);
  return (has_several(dot) && !is_exact) || !dot.scales.empty() ||
         (width && width->apart_depth > 0);
}

bool Fusion::stores_integers(expr::DType dtype) const {
  const bool is_stored = expr::is_int(dtype) && dtype != expr::DType::I64;
  return is_stored &&
         std::ranges::any_of(dots, [](const Dot& d) { return expr::is_int(d.operand_dtype()); });
}

int64_t Fusion::step_block() const {
  int64_t out = 0;
  for (const Dot& d : dots) out = std::gcd(out, d.block);
  return out;
}

int64_t Fusion::depth_grain() const {
  int64_t out = dots.empty() ? target->matrix.depth : 1;
  for (const Dot& d : dots) {
    const target::OperandWidth* width = ir::operand_width(target->matrix, d.operand_dtype());
    out = std::max<int64_t>(out, width ? width->depth : target->matrix.depth);
  }
  return out;
}

int64_t Fusion::column_grain() const {
  int64_t out = target->matrix.column_step;
  for (const Dot& d : dots) {
    const target::OperandWidth* width = ir::operand_width(target->matrix, d.operand_dtype());
    if (width) out = std::lcm<int64_t>(out, width->column_step);
  }
  return out;
}

int64_t Fusion::apart_depth() const {
  int64_t out = 0;
  for (const Dot& d : dots) {
    const target::OperandWidth* width = ir::operand_width(target->matrix, d.operand_dtype());
    if (!width || width->apart_depth == 0 || d.depth != stream) continue;
    out = out == 0 ? width->apart_depth : std::min<int64_t>(out, width->apart_depth);
  }
  return out;
}

int64_t Fusion::column_block() const {
  int64_t out = 0;
  for (const Dot& d : dots) out = std::gcd(out, d.column_block);
  return out;
}

bool Fusion::is_outer(Expr axis) const { return contains(outer, axis); }

bool Fusion::is_column(Expr axis) const {
  return std::any_of(dots.begin(), dots.end(), [&](const Dot& d) { return d.column == axis; });
}

bool Fusion::is_inner(Expr axis) const {
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& m) { return !m.is_closing && contains(m.inner, axis); });
}

bool Fusion::is_whole(Expr axis) const {
  const Expr extent = extents.at(axis);
  const bool is_depth = is_inner(axis) && !is_column(axis) && axis != row;
  return extent.op() == Op::IntConst &&
         extent.integer() <= (is_depth ? target->tiles.whole_depth : target->tiles.whole_extent);
}

bool Fusion::is_tile_axis(Expr axis) const {
  return axis == stream || axis == row || is_column(axis) || is_inner(axis);
}

std::vector<Expr> Fusion::tile_axes(const Member& m) const {
  std::vector<Expr> out;
  for (Expr a : m.axes) {
    if (is_tile_axis(a)) out.push_back(a);
  }
  return out;
}

bool Fusion::needs_closing_early() const {
  // Members stand in order of dependence, the statements' own.
  std::set<int> dependent;
  for (const Member& x : members) {
    bool is_dependent = x.is_closing;
    auto visit = [&](Expr e) {
      const Member* p = e.op() == Op::Read ? find(e) : nullptr;
      if (p && p != &x) is_dependent |= dependent.contains(p->statement);
    };
    expr::for_each(x.value, visit);
    if (x.init) expr::for_each(x.init, visit);
    if (!is_dependent) continue;
    if (x.is_rolled || x.has(stream)) return true;
    dependent.insert(x.statement);
  }
  return false;
}

std::set<int> Fusion::dependent_on_rolled() const {
  std::unordered_map<Expr, const Member*> by_read;
  for (const Member& m : members) by_read.emplace(m.read, &m);
  // Members stand in order of dependence, the statements' own.
  std::set<int> dependent;
  for (const Member& x : members) {
    bool is_dependent = false;
    auto visit = [&](Expr e) {
      const auto it = e.op() == Op::Read ? by_read.find(e) : by_read.end();
      if (it == by_read.end() || it->second == &x) return;
      is_dependent |= it->second->is_rolled || dependent.contains(it->second->statement);
    };
    expr::for_each(x.value, visit);
    if (x.init) expr::for_each(x.init, visit);
    if (is_dependent) dependent.insert(x.statement);
  }
  return dependent;
}

bool Fusion::depends_on_rolled(const Member& m) const {
  return dependent_on_rolled().contains(m.statement);
}

Expr Fusion::inlined(expr::ExprPool& pool, Expr e) const {
  std::unordered_map<Expr, Expr> memo;
  auto go = [&](auto& self, Expr x) -> Expr {
    return expr::rebuild(pool, x, [&](Expr y) {
      const Member* m = y.op() == Op::Read ? find(y) : nullptr;
      if (!m || m->is_reduction()) return y;
      if (const auto it = memo.find(y); it != memo.end()) return it->second;
      const Expr value = self(self, m->value);
      memo.emplace(y, value);
      return value;
    });
  };
  return go(go, e);
}

}  // namespace nautilus::schedule
