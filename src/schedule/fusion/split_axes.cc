// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/split_axes.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/bounds/quotient.h"
#include "expr/walk.h"

namespace nautilus::schedule {
namespace {

using expr::Op;

// Of `z[.., axis / n, axis % n, ..]`, where a nest computes z: n, and how many groups z has; null
// if there is none.
struct AxisGroups {
  Expr size;
  Expr count;
};
AxisGroups groups_of(Expr axis, const Statement& s, const StatementList& list) {
  for (Expr read : s.reads) {
    const Statement* from = list.producer(read.name());
    if (!from || from->is_opaque) continue;
    for (size_t k = 0; k + 1 < read.args().size(); ++k) {
      const Expr group = read[k];
      const Expr place = read[k + 1];
      const bool is_split = group.op() == Op::FloorDiv && place.op() == Op::Mod &&
                            group[0] == axis && place[0] == axis && group[1] == place[1] &&
                            !expr::depends_on(group[1], axis);
      if (is_split) return {group[1], from->axes[k].extent};
    }
  }
  return {};
}

}  // namespace

bool split_axes(Statement& s, const StatementList& list, expr::ExprPool& pool) {
  if (s.is_opaque || !s.value || s.init || !s.read_by.empty()) return false;
  for (size_t k = 0; k < s.axes.size(); ++k) {
    const ir::Axis whole = s.axes[k];
    const Expr axis = pool.index(whole.name);
    const auto [size, count] = groups_of(axis, s, list);
    if (!size) continue;
    // Of groups that are not known to be whole, some may have places beyond the axis.
    const Expr wholes = expr::exact_quotient(pool, whole.extent, size);
    const Expr groups = wholes ? wholes : count;
    for (const ir::Axis& a : s.axes) s.place.push_back(pool.index(a.name));
    const Expr group = pool.index(fmt::format("{}.group", whole.name.str()));
    const Expr place = pool.index(fmt::format("{}.place", whole.name.str()));
    s.place[k] = pool.binary(Op::Add, pool.binary(Op::Mul, group, size), place);
    s.axes[k] = {group.name(), groups};
    s.axes.insert(s.axes.begin() + static_cast<std::ptrdiff_t>(k) + 1, {place.name(), size});
    s.value = expr::substitute(pool, s.value,
                               {{pool.binary(Op::FloorDiv, axis, size), group},
                                {pool.binary(Op::Mod, axis, size), place}});
    if (!wholes) {
      s.in_place = pool.binary(Op::Lt, s.place[k], whole.extent);
      s.value = expr::rebuild(pool, s.value, [&](Expr e) {
        const bool is_at = e.op() == Op::Read && expr::depends_on(e, axis);
        if (!is_at) return e;
        const Expr none =
            e.dtype() == expr::DType::Bool ? pool.boolean(false) : pool.constant(0, e.dtype());
        return pool.select(s.in_place, e, none);
      });
    }
    s.value = expr::substitute(pool, s.value, {{axis, s.place[k]}});
    return true;
  }
  return false;
}

}  // namespace nautilus::schedule
