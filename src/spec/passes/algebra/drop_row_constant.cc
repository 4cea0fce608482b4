// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/drop_row_constant.h"

#include <algorithm>
#include <map>

#include "spec/equations.h"
#include "spec/facts/ranges.h"
#include "spec/facts/reduced_by.h"
#include "spec/facts/row_terms.h"
#include "spec/facts/values.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;
using expr::Reducer;

// Where the extreme is infinite, the term is not part of the value.
struct Except {
  Expr extreme;
  Expr infinity;
  friend bool operator==(const Except&, const Except&) = default;
};

// rest + term
struct Shifted {
  Expr rest;  // null: 0
  Expr term;  // null: 0
  std::optional<Except> except;
};

// Follows one term from the equation that adds it to the end of the program.
class Follower {
 public:
  Follower(ir::PassContext& context, const ir::Program& program, size_t level)
      : pool_(context.pool),
        outputs_(output_set(program)),
        facts_(ir::facts_of(program, context.pool)),
        types_(tensor_types(program)),
        level_(level),
        values_(program, context.pool, equations_) {}

  // The program without the term in equation `origin`; nothing if that gains nothing.
  std::optional<ir::Program> run(const ir::Program& program, ir::Name origin, Expr term,
                                 bool may_be_mask) {
    may_be_mask_ = may_be_mask;
    ir::Program out = map_equations(program, [&](const Let& let) {
      const Let now = is_refused_ ? let : equation(let, let.name == origin ? term : Expr());
      equations_.insert_or_assign(now.name, now);
      return now;
    });
    if (is_refused_) return std::nullopt;
    return out;
  }

 private:
  struct Known {
    Expr term;
    std::optional<Except> except;
  };

  Let equation(const Let& let, Expr origin_term) {
    wanted_.clear();
    done_.clear();
    extents_.clear();
    if (origin_term) wanted_.insert(origin_term);
    bool reads_shifted = false;
    expr::for_each(let.body, [&](Expr e) {
      if (e.op() == Op::Reduce) {
        for (size_t k = 0; k < e.axis_count(); ++k) extents_[e.axis(k)] = e.extent(k);
      }
      if (e.op() != Op::Read || !shifts_.contains(e.name())) return;
      reads_shifted = true;
      // The term that cancels it may be in the same expression.
      const Expr term = at(e, shifts_.at(e.name()).term);
      wanted_.insert(term.op() == Op::Neg ? term[0] : term);
    });
    if (!origin_term && !reads_shifted) return let;
    for (const ir::Axis& a : let.axes) extents_[pool_.index(a.name)] = a.extent;
    let_ = &let;
    axes_ = all_axes(let, pool_);
    inner_ = facts_;
    for (const auto& [axis, extent] : extents_) inner_.add_axis(axis, extent);
    Let out = let;
    Shifted s = split(let.body);
    const bool may_carry = !outputs_.contains(let.name) && let.body.dtype() == let.dtype;
    if (s.term && may_carry) {
      shifts_.insert_or_assign(let.name, Known{s.term, s.except});
      axes_of_.insert_or_assign(let.name, let.axes);
      out.body = rest_of(s);
    } else {
      out.body = plain(s, false);
    }
    return out;
  }

  // An expression over the axes of a tensor, at the indices of a read of it.
  Expr at(Expr read, Expr e) {
    if (!e) return e;
    const ir::Axes& axes = axes_of_.at(read.name());
    expr::Substitution map;
    for (size_t k = 0; k < axes.size(); ++k) map.emplace(pool_.index(axes[k].name), read[k]);
    return expr::substitute(pool_, e, map);
  }

  Expr rest_of(const Shifted& s) { return s.rest ? s.rest : pool_.constant(0, s.term.dtype()); }

  // The value itself. Adding the term again is work, which is refused where there was as much.
  Expr plain(const Shifted& s, bool is_inside) {
    if (!s.term) return s.rest;
    if (!s.rest && !s.except) return s.term;  // as it was written
    if (is_inside || let_->axes.size() >= level_) is_refused_ = true;
    if (!s.except) return pool_.binary(Op::Add, s.rest, s.term);
    const Expr is_out = pool_.binary(Op::Eq, s.except->extreme, s.except->infinity);
    const Expr zero = pool_.constant(0, s.term.dtype());
    return pool_.binary(Op::Add, rest_of(s), pool_.select(is_out, zero, s.term));
  }

