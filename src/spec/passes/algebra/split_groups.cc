// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/split_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/bounds/quotient.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "spec/equations.h"
#include "spec/passes/algebra/without_moves.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using GroupOp = expr::Op;

class GroupSplitter {
 public:
  GroupSplitter(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool),
        simplifier_(pool),
        facts_(ir::facts_of(program, pool)),
        names_(program, pool) {}

  Let equation(const Let& let, std::vector<Let>& before) {
    Let out = map_body(let, pool_, [&](Expr r) { return reduction(let, r, before); });
    if (!before.empty()) split_.insert(let.name);
    return out;
  }

  // Equations of which some sum is one of groups now.
  const std::unordered_set<ir::Name>& split() const { return split_; }

  // Values computed from groups stay in groups, because they are not outputs. `is_kept`: the
  // equation stays unchanged.
  Let kept_in_groups(const Let& let, bool is_kept) {
    expr::Facts facts = facts_;
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    Let out = map_reads(let, pool_, [&](Expr read) { return of_grouped(read); });
    out.body = out.body == let.body ? let.body : simplifier_.simplify(out.body, &facts);
    for (size_t k = 0; !is_kept && k < out.axes.size(); ++k) {
      const Expr axis = pool_.index(out.axes[k].name);
      const Expr size = read_by_groups(axis, out.body);
      const Expr groups = size ? expr::exact_quotient(pool_, out.axes[k].extent, size) : Expr();
      if (!groups) continue;
      in_groups(out, k, size, groups);
      grouped_.emplace(let.name,
                       Grouped{names_.fresh(fmt::format("{}.groups", let.name.str())), k, size});
      out.name = grouped_.at(let.name).name;
      break;
    }
    return out;
  }

 private:
  // A tensor with its dimension `k` split into groups of this many.
  struct Grouped {
    ir::Name name;
    size_t k = 0;
    Expr size;
  };

  Expr of_grouped(Expr read) {
    const auto found = grouped_.find(read.name());
    if (found == grouped_.end()) return read;
    const auto& [name, k, size] = found->second;
    std::vector<Expr> at(read.args().begin(), read.args().end());
    const Expr index = at[k];
    at[k] = pool_.binary(GroupOp::FloorDiv, index, size);
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(k) + 1,
              pool_.binary(GroupOp::Mod, index, size));
    return pool_.read(name, read.dtype(), at);
  }

  // The n of an element at `axis / n, axis % n`; null if there is none.
  static Expr read_by_groups(Expr axis, Expr body) {
    Expr size;
    expr::for_each(body, [&](Expr read) {
      for (size_t k = 0; read.op() == GroupOp::Read && k + 1 < read.args().size(); ++k) {
        const Expr group = read[k];
        const Expr place = read[k + 1];
        if (group.op() == GroupOp::FloorDiv && place.op() == GroupOp::Mod && group[0] == axis &&
            place[0] == axis && group[1] == place[1])
          size = group[1];
      }
    });
    return size;
  }

  // The equation with two axes instead of its axis `k`.
  void in_groups(Let& let, size_t k, Expr size, Expr groups) {
    const std::string stem(let.axes[k].name.str());
    const Expr axis = pool_.index(let.axes[k].name);
    const Expr group = pool_.index(fmt::format("{}.group", stem));
    const Expr place = pool_.index(fmt::format("{}.place", stem));
    let.axes[k] = {group.name(), groups};
    let.axes.insert(let.axes.begin() + static_cast<std::ptrdiff_t>(k) + 1, {place.name(), size});
    let.body = expr::substitute(pool_, let.body,
                                {{pool_.binary(GroupOp::FloorDiv, axis, size), group},
                                 {pool_.binary(GroupOp::Mod, axis, size), place}});
    const Expr whole = pool_.binary(GroupOp::Add, pool_.binary(GroupOp::Mul, group, size), place);
    let.body = expr::substitute(pool_, let.body, {{axis, whole}});
    expr::Facts facts = facts_;
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    let.body = simplifier_.simplify(let.body, &facts);
  }

  Expr reduction(const Let& let, Expr r, std::vector<Let>& before) {
    if (r.op() != GroupOp::Reduce || r.reducer() != expr::Reducer::Sum || r.init() ||
        !expr::is_float(r.dtype()) || expr::has_reduce(r.body()) || !is_of_axes(let, r, pool_) ||
        is_product(r, result_axes(let, pool_)))
      return r;
    for (size_t k = 0; k < let.axes.size(); ++k) {
      const Expr axis = pool_.index(let.axes[k].name);
      const Expr size = group_size(axis, r, let);
      const Expr groups = size ? expr::exact_quotient(pool_, let.axes[k].extent, size) : Expr();
      if (!groups || groups.is_int(1)) continue;
      if (const Expr e = of_groups(let, r, k, size, groups, before)) return e;
    }
    return r;
  }

  static bool is_product(Expr r, const std::vector<Expr>& axes) {
    const Expr body = r.body().op() == GroupOp::Select ? r.body()[1] : r.body();
    return algebra::is_contraction(algebra::factors(body), axes);
  }

  // The one divisor by which the axis is read; null if there is none, or several.
  Expr group_size(Expr axis, Expr r, const Let& let) {
    Expr size;
    bool is_clear = true;
    const auto axes = all_axes(let, pool_);
    expr::for_each(r, [&](Expr e) {
      if ((e.op() != GroupOp::FloorDiv && e.op() != GroupOp::Mod) || !expr::depends_on(e, axis))
        return;
      const bool is_size =
          e[1].op() == GroupOp::IntConst || (e[1].op() == GroupOp::Var && !axes.contains(e[1]));
      is_clear &= e[0] == axis && is_size && (!size || size == e[1]);
      size = e[1];
    });
    return is_clear ? size : Expr();
  }

  // The element of a new sum with axis `k` in groups; null if that is not a contraction either.
  Expr of_groups(const Let& let, Expr r, size_t k, Expr size, Expr groups,
                 std::vector<Let>& before) {
    const Expr axis = pool_.index(let.axes[k].name);
    Let out{{}, let.axes, r.dtype(), r};
    in_groups(out, k, size, groups);
    if (!is_product(out.body, result_axes(out, pool_))) return {};
    out.name = names_.fresh(fmt::format("{}.groups", let.name.str()));
    before.push_back(out);
    return expr::substitute(
        pool_, element(out, pool_),
        {{pool_.index(out.axes[k].name), pool_.binary(GroupOp::FloorDiv, axis, size)},
         {pool_.index(out.axes[k + 1].name), pool_.binary(GroupOp::Mod, axis, size)}});
  }

  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  expr::Facts facts_;
  TensorNames names_;
  std::unordered_set<ir::Name> split_;
  std::unordered_map<ir::Name, Grouped> grouped_;
};

}  // namespace

std::optional<ir::Program> split_groups(const ir::Program& program, ir::PassContext& context) {
  GroupSplitter splitter(program, context.pool);
  const ir::Program out = map_equations(program, [&](const Let& let, std::vector<Let>& before) {
    return splitter.equation(let, before);
  });
  if (splitter.split().empty()) return program;
  const ir::Program read = without_moves(out, splitter.split(), context.pool);
  const auto handed_over = output_set(read);
  return map_equations(read, [&](const Let& let) {
    const bool is_kept = handed_over.contains(let.name) || is_operand(read, let.name, context.pool);
    return splitter.kept_in_groups(let, is_kept);
  });
}

}  // namespace nautilus::spec
