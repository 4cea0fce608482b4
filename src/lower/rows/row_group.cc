// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_group.h"

#include <algorithm>
#include <cstdint>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/nest_reduction.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

bool is_byte_float(DType d) { return expr::is_float(d) && expr::bytes(d) == 1; }

// One node; operands are looked at on their own.
bool is_tile_node(Expr e) {
  const DType d = e.dtype();
  switch (e.op()) {
    case EK::Reduce:
    case EK::Sin:
    case EK::Cos:
    case EK::Pow:
      return false;
    case EK::Read:
      return d == DType::F32 || is_half(d) || d == DType::I32 || expr::bytes(d) == 1;
    case EK::Var:
      return d != DType::F64;
    case EK::IntConst:
      return e.integer() >= INT32_MIN && e.integer() <= INT32_MAX;
    case EK::BoolConst:
    case EK::FloatConst:
    case EK::Select:
      return d != DType::F64;
    case EK::Cast: {
      const DType from = e[0].dtype();
      if (d == DType::F32 || is_half(d)) return from != DType::F64;
      // Integers are read to be indices, or to be compared.
      return d == DType::I64 && e[0].op() == EK::Read && expr::is_int(from);
    }
    default:
      break;
  }
  if (d == DType::F32) return true;
  if (d == DType::Bool) return e.args().empty() || e[0].dtype() != DType::F64;
  if (d != DType::I64) return false;
  if (e.op() == EK::FloorDiv || e.op() == EK::Mod)
    return e[1].op() == EK::Var || (e[1].op() == EK::IntConst && e[1].integer() > 0);
  return e.op() == EK::Add || e.op() == EK::Sub || e.op() == EK::Mul || e.op() == EK::Min ||
         e.op() == EK::Max || e.op() == EK::Neg;
}

class Grouping {
 public:
  Grouping(std::span<const MapNest> nests, const target::Target& target, expr::ExprPool& pool)
      : nests_(nests), pool_(pool) {
    group_.target = &target;
  }

  std::optional<RowGroup> run() {
    if (!find_axes()) return std::nullopt;
    bool has_reduction = false;
    for (const MapNest& nest : nests_) {
      auto statement = classify(nest);
      if (!statement || !fits(*statement)) break;
      has_reduction |= statement->kind == RowStatement::Kind::Reduction;
      own_.emplace(statement->target.str(), statement->kind);
      group_.statements.push_back(std::move(*statement));
      ++group_.nests;
    }
    if (!has_reduction) return std::nullopt;
    return std::move(group_);
  }

  std::optional<RowGroup> run_elements() {
    if (nests_.empty() || nests_[0].axes.empty() || nests_[0].body.size() != 1) return std::nullopt;
    group_.rows.assign(nests_[0].axes.begin(), nests_[0].axes.end() - 1);
    group_.column = nests_[0].axes.back();
    group_.place = pool_.index(group_.column.name);
    if (!are_sizes()) return std::nullopt;
    for (const MapNest& nest : nests_) {
      auto statement = classify(nest);
      if (!statement || statement->kind != RowStatement::Kind::Element || !fits(*statement)) break;
      own_.emplace(statement->target.str(), statement->kind);
      group_.statements.push_back(std::move(*statement));
      ++group_.nests;
    }
    if (group_.nests == 0) return std::nullopt;
    return std::move(group_);
  }

 private:
  // Rows and columns are those of the first reduction; what stands before it must fit them.
  bool find_axes() {
    for (const MapNest& nest : nests_) {
      const scalar::For* loop = nest.body.size() == 2 ? nest.body[1].get<scalar::For>() : nullptr;
      if (loop && nest.body[0].is<scalar::Init>()) {
        group_.rows = nest.axes;
        group_.column = loop->axes.back();
        group_.outer.assign(loop->axes.begin(), loop->axes.end() - 1);
        find_piece(*loop);
        // One number of many elements is computed in parts (split_reduction.h).
        const Expr n = group_.column.extent;
        return are_sizes() && (!group_.rows.empty() || n.op() == EK::IntConst);
      }
      if (nest.body.size() != 1) return false;
    }
    return false;
  }

