// SPDX-License-Identifier: Apache-2.0
#include "schedule/numeric_check.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "expr/print.h"
#include "expr/scalar_ops.h"

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
  SelfTest(const Group& group, const algebra::Signs& signs, expr::ExprPool& pool)
      : group_(with_guarded_references(group, pool)),
        definition_(group),
        signs_(signs),
        pool_(pool) {}

  std::optional<Rejection> run() {
    std::vector<algebra::Moved> moved;
    for (const Member& m : group_.members) {
      if (!m.is_rolled) continue;
      if (!is_float(m.dtype)) return std::nullopt;
      const auto part = rolled_part(group_, m, signs_, pool_);
      if (!part) return part.rejection();
      Rolled r{&m, definition_.by_name(m.target), {}, {}, {}, {}};
      r.term = group_.inlined(pool_, m.value);
      r.defined = definition_.inlined(pool_, r.original->value);
      r.after = pool_.var(pool_.name(fmt::format("{}.new", m.target.str())), m.dtype);
      r.factor = algebra::repair_factor(pool_, *part, moved, signs_);
      const bool is_extreme = m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min;
      moved.push_back({m.read, r.after, is_extreme ? expr::identity(m.reducer, m.dtype).f : 0.0});
      has_repair_ |= static_cast<bool>(r.factor);
      rolled_.push_back(r);
    }
    if (!has_repair_) return std::nullopt;
    for (Rolled& r : rolled_) {
      expr::Substitution to_new;
      for (const Rolled& q : rolled_) {
        if (&q != &r) to_new.emplace(q.member->read, q.after);
      }
      r.term = expr::substitute(pool_, r.term, to_new);
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
      const Expr start = group_.inlined(pool_, r.member->init);
      state[r.member->read] = value(start, state);
    }
    for (int first = 0; first < kLength; first += kStep) {
      for (const Rolled& r : rolled_) {
        position_ = -1;
        Value acc = state.at(r.member->read);
        if (r.factor) acc.f *= value(r.factor, state).f;
        for (int j = first; j < std::min(first + kStep, kLength); ++j)
          acc = combine(r, acc, at(j, r.term, state));
        state[r.after] = acc;
      }
      for (const Rolled& r : rolled_) state[r.member->read] = state.at(r.after);
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
    if (e == group_.stream) return expr::int_value(position_);
    const bool is_streamed = expr::depends_on(e, group_.stream);
    auto& values = is_streamed ? leaves_[e] : fixed_[e];
    if (values.empty()) values = draw(e, is_streamed ? kLength : 1);
    return values[static_cast<size_t>(is_streamed ? position_ : 0)];
  }

  std::vector<Value> draw(Expr e, int n) {
    std::vector<Value> out;
    const bool is_score = n > 1 && group_.find(e);  // the result of an inner reduction
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

  Group group_;
  const Group& definition_;
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

std::optional<Rejection> self_test(const Group& group, const algebra::Signs& signs,
                                   expr::ExprPool& pool) {
  return SelfTest(group, signs, pool).run();
}

}  // namespace nautilus::schedule
