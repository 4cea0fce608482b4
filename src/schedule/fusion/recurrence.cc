// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/recurrence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/attained.h"
#include "expr/print.h"
#include "expr/scalar_ops.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

// A sum of degree 2 keeps 1 + r + r (r + 1) / 2 numbers about r references: six for two.
constexpr size_t kMaxReferences = 2;

bool is_extreme(const Member& m) {
  return m.is_rolled && is_float(m.dtype) &&
         (m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min);
}

class Solver {
 public:
  Solver(const Fusion& fusion, const Member& member, const algebra::Signs& signs,
         expr::ExprPool& pool)
      : fusion_(fusion),
        member_(member),
        signs_(signs),
        pool_(pool),
        separator_(pool, rolled_reads(fusion), {fusion.stream}, signs) {}

  Outcome<Recurrence> run() {
    Recurrence out;
    const Expr start = fusion_.inlined(pool_, member_.init);
    Expr g = fusion_.inlined(pool_, member_.value);
    if (!separator_.is_running(g) && !separator_.is_running(start)) return out;
    const auto stripped = algebra::without_attained(
        pool_, g, member_.reducer,
        [&](Expr m, Expr x, bool is_maximum) { return is_extreme_of(m, x, is_maximum); });
    out.attained = stripped.extremes;
    g = stripped.term;
    if (!out.attained.empty() && !is_identity(start))
      return Rejection{"initial", "its initial element stays, what it is compared with moves"};
    if (!out.attained.empty() && !separator_.is_running(g)) return out;
    if (member_.reducer != expr::Reducer::Sum)
      return Rejection{"reducer", fmt::format("a {} of running values is not rolled",
                                              expr::name(member_.reducer))};
    auto part = rank_one(g, start);
    if (part) {
      out.part = *part;
      return out;
    }
    // The moments would count elements that do not attain the extreme.
    if (!out.attained.empty()) return part.rejection();
    const auto moving = shift(g, start);
    if (!moving) return is_polynomial_ ? moving.rejection() : part.rejection();
    out.part = moving->first;
    out.shift = moving->second;
    return out;
  }

 private:
  static std::unordered_set<Expr> rolled_reads(const Fusion& fusion) {
    std::unordered_set<Expr> running;
    for (const Member& m : fusion.members) {
      if (m.is_rolled) running.insert(m.read);
    }
    return running;
  }

  bool is_identity(Expr e) const {
    return e.op() == Op::FloatConst && e.number() == expr::identity(member_.reducer, e.dtype()).f;
  }

  // Whether `m` reads a rolled extreme of exactly `x`.
  bool is_extreme_of(Expr m, Expr x, bool is_maximum) const {
    const Member* p = m.op() == Op::Read ? fusion_.find(m) : nullptr;
    if (!p || p == &member_ || !is_extreme(*p)) return false;
    return (p->reducer == expr::Reducer::Max) == is_maximum &&
           fusion_.inlined(pool_, p->value) == x;
  }

  // Exponents may follow extremes, nothing else.
  std::optional<Rejection> unsafe_exponent(const algebra::RunningPart& part) const {
    for (const algebra::ExpTerm& t : part.exponents) {
      bool is_safe = false;
      for (const Member& m : fusion_.members) {
        if (!is_extreme(m)) continue;
        const double identity = expr::identity(m.reducer, m.dtype).f;
        is_safe |= t.core == m.read || algebra::unguarded(t.core, identity) == m.read;
      }
      if (!is_safe)
        return Rejection{"reference", fmt::format("`{}` is no maximum or minimum that an exponent "
                                                  "may follow",
                                                  expr::to_string(t.core))};
    }
    return std::nullopt;
  }

  Outcome<algebra::RunningPart> rank_one(Expr g, Expr start) {
    const auto s = separator_.separate(g);
    if (!s) return s.rejection();
    if (s->terms.size() != 1)
      return Rejection{"rank", fmt::format("its terms have separation rank {}", s->terms.size())};
    const algebra::RunningPart& part = s->terms[0].running;
    if (!part.powers.empty())
      return Rejection{"factor", fmt::format("the running factor `{}` is no exponential",
                                             expr::to_string(part.powers[0].atom))};
    if (const auto unsafe = unsafe_exponent(part)) return *unsafe;
    const bool is_zero = start.op() == Op::FloatConst && start.number() == 0;
    if (!is_zero && !part.is_one()) {
      const auto first = separator_.separate(start);
      if (!first) return first.rejection();
      if (first->terms.size() != 1 || !(first->terms[0].running == part))
        return Rejection{"initial", "its initial element moves otherwise than its terms"};
    }
    if (part.is_one() && separator_.is_running(start))
      return Rejection{"initial", "its initial element moves, its terms do not"};
    return part;
  }

  // The largest parts that only running values move, outside exponents, become symbols.
  Expr with_symbols(Expr e, Shift& shift) {
    if (!separator_.is_running(e) || e.op() == Op::Exp || e.op() == Op::Exp2) return e;
    if (!separator_.is_streamed(e)) {
      const auto it = std::find(shift.references.begin(), shift.references.end(), e);
      const auto k = static_cast<size_t>(it - shift.references.begin());
      if (it == shift.references.end()) {
        shift.references.push_back(e);
        shift.symbols.push_back(
            pool_.var(pool_.name(fmt::format("{}.ref{}", member_.target.str(), k == 0 ? "" : "2")),
                      e.dtype()));
      }
      return shift.symbols[k];
    }
    std::vector<Expr> args;
    for (Expr a : e.args()) args.push_back(with_symbols(a, shift));
    return pool_.with_args(e, args);
  }