  Shifted split(Expr e) {
    if (const auto it = done_.find(e); it != done_.end()) return it->second;
    Shifted s = new_split(e);
    done_.emplace(e, s);
    return s;
  }

  Shifted new_split(Expr e) {
    if (wanted_.contains(e)) return {{}, e, {}};
    if (e.op() == Op::Read && shifts_.contains(e.name())) {
      const Known& known = shifts_.at(e.name());
      for (Expr index : e.args()) {
        expr::for_each(index, [&](Expr x) {
          if (x.op() == Op::Read) is_refused_ |= shifts_.contains(x.name());
        });
      }
      Shifted s{e, at(e, known.term), {}};
      if (known.except) s.except = Except{at(e, known.except->extreme), known.except->infinity};
      return s;
    }
    if (e.args().empty()) return {e, {}, {}};
    switch (e.op()) {
      case Op::Neg: {
        const Shifted a = split(e[0]);
        if (!a.term) return {rebuilt(e, {a}), {}, {}};
        return {a.rest ? pool_.unary(Op::Neg, a.rest) : Expr(), pool_.unary(Op::Neg, a.term),
                a.except};
      }
      case Op::Add:
      case Op::Sub:
        return sum(e, split(e[0]), split(e[1]));
      case Op::Mul:
      case Op::Div: {
        const size_t k = split(e[0]).term ? 0 : 1;
        const Shifted a = split(e[k]);
        const Shifted b = split(e[1 - k]);
        const bool is_scaled = a.term && !b.term && values_.is_finite(b.rest) &&
                               (a.rest || algebra::is_scalar(b.rest, axes_)) &&
                               (e.op() == Op::Mul || (k == 0 && values_.is_nonzero(b.rest)));
        if (!is_scaled) return unchanged(e);
        const auto times = [&](Expr x) {
          if (!x) return x;
          return k == 0 ? pool_.binary(e.op(), x, b.rest) : pool_.binary(e.op(), b.rest, x);
        };
        return {times(a.rest), times(a.term), a.except};
      }
      case Op::Max:
      case Op::Min:
      case Op::Select:
        return choice(e);
      case Op::Reduce:
        return reduction(e);
      default:
        if (expr::is_comparison(e.op()) && is_float(e[0].dtype())) return comparison(e);
        return unchanged(e);
    }
  }

  // Operands with their terms, which are not part of what follows.
  Shifted unchanged(Expr e) {
    std::vector<Shifted> args;
    for (Expr a : e.args()) args.push_back(split(a));
    return {rebuilt(e, args), {}, {}};
  }

  Expr rebuilt(Expr e, const std::vector<Shifted>& args) {
    std::vector<Expr> values;
    for (const Shifted& a : args) values.push_back(plain(a, inside_ > 0));
    return std::equal(values.begin(), values.end(), e.args().begin(), e.args().end())
               ? e
               : pool_.with_args(e, values);
  }

  Shifted sum(Expr e, const Shifted& a, const Shifted& b) {
    if (!a.term && !b.term) return {rebuilt(e, {a, b}), {}, {}};
    const bool is_sub = e.op() == Op::Sub;
    const auto rests = [&]() -> Expr {
      if (a.rest && b.rest) return pool_.binary(e.op(), a.rest, b.rest);
      if (a.rest || !b.rest) return a.rest;
      return is_sub ? pool_.unary(Op::Neg, b.rest) : b.rest;
    };
    if (!a.term) return {rests(), is_sub ? pool_.unary(Op::Neg, b.term) : b.term, b.except};
    if (!b.term) return {rests(), a.term, a.except};
    const bool cancels =
        is_sub ? a.term == b.term
               : a.term == pool_.unary(Op::Neg, b.term) || b.term == pool_.unary(Op::Neg, a.term);
    // Where one of them is without the term, it may not matter to the other.
    const bool is_alike = a.except == b.except ||
                          (!a.except && is_infinite_where(a.rest, *b.except)) ||
                          (!b.except && is_infinite_where(b.rest, *a.except));
    if (cancels && is_alike) {
      const Expr rest = rests();
      return {rest ? rest : pool_.constant(0, e.dtype()), {}, {}};
    }
    if (!cancels && a.except == b.except)
      return {rests(), pool_.binary(e.op(), a.term, b.term), a.except};
    return {rebuilt(e, {a, b}), {}, {}};
  }