  // Reads at `p * 4096 + k`, for rows p and columns k < 4096.
  void find_piece(const scalar::For& loop) {
    const Expr column = pool_.index(group_.column.name);
    group_.place = column;
    const Expr length = group_.column.extent;
    const auto* update = loop.body.size() == 1 ? loop.body[0].get<scalar::Update>() : nullptr;
    if (!update || length.op() != EK::IntConst || !group_.outer.empty()) return;
    for (const ir::Axis& a : group_.rows) {
      const Expr place =
          pool_.binary(EK::Add, pool_.binary(EK::Mul, pool_.index(a.name), length), column);
      bool is_read = false;
      expr::for_each(update->value, [&](Expr e) {
        is_read |= e.op() == EK::Read && !e.args().empty() && e.args().back() == place;
      });
      if (!is_read) continue;
      group_.place = place;
      const Expr v = update->value;
      const bool is_guarded = v.op() == EK::Select && v[0].op() == EK::Lt && v[0][0] == place;
      if (is_guarded && !expr::depends_on(v[0][1], column) && is_nothing(v[2], update->reducer))
        group_.exists = v[0];
      return;
    }
  }

  static bool is_nothing(Expr e, expr::Reducer reducer) {
    return e.op() == EK::FloatConst && e.number() == expr::identity(reducer, DType::F32).f;
  }

  bool are_sizes() const {
    const auto has_size = [](const ir::Axis& a) { return is_size(a.extent); };
    return std::all_of(group_.rows.begin(), group_.rows.end(), has_size) &&
           std::all_of(group_.outer.begin(), group_.outer.end(), has_size) &&
           is_size(group_.column.extent);
  }
  // Of sizes and constants.
  static bool is_size(Expr e) {
    bool ok = true;
    expr::for_each(e, [&](Expr x) { ok &= x.op() != EK::Read && x.op() != EK::Reduce; });
    return ok;
  }

  std::optional<RowStatement> classify(const MapNest& nest) {
    const size_t rank = group_.rows.size();
    if (nest.axes.size() < rank || nest.axes.size() > rank + 1) return std::nullopt;
    expr::Substitution names;
    for (size_t k = 0; k < rank; ++k) {
      if (nest.axes[k].extent != group_.rows[k].extent) return std::nullopt;
      names.emplace(pool_.index(nest.axes[k].name), pool_.index(group_.rows[k].name));
    }
    if (!writes_own_point(nest)) return std::nullopt;
    auto s = nest.axes.size() == rank + 1 ? element_in(nest, names)
             : nest.body.size() == 1      ? number_in(nest)
                                          : reduction_in(nest, names);
    if (!s) return std::nullopt;
    s->value = expr::substitute(pool_, s->value, names);
    if (!group_.exists || s->kind == RowStatement::Kind::Number) return s;
    // All terms of pieces have the same condition, which is the kernel's.
    const bool is_guarded = s->kind == RowStatement::Kind::Reduction &&
                            s->value.op() == EK::Select && s->value[0] == group_.exists &&
                            is_nothing(s->value[2], s->reducer);
    if (!is_guarded) return std::nullopt;
    s->value = s->value[1];
    return s;
  }

  // What a nest writes lies at the point of its axes, as a row's values do.
  bool writes_own_point(const MapNest& nest) const {
    bool is_own = true;
    for (const ir::Op& op : nest.body) {
      const auto* store = op.get<scalar::Store>();
      const auto* init = op.get<scalar::Init>();
      if (!store && !init) continue;
      const ir::Exprs& at = store ? store->indices : init->indices;
      is_own &= at.size() == nest.axes.size();
      for (size_t k = 0; is_own && k < at.size(); ++k)
        is_own = at[k] == pool_.index(nest.axes[k].name);
    }
    return is_own;
  }

  // Statements of the kinds, with values that have the nest's names; how the group calls its
  // columns is added to `names`.
  std::optional<RowStatement> element_in(const MapNest& nest, expr::Substitution& names) const {
    if (!group_.outer.empty()) return std::nullopt;
    const auto* store = nest.body.size() == 1 ? nest.body[0].get<scalar::Store>() : nullptr;
    const ir::Axis& column = nest.axes.back();
    if (!store || column.extent != group_.column.extent) return std::nullopt;
    names.emplace(pool_.index(column.name), pool_.index(group_.column.name));
    return RowStatement{RowStatement::Kind::Element, store->target,
                        store->value.dtype(),        store->value,
                        expr::Reducer::Sum,          {}};
  }

  static std::optional<RowStatement> number_in(const MapNest& nest) {
    const auto* store = nest.body[0].get<scalar::Store>();
    if (!store) return std::nullopt;
    return RowStatement{RowStatement::Kind::Number, store->target,
                        store->value.dtype(),       store->value,
                        expr::Reducer::Sum,         {}};
  }

