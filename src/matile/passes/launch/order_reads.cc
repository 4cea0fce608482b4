// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/launch/order_reads.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/passes/launch/last_choice.h"
#include "matile/point_layout.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using decision::ReadOrder;

Names tensors_of(const ir::Program& program) {
  Names out;
  for (const ir::Op& op : program.body) {
    if (const auto* tensor = op.get<Tensor>()) out.emplace(tensor->name.str());
  }
  return out;
}

// Whether threads read elements of tensors, and not the copy engine alone.
bool reads_elements(const Kernel& kernel, const Names& tensors) {
  bool found = false;
  ir::for_each_op(kernel.body, [&](const ir::Op& op) {
    ir::for_each_expr(op, [&](ir::Expr value) {
      expr::for_each(value, [&](ir::Expr e) {
        found |= e.op() == expr::Op::Read && tensors.contains(e.name().str());
      });
    });
  });
  return found;
}

// Tensors that all rows share: a line (`shared X early`) says where they are loaded.
bool loads_shared(const Kernel& kernel) {
  bool found = false;
  ir::for_each_op(kernel.body, [&](const ir::Op& op) {
    const auto* load = op.get<Load>();
    found |= load && load->reuse == Reuse::Often;
  });
  return found;
}

// Of a kernel that reduces, without loading roles: elements that no tile holds, of a tensor along
// the axes of register work. Each thread reads as many of them as it has registers of the tile, and
// would keep them from the reduction on.
bool reads_along_tiles(const Kernel& kernel, const Names& tensors) {
  bool found = false;
  bool reduces = false;
  for (const ir::Op& op : kernel.body) {
    if (op.is<Ring>()) return false;
  }
  const auto look = [&](ir::Expr value, const ir::Axes& axes) {
    expr::for_each(value, [&](ir::Expr e) {
      if (e.op() != expr::Op::Read || !tensors.contains(e.name().str())) return;
      for (const expr::Expr v : expr::free_vars(e)) {
        found |= std::any_of(axes.begin(), axes.end(),
                             [&](const ir::Axis& a) { return a.name == v.name(); });
      }
    });
  };
  ir::for_each_op(kernel.body, [&](const ir::Op& op) {
    if (const auto* set = op.get<Set>()) look(set->value, set->axes);
    if (const auto* put = op.get<Put>()) look(put->value, put->axes);
    const auto* fold = op.get<Fold>();
    if (!fold) return;
    reduces = true;
    ir::Axes axes = fold->axes;
    expr::for_each(fold->value, [&](ir::Expr e) {
      for (size_t k = 0; e.op() == expr::Op::Reduce && k < e.axis_count(); ++k)
        axes.push_back({e.axis(k).name(), e.extent(k)});
    });
    look(fold->value, axes);
  });
  return found && reduces;
}

bool has_patch(const Kernel& kernel) { return point_layout(kernel).patch.has_value(); }

}  // namespace

std::optional<ir::Program> order_reads(const ir::Program& program, ir::PassContext& context) {
  const Names tensors = tensors_of(program);
  return map_kernels(
      program, KernelForm::Final, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel out = kernel;
        LastChoice<decision::Reads> choice(out, context);
        const bool is_bound = kernel.begins == Begins::Early;
        if (!is_bound && reads_elements(kernel, tensors)) {
          const bool is_tight =
              has_patch(out) || loads_shared(out) || reads_along_tiles(out, tensors);
          const ReadOrder rule = is_tight ? ReadOrder::Ordered : ReadOrder::Free;
          out.reads = choice.asked() ? choice.asked()->order : rule;
          choice.took({out.reads, {}});
        }
        if (!choice.end(is_bound ? "the kernel begins early: its reads stay behind its wait"
                                 : "its threads read no elements of tensors"))
          return std::nullopt;
        return out;
      });
}

}  // namespace nautilus::matile
