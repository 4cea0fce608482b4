// SPDX-License-Identifier: Apache-2.0
// Equations for passes: walks over those of a program, and questions about one and its tensor.
#pragma once

#include <set>
#include <type_traits>
#include <unordered_set>

#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {

// The program with `f(let)` in place of every equation, or nothing where `f` gives no value. A
// second parameter of `f`, `std::vector<Let>& before`, receives equations to insert before this
// one.
template <class F>
ir::Program map_equations(const ir::Program& program, F&& f) {
  ir::Program out{program.level, program.name, {}};
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) {
      out.body.push_back(op);
      continue;
    }
    std::vector<Let> before;
    std::optional<Let> changed;
    if constexpr (std::is_invocable_v<F&, const Let&, std::vector<Let>&>)
      changed = f(*let, before);
    else
      changed = f(*let);
    for (Let& l : before) out.body.push_back(ir::make(std::move(l), op.span()));
    if (changed) out.body.push_back(ir::make(*std::move(changed), op.span()));
  }
  return out;
}

// The equation with its body rebuilt by `f` (expr::rebuild).
template <class F>
Let map_body(const Let& let, expr::ExprPool& pool, F&& f) {
  Let out = let;
  out.body = expr::rebuild(pool, let.body, std::forward<F>(f));
  return out;
}

// The equation with `f(read)` in place of every read of a tensor.
template <class F>
Let map_reads(const Let& let, expr::ExprPool& pool, F&& f) {
  return map_body(let, pool, [&](ir::Expr e) { return e.op() == expr::Op::Read ? f(e) : e; });
}

// The axes of the tensor.
std::vector<ir::Expr> result_axes(const Let& let, expr::ExprPool& pool);
// The axes of the tensor and of the reductions in the body.
std::unordered_set<ir::Expr> all_axes(const Let& let, expr::ExprPool& pool);

// The tensor's element at the equation's own axes.
ir::Expr element(const Let& let, expr::ExprPool& pool);

// The axes in the memory order of some tensor that the value reads, so that neighbours are read and
// written together; unchanged if no tensor has all of them.
ir::Axes in_order_of_memory(ir::Expr value, ir::Axes axes, expr::ExprPool& pool);

// What a read of the tensor stands for: the body at the indices of the read.
ir::Expr body_at(const Let& let, ir::Expr read, expr::ExprPool& pool);

// Whether e is `pattern` for some values of the axes, which are returned; axes have no value at
// first.
bool is_instance(ir::Expr pattern, ir::Expr e, std::unordered_map<ir::Expr, ir::Expr>& axes);

// The outputs of a program. Other equations are the compiler's own: it may drop them and change
// their values.
std::unordered_set<ir::Name> output_set(const ir::Program& program);

// Null if the tensor has none.
const Let* find_equation(const ir::Program& program, ir::Name name);

// The program without an equation that only copies a whole tensor; its readers read that tensor.
// Unchanged if the equation does more or is an output.
ir::Program without_copy(const ir::Program& program, ir::Name name, expr::ExprPool& pool);

// Names for new tensors of a program: the wished name, with a number appended if it is in use.
// Their flat forms differ, too.
class TensorNames {
 public:
  TensorNames(const ir::Program& program, expr::ExprPool& pool);

  ir::Name fresh(std::string_view wish);

 private:
  expr::ExprPool& pool_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace nautilus::spec
