// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/distribute_row_shift.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"
#include "spec/facts/waits.h"
#include "spec/passes/algebra/row_shift_terms.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;

Expr stripped(Expr e) { return e.op() == Op::Cast ? e[0] : e; }

bool is_widened(Expr e) { return e.dtype() == DType::F32 && algebra::is_half_element(e); }

class Taking {
 public:
  Taking(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool),
        facts_(ir::facts_of(program, context.pool)),
        types_(tensor_types(program)),
        is_exact_(ir::numerics_of(program).rounding == ir::Rounding::Exact),
        names_(program, context.pool),
        values_(program, context.pool, equations_) {}

  Let equation(const Let& let, std::vector<Let>& before) {
    Let out = let;
    const Expr r = let.body;
    if (r.op() == Op::Reduce && r.reducer() == expr::Reducer::Sum && !r.init() &&
        r.dtype() == DType::F32 && let.dtype == DType::F32) {
      const std::vector<Expr> list = algebra::factors(r.body());
      for (size_t k = 0; k < list.size(); ++k) {
        auto apart = without_differences(let, list, k, before);
        if (!apart) continue;
        out = *std::move(apart);
        break;
      }
    }
    for (const Let& b : before) equations_.emplace(b.name, b);
    equations_.emplace(out.name, out);
    return out;
  }

 private:
  // Equations share their parts; written out as trees they may be too large to look at.
  static constexpr int kMaxSteps = 500;

  // The equation with factor k as the operand that has no row.
  std::optional<Let> without_differences(const Let& let, const std::vector<Expr>& list, size_t k,
                                         std::vector<Let>& before) {
    const Expr operand = list[k];
    if (!is_widened(operand)) return std::nullopt;
    reduction_ = let.body;
    extents_.clear();
    reduced_.clear();
    for (size_t n = 0; n < reduction_.axis_count(); ++n) {
      reduced_.push_back(reduction_.axis(n));
      extents_.push_back(reduction_.extent(n));
    }
    if (!is_reduced(operand)) return std::nullopt;
    rows_.clear();
    std::vector<Expr> columns;
    for (const ir::Axis& a : let.axes) {
      const Expr axis = pool_.index(a.name);
      const bool is_other = std::any_of(list.begin(), list.end(), [&](Expr f) {
        return f != operand && expr::depends_on(f, axis);
      });
      if (!expr::depends_on(operand, axis)) rows_.push_back(axis);
      if (!is_other) columns.push_back(axis);
    }
    if (rows_.empty() || columns.empty()) return std::nullopt;

    steps_ = 0;
    std::vector<ShiftTerm> terms = {{}};
    for (size_t n = 0; n < list.size(); ++n) {
      if (n != k) terms = times(terms, expanded(list[n]), pool_);
      if (terms.empty() || terms.size() > kMaxShiftTerms) return std::nullopt;
    }
    std::optional<ShiftTerm> main;
    bool is_waiting = false;
    for (const ShiftTerm& t : terms) {
      for (const ShiftFactor& f : t.row) is_waiting |= waits_for(f.value, extents_, equations_);
      if (t.varying && main) return std::nullopt;
      if (t.varying) main = t;
    }
    // A product alone is not a sum: its factors leave it by themselves.
    if (!main || terms.size() < 2 || !is_waiting || waits_for(main->varying, extents_, equations_))
      return std::nullopt;
    std::erase_if(terms, [](const ShiftTerm& t) { return static_cast<bool>(t.varying); });
    // The factors of the whole would leave the sum in any case.
    for (const ShiftTerm& t : terms) {
      if (!is_finite(without(t.row, main->row).value_or(t.row))) return std::nullopt;
    }
    return apart(let, operand, *main, terms, before);
  }

  std::optional<Let> apart(const Let& let, Expr operand, ShiftTerm main,
                           const std::vector<ShiftTerm>& others, std::vector<Let>& before) {
    if (main.is_negative) main.varying = pool_.unary(Op::Neg, main.varying);
    const bool is_plain = main.along.empty() && is_widened(main.varying) &&
                          stripped(main.varying).dtype() == stripped(operand).dtype();
    // A value of the row along something else may cancel the operand all the same (x_k g_k - m):
    // what the operand is taken relative to would not.
    const bool is_other = std::any_of(others.begin(), others.end(), [&](const ShiftTerm& t) {
      return t.along != main.along && !without(t.row, main.row).value_or(t.row).empty();
    });
    if (is_other) return std::nullopt;
    const bool cancels = std::any_of(others.begin(), others.end(),
                                     [&](const ShiftTerm& t) { return t.along == main.along; });
    Expr at;  // what the operand is taken relative to
    if (!is_plain && is_exact_) return std::nullopt;
    if (!is_plain && cancels) {
      const auto median = reference(let, main.varying, before);
      if (!median) return std::nullopt;
      at = *median;
      main.varying = pool_.binary(Op::Sub, main.varying, at);
    }
    Let acc = let;
    acc.name = names_.fresh(fmt::format("{}.acc", let.name.str()));
    acc.body = sum_of(product(pool_, main.varying, main.along), operand);

    Expr inside = element(acc, pool_);
    Expr outside;
    for (const Lack& l : lacks_of(main, at, others)) {
      Let all = sum_along(let, l.along, operand);
      const Expr value = element(all, pool_);
      if (l.inside) inside = plus(pool_, inside, pool_.binary(Op::Mul, l.inside, value), false);
      if (l.outside) outside = plus(pool_, outside, pool_.binary(Op::Mul, l.outside, value), false);
      before.push_back(std::move(all));
    }
    before.push_back(std::move(acc));
    Let out = let;
    out.body = product(pool_, inside, main.row);
    if (outside) out.body = pool_.binary(Op::Add, out.body, outside);
    out.body = zero_of_nothing(out.body);
    return out;
  }

