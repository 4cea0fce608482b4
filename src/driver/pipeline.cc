// SPDX-License-Identifier: Apache-2.0
#include "driver/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "driver/load.h"
#include "ir/print.h"
#include "lower/program_to_matile.h"
#include "lower/scalar_to_vrtile.h"
#include "lower/spec_to_scalar.h"
#include "lower/vrtile_to_matile.h"
#include "matile/passes/advance_takes.h"
#include "matile/passes/defer_lanes.h"
#include "matile/passes/delay_branches.h"
#include "matile/passes/finish_kernels.h"
#include "matile/passes/hoist_rows.h"
#include "matile/passes/multicast.h"
#include "matile/passes/place_turns.h"
#include "matile/passes/place_waits.h"
#include "matile/passes/prefetch_rows.h"
#include "matile/passes/repack.h"

#include "matile/passes/share_registers.h"
#include "matile/passes/share_scalars.h"
#include "matile/passes/sink_branches.h"
#include "matile/passes/speculate.h"
#include "matile/passes/split_roles.h"
#include "matile/passes/split_tile_reductions.h"
#include "matile/passes/spread_layouts.h"
#include "spec/passes/argmax_by_extremes.h"
#include "spec/passes/base2.h"
#include "spec/passes/defer.h"
#include "spec/passes/drop_row_constant.h"
#include "spec/passes/drop_unused.h"
#include "spec/passes/free_operands.h"
#include "spec/passes/gather_operands.h"
#include "spec/passes/inline_conditions.h"
#include "spec/passes/inline_terms.h"
#include "spec/passes/join_scalars.h"
#include "spec/passes/merge_equal.h"
#include "spec/passes/nest_sums.h"
#include "spec/passes/pull_scale.h"
#include "spec/passes/push_extremes.h"
#include "spec/passes/simplify.h"
#include "spec/passes/split_reductions.h"
#include "spec/passes/store_narrow.h"
#include "spec/passes/store_operands.h"
#include "spec/passes/take_apart.h"
#include "spec/passes/unroll_sums.h"
#include "spec/passes/widen_operands.h"
#include "vrtile/passes/drop_unused_tiles.h"
#include "vrtile/passes/fold_fills.h"
#include "vrtile/passes/gauge.h"
#include "vrtile/passes/hoist_invariant.h"
#include "vrtile/passes/merge_equal_tiles.h"
#include "vrtile/passes/operand_cast.h"
#include "vrtile/passes/pipeline_loops.h"
#include "vrtile/passes/reverse_loops.h"
#include "vrtile/passes/specialise_segments.h"

