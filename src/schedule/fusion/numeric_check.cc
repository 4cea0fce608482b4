// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/numeric_check.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "expr/print.h"
#include "expr/scalar_ops.h"
#include "schedule/fusion/recurrence.h"

namespace nautilus::schedule {
namespace {

using expr::DType;
using expr::Op;
using expr::Value;

constexpr int kLength = 24;
constexpr int kStep = 5;
constexpr double kInf = std::numeric_limits<double>::infinity();

enum class RowKind : uint8_t { Random, Constant, Far, MaskedStart, Masked };
constexpr RowKind kRows[] = {RowKind::Random, RowKind::Constant, RowKind::Far, RowKind::MaskedStart,
                             RowKind::Masked};

class SelfTest {
 public:
  SelfTest(const Fusion& fusion, const algebra::Signs& signs, expr::ExprPool& pool)
      : fusion_(with_guarded_references(fusion, pool)),
        definition_(fusion),
        signs_(signs),
        pool_(pool) {}

  std::optional<Rejection> run() {
    std::vector<algebra::Moved> moved;
    for (const Member& m : fusion_.members) {
      if (!m.is_rolled) continue;
      if (!is_float(m.dtype)) return std::nullopt;
      const auto recurrence = recurrence_of(fusion_, m, signs_, pool_);
      if (!recurrence) return recurrence.rejection();
      Rolled r{&m, definition_.by_name(m.target), {}, {}, {}, {}, *recurrence, {}, {}};
      r.term = fusion_.inlined(pool_, m.value);
      r.defined = definition_.inlined(pool_, r.original->value);
      r.after = pool_.var(pool_.name(fmt::format("{}.new", m.target.str())), m.dtype);
      r.factor = algebra::repair_factor(pool_, recurrence->part, moved, signs_);
      const bool is_extreme = m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min;
      moved.push_back({m.read, r.after, is_extreme ? expr::identity(m.reducer, m.dtype).f : 0.0});
      has_repair_ |= !recurrence->is_plain();
      rolled_.push_back(r);
    }
    if (!has_repair_) return std::nullopt;
    for (Rolled& r : rolled_) {
      expr::Substitution to_new;
      for (const Rolled& q : rolled_) {
        if (&q != &r) to_new.emplace(q.member->read, q.after);
      }
      r.term = expr::substitute(pool_, r.term, to_new);
      if (!r.recurrence.shift) continue;
      for (algebra::Moment& m : r.recurrence.shift->moments)
        m.term = expr::substitute(pool_, m.term, to_new);
      r.term = r.recurrence.shift->moments[0].term;
    }
    for (const RowKind kind : kRows) {
      for (int n = 0; n < 2; ++n) {
        if (auto why = row(kind)) return why;
      }
    }
    return std::nullopt;
  }

 private:
  struct Rolled {
    const Member* member;
    const Member* original;
    Expr term;     // against the new values
    Expr defined;  // against final values
    Expr after;
    Expr factor;
    Recurrence recurrence;
    std::vector<double> sums;        // of the derivatives of its terms
    std::vector<double> references;  // that they are relative to
  };
  using Values = std::unordered_map<Expr, Value>;

