// SPDX-License-Identifier: Apache-2.0
// The factors that may leave a sum: those without the reduced axes.
//
//   sum[j < N] where(j <= i, E[i, j] / l[i], 0.0) * c[i]      leaving: / l[i], * c[i]
//                                                             staying: where(j <= i, E[i, j], 0.0)
// Looks through element-wise equations and through selects with 0 as their other branch. Such a
// guard may hide all terms of a row; its sum is then 0 whatever the factor is, and each factor says
// how that is ensured. An equation after a long reduction of its own keeps factors that are known
// there: they cost nothing when its elements are stored, and stored without them the elements may
// be out of range, or have to be computed again.
#pragma once

#include <map>
#include <set>

#include "spec/facts/magnitude.h"

namespace nautilus::spec {

struct Factor {
  expr::Expr value;
  bool is_divisor;
  // For a factor that may be infinite, or a divisor that may be 0: 1 in terms with the factor, 0 in
  // hidden ones, so that their count tells a sum without live terms. Null for other factors.
  expr::Expr shown = {};
  // Finite by the definition, but perhaps not in the dtype that kernels compute in: a sum that is 0
  // has to stay 0.
  bool may_overflow = false;
  bool operator==(const Factor&) const = default;
};

struct Split {
  std::vector<Factor> leaving;
  expr::Expr staying;  // null: 1
  bool is_negative = false;
};

class Factors {
 public:
  Factors(const ir::Program& program, expr::ExprPool& pool, const Equations& equations);

  // Begins with the sum of this equation.
  void open(const Let& let);
  // Without `may_count`, factors that need a count of terms stay in the sum.
  Split split(expr::Expr term, bool may_count);

  // The products of a sum of products, and whether each is subtracted.
  std::vector<std::pair<expr::Expr, bool>> addends(expr::Expr e, bool is_negative);
  static constexpr size_t kMaxTerms = 4;

  // The factor where the sum has terms. An empty sum is 0: nothing may make NaN of it.
  expr::Expr of_empty_sum(const Factor& f);

  void add_type(const Let& let) { types_.emplace(std::string(let.name.str()), let.type()); }

 private:
  // The condition around a factor: none, one that keeps its reads inside, or one that may hide all
  // terms.
  enum class Guard : uint8_t { None, Reads, HidesAll };

  Split part(expr::Expr e, Guard guard, bool is_below);
  Split whole_factor(expr::Expr e, Guard guard, bool is_below);
  Split guarded(expr::Expr select, Guard guard, bool is_below);
  bool holds_first(expr::Expr condition);
  bool is_reduced(expr::Expr e) const;
  bool follows_long_reduction(expr::Expr read);
  std::set<std::string_view> reductions_alike(expr::Expr e) const;
  bool waits_for_axis(const Split& split) const;
  bool is_harmless(expr::Expr e, bool is_divisor);
  bool is_representable(expr::Expr e, bool is_divisor);

  // A reduction that is not longer than this may run inside the loop of the sum that needs it.
  int64_t whole_depth_;
  expr::ExprPool& pool_;
  const Equations& equations_;
  expr::Facts facts_;
  expr::Facts outer_;  // with the axes of the open equation
  std::map<std::string, ir::TensorType> types_;
  KnownValues values_;
  Magnitudes magnitudes_;
  expr::Expr reduction_;
  std::vector<expr::Expr> reduced_;
  bool may_count_ = true;
  int steps_ = 0;
};

}  // namespace nautilus::spec
