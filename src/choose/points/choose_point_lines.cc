// SPDX-License-Identifier: Apache-2.0
#include "choose/points/choose_point_lines.h"

#include <algorithm>

#include "choose/points/point_rules.h"
#include "ir/target_of.h"
#include "lower/nest_kernels.h"
#include "lower/points/part_nests.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using decision::Form;
using ir::Op;

// The kernels of points and parts with all of their lines. Nothing if one of those they have was
// refused.
std::optional<ir::Block> complete_kernels(const ir::Program& program, ir::PassContext& context) {
  ir::Block decided;
  ir::PassContext asking{context.pool, context.sink, context.disabled_rules, nullptr, &decided};
  PointRules rules(ir::target_of(program), context.pool);
  lower::ProgramNests state = lower::program_nests(program, context.pool);
  lower::NestKernels kernels(program, state, rules, &rules, asking);
  for (size_t i = 0; i < state.nests.size();) {
    if (!lower::is_grid(state.nests[i])) {
      if (!kernels.skips_rows(i) && !kernels.next(i)) return std::nullopt;
      continue;
    }
    const bool has_last_tile =
        state.nests[i].body[0].as<scalar::For>().combine == scalar::Combine::Last;
    const size_t end =
        has_last_tile
            ? lower::last_tile_nests(state.nests, i, state.locals, state.computed, context.pool).end
            : i;
    i = std::max(end, i + 1);
  }
  std::erase_if(decided, [](const Op& op) {
    return !op.is<decision::Kernel>() || op.as<decision::Kernel>().form == Form::Rows;
  });
  return decided;
}

bool is_same_kernel(const Op& a, const Op& b) {
  const auto* x = a.get<decision::Kernel>();
  const auto* y = b.get<decision::Kernel>();
  return x && y && x->name == y->name && x->form == y->form;
}

}  // namespace

std::optional<ir::Program> choose_point_lines(const ir::Program& program,
                                              ir::PassContext& context) {
  auto complete = complete_kernels(program, context);
  if (!complete) return std::nullopt;
  ir::Program out = program;
  std::erase_if(out.body, [&](const Op& op) {
    return std::any_of(complete->begin(), complete->end(),
                       [&](const Op& kernel) { return is_same_kernel(op, kernel); });
  });
  for (const Op& op : *complete) {
    decision::Kernel kernel = op.as<decision::Kernel>();
    kernel.made = {};
    out.body.push_back(ir::make(std::move(kernel)));
  }
  return out;
}

}  // namespace nautilus::choose