  std::optional<RowStatement> reduction_in(const MapNest& nest, expr::Substitution& names) const {
    const auto reduction = reduction_of(nest);
    if (!reduction) return std::nullopt;
    const auto& [init, loop, update] = *reduction;
    if (loop->axes.size() != group_.outer.size() + 1 ||
        loop->axes.back().extent != group_.column.extent)
      return std::nullopt;
    for (size_t k = 0; k < group_.outer.size(); ++k) {
      if (loop->axes[k].extent != group_.outer[k].extent) return std::nullopt;
      names.emplace(pool_.index(loop->axes[k].name), pool_.index(group_.outer[k].name));
    }
    names.emplace(pool_.index(loop->axes.back().name), pool_.index(group_.column.name));
    return RowStatement{RowStatement::Kind::Reduction,
                        init->target,
                        update->value.dtype(),
                        update->value,
                        update->reducer,
                        expr::substitute(pool_, init->value, names)};
  }

  bool fits(const RowStatement& s) {
    using Kind = RowStatement::Kind;
    const bool is_stored_narrow = s.kind == Kind::Element && is_byte_float(s.dtype);
    if (s.dtype != DType::F32 && !is_half(s.dtype) && !is_stored_narrow) return false;
    // A cast to 8 bits is what a store does, and cannot be said elsewhere.
    const Expr value = is_stored_narrow && s.value.op() == EK::Cast ? s.value[0] : s.value;
    if (!is_tile_value(value) || !reads_fit(value, s.kind)) return false;
    if (s.kind != Kind::Reduction) return true;
    const bool is_foldable = s.reducer == expr::Reducer::Sum || s.reducer == expr::Reducer::Max ||
                             s.reducer == expr::Reducer::Min;
    return is_foldable && is_tile_value(s.init) && expr::tensors_read(s.init).empty() &&
           covers(value);
  }

  // The group's own buffers at the own row, and elements at the own column.
  bool reads_fit(Expr value, RowStatement::Kind kind) {
    ir::Exprs row;
    for (const ir::Axis& a : group_.rows) row.push_back(pool_.index(a.name));
    ir::Exprs element = row;
    element.push_back(pool_.index(group_.column.name));
    bool ok = true;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read) return;
      const auto it = own_.find(std::string(e.name().str()));
      if (it == own_.end()) return;
      const bool is_element = it->second == RowStatement::Kind::Element;
      const ir::Exprs& wanted = is_element ? element : row;
      ok &= std::equal(wanted.begin(), wanted.end(), e.args().begin(), e.args().end());
      ok &= !is_element || kind != RowStatement::Kind::Number;
      ok &= !is_element || !is_byte_float(e.dtype());
    });
    return ok;
  }

  // A tensor of which each element belongs to one point: read along its last dimension, with all
  // rows among its other indices; or an element of the group.
  bool covers(Expr value) {
    bool found = false;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read || found) return;
      const auto it = own_.find(std::string(e.name().str()));
      if (it != own_.end()) {
        found = it->second == RowStatement::Kind::Element;
        return;
      }
      if (e.args().empty() || e.args().back() != group_.place) return;
      const auto is_there = [&](const ir::Axis& a) {
        return std::any_of(e.args().begin(), e.args().end(), [&](Expr index) {
          return expr::depends_on(index, pool_.index(a.name));
        });
      };
      found = std::all_of(group_.rows.begin(), group_.rows.end(), is_there) &&
              std::all_of(group_.outer.begin(), group_.outer.end(), is_there);
    });
    return found;
  }

  std::span<const MapNest> nests_;
  expr::ExprPool& pool_;
  RowGroup group_;
  std::map<std::string, RowStatement::Kind> own_;
};

}  // namespace

bool is_tile_value(Expr e) {
  bool ok = true;
  expr::for_each(e, [&](Expr x) { ok &= is_tile_node(x); });
  return ok;
}

std::optional<RowGroup> row_group(std::span<const MapNest> nests, const target::Target& target,
                                  expr::ExprPool& pool) {
  return Grouping(nests, target, pool).run();
}

std::optional<RowGroup> element_group(std::span<const MapNest> nests, const target::Target& target,
                                      expr::ExprPool& pool) {
  return Grouping(nests, target, pool).run_elements();
}

}  // namespace nautilus::lower
