// SPDX-License-Identifier: Apache-2.0
#include "lower/program_to_matile.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/machine.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "lower/kernel/launch_choice.h"
#include "lower/nest_kernels.h"
#include "lower/points/part_nests.h"
#include "lower/tiles/last_tile.h"
#include "matile/ops.h"
#include "matile/results.h"
#include "scalar/ops.h"

namespace nautilus::lower {
namespace {

using ir::Op;

class Assembler {
 public:
  Assembler(const ir::Program& program, LowerGridNest lower_grid_nest, PointAnswers& rules,
            ir::PassContext& context)
      : program_(program),
        lower_grid_nest_(lower_grid_nest),
        rules_(rules),
        context_(context),
        target_(ir::target_of(program)),
        machine_(ir::machine_name(program, context.pool)),
        state_(program_nests(program, context.pool)) {}

  std::optional<ir::Program> run() {
    ir::Program out;
    out.level = &matile::level();
    out.name = program_.name;
    if (!kernels()) return std::nullopt;
    // A buffer that lives inside one kernel needs no memory.
    const matile::Names used = matile::results_of(state_.kernels, state_.kernels);
    ir::Block temps;
    for (const Op& op : program_.body) {
      const auto* b = op.get<scalar::Buffer>();
      if (!b && is_declaration(op)) out.body.push_back(op);
      if (!b || b->role == scalar::Role::Local) continue;
      const bool is_temp = b->role == scalar::Role::Temp;
      if (is_temp && !used.contains(b->name.str())) continue;
      const auto role = b->role == scalar::Role::Input    ? matile::TensorRole::Input
                        : b->role == scalar::Role::Output ? matile::TensorRole::Output
                                                          : matile::TensorRole::Temp;
      (is_temp && state_.has_sizes ? temps : out.body)
          .push_back(ir::make(matile::Tensor{b->name, b->type, role}, op.span()));
    }
    if (state_.has_sizes || uses_machine()) out.body.push_back(ir::make(matile::Machine{machine_}));
    for (const Op& op : program_.body) {
      if (const auto* s = op.get<ir::Size>())
        out.body.push_back(ir::make(matile::Let{s->name, s->value}, op.span()));
    }
    // Their extents may be computed sizes.
    out.body.insert(out.body.end(), temps.begin(), temps.end());
    for (Op& op : state_.kernels) out.body.push_back(std::move(op));
    return out;
  }

 private:
  bool kernels() {
    NestKernels others(program_, state_, rules_, nullptr, context_);
    for (size_t i = 0; i < state_.nests.size();) {
      if (is_grid(state_.nests[i])) {
        if (state_.nests[i].body[0].as<scalar::For>().combine == scalar::Combine::Last) {
          if (!tiles_and_parts(i)) return false;
          continue;
        }
        const size_t end = alternatives_end(i);
        if (!tiles(i, end)) return false;
        i = end;
        continue;
      }
      if (!others.next(i)) return false;
    }
    return others.end();
  }

  matile::Names results_of(size_t nest) const {
    return matile::results_of(state_.nests[nest].body, program_.body);
  }

  // The first nest behind those that compute the same as nest `i` with a cost.
  size_t alternatives_end(size_t i) const {
    const auto cost = [&](size_t k) {
      return decision::cost_of(state_.nests[k].body[0].as<scalar::For>().body);
    };
    size_t end = i + 1;
    if (!cost(i)) return end;
    const matile::Names results = results_of(i);
    while (end < state_.nests.size() && is_grid(state_.nests[end]) && cost(end) &&
           results_of(end) == results)
      ++end;
    return end;
  }

  // The kernel of a grid nest, and what was decided about it.
  std::optional<LoweredKernel> tile_kernel(const Op& nest, ir::Block& decided, NoKernel* refused) {
    ir::PassContext own = context_.with(context_.sink, decided);
    return lower_grid_nest_(program_, nest, program_.name, state_.names, own, refused);
  }

  void note(const LoweredKernel& parts, const ir::Block& decided) {
    const ir::Name name = parts.kernel.as<matile::Kernel>().name;
    decision::note_kernel(name, decision::Form::Tile, decided, name, context_);
  }