  static bool has_same_term(const Shifted& a, const Shifted& b) {
    return a.term && a.term == b.term && a.except == b.except && a.rest && b.rest;
  }

  // Outside the condition around it the term must still be readable.
  bool is_safe(Expr term) { return are_inside(term, types_, inner_, pool_); }

  // Outside the reduction too, which may have no terms.
  bool is_safe_without(Expr term, Expr reduction) {
    expr::Facts outer = facts_;
    for (const ir::Axis& a : let_->axes) outer.add_axis(pool_.index(a.name), a.extent);
    return are_inside_without_terms(term, reduction, types_, outer, pool_);
  }

  // A finite term changes neither an infinite value nor an order.
  Shifted choice(Expr e) {
    const size_t first = e.op() == Op::Select ? 1 : 0;
    const Shifted a = split(e[first]);
    const Shifted b = split(e[first + 1]);
    const auto chosen = [&](Expr x, Expr y) {
      if (e.op() != Op::Select) return pool_.binary(e.op(), x, y);
      return pool_.select(plain(split(e[0]), inside_ > 0), x, y);
    };
    const Expr term = a.term ? a.term : b.term;
    if (e.op() == Op::Select && term && !is_safe(term)) return unchanged(e);
    if (has_same_term(a, b)) return {chosen(a.rest, b.rest), a.term, a.except};
    if (a.term && !a.except && is_infinity(e[first + 1]))
      return {chosen(rest_of(a), b.rest), a.term, {}};
    if (b.term && !b.except && is_infinity(e[first]))
      return {chosen(a.rest, rest_of(b)), b.term, {}};
    if (e.op() == Op::Select) {
      if (const auto guarded = guarded_choice(e, a, b)) return *guarded;
    }
    return unchanged(e);
  }

  // where(m == -inf, x, m): only the second has the term.
  std::optional<Shifted> guarded_choice(Expr e, const Shifted& a, const Shifted& b) {
    const Expr c = e[0];
    if ((c.op() != Op::Eq && c.op() != Op::Ne) || !is_infinity(c[1])) return std::nullopt;
    const Shifted& with = c.op() == Op::Eq ? b : a;
    const Shifted& without = c.op() == Op::Eq ? a : b;
    const Shifted extreme = split(c[0]);
    if (!with.term || without.term || with.except || extreme.except || !extreme.rest || !with.rest)
      return std::nullopt;
    is_refused_ |= may_be_mask_;
    const Expr condition = pool_.binary(c.op(), extreme.rest, c[1]);
    return Shifted{pool_.select(condition, a.rest, b.rest), with.term, Except{extreme.rest, c[1]}};
  }

  Shifted comparison(Expr e) {
    const Shifted a = split(e[0]);
    const Shifted b = split(e[1]);
    const bool is_free = has_same_term(a, b) ||
                         (a.term && !a.except && a.rest && is_infinity(e[1])) ||
                         (b.term && !b.except && b.rest && is_infinity(e[0]));
    if (!is_free) return unchanged(e);
    // Rows of only -inf compare in the same way with infinities and with each other.
    is_refused_ |= may_be_mask_;
    const Expr args[] = {a.rest, b.rest};
    return {pool_.with_args(e, args), {}, {}};
  }

