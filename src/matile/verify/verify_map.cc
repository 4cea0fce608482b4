// SPDX-License-Identifier: Apache-2.0
// Maps: what the copy engine can be told, as far as the text decides it.
#include <fmt/format.h>

#include <set>

#include "expr/bounds/affine.h"
#include "matile/verify/verify_rules.h"
#include "target/target.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using EK = expr::Op;

bool walks_by_one(Expr index, ir::Name axis) {
  const auto poly = expr::Poly::of(index);
  for (const auto& [monomial, coefficient] : poly->terms()) {
    if (monomial.size() == 1 && monomial[0].name() == axis) return coefficient == 1;
  }
  return false;
}

// Every term is at most one axis, once, times constants and sizes; terms without an axis say
// where the view begins.
bool is_map_index(Expr index, const std::set<std::string>& axes) {
  const auto poly = expr::Poly::of(index);
  if (!poly) return false;
  for (const auto& [monomial, coefficient] : poly->terms()) {
    int count = 0;
    for (Expr atom : monomial) {
      if (atom.op() != EK::Var) return false;
      count += axes.contains(std::string(atom.name().str())) ? 1 : 0;
    }
    if (count > 1 || coefficient <= 0) return false;
  }
  return true;
}

}  // namespace

bool verify_map(const Map& m, const target::Copies& copies, ir::Verifier& v) {
  const auto failed = [&](std::string message) {
    v.fail(std::move(message));
    return false;
  };
  const size_t mark = v.enter_axes(m.axes);
  v.check(m.value, "the map");
  v.leave_axes(mark);
  if (m.value.op() != EK::Read) return failed("a map names an element of a tensor");
  if (m.axes.size() > static_cast<size_t>(copies.box_axes) || m.axes.size() != m.box.size())
    v.fail(fmt::format("a map has up to {} axes and one box extent for each, not {} and {}",
                       copies.box_axes, m.axes.size(), m.box.size()));
  std::set<std::string> names;
  for (const ir::Axis& a : m.axes) names.emplace(a.name.str());
  for (Expr index : m.value.args()) {
    if (!is_map_index(index, names))
      return failed(
          "the indices of a map are sums of its axes and of sizes, times constants or sizes");
  }
  const int64_t promote = m.promote.value_or(256);
  if (promote != 0 && promote != 64 && promote != 128 && promote != 256)
    v.fail("a map promotes misses to 0, 64, 128 or 256 bytes");
  for (Expr b : m.box) {
    if (b.op() != EK::IntConst || b.integer() < 1 || b.integer() > copies.box_extent)
      return failed(fmt::format("a box extent is a number from 1 to {}", copies.box_extent));
  }
  if (m.step) {
    if (*m.step < 2 || *m.step > copies.box_step)
      return failed(fmt::format("the step of a map is a number from 2 to {}", copies.box_step));
    if (m.box.size() < 2 || (m.box[1].integer() - 1) * *m.step >= copies.box_extent)
      return failed(
          fmt::format("the steps of a box reach over at most {} elements", copies.box_extent));
  }
  if (!m.value.args().empty() && !m.axes.empty()) {
    if (!walks_by_one(m.value.args().back(), m.axes[0].name))
      v.fail("the first axis of a map walks along the tensor's last dimension");
    const int64_t bytes = m.box[0].integer() * expr::bytes(m.value.dtype());
    const int span = layout::span_bytes(swizzle_of(m.swizzle));
    if (m.swizzle != MapSwizzle::None && bytes != span)
      v.fail(fmt::format("the box is {} bytes wide, its swizzle is for {}", bytes, span));
  }
  return true;
}

}  // namespace nautilus::matile
