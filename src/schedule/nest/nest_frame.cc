// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_frame.h"

#include <algorithm>

#include "expr/scalar_ops.h"

namespace nautilus::schedule {

using expr::DType;

std::optional<size_t> NestFrame::index_of(Expr read) const {
  if (read.op() != expr::Op::Read) return std::nullopt;
  for (size_t k = 0; k < members().size(); ++k) {
    if (member(k).read == read) return placed[k].same_as;
  }
  return std::nullopt;
}

std::vector<Expr> NestFrame::tile_axes(const Member& m) const {
  std::vector<Expr> axes = fusion.tile_axes(m);
  std::stable_partition(axes.begin(), axes.end(), [&](Expr a) { return a == fusion.row; });
  return axes;
}

Expr NestFrame::number(double value, DType dtype) {
  if (is_float(dtype)) return pool.floating(value, dtype);
  return pool.constant(value, dtype);
}

Expr NestFrame::identity_of(const Member& m) {
  const expr::Value v = expr::identity(m.reducer, m.dtype);
  if (is_float(m.dtype)) return pool.floating(v.f, m.dtype);
  return m.dtype == DType::Bool ? pool.boolean(v.i != 0) : pool.integer(v.i, m.dtype);
}

}  // namespace nautilus::schedule
