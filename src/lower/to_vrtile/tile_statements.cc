// SPDX-License-Identifier: Apache-2.0
// Statements of a nest as ops on tiles: stores, reductions, products.
#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/scalar_ops.h"
#include "lower/to_vrtile/nests_to_tiles.h"
#include "lower/to_vrtile/tile_dot.h"
#include "vrtile/conditions.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Axes;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;
namespace vr = vrtile;
using vr::conjunction;

void NestsToTiles::visit(const Op& op, Place place) {
  if (has_failed_) return;
  if (const auto* f = op.get<scalar::For>()) {
    if (f->kind != scalar::LoopKind::Map && f->kind != scalar::LoopKind::Reduce)
      return fail(op, "a grid or group loop inside a tile statement");
    for (const ir::Axis& a : f->axes) {
      if (a.extent.op() != EK::IntConst || a.extent.integer() < 1)
        return fail(op, fmt::format("the extent of `{}` is no constant", a.name.str()));
    }
    Axes& axes = f->kind == scalar::LoopKind::Map ? place.axes : place.reduced;
    if (f->kind == scalar::LoopKind::Map && !place.reduced.empty())
      return fail(op, "a map loop inside a reduce loop");
    axes.insert(axes.end(), f->axes.begin(), f->axes.end());
    for (const Op& inner : f->body) visit(inner, place);
  } else if (const auto* i = op.get<scalar::If>()) {
    place.guards.push_back(i->condition);
    for (const Op& inner : i->body) visit(inner, place);
  } else if (const auto* s = op.get<scalar::Store>()) {
    store(op, *s, place);
  } else if (op.is<scalar::Init>()) {
    init(op, op.as<scalar::Init>(), place);
  } else if (const auto* u = op.get<scalar::Update>()) {
    update(op, *u, place);
  } else if (op.is<scalar::UpdateArg>()) {
    fail(op, fmt::format("{} has no form in tiles", name(op.as<scalar::UpdateArg>().reducer)));
  } else {
    fail(op, "a loop inside a tile statement");
  }
}

std::optional<Axes> NestsToTiles::target_axes(const Op& op, Name target, const ir::Exprs& indices,
                                              const Place& place) {
  const auto& dims = types_.at(target).dims;
  Axes out;
  for (size_t k = 0; k < indices.size(); ++k) {
    for (const ir::Axis& a : place.axes) {
      const bool is_used = std::find(out.begin(), out.end(), a) != out.end();
      if (!is_used && indices[k] == pool_.index(a.name) && a.extent == dims[k]) out.push_back(a);
    }
    if (out.size() != k + 1) break;
  }
  if (out.size() == indices.size() && out.size() == place.axes.size()) return out;
  fail(op, fmt::format("`{}` is not written once for every element", target.str()));
  return std::nullopt;
}

void NestsToTiles::store(const Op& op, const scalar::Store& s, const Place& place) {
  const Expr guard = conjunction(pool_, place.guards);
  if (!place.reduced.empty()) return fail(op, "a store inside a reduce loop");
  if (!tiles_.contains(s.target)) {
    ir::Exprs indices;
    for (Expr i : s.indices) indices.push_back(converted(i, place.axes, op));
    // Under its guard the value's reads stay inside.
    Expr value = s.value;
    if (guard) value = pool_.select(guard, value, zero(pool_, value.dtype()));
    value = converted(value, place.axes, op, points(place.axes));
    const Expr condition = guard ? converted(guard, place.axes, op) : Expr();
    if (has_failed_) return;
    if (guard && value.op() == EK::Select && value[0] == condition) value = value[1];
    out_->push_back(
        ir::make(vr::Store{place.axes, s.target, indices, value, condition}, op.span()));
    return;
  }
  const auto axes = target_axes(op, s.target, s.indices, place);
  if (!axes) return;
  Expr value = s.value;
  if (guard) value = pool_.select(guard, value, old_value(s.target, *axes, op));
  value = converted(value, *axes, op, points(*axes));
  if (!has_failed_) assign(op, s.target, *axes, value);
}

std::vector<Expr> NestsToTiles::points(const Axes& axes) {
  std::vector<Expr> out;
  for (const ir::Axis& a : axes) out.push_back(pool_.index(a.name));
  return out;
}

Expr NestsToTiles::old_value(Name target, const Axes& axes, const Op& op) {
  if (!tiles_.at(target))
    fail(op,
         fmt::format("`{}` is written under a condition and has no value before", target.str()));
  return pool_.read(target, types_.at(target).dtype, points(axes));
}

