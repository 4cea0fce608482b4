// SPDX-License-Identifier: Apache-2.0
#include "ir/usual_sizes.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/target_of.h"

namespace nautilus::ir {

UsualSizes::UsualSizes(const Program& program)
    : unknown_(static_cast<double>(target_of(program).nests.usual_extent)) {
  const int64_t small = target_of(program).nests.small_extent;
  const bool is_asked = std::ranges::any_of(program.body, [](const Op& op) {
    const auto* d = op.get<Dim>();
    return d && d->kind == HintKind::Asked;
  });
  for (const Op& op : program.body) {
    const auto* d = op.get<Dim>();
    if (!d) continue;
    const int64_t hint = d->hint.value_or(small);
    sizes_.sizes.emplace(d->name.str(), is_asked ? hint : std::max(hint, small));
    if (d->hint) hints_.sizes.emplace(d->name.str(), *d->hint);
  }
}

double UsualSizes::extent(Expr e) const { return extent(e, sizes_, unknown_); }

double UsualSizes::least(Expr e) const { return extent(e, hints_, 1); }

double UsualSizes::extent(Expr e, const Environment& sizes, double unknown) const {
  bool is_known = true;
  expr::for_each(e, [&](Expr x) {
    is_known &= x.op() != expr::Op::Read;
    if (x.op() == expr::Op::Var) is_known &= sizes.sizes.contains(x.name().str());
  });
  if (!is_known) return unknown;
  return static_cast<double>(std::max<int64_t>(evaluate_size(e, sizes), 1));
}

double UsualSizes::count(const Axes& axes) const {
  double n = 1;
  for (const Axis& a : axes) n *= extent(a.extent);
  return n;
}

}  // namespace nautilus::ir
