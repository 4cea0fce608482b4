// SPDX-License-Identifier: Apache-2.0
#include "matile/access.h"

#include <algorithm>

#include "expr/bounds/affine.h"
#include "layout/register_table.h"

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

// Which register of the source a register of the domain means, thread by thread. Every digit of
// the domain's layout belongs to one owner, so an affine index is a sum of what warp, lane and
// register add to it; these summands are computed once.
class RegisterFinder {
 public:
  RegisterFinder(const Domain& domain, const Layout& source,
                 const std::vector<AffineIndex>& indices,
                 const std::map<std::string, int>& unrolled)
      : source_(source),
        registers_of_source_(source),
        indices_(indices),
        is_alike_(source == domain.layout && indices.size() == domain.axes.size()) {
    for (size_t k = 0; is_alike_ && k < indices.size(); ++k) {
      const std::string name(domain.axes[k].str());
      is_alike_ = indices[k].constant == 0 && indices[k].coefficients.size() == 1 &&
                  indices[k].coefficients.begin()->first == name &&
                  indices[k].coefficients.begin()->second == 1 && !unrolled.contains(name);
    }
    for (const AffineIndex& index : indices) {
      std::vector<int64_t> of_axes(domain.axes.size());
      for (const auto& summand : index.coefficients) {
        const std::string_view name = summand.first;
        if (unrolled.contains(summand.first)) continue;
        const auto axis = std::find_if(domain.axes.begin(), domain.axes.end(),
                                       [&](expr::Name a) { return a.str() == name; });
        if (axis == domain.axes.end())
          has_unknown_ = true;
        else
          of_axes[static_cast<size_t>(axis - domain.axes.begin())] = summand.second;
      }
      coefficients_.push_back(std::move(of_axes));
    }
    const auto summands = [&](layout::Owner owner) {
      std::vector<std::vector<int64_t>> out;
      for (int n = 0; n < domain.layout.extent(owner); ++n) {
        Place place;
        place[owner] = n;
        out.push_back(indices_at(domain.layout.coordinates_of(place)));
      }
      return out;
    };
    warps_ = summands(layout::Owner::Warp);
    lanes_ = summands(layout::Owner::Lane);
    registers_ = summands(layout::Owner::Register);
  }

  // The register that every thread uses for register e of the domain; empty if they differ or lack
  // it. `values` are those of the unrolled variables.
  std::optional<int> common_register(int e, const std::map<std::string, int>& values) const {
    if (has_unknown_) return std::nullopt;
    std::vector<int64_t> first = registers_[static_cast<size_t>(e)];
    for (size_t k = 0; k < first.size(); ++k) {
      first[k] += indices_[k].constant;
      for (const auto& [name, coefficient] : indices_[k].coefficients) {
        if (const auto it = values.find(name); it != values.end())
          first[k] += coefficient * it->second;
      }
    }
    std::vector<int> point(first.size());
    std::optional<int> common;
    const size_t all_warps = is_alike_ ? 1 : warps_.size();
    const size_t all_lanes = is_alike_ ? 1 : lanes_.size();
    for (size_t warp = 0; warp < all_warps; ++warp) {
      for (size_t lane = 0; lane < all_lanes; ++lane) {
        for (size_t k = 0; k < point.size(); ++k) {
          const int64_t at = first[k] + warps_[warp][k] + lanes_[lane][k];
          if (at < 0 || at >= source_.shape()[k]) return std::nullopt;
          point[k] = static_cast<int>(at);
        }
        const auto reg = registers_of_source_.register_of(
            point, Place{0, static_cast<int>(warp), static_cast<int>(lane), 0});
        if (!reg || (common && *common != *reg)) return std::nullopt;
        common = reg;
      }
    }
    return common;
  }

 private:
  // The indices' parts that come from these coordinates of the domain.
  std::vector<int64_t> indices_at(const std::vector<int>& coordinates) const {
    std::vector<int64_t> out;
    for (const std::vector<int64_t>& coefficients : coefficients_) {
      int64_t sum = 0;
      for (size_t k = 0; k < coefficients.size(); ++k) sum += coefficients[k] * coordinates[k];
      out.push_back(sum);
    }
    return out;
  }

  const Layout& source_;
  const layout::RegisterTable registers_of_source_;
  const std::vector<AffineIndex>& indices_;
  std::vector<std::vector<int64_t>> coefficients_;  // of the domain's axes, for each index
  // The element at the domain's own place, in the same layout: every thread holds it, and the
  // register does not depend on the thread.
  bool is_alike_ = false;
  bool has_unknown_ = false;  // a variable that is neither an axis nor unrolled
  std::vector<std::vector<int64_t>> warps_, lanes_, registers_;
};

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
  const RegisterFinder finder(domain, source, affine, unrolled);
  std::vector<int> registers;
  for (int e = 0; e < domain.layout.registers(); ++e) {
    const auto reg = finder.common_register(e, values);
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
      const auto reg = finder.common_register(0, values);
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
      const auto reg = finder.common_register(e, values);
      if (!reg || *reg != registers[static_cast<size_t>(e)] + shift) return std::nullopt;
    }
  }
  return access;
}

}  // namespace nautilus::matile
