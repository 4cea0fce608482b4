// SPDX-License-Identifier: Apache-2.0
#include "matile/fold_chains.h"

#include "base/check.h"
#include "expr/walk.h"

namespace nautilus::matile {

using expr::Expr;
using EK = expr::Op;

std::optional<Domain> domain_of(Expr value, const std::vector<expr::Name>& axes,
                                const LayoutOf& layout_of) {
  std::optional<Domain> found;
  expr::for_each(value, [&](Expr e) {
    if (found || e.op() != EK::Read || e.args().size() != axes.size()) return;
    const layout::Layout* layout = layout_of(e.name().str());
    if (!layout) return;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (e[k].op() != EK::Var || e[k].name() != axes[k]) return;
    }
    found = Domain{*layout, axes};
  });
  return found;
}

Expr reduction_of(const Fold& fold) {
  Expr reduce;
  expr::for_each(fold.value, [&](Expr e) {
    if (e.op() == EK::Reduce) reduce = e;
  });
  return reduce;
}

FoldSlots fold_slots(const Fold& fold, const LayoutOf& layout_of,
                     const std::map<std::string, int>& unrolled, int64_t least_terms,
                     expr::ExprPool& pool) {
  const Expr reduce = reduction_of(fold);
  std::vector<expr::Name> axes;
  std::vector<Expr> indices;
  for (const ir::Axis& a : fold.axes) {
    axes.push_back(a.name);
    indices.push_back(pool.index(a.name));
  }
  for (size_t k = 0; k < reduce.axis_count(); ++k) axes.push_back(reduce.axis(k).name());
  const auto domain = domain_of(reduce.body(), axes, layout_of);
  NAUT_CHECK(domain, "the reduction reads no tile with its axes");
  const layout::Layout& target = *layout_of(fold.target.str());
  const auto to = register_access(*domain, target, indices, unrolled);
  NAUT_CHECK(to, "`{}` is not where the reduction leaves its values", fold.target.str());
  FoldSlots out{*domain, to->reg, target.registers()};
  const bool has_neighbours = !out.reg.coefficients.empty() && out.reg.coefficients[0] == 0;
  if (has_neighbours && domain->layout.registers() >= least_terms * out.targets)
    out.longest = out.reg.digits[0].extent;
  return out;
}

int FoldSlots::chains(int64_t count) const {
  int chains = 1;
  while (2 * chains <= count && longest % (2 * chains) == 0) chains *= 2;
  return chains;
}

DigitSum FoldSlots::slot(int chains) const {
  DigitSum out = reg;
  if (chains > 1 && chains < longest) {  // the chain is a digit of its own
    out.digits[0] = {chains, longest / chains};
    out.digits.insert(out.digits.begin(), {1, chains});
    out.coefficients.insert(out.coefficients.begin(), 0);
  }
  for (int& c : out.coefficients) c *= chains;
  if (chains > 1) out.coefficients[0] = 1;
  return out;
}

}  // namespace nautilus::matile
