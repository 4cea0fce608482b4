// SPDX-License-Identifier: Apache-2.0
#include "compile/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "choose/points/point_rules.h"
#include "compile/grid_nest.h"
#include "compile/manager.h"
#include "decision/lines.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "lower/kernel/launch_choice.h"
#include "lower/program_to_matile.h"
#include "lower/tiles/vrtile_to_matile.h"
#include "matile/ops.h"
#include "matile/passes/memory/prefetch_rows.h"
#include "matile/passes/waits/place_waits.h"
#include "matile/results.h"
#include "vrtile/ops.h"

namespace nautilus::compile {
namespace {

using ir::Op;
using lower::LoweredKernel;

// Runs the passes of a stage on all kernels that follow `after`.
std::optional<ir::Program> with_stage(Stage stage, ir::Program program, const std::string& after,
                                      ir::PassContext& context) {
  for (const PassInfo* pass : passes_after(stage, after)) {
    auto next = apply(*pass, program, context);
    if (!next) return std::nullopt;
    program = std::move(*next);
  }
  return program;
}

std::optional<ir::Program> with_plan(ir::Program program, const std::string& after,
                                     ir::PassContext& context) {
  const auto planned = with_stage(Stage::Plan, std::move(program), after, context);
  if (!planned) return std::nullopt;
  diag::Sink sink(context.sink.sources());
  const bool ok = matile::verify(*planned, sink);
  NAUT_CHECK(ok, "the kernels of @{} do not verify together: {}\n{}", planned->name,
             sink.all()[0].message, ir::print(*planned));
  return planned;
}

// The grids of a VR-tile program; neighbours that have a cost and store the same are a choice.
std::vector<std::vector<const Op*>> choices_of(const ir::Program& tiles) {
  std::vector<std::vector<const Op*>> out;
  const Op* last = nullptr;
  const auto results_of = [&](const vrtile::Par& grid) {
    return matile::results_of(grid.body, tiles.body);
  };
  for (const Op& op : tiles.body) {
    const auto* grid = op.get<vrtile::Par>();
    if (!grid) continue;
    const bool is_choice = last && decision::cost_of(grid->body) &&
                           decision::cost_of(last->as<vrtile::Par>().body) &&
                           results_of(*grid) == results_of(last->as<vrtile::Par>());
    if (!is_choice) out.emplace_back();
    out.back().push_back(&op);
    last = &op;
  }
  return out;
}

std::optional<ir::Program> tiles_to_kernels(const ir::Program& tiles, ir::PassContext& context) {
  const std::string after = tiles.after;
  lower::FreshNames names(context.pool);
  ir::Program out = lower::tile_declarations(tiles, names, context.pool);
  for (const auto& choice : choices_of(tiles)) {
    std::vector<std::pair<LoweredKernel, expr::Expr>> made;
    lower::NoKernel first;
    for (const Op* nest : choice) {
      const std::string kernel(lower::FreshNames(names).make(tiles.name).str());
      lower::NoKernel refused;
      ir::Block decided;
      ir::PassContext own = context.with(context.sink, decided);
      auto parts = lower_tiles(tile_unit(tiles, *nest, kernel), after, names, own, &refused);
      if (parts) {
        const auto& finished = parts->kernel.as<matile::Kernel>();
        if (!decision::refuse_unread(finished.body, context)) return std::nullopt;
        const ir::Name name = finished.name;
        decision::note_kernel(name, decision::Form::Tile, decided, name, context);
      }
      if (parts)
        made.emplace_back(std::move(*parts), decision::cost_of(nest->as<vrtile::Par>().body));
      if (first.why.empty()) first = refused;
    }
    if (made.empty()) {
      context.sink.report(first.code, choice[0]->span(),
                          "this nest does not become a kernel: " + first.why);
      return std::nullopt;
    }
    if (made.size() > 1) {
      for (Op& let : lower::launch_cheapest(made, names, context.pool))
        out.body.push_back(std::move(let));
    }
    for (auto& [parts, cost] : made) {
      for (Op& op : parts.plan) out.body.push_back(std::move(op));
      out.body.push_back(std::move(parts.kernel));
      out.body.push_back(std::move(parts.launch));
    }
  }
  auto together = with_stage(Stage::Together, std::move(out), "", context);
  return together ? with_plan(std::move(*together), "", context) : std::nullopt;
}

std::optional<ir::Program> finish(ir::Program current, const std::string& after,
                                  ir::PassContext& context) {
  bool is_verified = false;  // place_waits does it; later changes are verified again
  for (const PassInfo* pass : passes_after(Stage::Kernel, after)) {
    auto next = apply(*pass, current, context);
    if (!next) return std::nullopt;
    is_verified = pass->run == matile::place_waits || (is_verified && *next == current);
    current = std::move(*next);
  }
  if (!is_verified && !matile::verify(current, context.sink)) return std::nullopt;
  return current;
}

bool is_unfinished(const Op& op) {
  const auto* kernel = op.get<matile::Kernel>();
  return kernel && kernel->form != matile::KernelForm::Final;
}

std::optional<ir::Program> rest_of_kernels(const ir::Program& program, ir::PassContext& context) {
  const bool is_written = program.after.empty();
  if (is_written && std::none_of(program.body.begin(), program.body.end(), is_unfinished))
    return program;
  auto current = finish(without_after(program), program.after, context);
  if (!current) return std::nullopt;
  for (const Op& op : current->body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    // A pass of the plan reads what is said about rows ahead, of kernels that load any.
    matile::Kernel rest = *kernel;
    decision::take<decision::Ahead>(rest.body);
    const bool has_rows =
        matile::usual_rows_ahead(rest, ir::target_of(program).rows, context.pool).has_value();
    const ir::Block unread = has_rows ? rest.body : kernel->body;
    if (!decision::refuse_unread(unread, context)) return std::nullopt;
  }
  auto together = with_stage(Stage::Together, std::move(*current), program.after, context);
  return together ? with_plan(std::move(*together), program.after, context) : std::nullopt;
}

}  // namespace

std::vector<const PassInfo*> passes_after(Stage stage, std::string_view after) {
  const PassInfo* last = after.empty() ? nullptr : find_pass(after);
  std::vector<const PassInfo*> out = passes_of(stage);
  // Rows of one table: their order is that of the passes.
  if (last) std::erase_if(out, [&](const PassInfo* p) { return p <= last; });
  return out;
}

std::optional<ir::Program> finish_kernels(const ir::Program& program, ir::PassContext& context) {
  return finish(program, "", context);
}

std::optional<ir::Program> program_to_matile(const ir::Program& program, ir::PassContext& context) {
  choose::PointRules rules(ir::target_of(program), context.pool);
  return lower::program_to_matile(program, lower_grid_nest, rules, context);
}

std::optional<ir::Program> nests_to_kernels(const ir::Program& program, ir::PassContext& context) {
  const auto joined = apply(the_pass("join_axes"), without_after(program), context);
  if (!joined) return std::nullopt;
  const auto gathered = apply(the_pass("gather_choices"), *joined, context);
  if (!gathered) return std::nullopt;
  const auto chosen = apply(the_pass("choose_kernels"), *gathered, context);
  if (!chosen) return std::nullopt;
  const auto shaped = apply(the_pass("choose_row_shapes"), *chosen, context);
  if (!shaped) return std::nullopt;
  const auto filled = apply(the_pass("choose_row_registers"), *shaped, context);
  if (!filled) return std::nullopt;
  const auto complete = apply(the_pass("choose_point_lines"), *filled, context);
  auto kernels = complete ? apply(the_pass("program_to_matile"), *complete, context) : std::nullopt;
  return kernels ? with_stage(Stage::Together, std::move(*kernels), "", context) : std::nullopt;
}

std::optional<ir::Program> to_kernels(const ir::Program& program, ir::PassContext& context) {
  if (program.level == &vrtile::level()) return tiles_to_kernels(program, context);
  if (program.level == &matile::level()) return rest_of_kernels(program, context);
  auto kernels = nests_to_kernels(program, context);
  return kernels ? plan_kernels(std::move(*kernels), context) : std::nullopt;
}

std::optional<ir::Program> plan_kernels(ir::Program kernels, ir::PassContext& context) {
  return with_plan(std::move(kernels), "", context);
}

}  // namespace nautilus::compile
