// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/argmax_by_extremes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "expr/position_blocks.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "spec/ops.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Reducer;

class Rewriter {
 public:
  Rewriter(const ir::Program& program, expr::ExprPool& pool)
      : short_row_(ir::target_of(program).algebra.short_row),
        pool_(pool),
        types_(tensor_types(program)),
        program_(program) {
    for (const ir::Op& op : program.body) {
      if (const auto* input = op.get<Input>()) inputs_.insert(std::string(input->name.str()));
    }
  }

  ir::Program run() {
    ir::Program out{program_.level, program_.name, {}};
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      if (let && moved_.contains(let->name.str())) continue;
      if (let) done_.insert(std::string(let->name.str()));
      if (!let || !is_fit(*let)) {
        out.body.push_back(op);
        continue;
      }
      Let copy = *let;
      copy.body = position(*let, out.body);
      out.body.push_back(ir::make(std::move(copy), op.span()));
    }
    return out;
  }

 private:
  // An element of an input, with this axis along memory; also where a condition on integers chooses
  // between it and a constant.
  bool is_stored(Expr e, Expr axis) const {
    if (e.op() == Op::Select) {
      bool has_float = false;
      expr::for_each(e[0], [&](Expr x) { has_float |= is_float(x.dtype()); });
      if (has_float || e[1].is_const() == e[2].is_const()) return false;
      return is_stored(e[e[1].is_const() ? 2 : 1], axis);
    }
    if (e.op() == Op::Cast) e = e[0];
    if (e.op() != Op::Read || !inputs_.contains(e.name().str()) || !is_float(e.dtype()) ||
        e.dtype() == DType::F64 || e.args().empty() || e.args().back() != axis)
      return false;
    return std::none_of(e.args().begin(), e.args().end() - 1,
                        [&](Expr index) { return expr::depends_on(index, axis); });
  }

  bool is_fit(const Let& let) const {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || !expr::is_arg(r.reducer()) || r.axis_count() != 1 ||
        let.axes.empty() || r.body().dtype() != DType::F32)
      return false;
    const bool is_short = r.extent(0).op() == Op::IntConst && r.extent(0).integer() < short_row_;
    return !is_short && is_stored(r.body(), r.axis(0));
  }

  Expr position(const Let& let, ir::Block& before) {
    const Expr r = let.body;
    const Expr x = r.body();
    const Expr axis = r.axis(0);
    const Expr inf = pool_.floating(std::numeric_limits<double>::infinity());
    const Reducer extreme = r.reducer() == Reducer::ArgMax ? Reducer::Max : Reducer::Min;
    const Expr best = equation(let, "best", extreme, x, before);
    const Expr is_best = pool_.binary(Op::Eq, x, best);
    const auto first = [&](std::string_view suffix, Expr condition, Expr number) {
      const Expr value = pool_.select(condition, pool_.cast(DType::F32, number), inf);
      return std::pair(value, equation(let, suffix, Reducer::Min, value, before));
    };
    const Expr block = pool_.integer(expr::kPositionBlock);
    const bool is_long =
        r.extent(0).op() != Op::IntConst || r.extent(0).integer() > expr::kExactPositions;
    const auto [term, near] =
        first("near", is_best, is_long ? pool_.binary(Op::FloorDiv, axis, block) : axis);
    Expr whole = pool_.cast(DType::I64, near);
    if (is_long) {
      const Expr is_near = pool_.binary(Op::Eq, term, near);
      const Expr rest = first("rest", is_near, pool_.binary(Op::Mod, axis, block)).second;
      whole =
          pool_.binary(Op::Add, pool_.binary(Op::Mul, whole, block), pool_.cast(DType::I64, rest));
    }
    return pool_.select(pool_.binary(Op::Eq, near, inf), pool_.integer(-1), whole);
  }

  // Defines a reduction along the row, and reads it.
  Expr equation(const Let& let, std::string_view suffix, Reducer reducer, Expr value,
                ir::Block& before) {
    const Expr axes[] = {let.body.axis(0)};
    const Expr extents[] = {let.body.extent(0)};
    const Expr reduction = pool_.reduce(reducer, value, axes, extents);
    std::vector<Expr> indices;
    for (const ir::Axis& a : let.axes) indices.push_back(pool_.index(a.name));
    if (const Let* other = equal(let, reduction)) {
      if (done_.insert(std::string(other->name.str())).second) {
        moved_.insert(std::string(other->name.str()));
        before.push_back(ir::make(Let(*other)));
      }
      return pool_.read(other->name, DType::F32, indices);
    }
    std::string name = fmt::format("{}.{}", let.name.str(), suffix);
    while (types_.contains(name)) name += "_";
    Let made{pool_.name(name), let.axes, DType::F32, reduction};
    types_.emplace(name, made.type());
    const Expr read = pool_.read(made.name, DType::F32, indices);
    before.push_back(ir::make(std::move(made)));
    return read;
  }

  // An existing equation of the reduction that reads only inputs, so that it may be anywhere.
  const Let* equal(const Let& let, Expr reduction) const {
    for (const ir::Op& op : program_.body) {
      const auto* other = op.get<Let>();
      if (!other || other->body != reduction || !(other->axes == let.axes) ||
          other->dtype != DType::F32)
        continue;
      const auto read = expr::tensors_read(reduction);
      if (std::all_of(read.begin(), read.end(),
                      [&](ir::Name n) { return inputs_.contains(n.str()); }))
        return other;
    }
    return nullptr;
  }

  int64_t short_row_;
  expr::ExprPool& pool_;
  std::map<std::string, ir::TensorType> types_;
  const ir::Program& program_;
  std::set<std::string, std::less<>> inputs_;
  std::set<std::string, std::less<>> done_;   // existing equations
  std::set<std::string, std::less<>> moved_;  // to an earlier place
};

}  // namespace

std::optional<ir::Program> argmax_by_extremes(const ir::Program& program,
                                              ir::PassContext& context) {
  return Rewriter(program, context.pool).run();
}

}  // namespace nautilus::spec