  // The missing terms of the value in the loop, for each sum without a row: first those under the
  // factors of the whole.
  struct Lack {
    ShiftFactors along;
    Expr inside;
    Expr outside;
  };

  // `at`: what the operand of the main term is taken relative to; null: nothing.
  std::vector<Lack> lacks_of(const ShiftTerm& main, Expr at, const std::vector<ShiftTerm>& others) {
    std::vector<Lack> lacks;
    const auto lack_of = [&](const ShiftFactors& along) -> Lack& {
      for (Lack& l : lacks) {
        if (l.along == along) return l;
      }
      return lacks.emplace_back(Lack{along, {}, {}});
    };
    if (at) lack_of(main.along).inside = at;
    for (const ShiftTerm& t : others) {
      const auto rest = without(t.row, main.row);
      Lack& l = lack_of(t.along);
      Expr& sum = rest ? l.inside : l.outside;
      sum = plus(pool_, sum, product(pool_, {}, rest.value_or(t.row)), t.is_negative);
    }
    return lacks;
  }

  // The sum of the operand times these factors, for all rows.
  Let sum_along(const Let& let, const ShiftFactors& along, Expr operand) {
    Let all{names_.fresh(fmt::format("{}.all", let.name.str())),
            {},
            DType::F32,
            sum_of(along.empty() ? Expr() : product(pool_, {}, along), operand)};
    for (const ir::Axis& a : let.axes) {
      if (expr::depends_on(all.body, pool_.index(a.name))) all.axes.push_back(a);
    }
    return all;
  }

  // A sum of nothing is 0, whatever a mean of nothing is.
  Expr zero_of_nothing(Expr sum) {
    const Expr zero = pool_.constant(0, DType::F32);
    for (Expr extent : extents_) {
      const Expr has_terms = pool_.binary(Op::Ge, extent, pool_.integer(1));
      if (facts_.prove(has_terms) == expr::Truth::True) continue;
      sum = pool_.select(pool_.binary(Op::Le, extent, pool_.integer(0)), zero, sum);
    }
    return sum;
  }

  // The median of three elements of each row, in an equation of its own.
  std::optional<Expr> reference(const Let& let, Expr varying, std::vector<Let>& before) {
    const Expr value = made_of_inputs(varying);
    if (!value) return std::nullopt;
    expr::Facts facts = facts_;
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    for (Expr extent : extents_) facts.assume(pool_.binary(Op::Ge, extent, pool_.integer(1)));
    std::array<Expr, 3> samples;
    for (int64_t n = 0; n < 3; ++n) {
      expr::Substitution place;
      for (size_t k = 0; k < reduced_.size(); ++k) {
        const Expr last = pool_.binary(Op::Sub, extents_[k], pool_.integer(1));
        const Expr third = pool_.binary(Op::FloorDiv, last, pool_.integer(3));
        place.emplace(reduced_[k], pool_.binary(Op::Mul, third, pool_.integer(n)));
      }
      samples[static_cast<size_t>(n)] = expr::substitute(pool_, value, place);
      if (!are_inside(samples[static_cast<size_t>(n)], types_, facts, pool_)) return std::nullopt;
    }
    const auto& [a, b, c] = samples;
    Expr median = pool_.binary(Op::Max, pool_.binary(Op::Min, a, b),
                               pool_.binary(Op::Min, pool_.binary(Op::Max, a, b), c));
    for (Expr extent : extents_) {
      const Expr has_terms = pool_.binary(Op::Ge, extent, pool_.integer(1));
      if (facts_.prove(has_terms) == expr::Truth::True) continue;
      median = pool_.select(has_terms, median, pool_.constant(0, DType::F32));
    }
    Let at{names_.fresh(fmt::format("{}.at", let.name.str())), {}, DType::F32, median};
    for (const ir::Axis& x : let.axes) {
      if (expr::depends_on(median, pool_.index(x.name))) at.axes.push_back(x);
    }
    before.push_back(at);
    return element(at, pool_);
  }

