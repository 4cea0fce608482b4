// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/add_apart.h"

#include <fmt/format.h>

#include "decision/choice.h"
#include "ir/operand_width.h"
#include "ir/target_of.h"
#include "target/target.h"
#include "vrtile/names.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using decision::AddPlace;
using ir::Block;
using ir::Name;
using ir::Op;

class Separator {
 public:
  Separator(const ir::Program& program, ir::PassContext& context)
      : matrix_(ir::target_of(program).matrix),
        pool_(context.pool),
        names_(program.body, context.pool),
        choice_(context) {}

  bool is_refused() const { return is_refused_; }

  Block block(const Block& ops, bool is_loop) {
    Block out;
    for (const Op& op : ops) {
      if (const Name n = defined(op)) types_.insert_or_assign(n, type_of(op));
      if (const auto* p = op.get<Par>(); p && p->kind == ParKind::Grid) {
        Block body = p->body;
        choice_.begin(body);
        out.push_back(with_body(op, block(body, false)));
        is_refused_ |= !choice_.end("the kernel has no loop that sums products");
      } else if (const Block* body = body_of(op)) {
        out.push_back(with_body(op, block(*body, is_loop || op.is<For>())));
      } else if (const auto* d = op.get<Dot>(); d && d->acc && is_loop) {
        add(op, *d, out);
      } else {
        out.push_back(op);
      }
    }
    return out;
  }

 private:
  void add(const Op& op, const Dot& dot, Block& out) {
    const ir::DType dtype = types_.at(dot.b).dtype;
    const target::OperandWidth* width = ir::operand_width(matrix_, dtype);
    const bool is_coarse = width && width->apart_depth > 0;
    const auto* asked = choice_.asked();
    if (asked && asked->place == AddPlace::Onto && is_coarse)
      choice_.refuse(fmt::format("the matrix unit adds products of {} too coarsely for long sums",
                                 expr::name(dtype)));
    const bool is_exact = expr::is_int(dtype);
    if (asked && asked->place == AddPlace::Apart && is_exact)
      choice_.refuse(fmt::format("sums of products of {} are exact", expr::name(dtype)));
    if (asked || is_coarse) choice_.took({asked ? asked->place : AddPlace::Apart});
    if (is_exact || (asked ? asked->place == AddPlace::Onto : !is_coarse)) {
      out.push_back(op);
      return;
    }
    const Name step = names_.fresh(fmt::format("{}_step", dot.name.str()));
    out.push_back(ir::make(Dot{step, dot.type, dot.a, dot.b, dot.trans, {}}, op.span()));
    Set sum{dot.name, {}, {}};
    std::vector<ir::Expr> at;
    for (const ir::Expr& extent : dot.type.dims) {
      sum.axes.push_back({names_.fresh("x"), extent});
      at.push_back(pool_.index(sum.axes.back().name));
    }
    sum.value = pool_.binary(expr::Op::Add, pool_.read(dot.acc, dot.type.dtype, at),
                             pool_.read(step, dot.type.dtype, at));
    out.push_back(ir::make(std::move(sum), op.span()));
  }

  const target::Matrix& matrix_;
  expr::ExprPool& pool_;
  Names names_;
  decision::Choice<decision::Add> choice_;
  std::unordered_map<Name, ir::TensorType> types_;
  bool is_refused_ = false;
};

}  // namespace

std::optional<ir::Program> add_apart(const ir::Program& program, ir::PassContext& context) {
  Separator separator(program, context);
  Block body = separator.block(program.body, false);
  if (separator.is_refused()) return std::nullopt;
  return ir::Program{program.level, program.name, std::move(body)};
}

}  // namespace nautilus::vrtile
