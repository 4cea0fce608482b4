// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_statements.h"

#include <fmt/format.h>

#include "expr/scalar_ops.h"
#include "lower/rows/row_padding.h"
#include "lower/rows/row_reads.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;
using expr::Reducer;

Expr RowStatements::identity(Reducer reducer) const {
  return pool_.floating(expr::identity(reducer, DType::F32).f, DType::F32);
}

void RowStatements::fold(const RowStatement& s, ir::Name acc, bool is_first, ir::Block& out) {
  Expr value = numbers_.hoisted(pool_.cast(DType::F32, values_.rewrite(s.value)));
  const bool is_masked = !scope_.is_whole() && (values_.has_direct_reads(value) ||
                                                !vanishes_outside(s, values_.padding(), scope_) ||
                                                !values_.reads_row_vector(value));
  has_conditions_ |= is_masked;
  if (is_masked) value = pool_.select(scope_.in_range(), value, identity(s.reducer));
  value = values_.as_row_vector(value, fmt::format("{}_terms", s.target.str()), out);
  const Expr extent = pool_.integer(scope_.shape.columns);
  Expr sum = pool_.reduce(s.reducer, value, {{scope_.column}}, {{extent}});
  if (!is_first)
    sum = pool_.binary(expr::combiner(s.reducer), pool_.read(acc, DType::F32, {}), sum);
  out.push_back(ir::make(matile::Fold{acc, {}, sum}));
}

void RowStatements::finish(const RowStatement& s, ir::Name acc, ir::Block& out) {
  out.push_back(ir::make(matile::Lanes{acc, s.reducer}));
  if (scope_.shape.lanes == 0) out.push_back(ir::make(matile::Warps{acc, s.reducer}));
  if (scope_.shape.groups > 1) out.push_back(ir::make(matile::Groups{acc, s.reducer}));
  if (scope_.shape.ctas > 1) out.push_back(ir::make(matile::Ctas{acc, s.reducer}));
  const expr::Value identity = expr::identity(s.reducer, DType::F32);
  const Expr now = pool_.read(acc, DType::F32, {});
  Expr value = now;
  // Other rows have threads beyond their columns; lanes may have numbers alone, and where these are
  // NaN there is no extreme.
  if (scope_.shape.lanes > 0 && s.reducer != Reducer::Sum)
    value = pool_.binary(expr::combiner(s.reducer), now, this->identity(s.reducer));
  if (!(s.init.op() == EK::FloatConst && s.init.number() == identity.f))
    value = pool_.binary(expr::combiner(s.reducer), pool_.cast(DType::F32, values_.rewrite(s.init)),
                         value);
  if (s.dtype != DType::F32) value = pool_.cast(DType::F32, pool_.cast(s.dtype, value));
  if (value != now) out.push_back(ir::make(matile::Set{acc, {}, value}));
  result(s, acc, out);
}

void RowStatements::result(const RowStatement& s, ir::Name tile, ir::Block& out) {
  values_.define_number(s.target, tile);
  put_number(s, tile, out);
}

void RowStatements::number(const RowStatement& s, ir::Block& out) {
  const ir::Name name = scope_.add_tile(s.target.str(), DType::F32, false);
  out.push_back(ir::make(matile::Set{name, {}, pool_.cast(DType::F32, values_.rewrite(s.value))}));
  result(s, name, out);
}

void RowStatements::put_number(const RowStatement& s, ir::Name tile, ir::Block& out) {
  if (!scope_.is_kept(s)) return;
  ir::Exprs row;
  for (const ir::Axis& a : group_.rows) row.push_back(pool_.index(a.name));
  const Expr value = pool_.cast(s.dtype, pool_.read(tile, DType::F32, {}));
  // All groups and CTAs have it, one of them writes.
  out.push_back(ir::make(matile::Put{{}, s.target, row, value, scope_.is_first()}));
}

Expr RowStatements::guarded(Expr value) const {
  if (scope_.is_whole() || !values_.has_direct_reads(value)) return value;
  return pool_.select(scope_.in_range(), value, pool_.constant(0, value.dtype()));
}

void RowStatements::hold_element(const RowStatement& s, Expr replaced, ir::Block& out) {
  const Expr value = guarded(numbers_.hoisted(values_.rewrite(s.value)));
  const ir::Name tile =
      replaced ? values_.loaded(replaced) : scope_.add_tile(s.target.str(), DType::F32, true);
  if (replaced) values_.forget_loaded(replaced);
  out.push_back(ir::make(matile::Set{tile, scope_.columns(), pool_.cast(DType::F32, value)}));
  values_.define_held(s.target, tile);
}

void RowStatements::put_element(const RowStatement& s, ir::Block& out) {
  ir::Exprs indices;
  for (const ir::Axis& a : group_.rows) indices.push_back(pool_.index(a.name));
  indices.push_back(scope_.at);
  Expr value = values_.rewrite(s.value);
  if (value.op() == EK::Cast && value.dtype() == s.dtype) value = value[0];
  value = numbers_.hoisted(value);
  value = guarded(value);
  value = values_.as_row_vector(value, fmt::format("{}_line", s.target.str()), out);
  out.push_back(ir::make(matile::Put{scope_.columns(), s.target, indices,
                                     pool_.cast(s.dtype, value), scope_.is_written()}));
}

void RowStatements::put_pieces(const RowStatement& s, ir::Block& out) {
  RowReads found(scope_, values_);
  found.add(s.value);
  std::vector<Expr> reads = found.all();
  std::erase_if(reads, [&](Expr r) { return !values_.is_late(r); });
  if (reads.empty()) return put_element(s, out);
  matile::Unroll unroll{
      {{scope_.names.make("piece"), pool_.integer(scope_.shape.columns / scope_.piece())}}, {}};
  scope_.extent = scope_.piece();
  scope_.place = pool_.binary(
      EK::Add,
      pool_.binary(EK::Mul, pool_.integer(scope_.piece()), pool_.index(unroll.axes[0].name)),
      scope_.column);
  scope_.at = scope_.in_row(scope_.place);
  for (Expr r : reads) values_.load(r, unroll.body);
  put_element(s, unroll.body);
  scope_.extent = scope_.shape.columns;
  scope_.place = scope_.column;
  scope_.at = scope_.in_row(scope_.column);
  out.push_back(ir::make(std::move(unroll)));
}

}  // namespace nautilus::lower