  // A term without the reduced axes leaves maxima and minima, and does not move their places.
  Shifted reduction(Expr e) {
    ++inside_;
    const Shifted body = split(e.body());
    const bool is_extreme = e.reducer() == Reducer::Max || e.reducer() == Reducer::Min;
    bool leaves = body.term && body.rest && !body.except && !e.init() &&
                  (is_extreme || expr::is_arg(e.reducer()));
    for (size_t k = 0; leaves && k < e.axis_count(); ++k)
      leaves = !expr::depends_on(body.term, e.axis(k));
    leaves = leaves && is_safe_without(body.term, e);
    // In a row that is -inf altogether the first element is the largest.
    leaves = leaves && (is_extreme || !may_be_mask_);
    std::vector<Expr> args(e.args().begin(), e.args().end());
    args[0] = leaves ? body.rest : plain(body, true);
    for (size_t k = 1; k < args.size(); ++k) args[k] = plain(split(args[k]), true);
    --inside_;
    const bool is_same = std::equal(args.begin(), args.end(), e.args().begin(), e.args().end());
    return {is_same ? e : pool_.with_args(e, args), leaves && is_extreme ? body.term : Expr(), {}};
  }

  // Whether e is infinite (or NaN) wherever the extreme is: a value of which it is the extreme, or
  // what products and finite terms make of one.
  bool is_infinite_where(Expr e, const Except& except) {
    if (!e) return false;
    // The extreme is a maximum and -inf, or a minimum and inf.
    const Reducer reducer = except.infinity.number() < 0 ? Reducer::Max : Reducer::Min;
    if (is_reduced_by(except.extreme, reducer, e, equations_, extents_, pool_)) return true;
    switch (e.op()) {
      case Op::Neg:
        return is_infinite_where(e[0], except);
      case Op::Mul:
        return is_infinite_where(e[0], except) || is_infinite_where(e[1], except);
      case Op::Div:
        return is_infinite_where(e[0], except);
      case Op::Add:
      case Op::Sub:
        return (is_infinite_where(e[0], except) && values_.is_finite(e[1])) ||
               (is_infinite_where(e[1], except) && values_.is_finite(e[0]));
      default:
        return false;
    }
  }

  expr::ExprPool& pool_;
  std::unordered_set<ir::Name> outputs_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  size_t level_;  // axes at which the term was added
  Equations equations_;
  KnownValues values_;
  std::unordered_map<ir::Name, Known> shifts_;  // tensors that have lost it, over their own axes
  std::unordered_map<ir::Name, ir::Axes> axes_of_;
  std::unordered_set<Expr> wanted_;  // terms that the open equation may find written out
  std::unordered_map<Expr, Shifted> done_;
  std::unordered_map<Expr, Expr> extents_;  // of the axes of the open equation
  std::unordered_set<Expr> axes_;
  expr::Facts inner_;  // with those axes
  const Let* let_ = nullptr;
  int inside_ = 0;            // reductions around what is split
  bool may_be_mask_ = false;  // -inf, where the program looks for it
  bool is_refused_ = false;
};

// Terms that are tried; programs that generate sums of hundreds of terms gain nothing by it.
constexpr int kMaxTerms = 32;

// The program without the first term of the equation that can go; nothing if all stay.
std::optional<ir::Program> without_one(const ir::Program& program, ir::Name name,
                                       std::unordered_set<Expr>& refused, int& tried,
                                       ir::PassContext& context) {
  const Let* let = find_equation(program, name);
  if (!let || !is_float(let->dtype)) return std::nullopt;
  RowTerms candidates(program, context.pool);
  const auto [terms, level] = candidates.of(*let);
  for (Expr term : terms) {
    if (refused.contains(term) || ++tried > kMaxTerms) continue;
    const bool may_be_mask = candidates.may_be_mask(term);
    auto next = Follower(context, program, level).run(program, name, term, may_be_mask);
    if (next) return next;
    refused.insert(term);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ir::Program> drop_row_constant(const ir::Program& program, ir::PassContext& context) {
  ir::Program current = program;
  int tried = 0;
  for (const ir::Op& op : program.body) {
    if (!op.is<Let>()) continue;
    const ir::Name name = op.as<Let>().name;
    std::unordered_set<Expr> refused;
    bool is_changed = false;
    while (auto next = without_one(current, name, refused, tried, context)) {
      current = *std::move(next);
      is_changed = true;
    }
    // The rest of a sum may be an existing tensor.
    if (is_changed) current = without_copy(current, name, context.pool);
  }
  return current;
}

}  // namespace nautilus::spec