void NestsToTiles::init(const Op& op, const scalar::Init& s, const Place& place) {
  if (!tiles_.contains(s.target))
    return fail(op, fmt::format("a reduction into `{}`, which is not local", s.target.str()));
  if (!place.guards.empty() || !place.reduced.empty())
    return fail(op, "an init under a condition or in a reduce loop");
  const auto axes = target_axes(op, s.target, s.indices, place);
  if (!axes) return;
  const Expr value = converted(s.value, *axes, op);
  if (has_failed_) return;
  assign(op, s.target, *axes, value, true);
  if (s.value.is_const()) starts_.insert_or_assign(tiles_.at(s.target), s.value);
}

void NestsToTiles::assign(const Op& op, Name target, const Axes& axes, Expr value, bool is_init) {
  if (value.op() == EK::Read && value.args().size() == axes.size()) {
    const ir::TensorType* type = versions_.type(value.name());
    bool is_copy = type && *type == types_.at(target);
    for (size_t k = 0; k < axes.size(); ++k) is_copy &= value[k] == pool_.index(axes[k].name);
    if (is_copy) {
      tiles_.at(target) = value.name();
      return;
    }
  }
  const Name tile = version(target, is_init);
  out_->push_back(ir::make(vr::Set{tile, axes, value}, op.span()));
}

void NestsToTiles::update(const Op& op, const scalar::Update& u, const Place& place) {
  if (!tiles_.contains(u.target))
    return fail(op, fmt::format("a reduction into `{}`, which is not local", u.target.str()));
  const auto axes = target_axes(op, u.target, u.indices, place);
  if (!axes) return;
  const Name old = tiles_.at(u.target);
  if (!old) return fail(op, fmt::format("`{}` has no value to add to", u.target.str()));
  const ir::DType dtype = types_.at(u.target).dtype;
  const Expr identity = identity_of(u.reducer, dtype);
  Expr value = u.value;
  if (const Expr guard = conjunction(pool_, place.guards))
    value = pool_.select(guard, value, identity);
  const auto start = starts_.find(old);
  const bool is_first = start != starts_.end() && start->second == identity;
  const Rolled rolled = {op, u.target, *axes, is_first ? Name() : old};
  if (u.reducer == expr::Reducer::Sum && axes->size() == 2 && place.reduced.size() == 1 &&
      dots(rolled, value, place.reduced[0]))
    return;
  if (has_failed_) return;

  Axes all = *axes;
  all.insert(all.end(), place.reduced.begin(), place.reduced.end());
  const Expr body = converted(value, all, op, points(all));
  if (has_failed_) return;
  std::vector<Expr> vars;
  std::vector<Expr> extents;
  for (const ir::Axis& a : place.reduced) {
    vars.push_back(pool_.index(a.name));
    extents.push_back(a.extent);
  }
  const Expr reduction = pool_.reduce(u.reducer, body, vars, extents);
  const Name tile = is_first ? version(u.target) : versions_.part(u.target);
  out_->push_back(ir::make(vr::Reduce{tile, *axes, reduction}, op.span()));
  if (!is_first) combine(rolled, expr::combiner(u.reducer), tile, {});
}

void NestsToTiles::combine(const Rolled& sum, EK combiner, Name part, Expr outer) {
  const auto& [op, target, axes, old] = sum;
  const std::vector<Expr> at = points(axes);
  const ir::DType dtype = types_.at(target).dtype;
  Expr value = pool_.read(part, dtype, at);
  if (outer) value = pool_.binary(EK::Mul, value, outer);
  if (old) value = pool_.binary(combiner, pool_.read(old, dtype, at), value);
  out_->push_back(ir::make(vr::Set{version(target), axes, value}, op.span()));
}

bool NestsToTiles::dots(const Rolled& sum, Expr value, const ir::Axis& depth) {
  const std::vector<Expr> terms = algebra::terms(value);
  if (terms.size() == 1) return dot(sum, value, depth);
  const auto& [op, target, axes, old] = sum;
  for (Expr term : terms) {
    const auto split = split_dot(pool_, term, pool_.index(axes[0].name), pool_.index(axes[1].name),
                                 pool_.index(depth.name));
    if (!split || split->outer) return false;
  }
  // Sums of integers are exact: all products of a step add to the sum itself.
  const bool is_exact = expr::is_int(types_.at(target).dtype);
  Name so_far = is_exact ? old : Name();
  for (Expr term : terms) {
    const Name next = is_exact && term == terms.back() ? version(target) : versions_.part(target);
    const auto operands = operands_of(sum, term, depth);
    if (has_failed_) return true;
    out_->push_back(ir::make(
        vr::Dot{next, types_.at(target), operands->a, operands->b, operands->trans, so_far},
        op.span()));
    versions_.remember(out_->back());
    so_far = next;
  }
  if (!is_exact) combine(sum, EK::Add, so_far, {});
  return true;
}

