// SPDX-License-Identifier: Apache-2.0
#include "lower/points/hoist_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "expr/bounds/bounds.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

// Conditions that hold wherever a read stands, of those that are the same in all turns.
struct Seen {
  Expr read;  // with its cast
  std::vector<Expr> conditions;
};

class InvariantReads {
 public:
  explicit InvariantReads(const matile::Loop& loop) {
    changed_.insert(loop.var);
    ir::for_each_op(loop.body, [&](const ir::Op& op) {
      if (const auto* l = op.get<matile::Loop>()) changed_.insert(l->var);
      if (const auto* v = op.get<matile::Value>()) changed_.insert(v->name);
      if (const auto* l = op.get<matile::Let>()) changed_.insert(l->name);
      if (const auto* a = op.get<matile::Assign>()) changed_.insert(a->name);
      is_plain_ &= !op.is<matile::Write>() && !op.is<matile::Scatter>() && !op.is<matile::If>();
    });
  }

  // Nothing for loops that write or branch, and for expressions of too many paths.
  std::vector<Seen> in(const matile::Loop& loop) {
    if (!is_plain_) return {};
    ir::for_each_op(
        loop.body, [&](const ir::Op& op) { ir::for_each_expr(op, [&](Expr e) { visit(e, {}); }); });
    return visits_ > kMostVisits ? std::vector<Seen>() : seen_;
  }

 private:
  static constexpr int kMostVisits = 10000;

  bool is_invariant(Expr e) const {
    const std::vector<Expr> vars = expr::free_vars(e);
    return std::none_of(vars.begin(), vars.end(),
                        [&](Expr v) { return changed_.contains(v.name()); });
  }

  // `holds`: the conditions on the way to e.
  void visit(Expr e, const std::vector<Expr>& holds) {
    if (++visits_ > kMostVisits || expr::tensors_read(e).empty()) return;
    const Expr read = e.op() == EK::Cast ? e[0] : e;
    if (read.op() == EK::Read && is_invariant(read)) return add(e, holds);
    if (read.op() == EK::Read) return;
    if (e.op() == EK::Select || e.op() == EK::And) {
      if (expr::tensors_read(e[1]).empty()) visit(e[0], holds);
      std::vector<Expr> inside = holds;
      for (Expr c : expr::conjuncts(e[0])) {
        // What a condition reads may be guarded by those in front of it.
        if (is_invariant(c) && expr::tensors_read(c).empty()) inside.push_back(c);
      }
      visit(e[1], inside);
      if (e.op() == EK::Select) visit(e[2], holds);
      return;
    }
    for (Expr a : e.args()) visit(a, holds);
  }

  void add(Expr read, const std::vector<Expr>& holds) {
    for (Seen& s : seen_) {
      if (s.read != read) continue;
      std::erase_if(s.conditions, [&](Expr c) {
        return std::find(holds.begin(), holds.end(), c) == holds.end();
      });
      return;
    }
    seen_.push_back({read, holds});
  }

  std::unordered_set<ir::Name> changed_;
  bool is_plain_ = true;
  int visits_ = 0;
  std::vector<Seen> seen_;
};

// Whether the element is inside its tensor at every point where the conditions hold.
bool is_inside(const Seen& seen, const ir::Axes& axes,
               const std::map<std::string, ir::TensorType>& buffers, expr::ExprPool& pool) {
  const Expr read = seen.read.op() == EK::Cast ? seen.read[0] : seen.read;
  const auto type = buffers.find(std::string(read.name().str()));
  if (type == buffers.end()) return false;
  expr::Facts facts;
  for (const ir::Axis& a : axes) facts.add_axis(pool.index(a.name), a.extent);
  for (Expr c : seen.conditions) facts.assume(c);
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr is_low = pool.binary(EK::Ge, read[k], pool.integer(0));
    const Expr is_high = pool.binary(EK::Lt, read[k], type->second.dims[k]);
    if (facts.prove(is_low) != expr::Truth::True || facts.prove(is_high) != expr::Truth::True)
      return false;
  }
  return true;
}

Expr where_it_holds(const Seen& seen, expr::ExprPool& pool) {
  Expr all;
  for (Expr c : seen.conditions) all = all ? pool.binary(EK::And, all, c) : c;
  if (!all) return seen.read;
  const expr::DType dtype = seen.read.dtype();
  const Expr none = dtype == expr::DType::Bool ? pool.boolean(false) : pool.constant(0, dtype);
  return pool.select(all, seen.read, none);
}

}  // namespace

ir::Block hoist_reads(const ir::Block& body, const ir::Axes& axes,
                      const std::map<std::string, ir::TensorType>& buffers, FreshNames& names,
                      expr::ExprPool& pool) {
  ir::Block out;
  expr::Substitution kept;
  for (const ir::Op& op : body) {
    const auto* loop = op.get<matile::Loop>();
    if (!loop) {
      out.push_back(op);
      continue;
    }
    for (const Seen& seen : InvariantReads(*loop).in(*loop)) {
      if (kept.contains(seen.read) || !is_inside(seen, axes, buffers, pool)) continue;
      const Expr read = seen.read.op() == EK::Cast ? seen.read[0] : seen.read;
      const ir::Name name = names.make(fmt::format("{}_kept", read.name().str()));
      out.push_back(ir::make(matile::Let{name, where_it_holds(seen, pool)}, op.span()));
      kept.emplace(seen.read, pool.var(name, seen.read.dtype()));
    }
    out.push_back(kept.empty() ? op : ir::map_exprs(op, [&](Expr e) {
      return expr::substitute(pool, e, kept);
    }));
    kept.clear();
  }
  return out;
}

}  // namespace nautilus::lower