  // Kernels for nests that compute the same: the plan launches the cheapest.
  bool tiles(size_t begin, size_t end) {
    std::vector<std::pair<LoweredKernel, expr::Expr>> made;
    for (size_t k = begin; k < end; ++k) {
      const Op& nest = state_.nests[k].body[0];
      NoKernel refused;
      ir::Block decided;
      auto parts = tile_kernel(nest, decided, &refused);
      if (!parts) {
        context_.sink.report(refused.code, nest.span(),
                             "this nest does not become a kernel: " + refused.why);
        return false;
      }
      if (!decision::refuse_unread(parts->kernel.as<matile::Kernel>().body, context_)) return false;
      note(*parts, decided);
      made.emplace_back(std::move(*parts), decision::cost_of(nest.as<scalar::For>().body));
    }
    if (made.size() > 1) {
      for (Op& let : launch_cheapest(made, state_.names, context_.pool))
        state_.kernels.push_back(std::move(let));
    }
    for (auto& [parts, cost] : made) state_.add(std::move(parts));
    return true;
  }

  static ir::Block take_last_tile_lines(LoweredKernel& parts) {
    auto kernel = parts.kernel.as<matile::Kernel>();
    ir::Block lines = decision::take<decision::LastTile>(kernel.body);
    if (!lines.empty()) parts.kernel = ir::make(std::move(kernel));
    return lines;
  }

  // The kernel of nest `i`, whose last tile puts its parts together: with as many of the nests that
  // follow as it can take, at least with all that read parts.
  bool tiles_and_parts(size_t& i) {
    const Op& nest = state_.nests[i].body[0];
    NoKernel refused;
    ir::Block decided;
    auto kernel = tile_kernel(nest, decided, &refused);
    std::string& why = refused.why;
    LastTileChoice choice{rules_};
    ir::Block asked;
    if (kernel) asked = take_last_tile_lines(*kernel);
    if (asked.size() > 1) {
      decision::refuse(asked[1], "the kernel has another line of this kind", context_);
      return false;
    }
    if (!asked.empty()) choice.asked = asked[0].as<decision::LastTile>();
    if (kernel && !decision::refuse_unread(kernel->kernel.as<matile::Kernel>().body, context_))
      return false;
    const LastTileNests taken =
        last_tile_nests(state_.nests, i, state_.locals, state_.computed, context_.pool);
    const size_t least = taken.least;
    size_t end = taken.end;
    if (kernel && (least <= i || least > end)) why = "what reads the parts is not one reduction";
    for (; kernel && least > i && end >= least; --end) {
      const std::vector<MapNest> group(state_.nests.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                       state_.nests.begin() + static_cast<std::ptrdiff_t>(end));
      FreshNames names = state_.names;
      const auto points = lower_points(group, state_.kept_after(end), state_.buffers, names,
                                       target_.points, context_);
      if (!points) return false;
      why.clear();
      auto both = combine_in_last_tile(
          *kernel, *points, {state_.buffers, target_, names, context_.pool}, choice, &why);
      if (!choice.refused.empty() && !asked.empty()) {
        decision::refuse(asked[0], choice.refused, context_);
        return false;
      }
      if (!both) continue;
      decided.push_back(ir::make(choice.taken));
      note(*both, decided);
      state_.names = names;
      state_.add(std::move(*both));
      i = end;
      return true;
    }
    context_.sink.report(refused.code, nest.span(),
                         "the last tile of this nest does not put its parts together: " + why);
    return false;
  }

  bool uses_machine() const {
    bool found = false;
    for (const Op& op : state_.kernels) {
      ir::for_each_expr(
          op, [&](expr::Expr e) { found |= expr::depends_on(e, context_.pool.index(machine_)); });
    }
    return found && !state_.has_own_machine;
  }

  const ir::Program& program_;
  LowerGridNest lower_grid_nest_;
  PointAnswers& rules_;
  ir::PassContext& context_;
  const target::Target& target_;
  ir::Name machine_;
  ProgramNests state_;
};

}  // namespace

std::optional<ir::Program> program_to_matile(const ir::Program& program,
                                             LowerGridNest lower_grid_nest, PointAnswers& rules,
                                             ir::PassContext& context) {
  return Assembler(program, lower_grid_nest, rules, context).run();
}

}  // namespace nautilus::lower
