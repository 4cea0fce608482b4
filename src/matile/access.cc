// SPDX-License-Identifier: Apache-2.0
#include "matile/access.h"

#include "expr/affine.h"

namespace nautilus::matile {

using layout::Layout;
using layout::Place;

std::optional<AffineIndex> affine_index(expr::Expr e) {
  const auto poly = expr::Poly::of(e);
  if (!poly) return std::nullopt;
  AffineIndex index;
  for (const auto& [monomial, coefficient] : poly->terms()) {
    if (monomial.empty()) {
      index.constant = coefficient;
    } else if (monomial.size() == 1 && monomial[0].op() == expr::Op::Var) {
      index.coefficients.emplace(monomial[0].name().str(), coefficient);
    } else {
      return std::nullopt;
    }
  }
  return index;
}

namespace {

// Coordinates in the source for a point of the domain and values of the unroll variables.
std::optional<std::vector<int>> source_point(const Domain& domain,
                                             const std::vector<AffineIndex>& indices,
                                             const std::vector<int>& point,
                                             const std::map<std::string, int>& values) {
  std::vector<int> out;
  for (const AffineIndex& index : indices) {
    int64_t at = index.constant;
    for (const auto& [name, coefficient] : index.coefficients) {
      int64_t value = -1;
      for (size_t k = 0; k < domain.axes.size(); ++k) {
        if (domain.axes[k].str() == name) value = point[k];
      }
      if (const auto it = values.find(name); it != values.end()) value = it->second;
      if (value < 0) return std::nullopt;
      at += coefficient * value;
    }
    out.push_back(static_cast<int>(at));
  }
  return out;
}

// Register that every thread uses for register e of the domain; empty if they differ or lack it.
std::optional<int> common_register(const Domain& domain, const Layout& source,
                                   const std::vector<AffineIndex>& indices, int e,
                                   const std::map<std::string, int>& values) {
  std::optional<int> common;
  for (int warp = 0; warp < domain.layout.extent(layout::Owner::Warp); ++warp) {
    for (int lane = 0; lane < domain.layout.extent(layout::Owner::Lane); ++lane) {
      const auto point =
          source_point(domain, indices, domain.layout.coordinates_of({0, warp, lane, e}), values);
      if (!point) return std::nullopt;
      for (size_t k = 0; k < point->size(); ++k) {
        if ((*point)[k] < 0 || (*point)[k] >= source.shape()[k]) return std::nullopt;
      }
      const auto reg = source.register_of(*point, Place{0, warp, lane, 0});
      if (!reg || (common && *common != *reg)) return std::nullopt;
      common = reg;
    }
  }
  return common;
}

}  // namespace

std::optional<RegisterAccess> register_access(const Domain& domain, const Layout& source,
                                              std::span<const expr::Expr> indices,
                                              const std::map<std::string, int>& unrolled) {
  std::vector<AffineIndex> affine;
  for (expr::Expr e : indices) {
    auto index = affine_index(e);
    if (!index) return std::nullopt;
    affine.push_back(*index);
  }
  if (affine.size() != source.shape().size()) return std::nullopt;
  std::map<std::string, int> values;
  for (const auto& [name, extent] : unrolled) values[name] = 0;
  std::vector<int> registers;
  for (int e = 0; e < domain.layout.registers(); ++e) {
    const auto reg = common_register(domain, source, affine, e, values);
    if (!reg) return std::nullopt;
    registers.push_back(*reg);
  }
  RegisterAccess access{
      fit(domain.layout, [&](int e) { return registers[static_cast<size_t>(e)]; }), {}};
  for (const auto& [name, extent] : unrolled) {
    if (extent < 2) continue;
    int step = 0;
    for (int v = 1; v < extent; ++v) {
      values[name] = v;
      const auto reg = common_register(domain, source, affine, 0, values);
      if (!reg) return std::nullopt;
      if (v == 1) step = *reg - registers[0];
      if (*reg != registers[0] + v * step) return std::nullopt;
    }
    values[name] = 0;
    if (step != 0) access.unrolled.emplace_back(name, step);
  }
  // The index is affine: if it is right at the corners of the unrolled variables, it is everywhere.
  const size_t corners = size_t{1} << unrolled.size();
  for (size_t corner = 1; corner < corners; ++corner) {
    int shift = 0;
    size_t bit = 0;
    for (const auto& [name, extent] : unrolled) {
      const int value = (corner >> bit++) & 1 ? extent - 1 : 0;
      values[name] = value;
      for (const auto& [stepped, step] : access.unrolled)
        shift += stepped == name ? value * step : 0;
    }
    for (int e = 0; e < domain.layout.registers(); ++e) {
      const auto reg = common_register(domain, source, affine, e, values);
      if (!reg || *reg != registers[static_cast<size_t>(e)] + shift) return std::nullopt;
    }
  }
  return access;
}

}  // namespace nautilus::matile