namespace nautilus::driver {

const std::vector<PassInfo>& pipeline() {
  static const std::vector<PassInfo> passes = {
      // Guards that bounds decide disappear first, so that splitting need not carry them into
      // reductions.
      {"simplify", "spec", "spec", spec::simplify, kNone, kNone,
       "exact rules and bounds on every expression"},
      {"split_reductions", "spec", "spec", spec::split_reductions, kNone, kReductionsSplit,
       "every reduction becomes an equation of its own"},
      // Splitting names the same reduction once per reader; one is enough.
      {"merge_equal", "spec", "spec", spec::merge_equal, kNone, kNone,
       "equal equations become one"},
      {"drop_unused", "spec", "spec", spec::drop_unused, kNone, kNone,
       "equations that no output needs go"},
      {"spec_to_scalar", "spec", "scalar", lower::spec_to_scalar, kReductionsSplit, kNone,
       "one loop nest per equation"},
      {"program_to_matile", "scalar", "matile", lower::program_to_matile, kNone, kNone,
       "every nest becomes a kernel"},
      {"scalar_to_vrtile", "scalar", "vrtile", lower::scalar_to_vrtile, kNone, kNone,
       "one tile op per innermost nest of a schedule"},
      {"merge_equal_tiles", "vrtile", "vrtile", vrtile::merge_equal_tiles, kNone, kNone,
       "of tiles made in the same way one stays"},
      {"operand_cast", "vrtile", "vrtile", vrtile::operand_cast, kNone, kNone,
       "f32 operands of products get the 16-bit dtype of the other operand"},
      {"hoist_invariant", "vrtile", "vrtile", vrtile::hoist_invariant, kNone, kNone,
       "tiles that are the same in every iteration are made before the loop"},
      {"reverse_loops", "vrtile", "vrtile", vrtile::reverse_loops, kNone, kNone,
       "loops that end at different steps in different groups run backwards"},
      {"gauge", "vrtile", "vrtile", vrtile::gauge, kNone, kNone,
       "running references are followed only when they moved far"},
      {"pipeline_loops", "vrtile", "vrtile", vrtile::pipeline_loops, kNone, kNone,
       "products that need other products run one iteration late"},
      {"fold_fills", "vrtile", "vrtile", vrtile::fold_fills, kNone, kNone,
       "constants go into what reads them"},
      {"specialise_segments", "vrtile", "vrtile", vrtile::specialise_segments, kNone, kNone,
       "steps that no mask touches get a loop of their own"},
      {"drop_unused_tiles", "vrtile", "vrtile", vrtile::drop_unused_tiles, kNone, kNone,
       "tiles that no store needs go"},
      {"vrtile_to_matile", "vrtile", "matile", lower::vrtile_to_matile, kNone, kNone,
       "kernels in nest form, with their plan"},
      // From the nest form of a kernel to the text that is emitted; finish_kernels runs them all.
      {"spread_layouts", "matile", "matile", matile::spread_layouts, kNone, kNone,
       "where the elements of register tiles lie"},
      {"split_tile_reductions", "matile", "matile", matile::split_tile_reductions, kNone, kNone,
       "reductions as thread, lane and warp parts"},
      {"sink_branches", "matile", "matile", matile::sink_branches, kNone, kNone,
       "selects on votes become branches"},
      {"defer_lanes", "matile", "matile", matile::defer_lanes, kNone, kNone,
       "exchanges between lanes as late as possible"},
      {"hoist_rows", "matile", "matile", matile::hoist_rows, kNone, kNone,
       "what is the same along a row is computed once per row"},
      {"share_registers", "matile", "matile", matile::share_registers, kNone, kNone,
       "tiles that can share registers get one name"},
      {"split_roles", "matile", "matile", matile::split_roles, kNone, kNone,
       "loading roles, rings and stages"},
      {"place_turns", "matile", "matile", matile::place_turns, kNone, kNone,
       "an order among groups"},
      {"place_waits", "matile", "matile", matile::place_waits, kNone, kNone,
       "waits for products and releases of slots"},
      {"speculate", "matile", "matile", matile::speculate, kNone, kNone,
       "references are looked for only where weights leave their range"},
      {"delay_branches", "matile", "matile", matile::delay_branches, kNone, kNone,
       "branches behind the register work that does not need them"},
      {"advance_takes", "matile", "matile", matile::advance_takes, kNone, kNone,
       "tiles are taken from shared memory while products run"},
      {"multicast", "matile", "matile", matile::multicast, kNone, kNone,
       "the CTAs of a cluster load once what all of them need"},
      {"prefetch_rows", "matile", "matile", matile::prefetch_rows, kNone, kNone,
       "rows that later CTAs load are asked for ahead"},
      {"share_scalars", "matile", "matile", matile::share_scalars, kNone, kNone,
       "what only the call's scalars determine is computed by the plan"},
      {"finish_kernels", "matile", "matile", matile::finish_kernels, kNone, kNone,
       "all passes from nest form to an emitted kernel"},
      // Not on the way down: what the plan does when tensors come with other strides.
      {"repack", "matile", "matile", matile::repack_mapped, kNone, kNone,
       "kernels use aligned copies of the tensors that maps show"},
  };
  return passes;
}

const std::vector<PassInfo>& algebra_passes() {
  static const std::vector<PassInfo> passes = {
      {"drop_row_constant", "spec", "spec", spec::drop_row_constant, kReductionsSplit, kNone,
       "what a whole row adds leaves its maximum, and cancels", false},
      {"pull_scale", "spec", "spec", spec::pull_scale, kNone, kNone,
       "positive scalar factors leave sums, maxima and selects", false},
      {"take_apart", "spec", "spec", spec::take_apart, kReductionsSplit, kNone,
       "differences from a value of the row leave a product", false},
      {"defer", "spec", "spec", spec::defer, kReductionsSplit, kNone,
       "factors without the reduced axis leave a sum", false},
      {"push_extremes", "spec", "spec", spec::push_extremes, kReductionsSplit, kNone,
       "maxima and minima move inside of functions that keep the order", false},
      {"base2", "spec", "spec", spec::base2, kNone, kNone, "exponentials become powers of two",
       false},
      {"join_scalars", "spec", "spec", spec::join_scalars, kNone, kNone,
       "scalar factors of an element become one", false},
      {"inline_conditions", "spec", "spec", spec::inline_conditions, kNone, kNone,
       "conditions are written where they are read"},
      {"free_operands", "spec", "spec", spec::free_operands, kNone, kNone,
       "operands of products leave the conditions around them", false},
      {"store_operands", "spec", "spec", spec::store_operands, kNone, kNone,
       "computed operands of 16 bits become tensors"},
      {"inline_terms", "spec", "spec", spec::inline_terms, kNone, kNone,
       "terms of one reduction are written into it"},
      {"unroll_sums", "spec", "spec", spec::unroll_sums, kNone, kNone,
       "short axes of contractions over several are written out", false},
      {"argmax_by_extremes", "spec", "spec", spec::argmax_by_extremes, kReductionsSplit, kNone,
       "positions of extremes along rows become reductions of floats"},
      {"nest_sums", "spec", "spec", spec::nest_sums, kReductionsSplit, kNone,
       "sums over several axes become sums of sums", false},
      {"store_narrow", "spec", "spec", spec::store_narrow, kNone, kNone,
       "tensors of 16-bit numbers have 16 bits"},
      {"widen_operands", "spec", "spec", spec::widen_operands, kNone, kNone,
       "8-bit operands of products are copied to 16 bits"},
      {"gather_operands", "spec", "spec", spec::gather_operands, kReductionsSplit, kNone,
       "operands that no box can bring are copied first"},
  };
  return passes;
}

const PassInfo* find_pass(std::string_view name) {
  for (const auto* list : {&pipeline(), &algebra_passes()}) {
    for (const PassInfo& p : *list) {
      if (p.name == name) return &p;
    }
  }
  return nullptr;
}

std::vector<std::string_view> algebra_sequence(Algebra algebra) {
  // A scale that leaves the reduction of an output stands in front of it: split again.
  std::vector<std::string_view> names = {"simplify",
                                         "inline_conditions",
                                         "unroll_sums",
                                         "split_reductions",
                                         "drop_row_constant",
                                         "push_extremes",
                                         "argmax_by_extremes",
                                         "nest_sums",
                                         "merge_equal",
                                         "pull_scale",
                                         "split_reductions",
                                         "free_operands",
                                         "defer",
                                         "base2",
                                         "join_scalars",
                                         "simplify",
                                         "store_operands",
                                         "store_narrow",
                                         "widen_operands",
                                         "merge_equal",
                                         "inline_terms",
                                         "drop_unused"};
  if (algebra.takes_apart)
    names.insert(std::find(names.begin(), names.end(), "defer"), "take_apart");
  if (algebra.gathers) names.insert(names.end(), {"gather_operands", "merge_equal", "drop_unused"});
  return names;
}

std::optional<ir::Program> lower_with_algebra(const ir::Program& program, ir::PassContext& context,
                                              Algebra algebra) {
  ir::Program current = program;
  for (std::string_view name : algebra_sequence(algebra)) {
    auto next = run_pass(*find_pass(name), current, context);
    if (!next) return std::nullopt;
    current = std::move(*next);
  }
  return run_pass(*find_pass("spec_to_scalar"), current, context);
}

std::optional<ir::Program> run_pass(const PassInfo& pass, const ir::Program& program,
                                    ir::PassContext& context) {
  const base::StageScope stage(
      fmt::format("running pass {} on @{}", pass.name, program.name),
      fmt::format("nautilus opt --pass {} <dump of the program before it>", pass.name));
  if (pass.from != program.level->name) {
    context.sink.report(diag::Code::BadPass, {},
                        fmt::format("pass `{}` takes level {}, the program is at level {}",
                                    pass.name, pass.from, program.level->name));
    return std::nullopt;
  }
  auto result = pass.run(program, context);
  if (!result) return std::nullopt;
  diag::Sink sink(context.sink.sources());
  const bool ok = verify(*result, sink);
  NAUT_CHECK(ok, "pass {} made a program that does not verify: {}\n{}", pass.name,
             sink.all()[0].message, ir::print(*result));
  return result;
}

namespace {

// Tiles and kernels both come from scalar programs: only passes on the way to the level are taken.
bool leads_to(std::string_view from, std::string_view level) {
  if (from == level) return true;
  for (const PassInfo& p : pipeline()) {
    if (p.from == from && p.to != from && leads_to(p.to, level)) return true;
  }
  return false;
}

}  // namespace

std::optional<ir::Program> lower_to(std::string_view level, const ir::Program& program,
                                    ir::PassContext& context, const RunOptions& options) {
  ir::Program current = program;
  uint32_t known = kNone;
  int number = 0;
  auto dump = [&](std::string_view after) {
    if (options.dump_dir.empty()) return true;
    const std::string path =
        fmt::format("{}/{:03}-{}{}", options.dump_dir, number++, after, current.level->file_suffix);
    std::string error;
    if (base::write_file_atomic(path, ir::print(current), &error)) return true;
    context.sink.report(diag::Code::BadInput, {}, fmt::format("cannot write {}: {}", path, error));
    return false;
  };
  if (!dump("input")) return std::nullopt;
  for (const PassInfo& pass : pipeline()) {
    if (current.level->name == level) break;
    if (pass.from != current.level->name || !leads_to(pass.to, level)) continue;
    NAUT_CHECK((pass.needs & ~known) == 0, "pass {} stands before what it needs", pass.name);
    auto next = run_pass(pass, current, context);
    if (!next) return std::nullopt;
    known = pass.from == pass.to ? known | pass.gives : pass.gives;
    const bool is_changed = !(*next == current);
    current = std::move(*next);
    if (is_changed && !dump(fmt::format("after-{}", pass.name))) return std::nullopt;
  }
  if (current.level->name != level) {
    context.sink.report(
        diag::Code::BadPass, {},
        fmt::format("level {} cannot be lowered to level {}", program.level->name, level));
    return std::nullopt;
  }
  return current;
}

}  // namespace nautilus::driver
