// SPDX-License-Identifier: Apache-2.0
#include "lower/to_vrtile/tile_reads.h"

#include <cmath>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "algebra/inside_guard.h"
#include "expr/syntax.h"
#include "expr/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/ops.h"

namespace nautilus::lower {

using expr::Expr;
using vrtile::conjunction;
using vrtile::conjuncts;
using EK = expr::Op;

Expr zero(expr::ExprPool& pool, ir::DType dtype) {
  if (dtype == ir::DType::Bool) return pool.boolean(false);
  return expr::is_float(dtype) ? pool.floating(0, dtype) : pool.integer(0, dtype);
}

Expr TileReads::convert(Expr e, const ir::Axes& axes, ir::Block& out,
                        const std::vector<Expr>& order) {
  axes_ = &axes;
  order_ = &order;
  out_ = &out;
  std::vector<Expr> path;
  const Expr converted = go(e, path);
  return error_.empty() ? converted : Expr();
}

bool TileReads::is_global(Expr e) const { return e.op() == EK::Read && !tiles_.contains(e.name()); }

Expr TileReads::go(Expr e, std::vector<Expr>& path) {
  if (e.args().empty() && e.op() != EK::Read) return e;
  if (e.op() == EK::Select) return select(e, path);
  if ((e.op() == EK::And || e.op() == EK::Or) && reads_global(e[1])) {
    // The second part counts only where the first leaves it open; a load is made everywhere.
    const Expr first = go(e[0], path);
    path.push_back(e.op() == EK::And ? e[0] : pool_.unary(EK::Not, e[0]));
    const Expr second = go(e[1], path);
    path.pop_back();
    return pool_.binary(e.op(), first, second);
  }
  if (e.op() == EK::Read && is_global(e)) return load(e, {}, {}, path);
  std::vector<Expr> args;
  for (Expr a : e.args()) args.push_back(go(a, path));
  if (e.op() == EK::Read) {
    const ir::Name tile = tiles_.at(e.name());
    if (!tile) {
      if (error_.empty())
        error_ = fmt::format("`{}` is read where it may have no value", e.name().str());
      return e;
    }
    return pool_.read(tile, e.dtype(), args);
  }
  return pool_.with_args(e, args);
}

bool TileReads::reads_global(Expr e) const {
  bool found = false;
  expr::for_each(e, [&](Expr x) { found |= is_global(x); });
  return found;
}

static bool is_plus_zero(Expr e) {
  return e.op() == EK::FloatConst && e.number() == 0 && !std::signbit(e.number());
}

// where(c, f32(where(d, read, 0)), 0) as f32(where(c and d, read, 0)): conditions of a guarded
// element, widened or not, are those of its load. Any other select stays as it is.
Expr TileReads::with_joined_guards(Expr e) {
  if (!is_plus_zero(e[2])) return e;
  const bool is_cast = e[1].op() == EK::Cast;
  const Expr inner = is_cast ? e[1][0] : e[1];
  const bool is_guarded = inner.op() == EK::Select && is_plus_zero(inner[2]);
  const Expr read = is_guarded ? inner[1] : inner;
  if ((!is_cast && !is_guarded) || !is_global(read) || !expr::is_float(read.dtype())) return e;
  const Expr condition = is_guarded ? pool_.binary(EK::And, e[0], inner[0]) : e[0];
  const Expr element = pool_.select(condition, read, zero(pool_, read.dtype()));
  return is_cast ? pool_.cast(e.dtype(), element) : element;
}

Expr TileReads::select(Expr e, std::vector<Expr>& path) {
  if (const Expr joined = with_joined_guards(e); joined != e) return go(joined, path);
  if (is_global(e[1]) && e[2].is_const()) return guarded(e[1], e[0], e[2], path);
  const Expr condition = go(e[0], path);
  path.push_back(e[0]);
  const Expr x = go(e[1], path);
  path.back() = pool_.unary(EK::Not, e[0]);
  const Expr y = go(e[2], path);
  path.pop_back();
  return pool_.select(condition, x, y);
}

// where(condition, read, other): the load takes the conditions that keep it inside, and all of them
// if those do not suffice.
Expr TileReads::guarded(Expr read, Expr condition, Expr other, std::vector<Expr>& path) {
  std::vector<Expr> range;
  std::vector<Expr> rest;
  for (Expr c : conjuncts(condition)) (is_range_of(read, c) ? range : rest).push_back(c);
  std::vector<Expr> known = path;
  known.insert(known.end(), range.begin(), range.end());
  if (!stays_inside(read, known)) {
    range = conjuncts(condition);
    rest.clear();
  }
  const Expr element = load(read, conjunction(pool_, range), other, path);
  if (rest.empty()) return element;
  return pool_.select(go(conjunction(pool_, rest), path), element, other);
}

Expr TileReads::load(Expr read, Expr condition, Expr other, std::vector<Expr>& path) {
  std::vector<Expr> when = conjuncts(condition);
  if (!stays_inside(read, when)) {
    // What is around the read keeps it inside; where it does not hold the value is not used.
    std::vector<Expr> range;
    for (Expr p : path) {
      for (Expr c : conjuncts(p)) {
        if (is_range_of(read, c)) range.push_back(c);
      }
    }
    std::vector<Expr> both = when;
    both.insert(both.end(), range.begin(), range.end());
    if (!stays_inside(read, both)) {
      both = when;
      for (Expr p : path) {
        for (Expr c : conjuncts(p)) both.push_back(c);
      }
    }
    when = both;
  }
  std::vector<Expr> unguarded;
  std::vector<Expr> indices;
  for (Expr i : read.args()) indices.push_back(go(i, unguarded));
  const Expr value = pool_.read(read.name(), read.dtype(), indices);
  const Expr guard = when.empty() ? Expr() : go(conjunction(pool_, when), unguarded);
  if (guard && !other) other = zero(pool_, read.dtype());

  std::vector<Expr> used;
  auto use = [&](Expr e) {
    for (Expr v : expr::free_vars(e)) {
      const bool is_axis = std::any_of(axes_->begin(), axes_->end(),
                                       [&](const ir::Axis& a) { return a.name == v.name(); });
      if (is_axis && std::find(used.begin(), used.end(), v) == used.end()) used.push_back(v);
    }
  };
  for (Expr i : indices) use(i);
  if (guard) use(guard);
  if (used.size() == order_->size() &&
      std::is_permutation(used.begin(), used.end(), order_->begin()))
    used = *order_;
  ir::Axes axes;
  for (Expr v : used) {
    for (const ir::Axis& a : *axes_) {
      if (a.name == v.name()) axes.push_back(a);
    }
  }
  std::string base(read.name().str());
  for (char& c : base) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (expr::is_reserved(base)) base += "_tile";
  const ir::Name name = names_.fresh(base);
  out_->push_back(ir::make(vrtile::Load{name, axes, value, guard, guard ? other : Expr()}));
  return pool_.read(name, read.dtype(), used);
}

bool TileReads::stays_inside(Expr read, const std::vector<Expr>& conditions) const {
  expr::Facts facts = facts_;
  for (const ir::Axis& a : *axes_) facts.add_axis(pool_.index(a.name), a.extent);
  for (Expr c : conditions) facts.assume(c);
  const ir::TensorType& type = types_.at(read.name());
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr i = read[k];
    if (facts.prove(pool_.binary(EK::Ge, i, pool_.integer(0))) != expr::Truth::True ||
        facts.prove(pool_.binary(EK::Lt, i, type.dims[k])) != expr::Truth::True)
      return false;
  }
  return true;
}

bool TileReads::is_range_of(Expr read, Expr condition) const {
  return algebra::is_inside_test(condition, read.args(), types_.at(read.name()).dims);
}

}  // namespace nautilus::lower