  // The value written out; null where it reads what a reduction gives, or what is rounded.
  Expr made_of_inputs(Expr e) {
    bool is_found = true;
    auto written = [&](auto& self, Expr x) -> Expr {
      return expr::rebuild(pool_, x, [&](Expr y) {
        if (y.op() != Op::Read || !equations_.contains(y.name())) return y;
        const Expr body = ++steps_ > kMaxSteps ? Expr() : written_out(y);
        is_found &= static_cast<bool>(body);
        return body ? self(self, body) : y;
      });
    };
    const Expr out = written(written, e);
    return is_found ? out : Expr();
  }

  bool is_reduced(Expr e) const {
    return std::any_of(reduced_.begin(), reduced_.end(),
                       [&](Expr axis) { return expr::depends_on(e, axis); });
  }
  bool has_row(Expr e) const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [&](Expr axis) { return expr::depends_on(e, axis); });
  }

  // The body of an element-wise equation at a read; null for other tensors.
  Expr written_out(Expr read) {
    const auto it = equations_.find(read.name());
    if (it == equations_.end() || expr::has_reduce(it->second.body)) return {};
    const Expr e = body_at(it->second, read, pool_);
    return e.dtype() == read.dtype() ? e : Expr();
  }

  // Sums of means, and of what else cannot be infinite where the axes have elements.
  bool is_finite(const ShiftFactors& row) {
    return std::all_of(row.begin(), row.end(), [&](const ShiftFactor& f) {
      return f.is_divisor ? is_nonzero(f.value) : is_finite(f.value);
    });
  }
  bool is_finite(Expr e) {
    if (values_.is_finite(e)) return true;
    switch (e.op()) {
      case Op::Read: {
        const Expr body = written_out(e);
        return body && is_finite(body);
      }
      case Op::Neg:
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
        return std::all_of(e.args().begin(), e.args().end(), [&](Expr x) { return is_finite(x); });
      case Op::Div:
        return is_finite(e[0]) && is_nonzero(e[1]);
      default:
        return false;
    }
  }
  // An extent is not 0 where anything is summed.
  bool is_nonzero(Expr e) {
    return values_.is_nonzero(e) ||
           (e.op() == Op::Cast &&
            std::find(extents_.begin(), extents_.end(), e[0]) != extents_.end());
  }

  std::vector<ShiftTerm> expanded(Expr e) {
    if (!is_reduced(e)) return {{false, {{e}}, {}, {}}};
    if (!has_row(e)) return {{false, {}, {{e}}, {}}};
    const std::vector<ShiftTerm> whole = {{false, {}, {}, e}};
    if (++steps_ > kMaxSteps || e.dtype() != DType::F32) return whole;
    const auto or_whole = [&](std::vector<ShiftTerm> terms) {
      return terms.empty() || terms.size() > kMaxShiftTerms ? whole : terms;
    };
    switch (e.op()) {
      case Op::Neg:
        return negated(expanded(e[0]));
      case Op::Add:
      case Op::Sub: {
        std::vector<ShiftTerm> terms = expanded(e[0]);
        for (ShiftTerm& t : expanded(e[1])) {
          t.is_negative ^= e.op() == Op::Sub;
          terms.push_back(std::move(t));
        }
        return or_whole(joined(terms, pool_));
      }
      case Op::Mul:
        return or_whole(times(expanded(e[0]), expanded(e[1]), pool_));
      case Op::Div: {
        if (is_reduced(e[1]) && has_row(e[1])) return whole;
        std::vector<ShiftTerm> terms = expanded(e[0]);
        for (ShiftTerm& t : terms) (is_reduced(e[1]) ? t.along : t.row).push_back({e[1], true});
        return terms;
      }
      case Op::Read: {
        const Expr body = written_out(e);
        if (!body) return whole;
        std::vector<ShiftTerm> terms = expanded(body);
        const ShiftTerm& t = terms[0];
        const bool is_element = terms.size() == 1 && t.row.empty() && t.along.empty();
        return is_element ? whole : terms;
      }
      default:
        return whole;
    }
  }

  // The sum of this, which may be null, times the operand.
  Expr sum_of(Expr value, Expr operand) {
    std::vector<Expr> args(reduction_.args().begin(), reduction_.args().end());
    args[0] = value ? pool_.binary(Op::Mul, value, operand) : operand;
    return pool_.with_args(reduction_, args);
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  bool is_exact_;
  TensorNames names_;
  Equations equations_;
  KnownValues values_;
  Expr reduction_;
  std::vector<Expr> reduced_;
  std::vector<Expr> extents_;
  std::vector<Expr> rows_;  // axes of the result that the operand lacks
  int steps_ = 0;
};

}  // namespace

std::optional<ir::Program> distribute_row_shift(const ir::Program& program,
                                                ir::PassContext& context) {
  Taking taking(program, context);
  return map_equations(program, [&](const Let& let, std::vector<Let>& before) {
    return taking.equation(let, before);
  });
}

}  // namespace nautilus::spec
