// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_moving.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;
using Kind = RowStatement::Kind;

// A sum of degree 2 keeps 1 + r + r (r + 1) / 2 numbers about r references: six for two.
constexpr size_t kMostReferences = 2;

bool is_zero_constant(Expr e) { return e.op() == EK::FloatConst && e.number() == 0; }

// Plain sums, whose part so far stands for all of the row.
bool is_sum_from_zero(const RowStatement& s) {
  return s.kind == Kind::Reduction && s.reducer == expr::Reducer::Sum &&
         s.dtype == expr::DType::F32 && is_zero_constant(s.init);
}

class WalkSegments {
 public:
  WalkSegments(const RowGroup& group, expr::ExprPool& pool) : group_(group), pool_(pool) {}

  RowSegment run(size_t begin, const RowSegmentRules& rules) {
    RowSegment out{begin, begin, {}, {}, {}};
    const auto& all = group_.statements;
    for (; out.end < all.size() && all[out.end].kind != Kind::Number; ++out.end) {
      const RowStatement& s = all[out.end];
      if (depends(s.value)) break;
      if (s.kind == Kind::Reduction) found_.emplace(s.target.str(), out.end);
      if (s.kind == Kind::Element) elements_.emplace(s.target.str(), s.value);
    }
    for (size_t k = out.end; k < all.size(); ++k) {
      const RowStatement& s = all[k];
      if (s.kind == Kind::Number) {
        const Expr value = written_out(s.value);
        if (!depends(value)) out.early.insert(k);
        numbers_.emplace(s.target.str(), value);
        continue;
      }
      if (s.kind == Kind::Element) {
        if (rules.is_kept(s)) break;
        elements_.emplace(s.target.str(), s.value);
        continue;
      }
      if (!take(k, rules, out)) break;
      found_.emplace(s.target.str(), k);
      out.end = k + 1;
    }
    return out;
  }