  std::optional<Rejection> row(RowKind kind) {
    kind_ = kind;
    leaves_.clear();
    fixed_.clear();
    // By definition: each reduction is final before the next one reads it.
    Values state;
    for (const Rolled& r : rolled_) {
      position_ = -1;
      Value acc = value(definition_.inlined(pool_, r.original->init), state);
      for (int j = 0; j < kLength; ++j) acc = combine(r, acc, at(j, r.defined, state));
      state[r.member->read] = acc;
    }
    const Values want = state;
    // In steps.
    state.clear();
    for (const Rolled& r : rolled_) {
      position_ = -1;
      const Expr start = fusion_.inlined(pool_, r.member->init);
      state[r.member->read] = value(start, state);
    }
    for (Rolled& r : rolled_) {
      const auto& shift = r.recurrence.shift;
      r.sums.assign(shift ? shift->moments.size() : 0, 0.0);
      r.references.assign(shift ? shift->references.size() : 0, 0.0);
    }
    for (int first = 0; first < kLength; first += kStep) {
      Values kept;
      for (Rolled& r : rolled_) step(r, first, state, kept);
      for (const Rolled& r : rolled_) state[r.member->read] = state.at(r.after);
    }
    for (Rolled& r : rolled_) {
      if (!r.recurrence.shift || r.recurrence.shift->plain_sums.empty()) continue;
      position_ = -1;
      r.sums[0] = state.at(r.member->read).f;
      Values final = state;
      for (const Rolled& q : rolled_) final[q.after] = state.at(q.member->read);
      state[r.member->read].f = moved(r, kLength, final)[0];
    }
    for (const Rolled& r : rolled_) {
      const double a = state.at(r.member->read).f;
      const double b = want.at(r.member->read).f;
      // Where the definition overflows or subtracts infinities, it asks for nothing.
      if (!std::isfinite(b) && !(std::isinf(b) && a == b)) continue;
      if (std::fabs(a - b) <= 1e-9 * (1 + std::fabs(b)) || a == b) continue;
      return Rejection{"self_test",
                       fmt::format("`{}` rolled gives {} where its definition gives {}",
                                   r.member->target.str(), a, b)};
    }
    return std::nullopt;
  }

  // One step of a recurrence. `kept`: running values before their new terms are added.
  void step(Rolled& r, int first, Values& state, Values& kept) {
    position_ = -1;
    const int end = std::min(first + kStep, kLength);
    Value acc = state.at(r.member->read);
    if (r.recurrence.shift) {
      r.sums[0] = acc.f;
      r.sums = moved(r, end, state);
      acc.f = r.sums[0];
    }
    const double factor = r.factor ? value(r.factor, state).f : 1;
    acc.f *= factor;
    for (double& x : r.sums) x *= factor;
    for (Expr w : r.recurrence.attained) {
      if (kept.at(w).f != state.at(after_of(w)).f)
        acc = expr::identity(r.member->reducer, r.member->dtype);
    }
    kept[r.member->read] = acc;
    for (int j = first; j < end; ++j) {
      acc = combine(r, acc, at(j, r.term, state));
      for (size_t n = 1; n < r.sums.size(); ++n)
        r.sums[n] += at(j, r.recurrence.shift->moments[n].term, state).f;
    }
    state[r.after] = acc;
  }

  Expr after_of(Expr read) const {
    for (const Rolled& r : rolled_) {
      if (r.member->read == read) return r.after;
    }
    return {};
  }

  // The sums relative to the references after this many places; the state gets the references.
  std::vector<double> moved(Rolled& r, int seen, Values& state) {
    const Shift& shift = *r.recurrence.shift;
    Values scaled = state;
    for (const Rolled& q : rolled_) {
      if (state.contains(q.after)) scaled[q.member->read] = state.at(q.after);
    }
    for (Expr s : shift.plain_sums) scaled[s].f *= static_cast<double>(kLength) / seen;
    Values now;
    std::vector<Expr> sums;
    std::vector<Expr> steps;
    for (size_t n = 0; n < r.sums.size(); ++n) {
      sums.push_back(pool_.var(pool_.name(fmt::format("sum.{}", n)), expr::DType::F64));
      now[sums[n]] = expr::float_value(r.sums[n]);
    }
    for (size_t n = 0; n < r.references.size(); ++n) {
      steps.push_back(pool_.var(pool_.name(fmt::format("step.{}", n)), expr::DType::F64));
      const Value next = value(shift.references[n], scaled);
      const double d = next.f - r.references[n];
      now[steps[n]] = expr::float_value(std::isfinite(d) ? d : 0);
      r.references[n] = next.f;
      state[shift.symbols[n]] = next;
    }
    std::vector<double> out;
    for (size_t n = 0; n < sums.size(); ++n)
      out.push_back(value(algebra::moved_sum(pool_, shift.moments, n, sums, steps), now).f);
    return out;
  }

