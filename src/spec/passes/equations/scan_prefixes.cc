// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/scan_prefixes.h"

#include <fmt/format.h>

#include "expr/scalar_ops.h"
#include "spec/equations.h"
#include "spec/facts/prefix.h"
#include "spec/facts/ranges.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

class PrefixScans {
 public:
  PrefixScans(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool),
        facts_(ir::facts_of(program, pool)),
        types_(tensor_types(program)),
        names_(program, pool),
        scanned_(scanned_tensors(program)) {}

  // The equations instead of this one, or nothing.
  bool scan(const Let& let, diag::Span span, ir::Block& out) {
    const auto prefix = scanned_.contains(let.name) ? std::nullopt : prefix_of(let, pool_);
    if (!prefix || is_arg(let.body.reducer()) || !is_everywhere(let, *prefix)) return false;
    // A count costs little compared with the sums of the kernel that needs it.
    if (expr::tensors_read(prefix->body).empty()) return false;
    const ir::Axis own = let.axes[prefix->axis];
    const ir::Axis terms{let.body.axis(0).name(), let.body.extent(0)};
    const bool is_same = own.extent == terms.extent;
    const bool is_before = prefix->offset == (prefix->is_up ? -1 : 1);
    if (is_same && (prefix->offset == 0 || is_before)) {
      add(let, *prefix, own, is_before, span, out);
      return true;
    }
    Let upto = let;
    upto.axes[prefix->axis] = terms;
    upto.name = names_.fresh(fmt::format("{}.{}", let.name.str(), prefix->is_up ? "upto" : "rest"));
    add(upto, *prefix, terms, false, span, out);
    out.push_back(ir::make(reader(let, *prefix, terms, is_same, upto.name), span));
    return true;
  }

 private:
  // Whether the terms may be computed whatever the bound says.
  bool is_everywhere(const Let& let, const Prefix& prefix) {
    expr::Facts facts = facts_;
    for (size_t k = 0; k < let.axes.size(); ++k) {
      if (k != prefix.axis) facts.add_axis(pool_.index(let.axes[k].name), let.axes[k].extent);
    }
    facts.add_axis(let.body.axis(0), let.body.extent(0));
    return are_inside(prefix.body, types_, facts, pool_);
  }

  Expr none(Expr r) {
    const expr::DType dtype = r.dtype();
    const expr::Value v = expr::identity(r.reducer(), dtype);
    return is_float(dtype)              ? pool_.floating(v.f, dtype)
           : dtype == expr::DType::Bool ? pool_.boolean(v.i != 0)
                                        : pool_.integer(v.i, dtype);
  }

  Expr first(const Let& let) {
    const Expr r = let.body;
    if (!r.init()) return none(r);
    const bool is_extreme = r.reducer() == expr::Reducer::Max || r.reducer() == expr::Reducer::Min;
    // One that is NaN is ignored, as any operand of an extreme.
    return is_extreme ? pool_.binary(expr::combiner(r.reducer()), r.init(), none(r)) : r.init();
  }

  // What a sum of the elements before a step adds in this step: the term of the previous step, if
  // there is one.
  Expr term_before(const Let& let, const Prefix& prefix, Expr before, Expr is_step) {
    return pool_.select(is_step, expr::substitute(pool_, prefix.body, {{let.body.axis(0), before}}),
                        none(let.body));
  }

  // `is_before`: of the elements before each step, without its own.
  void add(const Let& let, const Prefix& prefix, const ir::Axis& steps, bool is_before,
           diag::Span span, ir::Block& out) {
    Let scan = let;
    const ir::Name name = let.name;
    const Expr t = pool_.index(steps.name);
    std::vector<Expr> before = result_axes(scan, pool_);
    before[prefix.axis] = pool_.binary(Op::Add, t, pool_.integer(prefix.is_up ? -1 : 1));
    const Expr is_step = prefix.is_up ? pool_.binary(Op::Ge, t, pool_.integer(1))
                                      : pool_.binary(Op::Lt, before[prefix.axis], steps.extent);
    const Expr state = pool_.select(is_step, pool_.read(name, scan.dtype, before), first(let));
    scan.body =
        pool_.binary(expr::combiner(let.body.reducer()), state,
                     is_before ? term_before(let, prefix, before[prefix.axis], is_step)
                               : expr::substitute(pool_, prefix.body, {{let.body.axis(0), t}}));
    const State declared{name, scan.type(), static_cast<int64_t>(prefix.axis),
                         prefix.is_up ? Direction::Up : Direction::Down};
    types_.insert_or_assign(std::string(name.str()), scan.type());
    out.push_back(ir::make(declared, span));
    out.push_back(ir::make(std::move(scan), span));
  }

  // The equation as a read of the scan at its bound, inside of which it stays.
  Let reader(const Let& let, const Prefix& prefix, const ir::Axis& terms, bool is_same,
             ir::Name scan) {
    const Expr own = pool_.index(let.axes[prefix.axis].name);
    const Expr at =
        prefix.offset == 0 ? own : pool_.binary(Op::Add, own, pool_.integer(prefix.offset));
    const Expr zero = pool_.integer(0);
    const Expr last = pool_.binary(Op::Add, terms.extent, pool_.integer(-1));
    const bool is_inside = is_same && (prefix.is_up ? prefix.offset <= 0 : prefix.offset >= 0);
    Expr has_terms =
        prefix.is_up ? pool_.binary(Op::Ge, at, zero) : pool_.binary(Op::Lt, at, terms.extent);
    Expr index = at;
    if (!is_inside) {
      has_terms = pool_.binary(Op::And, has_terms, pool_.binary(Op::Gt, terms.extent, zero));
      index = prefix.is_up ? pool_.binary(Op::Min, at, last) : pool_.binary(Op::Max, at, zero);
    }
    std::vector<Expr> indices = result_axes(let, pool_);
    indices[prefix.axis] = index;
    Let out = let;
    out.body = pool_.select(has_terms, pool_.read(scan, let.dtype, indices), first(let));
    return out;
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
  std::unordered_set<ir::Name> scanned_;
};

}  // namespace

std::optional<ir::Program> scan_prefixes(const ir::Program& program, ir::PassContext& context) {
  PrefixScans scans(program, context.pool);
  ir::Program out{program.level, program.name, {}};
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let || !scans.scan(*let, op.span(), out.body)) out.body.push_back(op);
  }
  return out;
}

}  // namespace nautilus::spec