 private:
  // Whether a value needs a reduction of the walk, through numbers and elements.
  bool depends(Expr value) const {
    bool found = false;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read) return;
      const std::string name(e.name().str());
      found |= found_.contains(name);
      if (const auto n = numbers_.find(name); n != numbers_.end()) found |= depends(n->second);
      if (const auto n = elements_.find(name); n != elements_.end()) found |= depends(n->second);
    });
    return found;
  }

  // Whether the walk takes the reduction along, behind numbers and elements that need the walk.
  bool take(size_t k, const RowSegmentRules& rules, RowSegment& out) {
    const RowStatement& s = group_.statements[k];
    if (!depends(s.value)) return true;
    auto moving = moving_sum(k);
    auto scaled = moving ? std::nullopt : scaled_sum(k);
    if ((!moving && !scaled) || !rules.may_move(s)) return false;
    moved_.insert(k);
    if (moving) out.moving.push_back(std::move(*moving));
    if (scaled) out.scaled.push_back(std::move(*scaled));
    return true;
  }

  // With numbers and elements of the group that need reductions of the walk in place of their
  // reads.
  Expr written_out(Expr value) {
    return expr::rebuild(pool_, value, [&](Expr e) {
      if (e.op() != EK::Read) return e;
      const std::string name(e.name().str());
      if (const auto n = numbers_.find(name); n != numbers_.end() && depends(n->second))
        return pool_.cast(e.dtype(), n->second);
      if (const auto n = elements_.find(name); n != elements_.end() && depends(n->second))
        return pool_.cast(e.dtype(), written_out(n->second));
      return e;
    });
  }

  bool is_streamed(Expr e) const {
    bool found = expr::depends_on(e, pool_.index(group_.column.name));
    for (const ir::Axis& a : group_.outer) found |= expr::depends_on(e, pool_.index(a.name));
    expr::for_each(e, [&](Expr x) {
      found |= x.op() == EK::Read && elements_.contains(std::string(x.name().str()));
    });
    return found;
  }

  // The largest parts that reductions of the walk move and its elements do not.
  Expr with_symbols(Expr e, RowMovingSum& sum, std::string_view target) {
    if (!depends(e)) return e;
    if (!is_streamed(e)) {
      const auto it = std::find(sum.references.begin(), sum.references.end(), e);
      const auto k = static_cast<size_t>(it - sum.references.begin());
      if (it == sum.references.end()) {
        sum.references.push_back(e);
        sum.symbols.push_back(pool_.var(
            pool_.name(fmt::format("{}.ref{}", target, k == 0 ? "" : std::to_string(k + 1))),
            e.dtype()));
      }
      return sum.symbols[k];
    }
    if (e.op() == EK::Read) return e;
    std::vector<Expr> args;
    for (Expr a : e.args()) args.push_back(with_symbols(a, sum, target));
    return pool_.with_args(e, args);
  }

  // Made of sums by arithmetic: what is not finite then makes NaN of the definition, too.
  bool is_arithmetic(Expr e) const {
    if (!depends(e)) return true;
    if (e.op() == EK::Read) {
      const auto it = found_.find(std::string(e.name().str()));
      return it != found_.end() && is_sum_from_zero(group_.statements[it->second]) &&
             !moved_.contains(it->second);
    }
    const bool is_one = e.op() == EK::Add || e.op() == EK::Sub || e.op() == EK::Mul ||
                        e.op() == EK::Div || e.op() == EK::Neg || e.op() == EK::Cast;
    return is_one &&
           std::all_of(e.args().begin(), e.args().end(), [&](Expr a) { return is_arithmetic(a); });
  }

  std::optional<RowMovingSum> moving_sum(size_t k) {
    const RowStatement& s = group_.statements[k];
    if (!is_sum_from_zero(s)) return std::nullopt;
    RowMovingSum sum{k, {}, {}, {}};
    const Expr term = with_symbols(written_out(s.value), sum, s.target.str());
    if (sum.references.empty() || sum.references.size() > kMostReferences || depends(term))
      return std::nullopt;
    for (Expr r : sum.references) {
      if (r.dtype() != expr::DType::F32 || !is_arithmetic(r)) return std::nullopt;
    }
    auto moments = algebra::moments_of(pool_, term, sum.symbols);
    if (!moments) return std::nullopt;
    sum.moments = *moments;
    for (const algebra::Moment& m : sum.moments) {
      const bool has_symbol = std::any_of(sum.symbols.begin(), sum.symbols.end(), [&](Expr symbol) {
        return expr::depends_on(m.term, symbol);
      });
      if (has_symbol && !is_streamed(m.term)) return std::nullopt;
    }
    return sum;
  }

  // What the statement reduces, in f32.
  Expr terms_of(const RowStatement& s) {
    return pool_.cast(expr::DType::F32, written_out(s.value));
  }

  std::optional<RowScaledSum> scaled_sum(size_t k) {
    const RowStatement& s = group_.statements[k];
    if (s.reducer != expr::Reducer::Sum) return std::nullopt;
    const Expr term = terms_of(s);
    std::vector<RowScaledSum::Extreme> extremes;
    bool are_extremes = true;
    expr::for_each(term, [&](Expr e) {
      const auto it = e.op() == EK::Read ? found_.find(std::string(e.name().str())) : found_.end();
      if (it == found_.end()) return;
      const RowStatement& m = group_.statements[it->second];
      are_extremes &= m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min;
      are_extremes &= m.dtype == expr::DType::F32;
      extremes.push_back({e, terms_of(m), m.reducer});
    });
    if (!are_extremes || !reads_row_vector(term)) return std::nullopt;
    return row_scaled_sum(group_, k, term, std::move(extremes), pool_);
  }

  // Whether an element of the terms is a piece of a row of memory: a line of those stands between
  // memory and what is a thread's own, as the extreme so far is. Elements that the group makes are
  // computed where they are read.
  bool reads_row_vector(Expr term) const {
    const Expr column = pool_.index(group_.column.name);
    bool found = false;
    expr::for_each(term, [&](Expr e) {
      if (found || e.op() != expr::Op::Read || e.args().empty()) return;
      const auto made = std::find_if(group_.statements.begin(), group_.statements.end(),
                                     [&](const RowStatement& s) { return s.target == e.name(); });
      if (made != group_.statements.end()) {
        found = made->kind == RowStatement::Kind::Element && reads_row_vector(made->value);
        return;
      }
      found = (e.dtype() == expr::DType::F32 || expr::is_half(e.dtype())) &&
              e.args().back() == group_.place &&
              std::none_of(e.args().begin(), e.args().end() - 1,
                           [&](Expr index) { return expr::depends_on(index, column); });
    });
    return found;
  }

  const RowGroup& group_;
  expr::ExprPool& pool_;
  std::map<std::string, size_t> found_;  // reductions of the walk, their statements
  std::set<size_t> moved_;
  std::map<std::string, Expr> numbers_;  // with numbers in front written out
  std::map<std::string, Expr> elements_;
};

}  // namespace

const RowMovingSum* RowSegment::find_moving(size_t statement) const {
  for (const RowMovingSum& m : moving) {
    if (m.statement == statement) return &m;
  }
  return nullptr;
}

const RowScaledSum* RowSegment::find_scaled(size_t statement) const {
  for (const RowScaledSum& s : scaled) {
    if (s.statement == statement) return &s;
  }
  return nullptr;
}

bool RowSegment::is_plain(size_t statement) const {
  return !find_moving(statement) && !find_scaled(statement);
}

RowSegment row_segment(const RowGroup& group, size_t begin, const RowSegmentRules& rules,
                       expr::ExprPool& pool) {
  return WalkSegments(group, pool).run(begin, rules);
}

bool is_same_everywhere(Expr term, const RowGroup& group, expr::ExprPool& pool) {
  if (expr::depends_on(term, pool.index(group.column.name))) return false;
  return std::none_of(group.outer.begin(), group.outer.end(), [&](const ir::Axis& a) {
    return expr::depends_on(term, pool.index(a.name));
  });
}

}  // namespace nautilus::lower