  Outcome<std::pair<algebra::RunningPart, Shift>> shift(Expr g, Expr start) {
    is_polynomial_ = false;
    const Rejection none{"rank", ""};
    if (g.tree_size() > 4096) return none;
    Shift out;
    const Expr term = with_symbols(g, out);
    if (out.references.empty()) return none;
    const auto s = separator_.separate(term);
    if (!s || s->terms.size() != 1 || !s->terms[0].running.powers.empty()) return none;
    auto moments = algebra::moments_of(pool_, term, out.symbols);
    if (!moments) return none;
    is_polynomial_ = true;
    out.moments = *moments;
    if (out.references.size() > kMaxReferences)
      return Rejection{"rank", "its terms are polynomials of more than two running values"};
    for (Expr r : out.references) {
      if (r.dtype() != expr::DType::F32)
        return Rejection{"reference", fmt::format("`{}` is no f32 value", expr::to_string(r))};
      if (!stays_finite(r))
        return Rejection{"reference", fmt::format("`{}` may be infinite to the end, sums about it "
                                                  "are not",
                                                  expr::to_string(r))};
    }
    if (const auto unsafe = unsafe_exponent(s->terms[0].running)) return *unsafe;
    if (!(start.op() == Op::FloatConst && start.number() == 0))
      return Rejection{"initial", "its initial element moves otherwise than its terms"};
    for (size_t k = 0; k < fusion_.members.size(); ++k) {
      if (&fusion_.members[k] == &member_ && fusion_.dot_of(k))
        return Rejection{"rank", fmt::format("its terms have separation rank {}, and each further "
                                             "sum would be another matrix product",
                                             out.moments.size())};
    }
    return plain_sums(s->terms[0].running, std::move(out));
  }

  // Sums are finite, extremes and logarithms if they are guarded: where(m == -inf, 0, m). A value
  // that is 0 / 0 without live elements is NaN by the definition, too.
  bool stays_finite(Expr e) {
    if (!separator_.is_running(e)) return true;
    if (e.op() == Op::Read) {
      const Member* m = fusion_.find(e);
      return m && m->reducer == expr::Reducer::Sum;
    }
    const bool is_guard = e.op() == Op::Select && e[0].op() == Op::Eq && e[0][0] == e[2] &&
                          e[0][1].op() == Op::FloatConst && std::isinf(e[0][1].number());
    if (is_guard) return stays_finite(e[1]);
    const bool is_log = e.op() == Op::Log || e.op() == Op::Log2 || e.op() == Op::Log1p;
    if (is_log && !(e[0].op() == Op::Select && stays_finite(e[0]))) return false;
    return std::all_of(e.args().begin(), e.args().end(), [&](Expr a) { return stays_finite(a); });
  }

  // Which reads of the references are sums that nothing moves; sums that are themselves relative to
  // a reference are refused.
  Outcome<std::pair<algebra::RunningPart, Shift>> plain_sums(const algebra::RunningPart& part,
                                                             Shift shift) {
    for (const Member& m : fusion_.members) {
      if (!m.is_rolled || &m == &member_) continue;
      const bool is_read =
          std::any_of(shift.references.begin(), shift.references.end(), [&](Expr r) {
            bool found = false;
            expr::for_each(r, [&](Expr e) { found |= e == m.read; });
            return found;
          });
      if (!is_read || m.reducer != expr::Reducer::Sum) continue;
      const auto r = Solver(fusion_, m, signs_, pool_).run();
      if (!r) return r.rejection();
      if (r->shift && !r->shift->plain_sums.empty())
        return Rejection{"rank",
                         fmt::format("`{}` itself is taken against a moving mean", m.target.str())};
      if (r->is_plain()) shift.plain_sums.push_back(m.read);
    }
    return std::pair(part, std::move(shift));
  }

  const Fusion& fusion_;
  const Member& member_;
  const algebra::Signs& signs_;
  expr::ExprPool& pool_;
  algebra::Separator separator_;
  bool is_polynomial_ = false;
};

}  // namespace

Outcome<Recurrence> recurrence_of(const Fusion& fusion, const Member& member,
                                  const algebra::Signs& signs, expr::ExprPool& pool) {
  return Solver(fusion, member, signs, pool).run();
}

Expr extrapolated(const Shift& shift, Expr reference, Expr seen, Expr all, expr::ExprPool& pool) {
  expr::Substitution map;
  for (Expr s : shift.plain_sums)
    map.emplace(s, pool.binary(Op::Mul, s, pool.binary(Op::Div, all, seen)));
  return expr::substitute(pool, reference, map);
}

Expr is_finite(Expr x, expr::ExprPool& pool) {
  const Expr inf = pool.constant(std::numeric_limits<double>::infinity(), x.dtype());
  return pool.binary(Op::Lt, pool.unary(Op::Abs, x), inf);
}

Expr step_of(Expr before, Expr after, expr::ExprPool& pool) {
  const Expr d = pool.binary(Op::Sub, after, before);
  return pool.select(is_finite(d, pool), d, pool.constant(0, d.dtype()));
}

}  // namespace nautilus::schedule