bool NestsToTiles::dot(const Rolled& sum, Expr value, const ir::Axis& depth) {
  const auto operands = operands_of(sum, value, depth);
  if (!operands || has_failed_) return operands.has_value();
  const auto& [a, b, trans, outer] = *operands;
  const ir::TensorType& type = types_.at(sum.target);
  const diag::Span span = sum.op.span();
  if (!outer) {
    out_->push_back(ir::make(vr::Dot{version(sum.target), type, a, b, trans, sum.old}, span));
    return true;
  }
  const Name product = versions_.part(sum.target);
  out_->push_back(ir::make(vr::Dot{product, type, a, b, trans, {}}, span));
  combine(sum, EK::Add, product, outer);
  return true;
}

std::optional<NestsToTiles::Operands> NestsToTiles::operands_of(const Rolled& sum, Expr value,
                                                                const ir::Axis& depth) {
  const auto& [op, target, axes, old] = sum;
  const Expr row = pool_.index(axes[0].name);
  const Expr col = pool_.index(axes[1].name);
  const Expr inner = pool_.index(depth.name);
  const auto split = split_dot(pool_, value, row, col, inner);
  if (!split) return std::nullopt;
  const Axes all = {axes[0], axes[1], depth};
  const std::vector<Expr> order = {row, inner};
  Expr rows = converted(split->rows, all, op, order);
  Expr cols = converted(split->cols, all, op);
  if (split->is_guarded_twice) {
    // Elements of tensors are finite: what the guard of the other side makes 0 stays 0.
    if (const Expr load = loaded(cols)) {
      cols = load;
    } else if (const Expr other = loaded(rows)) {
      rows = other;
    }
  }
  const Expr outer = split->outer ? converted(split->outer, all, op) : Expr();
  if (has_failed_) return Operands{};
  const Name a = operand(op, rows, {axes[0], depth}, target, "a");
  // A column operand that is there with its depth first stays so.
  Axes col_axes = {axes[1], depth};
  bool is_plain = false;
  if (cols.op() == EK::Read && cols.args().size() == 2 && cols[0] == inner && cols[1] == col) {
    col_axes = {depth, axes[1]};
    is_plain = true;
  }
  const Name b = operand(op, cols, col_axes, target, "b");
  return Operands{a, b, is_plain ? vr::Trans::No : vr::Trans::Yes, outer};
}

Expr NestsToTiles::loaded(Expr value) const {
  if (value.op() != EK::Select || value[1].op() != EK::Read) return {};
  return loads_.contains(value[1].name()) ? value[1] : Expr();
}

Name NestsToTiles::operand(const Op& op, Expr value, const Axes& axes, Name target,
                           std::string_view side) {
  if (value.op() == EK::Read && value.args().size() == axes.size()) {
    bool is_whole = true;
    for (size_t k = 0; k < axes.size(); ++k) is_whole &= value[k] == pool_.index(axes[k].name);
    if (const ir::TensorType* type = versions_.type(value.name())) {
      for (size_t k = 0; k < axes.size(); ++k) is_whole &= type->dims[k] == axes[k].extent;
    }
    if (is_whole) return value.name();
  }
  const Name tile = names_.fresh(fmt::format("{}_{}", target.str(), side));
  out_->push_back(ir::make(vr::Set{tile, axes, value}, op.span()));
  versions_.remember(out_->back());
  return tile;
}

Expr NestsToTiles::identity_of(expr::Reducer reducer, ir::DType dtype) {
  const expr::Value v = expr::identity(reducer, dtype);
  if (dtype == ir::DType::Bool) return pool_.boolean(v.i != 0);
  return is_float(dtype) ? pool_.floating(v.f, dtype) : pool_.integer(v.i, dtype);
}

Expr NestsToTiles::converted(Expr e, const Axes& axes, const Op& op,
                             const std::vector<Expr>& order) {
  if (has_failed_) return e;
  TileReads reads(pool_, names_, types_, tiles_, facts_);
  const size_t before = out_->size();
  const Expr out = reads.convert(e, axes, *out_, order);
  for (size_t k = before; k < out_->size(); ++k) {
    versions_.remember((*out_)[k]);
    loads_.insert(vr::defined((*out_)[k]));
  }
  if (!out) fail(op, reads.error());
  return out ? out : e;
}

Name NestsToTiles::version(Name target, bool is_init) {
  return tiles_.at(target) = versions_.next(target, is_init, loop_depth_ > 0);
}

}  // namespace nautilus::lower
