// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_own.h"

#include "emit/identifier.h"
#include "emit/typed_expression.h"
#include "expr/scalar_ops.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;

struct Copy {
  DType dtype;
  int64_t bytes = 0;  // of an element
  int64_t count = 1;
  ir::Exprs extents;
};

Copy copy_of(const PointsScope& scope) {
  const ir::TensorType& type = scope.global(matile::scattered_result(scope.points())).type;
  Copy out{type.dtype, expr::bytes(type.dtype), 1, type.dims};
  for (const Expr n : type.dims) out.count *= n.integer();
  return out;
}

std::string identity_text(PointsScope& scope, expr::Reducer reducer, DType dtype) {
  const expr::Value v = expr::identity(reducer, dtype);
  return scope.text(expr::is_float(dtype) ? scope.pool.floating(v.f, dtype)
                                          : scope.pool.integer(v.i, dtype));
}

// Each thread has elements of the copy, so many apart as the CTA has threads. The loop stays open.
void open_elements(PointsScope& scope, const Copy& copy) {
  scope.out.open("for (int k = thread_index(); k < {}; k += {}) {{", copy.count,
                 scope.grid.threads);
}

}  // namespace

std::optional<expr::Reducer> reducer_of_own(const PointsScope& scope) {
  if (!scope.grid.is_private) return std::nullopt;
  return scope.points().body.back().as<matile::Scatter>().reducer;
}

void begin_own(PointsScope& scope, expr::Reducer reducer, bool is_early) {
  const Copy copy = copy_of(scope);
  Writer& out = scope.out;
  scope.own_copy = scope.fresh("copy");
  out.line("SHARED_BASE({});", scope.own_copy);
  open_elements(scope, copy);
  out.line("shared_put({} + {} * k, {});", scope.own_copy, copy.bytes,
           identity_text(scope, reducer, copy.dtype));
  out.close();
  if (is_early) out.line("wait_for_kernels_in_front();");
  out.line("sync_cta();");
  scope.shared_bytes += copy.count * copy.bytes;
}

void scatter_to_own(PointsScope& scope, const matile::Scatter& s) {
  const Copy copy = copy_of(scope);
  std::string place = "0";
  for (size_t k = 0; k < s.indices.size(); ++k) {
    const std::string index = fmt::format("(u32)({})", scope.text(s.indices[k]));
    place = k == 0 ? index : fmt::format("({} * {} + {})", place, copy.extents[k].integer(), index);
  }
  scope.out.line("shared_scatter_{}_{}({} + {} * {}, {});", name(s.reducer), expr::name(copy.dtype),
                 scope.own_copy, copy.bytes, place, scope.text(s.value));
}

void end_own(PointsScope& scope, expr::Reducer reducer) {
  const Copy copy = copy_of(scope);
  const ir::Name result = matile::scattered_result(scope.points());
  Writer& out = scope.out;
  out.close();
  out.line("sync_cta();");
  open_elements(scope, copy);
  out.line("{} x;", carrier(copy.dtype));
  out.line("shared_take({} + {} * k, x);", scope.own_copy, copy.bytes);
  std::string at;
  int64_t inner = 1;
  for (size_t k = copy.extents.size(); k-- > 0;) {
    const int64_t n = copy.extents[k].integer();
    at += (at.empty() ? "" : " + ") +
          scope.global(result).step(fmt::format("(k / {} % {})", inner, n), k);
    inner *= n;
  }
  out.line("if (x != {}) scatter_{}_{}(p.{}, {}, x);", identity_text(scope, reducer, copy.dtype),
           name(reducer), expr::name(copy.dtype), identifier(result.str()), at.empty() ? "0" : at);
  out.close();
}

}  // namespace nautilus::emit
