// SPDX-License-Identifier: Apache-2.0
#include "expr/scalar_ops.h"
#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {
namespace {

using expr::Op;

class Guarding {
 public:
  Guarding(const Fusion& fusion, expr::ExprPool& pool) : fusion_(fusion), pool_(pool) {}

  Expr guarded(Expr e, bool is_exponent) {
    auto& memo = memo_[is_exponent ? 1 : 0];
    if (const auto it = memo.find(e); it != memo.end()) return it->second;
    const Expr result = guard(e, is_exponent);
    memo.emplace(e, result);
    return result;
  }

 private:
  Expr guard(Expr e, bool is_exponent) {
    if (e.op() == Op::Read) {
      const Member* m = fusion_.find(e);
      // A value that is computed from a row's extreme, an output for instance, counts as the
      // extreme.
      if (is_exponent && m && !m->is_reduction() && !m->has(fusion_.stream)) {
        const Expr value = guarded(fusion_.inlined(pool_, m->value), true);
        return value.dtype() == e.dtype() ? value : e;
      }
      return is_exponent && m && is_extreme(*m) ? algebra::guarded_reference(pool_, e, identity(*m))
                                                : e;
    }
    if (e.op() == Op::Select && is_exponent) {
      for (const Member& m : fusion_.members) {
        if (is_extreme(m) && algebra::unguarded(e, identity(m)) == m.read) return e;
      }
    }
    const bool is_inside = is_exponent || e.op() == Op::Exp || e.op() == Op::Exp2;
    std::vector<Expr> args(e.args().begin(), e.args().end());
    bool is_changed = false;
    for (Expr& a : args) {
      const Expr b = guarded(a, is_inside && is_float(a.dtype()));
      is_changed |= b != a;
      a = b;
    }
    return is_changed ? pool_.with_args(e, args) : e;
  }

  static bool is_extreme(const Member& m) {
    return m.is_rolled && is_float(m.dtype) &&
           (m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min);
  }
  static double identity(const Member& m) { return expr::identity(m.reducer, m.dtype).f; }

  const Fusion& fusion_;
  expr::ExprPool& pool_;
  std::unordered_map<Expr, Expr> memo_[2];
};

}  // namespace

Fusion with_guarded_references(Fusion fusion, expr::ExprPool& pool) {
  Guarding guarding(fusion, pool);
  std::vector<std::pair<Expr, Expr>> values;
  for (const Member& m : fusion.members)
    values.emplace_back(guarding.guarded(m.value, false),
                        m.init ? guarding.guarded(m.init, false) : Expr());
  for (size_t k = 0; k < fusion.members.size(); ++k) {
    // An epilogue keeps the definition's value.
    const Member& m = fusion.members[k];
    const bool is_late = !m.is_reduction() && !m.has(fusion.stream);
    if (is_late) continue;
    fusion.members[k].value = values[k].first;
    fusion.members[k].init = values[k].second;
  }
  return fusion;
}

}  // namespace nautilus::schedule