  static Value combine(const Rolled& r, Value acc, Value x) {
    const Value args[2] = {acc, x};
    return expr::apply(expr::combiner(r.member->reducer), r.member->dtype, r.member->dtype, args);
  }

  Value at(int j, Expr e, const Values& state) {
    position_ = j;
    return value(e, state);
  }

  Value value(Expr e, const Values& state) {
    std::unordered_map<Expr, Value> memo;
    return value(e, state, memo);
  }

  Value value(Expr e, const Values& state, std::unordered_map<Expr, Value>& memo) {
    if (const auto it = state.find(e); it != state.end()) return it->second;
    if (const auto it = memo.find(e); it != memo.end()) return it->second;
    const Value v = new_value(e, state, memo);
    memo.emplace(e, v);
    return v;
  }

  Value new_value(Expr e, const Values& state, std::unordered_map<Expr, Value>& memo) {
    switch (e.op()) {
      case Op::FloatConst:
        return expr::float_value(e.number());
      case Op::IntConst:
      case Op::BoolConst:
        return expr::int_value(e.integer());
      case Op::Var:
      case Op::Read:
        return leaf(e);
      case Op::Select:
        return value(e[value(e[0], state, memo).i ? 1 : 2], state, memo);
      default: {
        Value args[3];
        for (size_t k = 0; k < e.args().size(); ++k) args[k] = value(e[k], state, memo);
        return expr::apply(e.op(), e.dtype(), e.args().back().dtype(), args);
      }
    }
  }

  // Numbers for what the terms read: one for each place along the streamed axis, or one for all.
  Value leaf(Expr e) {
    if (e == fusion_.stream) return expr::int_value(position_);
    const bool is_streamed = expr::depends_on(e, fusion_.stream);
    auto& values = is_streamed ? leaves_[e] : fixed_[e];
    if (values.empty()) values = draw(e, is_streamed ? kLength : 1);
    return values[static_cast<size_t>(is_streamed ? position_ : 0)];
  }

  std::vector<Value> draw(Expr e, int n) {
    std::vector<Value> out;
    const bool is_score = n > 1 && fusion_.find(e);  // the result of an inner reduction
    const double one = random_.normal();
    for (int j = 0; j < n; ++j) {
      if (!is_float(e.dtype())) {
        // Sizes and row numbers: masks that compare them with the position bite in some rows.
        constexpr int64_t kFixed[] = {20, 0, 5, 12, 2};
        out.push_back(expr::int_value(n == 1 ? kFixed[static_cast<size_t>(kind_)] : j));
        continue;
      }
      double x = kind_ == RowKind::Constant ? one : random_.normal();
      if (signs_.is_positive(e)) x = 0.2 + std::fabs(x) / 4;
      if (is_score && kind_ == RowKind::Far) x += 200;
      const bool is_masked =
          kind_ == RowKind::Masked || (kind_ == RowKind::MaskedStart && j < 2 * kStep);
      if (is_score && is_masked) x = -kInf;
      out.push_back(expr::float_value(x));
    }
    return out;
  }

  Fusion fusion_;
  const Fusion& definition_;
  const algebra::Signs& signs_;
  expr::ExprPool& pool_;
  std::vector<Rolled> rolled_;
  bool has_repair_ = false;
  RowKind kind_ = RowKind::Random;
  int position_ = 0;
  std::unordered_map<Expr, std::vector<Value>> leaves_;
  std::unordered_map<Expr, std::vector<Value>> fixed_;
  base::Random random_{1};
};

}  // namespace

std::optional<Rejection> self_test(const Fusion& fusion, const algebra::Signs& signs,
                                   expr::ExprPool& pool) {
  return SelfTest(fusion, signs, pool).run();
}

}  // namespace nautilus::schedule
