// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/ranges.h"

#include <fmt/format.h>

#include "expr/print.h"
#include "expr/walk.h"

namespace nautilus::spec {

using diag::Code;
using expr::Expr;
using expr::Facts;
using expr::Op;
using expr::Poly;
using expr::Truth;

namespace {

struct Inside {
  Truth low;
  Truth high;
  bool is_proven() const { return low == Truth::True && high == Truth::True; }
  bool is_refuted() const { return low == Truth::False || high == Truth::False; }
};

Inside inside(Expr index, Expr dim, const Facts& facts, expr::ExprPool& pool) {
  return {facts.prove(pool.binary(Op::Ge, index, pool.integer(0))),
          facts.prove(pool.binary(Op::Lt, index, dim))};
}

class RangeChecker {
 public:
  RangeChecker(const RangeContext& context, expr::ExprPool& pool, diag::Sink& sink)
      : context_(context), pool_(pool), sink_(sink) {}

  bool check(Expr e, const Facts& facts, bool is_guarded) {
    if (!has_read(e)) return true;
    bool ok = true;
    switch (e.op()) {
      case Op::Select: {
        ok = check(e[0], facts, is_guarded);
        Facts then = facts;
        then.assume(e[0]);
        ok = check(e[1], then, true) && ok;
        Facts otherwise = facts;
        otherwise.assume_not(e[0]);
        return check(e[2], otherwise, true) && ok;
      }
      case Op::Reduce: {
        Facts inner = facts;
        for (size_t k = 0; k < e.axis_count(); ++k) inner.add_axis(e.axis(k), e.extent(k));
        ok = check(e.body(), inner, is_guarded);
        return (!e.init() || check(e.init(), facts, is_guarded)) && ok;
      }
      case Op::Read:
        ok = check_read(e, facts, is_guarded);
        break;
      default:
        break;
    }
    for (Expr a : e.args()) ok = check(a, facts, is_guarded) && ok;
    return ok;
  }

 private:
  bool has_read(Expr e) {
    const auto it = has_read_.find(e);
    if (it != has_read_.end()) return it->second;
    bool found = e.op() == Op::Read;
    for (Expr a : e.args()) found |= has_read(a);
    has_read_.emplace(e, found);
    return found;
  }

  bool check_read(Expr read, const Facts& facts, bool is_guarded) {
    const auto type = context_.types.find(std::string(read.name().str()));
    if (type == context_.types.end()) return true;
    for (size_t k = 0; k < read.args().size(); ++k) {
      const Expr index = read[k];
      const Expr dim = type->second.dims[k];
      const Inside where = inside(index, dim, facts, pool_);
      if (where.is_proven()) continue;
      const bool is_gather = !expr::tensors_read(index).empty();
      if (!where.is_refuted() && (is_guarded || is_gather)) continue;
      report(read, k, dim, facts, where);
      return false;
    }
    return true;
  }

  void report(Expr read, size_t k, Expr dim, const Facts& facts, Inside where) {
    const auto it = context_.read_spans.find(read);
    const diag::Span span = it != context_.read_spans.end() ? it->second : context_.fallback;
    const Expr index = read[k];
    const auto poly = Poly::of(index);
    const auto low = poly ? facts.lower(*poly) : std::nullopt;
    const auto high = poly ? facts.upper(*poly) : std::nullopt;
    auto reaches = [&](const std::optional<Poly>& bound, bool is_low) {
      if (!bound || !facts.is_reached(*poly)) return false;
      const auto d = Poly::of(dim);
      const auto beyond = is_low ? add(Poly(-1), *bound, -1)
                          : d    ? add(*bound, *d, -1)
                                 : std::nullopt;
      return beyond && facts.is_nonnegative(*beyond);
    };
    const bool leaves = where.is_refuted() || reaches(low, true) || reaches(high, false);
    auto& d = sink_.report(leaves ? Code::OutOfRange : Code::MayLeave, span,
                           fmt::format("index {} of `{}` {} the tensor", k + 1, read.name().str(),
                                       leaves ? "leaves" : "may leave"));
    const std::string text = expr::to_string(index);
    const std::string extent = expr::to_string(dim);
    if (index.is_const()) {
      d.label(fmt::format("the extent is {}", extent));
      if (!leaves)
        d.with_help(fmt::format("state that it is large enough, `fact {} >= {}`", extent,
                                index.integer() + 1));
      return;
    }
    const bool has_bounds = low && high && !(*low == *high);
    if (has_bounds) {
      const bool is_exact = facts.is_reached(*poly);
      d.label(fmt::format("`{}` {} {} {} {}, the extent is {}", text,
                          is_exact ? "runs from" : "lies between",
                          expr::to_string(expr::to_expr(pool_, *low)), is_exact ? "to" : "and",
                          expr::to_string(expr::to_expr(pool_, *high)), extent));
    } else {
      d.label(fmt::format("nothing bounds `{}`, the extent is {}", text, extent));
    }
    d.with_help(fmt::format("guard the read, `where(0 <= {} and {} < {}, ..., 0)`, or state a fact",
                            text, text, extent));
  }

  const RangeContext& context_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  std::unordered_map<Expr, bool> has_read_;
};

}  // namespace

bool check_ranges(const Let& let, const Facts& facts, const RangeContext& context,
                  expr::ExprPool& pool, diag::Sink& sink) {
  Facts inner = facts;
  for (const ir::Axis& a : let.axes) inner.add_axis(pool.index(a.name), a.extent);
  return RangeChecker(context, pool, sink).check(let.body, inner, false);
}

bool are_equal(Expr a, Expr b, const Facts& facts, expr::ExprPool& pool) {
  return expr::same_index(a, b) || facts.prove(pool.binary(Op::Eq, a, b)) == Truth::True;
}

bool is_inside(Expr read, const ir::TensorType& type, const Facts& facts, expr::ExprPool& pool) {
  for (size_t k = 0; k < read.args().size(); ++k) {
    if (!inside(read[k], type.dims[k], facts, pool).is_proven()) return false;
  }
  return true;
}

bool are_inside(ir::Expr e, const std::map<std::string, ir::TensorType>& types,
                const expr::Facts& facts, expr::ExprPool& pool) {
  bool ok = true;
  expr::for_each(e, [&](ir::Expr x) {
    if (x.op() == expr::Op::Read)
      ok &= is_inside(x, types.at(std::string(x.name().str())), facts, pool);
  });
  return ok;
}

bool are_inside_without_axes(ir::Expr e, const std::map<std::string, ir::TensorType>& types,
                             const expr::Facts& fewer, const expr::Facts& all,
                             expr::ExprPool& pool) {
  bool ok = true;
  expr::for_each(e, [&](ir::Expr x) {
    if (x.op() != expr::Op::Read) return;
    const ir::TensorType& type = types.at(std::string(x.name().str()));
    ok &= is_inside(x, type, fewer, pool) || !is_inside(x, type, all, pool);
  });
  return ok;
}

bool are_inside_without_terms(ir::Expr e, ir::Expr reduction,
                              const std::map<std::string, ir::TensorType>& types,
                              const expr::Facts& outer, expr::ExprPool& pool) {
  expr::Facts inner = outer;
  for (size_t k = 0; k < reduction.axis_count(); ++k)
    inner.add_axis(reduction.axis(k), reduction.extent(k));
  return are_inside_without_axes(e, types, outer, inner, pool);
}

}  // namespace nautilus::spec
