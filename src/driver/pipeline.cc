// SPDX-License-Identifier: Apache-2.0
#include "driver/pipeline.h"

#include <fmt/format.h>

#include "base/files.h"
#include "driver/load.h"
#include "ir/print.h"
#include "lower/spec_to_scalar.h"
#include "lower/vrtile_to_matile.h"
#include "matile/passes/defer_lanes.h"
#include "matile/passes/finish_kernels.h"
#include "matile/passes/hoist_rows.h"
#include "matile/passes/place_turns.h"
#include "matile/passes/place_waits.h"
#include "matile/passes/share_registers.h"
#include "matile/passes/sink_branches.h"
#include "matile/passes/split_roles.h"
#include "matile/passes/split_tile_reductions.h"
#include "matile/passes/spread_layouts.h"
#include "spec/passes/drop_unused.h"
#include "spec/passes/merge_equal.h"
#include "spec/passes/simplify.h"
#include "spec/passes/split_reductions.h"

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
      {"finish_kernels", "matile", "matile", matile::finish_kernels, kNone, kNone,
       "all passes from nest form to an emitted kernel"},
  };
  return passes;
}

const PassInfo* find_pass(std::string_view name) {
  for (const PassInfo& p : pipeline()) {
    if (p.name == name) return &p;
  }
  return nullptr;
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
    if (pass.from != current.level->name) continue;
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
