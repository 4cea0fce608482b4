// SPDX-License-Identifier: Apache-2.0
// One statement of a row group as ops: reductions, numbers, elements.
#include <fmt/format.h>

#include "expr/scalar_ops.h"
#include "lower/rows/row_lowering.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

// acc = acc with the thread's own columns.
void RowLowering::fold(const RowStatement& s, ir::Name acc, bool is_first, ir::Block& out) {
  Expr value = hoisted(pool_.cast(DType::F32, rewrite(s.value)));
  const bool is_masked = !is_whole() && (has_direct_reads(value) || !vanishes(s, padding_) ||
                                         !reads_row_vector(value));
  has_conditions_ |= is_masked;
  if (is_masked) value = pool_.select(in_range(), value, constant(s.reducer));
  value = as_row_vector(value, fmt::format("{}_terms", s.target.str()), out);
  const Expr extent = pool_.integer(shape_.columns);
  Expr sum = pool_.reduce(s.reducer, value, {{column_}}, {{extent}});
  if (!is_first)
    sum = pool_.binary(expr::combiner(s.reducer), pool_.read(acc, DType::F32, {}), sum);
  out.push_back(ir::make(matile::Fold{acc, {}, sum}));
}

// The parts of all threads, and what the reduction starts from.
void RowLowering::finish(const RowStatement& s, ir::Name acc, ir::Block& out) {
  out.push_back(ir::make(matile::Lanes{acc, s.reducer}));
  out.push_back(ir::make(matile::Warps{acc, s.reducer}));
  if (shape_.groups > 1) out.push_back(ir::make(matile::Groups{acc, s.reducer}));
  const expr::Value identity = expr::identity(s.reducer, DType::F32);
  const Expr now = pool_.read(acc, DType::F32, {});
  Expr value = now;
  if (!(s.init.op() == EK::FloatConst && s.init.number() == identity.f))
    value = pool_.binary(expr::combiner(s.reducer), pool_.cast(DType::F32, rewrite(s.init)), value);
  if (s.dtype != DType::F32) value = pool_.cast(DType::F32, pool_.cast(s.dtype, value));
  if (value != now) out.push_back(ir::make(matile::Set{acc, {}, value}));
  numbers_[std::string(s.target.str())] = acc;
  put_number(s, acc, out);
}

void RowLowering::number(const RowStatement& s, ir::Block& out) {
  const ir::Name name = add_tile(s.target.str(), DType::F32, false);
  out.push_back(ir::make(matile::Set{name, {}, pool_.cast(DType::F32, rewrite(s.value))}));
  numbers_[std::string(s.target.str())] = name;
  put_number(s, name, out);
}

void RowLowering::put_number(const RowStatement& s, ir::Name tile, ir::Block& out) {
  if (!is_kept(s)) return;
  ir::Exprs row;
  for (const ir::Axis& a : group_.rows) row.push_back(pool_.index(a.name));
  // All groups have it, one of them writes.
  const Expr is_first =
      shape_.groups > 1 ? pool_.binary(EK::Eq, pool_.index(part_), pool_.integer(0)) : Expr();
  const Expr value = pool_.cast(s.dtype, pool_.read(tile, DType::F32, {}));
  out.push_back(ir::make(matile::Put{{}, s.target, row, value, is_first}));
}

void RowLowering::put_element(const RowStatement& s, ir::Block& out) {
  ir::Exprs indices;
  for (const ir::Axis& a : group_.rows) indices.push_back(pool_.index(a.name));
  indices.push_back(at_);
  Expr value = rewrite(s.value);
  if (value.op() == EK::Cast && value.dtype() == s.dtype) value = value[0];
  value = hoisted(value);
  if (!is_whole() && has_direct_reads(value))
    value = pool_.select(in_range(), value, pool_.constant(0, value.dtype()));
  value = as_row_vector(value, fmt::format("{}_line", s.target.str()), out);
  out.push_back(ir::make(matile::Put{columns(), s.target, indices, pool_.cast(s.dtype, value),
                                     is_whole() ? Expr() : in_range()}));
}

void RowLowering::put_pieces(const RowStatement& s, ir::Block& out) {
  std::vector<Expr> reads;
  visited_.clear();
  collect_row_reads(s.value, true, reads);
  std::erase_if(reads, [&](Expr r) { return !is_late(r); });
  if (reads.empty()) return put_element(s, out);
  matile::Unroll unroll{{{names_.make("piece"), pool_.integer(shape_.columns / piece())}}, {}};
  extent_ = piece();
  place_ = pool_.binary(
      EK::Add, pool_.binary(EK::Mul, pool_.integer(piece()), pool_.index(unroll.axes[0].name)),
      column_);
  at_ = in_row(place_);
  for (Expr r : reads) load(r, unroll.body);
  put_element(s, unroll.body);
  extent_ = shape_.columns;
  place_ = column_;
  at_ = in_row(column_);
  out.push_back(ir::make(std::move(unroll)));
}

}  // namespace nautilus::lower
