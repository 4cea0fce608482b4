// SPDX-License-Identifier: Apache-2.0
#include "compile/passes.h"

#include "base/check.h"
#include "base/nearest.h"
#include "choose/choose_kernels.h"
#include "choose/gather_choices.h"
#include "choose/join_axes.h"
#include "choose/points/choose_point_lines.h"
#include "choose/rows/choose_row_registers.h"
#include "choose/rows/choose_row_shapes.h"
#include "choose/tiles/choose_tile_lines.h"
#include "compile/kernels.h"
#include "lower/spec_to_scalar.h"
#include "lower/tiles/vrtile_to_matile.h"
#include "lower/to_vrtile/scalar_to_vrtile.h"
#include "matile/passes/branches/delay_branches.h"
#include "matile/passes/branches/sink_branches.h"
#include "matile/passes/branches/speculate.h"
#include "matile/passes/launch/begin_kernels.h"
#include "matile/passes/launch/chain_folds.h"
#include "matile/passes/launch/order_reads.h"
#include "matile/passes/memory/prefetch_rows.h"
#include "matile/passes/memory/repack.h"
#include "matile/passes/memory/share_scalars.h"
#include "matile/passes/registers/advance_takes.h"
#include "matile/passes/registers/defer_lanes.h"
#include "matile/passes/registers/hoist_rows.h"
#include "matile/passes/registers/share_registers.h"
#include "matile/passes/registers/split_tile_reductions.h"
#include "matile/passes/registers/spread_layouts.h"
#include "matile/passes/roles/multicast.h"
#include "matile/passes/roles/split_roles.h"
#include "matile/passes/waits/place_turns.h"
#include "matile/passes/waits/place_waits.h"
#include "spec/passes/algebra/argmax_by_extremes.h"
#include "spec/passes/algebra/base2.h"
#include "spec/passes/algebra/defer.h"
#include "spec/passes/algebra/distribute_row_shift.h"
#include "spec/passes/algebra/drop_row_constant.h"
#include "spec/passes/algebra/exchange_sums.h"
#include "spec/passes/algebra/join_sums.h"
#include "spec/passes/algebra/nest_sums.h"
#include "spec/passes/algebra/pull_scale.h"
#include "spec/passes/algebra/push_extremes.h"
#include "spec/passes/algebra/rank_pieces.h"
#include "spec/passes/algebra/reduce_pieces.h"
#include "spec/passes/algebra/split_groups.h"
#include "spec/passes/algebra/split_residues.h"
#include "spec/passes/algebra/stride_sums.h"
#include "spec/passes/algebra/unroll_sums.h"
#include "spec/passes/chunks/chunk_scans.h"
#include "spec/passes/equations/drop_unused.h"
#include "spec/passes/equations/inline_conditions.h"
#include "spec/passes/equations/inline_terms.h"
#include "spec/passes/equations/join_scalars.h"
#include "spec/passes/equations/leaving_scans.h"
#include "spec/passes/equations/merge_equal.h"
#include "spec/passes/equations/scan_prefixes.h"
#include "spec/passes/equations/simplify.h"
#include "spec/passes/equations/split_reductions.h"
#include "spec/passes/equations/tabulate.h"
#include "spec/passes/operands/byte_operands.h"
#include "spec/passes/operands/gather_operands.h"
#include "spec/passes/operands/hoist_operand_masks.h"
#include "spec/passes/operands/integer_sums.h"
#include "spec/passes/operands/narrow_operands.h"
#include "spec/passes/operands/split_operands.h"
#include "spec/passes/operands/store_narrow.h"
#include "spec/passes/operands/store_operands.h"
#include "vrtile/passes/add_apart.h"
#include "vrtile/passes/drop_unused_tiles.h"
#include "vrtile/passes/fold_fills.h"
#include "vrtile/passes/hoist_invariant.h"
#include "vrtile/passes/lazy_reference.h"
#include "vrtile/passes/merge_equal_tiles.h"
#include "vrtile/passes/operand_cast.h"
#include "vrtile/passes/pipeline_loops.h"
#include "vrtile/passes/reverse_loops.h"
#include "vrtile/passes/specialise_segments.h"

namespace nautilus::compile {
namespace {

PassInfo equations(std::string_view name, ir::Pass run, std::string_view summary,
                   uint32_t needs = kNone, uint32_t gives = kNone) {
  return {.name = name,
          .from = "spec",
          .to = "spec",
          .run = run,
          .stage = Stage::Equations,
          .summary = summary,
          .needs = needs,
          .gives = gives};
}

PassInfo reading(std::string_view decisions, PassInfo pass) {
  pass.reads = decisions;
  return pass;
}

// Exact over the reals only.
PassInfo algebra(std::string_view name, ir::Pass run, std::string_view summary,
                 uint32_t needs = kNone, std::string_view reads = {}) {
  PassInfo pass = equations(name, run, summary, needs);
  pass.reads = reads;
  pass.is_exact = false;
  return pass;
}

struct Levels {
  std::string_view from;
  std::string_view to;
};

PassInfo arrow(std::string_view name, Levels levels, ir::Pass run, std::string_view summary,
               std::string_view reads = {}, uint32_t needs = kNone) {
  return {name, levels.from, levels.to, run, Stage::Arrow, summary, reads, needs};
}

PassInfo tiles(std::string_view name, ir::Pass run, std::string_view summary,
               std::string_view reads = {}) {
  return {name, "vrtile", "vrtile", run, Stage::Tiles, summary, reads};
}

PassInfo kernel(std::string_view name, ir::Pass run, std::string_view summary,
                std::string_view reads = {}, Stage stage = Stage::Kernel) {
  return {name, "matile", "matile", run, stage, summary, reads};
}

PassInfo together(std::string_view name, ir::Pass run, std::string_view summary,
                  std::string_view reads) {
  return kernel(name, run, summary, reads, Stage::Together);
}

PassInfo plan(std::string_view name, ir::Pass run, std::string_view summary,
              std::string_view reads = {}) {
  return kernel(name, run, summary, reads, Stage::Plan);
}

}  // namespace

const std::vector<PassInfo>& passes() {
  static const std::vector<PassInfo> all = {
      // Guards that bounds decide disappear first, so that splitting need not carry them into
      // reductions.
      equations("simplify", spec::simplify, "exact rules and bounds on every expression"),
      equations("inline_conditions", spec::leaving_scans<spec::inline_conditions>,
                "conditions are written where they are read"),
      algebra("exchange_sums", spec::leaving_scans<spec::exchange_sums>,
              "sums of products begin with the sum that has fewer axes"),
      reading("algebra", equations("split_groups", spec::leaving_scans<spec::split_groups>,
                                   "sums that are products in groups of an axis become those")),
      algebra("split_residues", spec::leaving_scans<spec::split_residues>,
              "sums with terms at every n-th place become sums over those places", kNone,
              "algebra"),
      algebra("stride_sums", spec::leaving_scans<spec::stride_sums>,
              "sums with terms at every n-th place of their axis run over those places"),
      algebra("join_sums", spec::leaving_scans<spec::join_sums>,
              "sums of products that a condition chooses become one product"),
      algebra("unroll_sums", spec::leaving_scans<spec::unroll_sums>,
              "short axes of contractions over several are written out", kNone, "algebra"),
      equations("split_reductions", spec::split_reductions,
                "every reduction becomes an equation of its own", kNone, kReductionsSplit),
      // Before sums of prefixes: the sums of logarithms in a chunk are some.
      algebra("chunk_scans", spec::chunk_scans,
              "scans of matrices become products of chunks of their steps", kReductionsSplit,
              "algebra, chunk"),
      algebra("scan_prefixes", spec::scan_prefixes,
              "reductions of all prefixes of an axis become scans", kReductionsSplit),
      algebra("drop_row_constant", spec::leaving_scans<spec::drop_row_constant>,
              "what a whole row adds leaves its maximum, and cancels", kReductionsSplit),
      algebra("push_extremes", spec::leaving_scans<spec::push_extremes>,
              "maxima and minima move inside functions that keep the order", kReductionsSplit),
      reading("algebra",
              equations("argmax_by_extremes", spec::leaving_scans<spec::argmax_by_extremes>,
                        "positions of extremes along rows become reductions of floats",
                        kReductionsSplit)),
      algebra("nest_sums", spec::leaving_scans<spec::nest_sums>,
              "sums over several axes become sums of sums", kReductionsSplit),
      algebra("reduce_pieces", spec::leaving_scans<spec::reduce_pieces>,
              "reductions along an axis of a product are taken in pieces first", kReductionsSplit,
              "algebra, piece"),
      // Splitting names the same reduction once per reader; one is enough.
      equations("merge_equal", spec::leaving_scans<spec::merge_equal>,
                "equal equations become one"),
      reading("algebra, piece",
              equations("rank_pieces", spec::leaving_scans<spec::rank_pieces>,
                        "small places in an order are found in pieces of the axis first",
                        kReductionsSplit)),
      algebra("pull_scale", spec::leaving_scans<spec::pull_scale>,
              "positive scalar factors leave sums, maxima and selects"),
      algebra("hoist_operand_masks", spec::leaving_scans<spec::hoist_operand_masks>,
              "operands of products leave the conditions around them"),
      algebra("distribute_row_shift", spec::leaving_scans<spec::distribute_row_shift>,
              "differences from a value of the row leave a product", kReductionsSplit, "algebra"),
      algebra("defer", spec::leaving_scans<spec::defer>,
              "factors without the reduced axis leave a sum", kReductionsSplit),
      algebra("base2", spec::leaving_scans<spec::base2>, "exponentials become powers of two"),
      algebra("join_scalars", spec::leaving_scans<spec::join_scalars>,
              "scalar factors of an element become one"),
      // Before operands get 16 bits.
      algebra("integer_sums", spec::leaving_scans<spec::integer_sums>,
              "sums in f32 of products of 8-bit integers are sums in i32"),
      reading("algebra", equations("narrow_operands", spec::leaving_scans<spec::narrow_operands>,
                                   "operands that 16 bits hold exactly are rounded to them")),
      {.name = "split_operands",
       .from = "spec",
       .to = "spec",
       .run = spec::leaving_scans<spec::split_operands>,
       .stage = Stage::Equations,
       .summary = "operands of f32 products become sums of 16-bit numbers",
       .reads = "algebra, depth, store",
       .needs = kReductionsSplit,
       .is_exact = false},
      reading("store", equations("store_operands", spec::leaving_scans<spec::store_operands>,
                                 "computed operands of 16 bits become tensors")),
      // When operands are equations of their own: values are computed for each of their elements
      // then. Before tensors of 16-bit numbers get 16 bits: tables may be some.
      reading("algebra", equations("tabulate", spec::leaving_scans<spec::tabulate>,
                                   "costly values of many elements are computed once")),
      reading("store", equations("store_narrow", spec::leaving_scans<spec::store_narrow>,
                                 "tensors of 16-bit numbers have 16 bits")),
      reading("store",
              equations("byte_operands", spec::leaving_scans<spec::byte_operands>,
                        "8-bit operands of products are transposed, or copied to 16 bits")),
      equations("inline_terms", spec::leaving_scans<spec::inline_terms>,
                "terms of one reduction are written into it"),
      equations("drop_unused", spec::drop_unused, "equations that no output needs go"),
      {.name = "gather_operands",
       .from = "spec",
       .to = "spec",
       .run = spec::leaving_scans<spec::gather_operands>,
       .stage = Stage::Equations,
       .summary = "operands that no box can bring are copied first",
       .reads = "algebra, store",
       .needs = kReductionsSplit},
      arrow("spec_to_scalar", {"spec", "scalar"}, lower::spec_to_scalar,
            "one loop nest per equation", {}, kReductionsSplit),
      arrow("schedule", {"scalar", "scalar"}, nullptr, "statements become the nests of kernels",
            "every line of a schedule"),
      arrow("scalar_to_vrtile", {"scalar", "vrtile"}, lower::scalar_to_vrtile,
            "one tile op per innermost nest of a schedule"),
      tiles("merge_equal_tiles", vrtile::merge_equal_tiles,
            "of tiles made in the same way one stays"),
      tiles("operand_cast", vrtile::operand_cast,
            "f32 operands of products get the 16-bit dtype of the other operand"),
      // After the casts: an operand that a loop only multiplies with is rounded once, and its f32
      // form needs no registers in the loop.
      tiles("hoist_invariant", vrtile::hoist_invariant,
            "tiles that are the same in every iteration are made before the loop"),
      // Before the order of steps: sums in registers may be pipelined, and run in any order.
      tiles("add_apart", vrtile::add_apart,
            "products are added to the sums of loops in registers, where the matrix unit is coarse",
            "add"),
      tiles("reverse_loops", vrtile::reverse_loops,
            "loops that end at different steps in different groups, or masked, run backwards",
            "loop"),
      tiles("lazy_reference", vrtile::lazy_reference,
            "running references are followed only when they moved far", "reference"),
      tiles("pipeline_loops", vrtile::pipeline_loops,
            "products that need other products run one iteration late", "pipeline"),
      // Simplifies the peeled first iteration, which computes with the initial values.
      tiles("fold_fills", vrtile::fold_fills, "constants go into what reads them"),
      // Last, so that the parts of a loop share one prologue and one epilogue.
      tiles("specialise_segments", vrtile::specialise_segments,
            "steps that no mask touches get a loop of their own", "segments"),
      tiles("drop_unused_tiles", vrtile::drop_unused_tiles, "tiles that no store needs go"),
      arrow("choose_tile_lines", {"vrtile", "vrtile"}, choose::choose_tile_lines,
            "nests of tiles get the lines that their lowering reads",
            "groups, order, source, bring, whole, fetch, promote"),
      arrow("vrtile_to_matile", {"vrtile", "matile"}, lower::vrtile_to_matile,
            "kernels in nest form, with their plan",
            "groups, cluster, resident, order, source, bring, whole, fetch, promote"),
      // Layouts first: they say what a reduction's parts are. Branches before lanes: an exchange
      // that only a branch needs sinks into it. Work per row is hoisted after that, so that a
      // branch is still seen as one. Registers are shared before roles are split, while every tile
      // still has one text. Waits come after that: they depend on everything that touches a tile.
      // Speculation changes what a step does first, not what it waits for; branches are moved when
      // all of them are there, and takes when every wait is.
      kernel("spread_layouts", matile::spread_layouts, "where the elements of register tiles lie"),
      kernel("split_tile_reductions", matile::split_tile_reductions,
             "reductions as thread, lane and warp parts"),
      kernel("sink_branches", matile::sink_branches, "selects on votes become branches"),
      kernel("defer_lanes", matile::defer_lanes, "exchanges between lanes as late as possible"),
      kernel("hoist_rows", matile::hoist_rows,
             "what is the same along a row is computed once per row", "hoist"),
      kernel("share_registers", matile::share_registers,
             "tiles that can share registers get one name"),
      kernel("split_roles", matile::split_roles, "loading roles, rings and stages",
             "ring, stages, registers"),
      kernel("place_turns", matile::place_turns, "an order among groups", "turns"),
      kernel("place_waits", matile::place_waits, "waits for products and releases of slots",
             "in_flight"),
      kernel("speculate", matile::speculate,
             "references are looked for only where weights leave their range", "reference"),
      kernel("delay_branches", matile::delay_branches,
             "branches behind the register work that does not need them", "branches"),
      kernel("advance_takes", matile::advance_takes,
             "tiles are taken from shared memory while products run", "takes"),
      kernel("multicast", matile::multicast,
             "the CTAs of a cluster load once what all of them need"),
      arrow("join_axes", {"scalar", "scalar"}, choose::join_axes,
            "axes of the program's own tensors that always go together become one"),
      arrow("gather_choices", {"scalar", "scalar"}, choose::gather_choices,
            "choices by the places of an order stand behind what counts them"),
      arrow("choose_kernels", {"scalar", "scalar"}, choose::choose_kernels,
            "nests beside the tiles get kernels of rows, points and parts", "kernel, inner"),
      arrow("choose_row_shapes", {"scalar", "scalar"}, choose::choose_row_shapes,
            "kernels along rows get their alternatives by the number of columns",
            "columns, vector, hold, groups, each"),
      arrow("choose_row_registers", {"scalar", "scalar"}, choose::choose_row_registers,
            "threads of kernels along rows get what they keep in registers",
            "shared, keep, unpacked, moving, registers"),
      arrow("choose_point_lines", {"scalar", "scalar"}, choose::choose_point_lines,
            "kernels of points and parts get the lines that their lowering reads",
            "lanes, each, vector, unroll, points, private, first, merge, threads, resident"),
      arrow("program_to_matile", {"scalar", "matile"}, program_to_matile,
            "every nest becomes a kernel, grid nests by way of the passes from scalar_to_vrtile "
            "on",
            "fuse, split, last, columns, vector, hold, groups, shared, keep, unpacked, moving, "
            "registers, lanes, each, across, spread, held, patch, points, private, first, merge, "
            "unroll, "
            "windows, "
            "threads, resident"),
      together("begin_kernels", matile::begin_kernels,
               "kernels begin before those in front of them have ended", "begin"),
      together("order_reads", matile::order_reads,
               "reads of global memory stay where the text has them", "reads"),
      together("chain_folds", matile::chain_folds,
               "reductions of a thread have several partial results", "chains"),
      plan("prefetch_rows", matile::prefetch_rows, "rows that later CTAs load are asked for ahead",
           "ahead"),
      plan("share_scalars", matile::share_scalars,
           "what only the call's scalars determine is computed by the plan"),
      kernel("finish_kernels", finish_kernels,
             "all passes from nest form to final form, as far as they are missing", {},
             Stage::Apart),
      // What the plan does for tensors with other strides.
      kernel("repack", matile::repack_mapped,
             "kernels use aligned copies of the tensors that maps show", {}, Stage::Apart),
  };
  return all;
}

const PassInfo* find_pass(std::string_view name) {
  for (const PassInfo& p : passes()) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

const PassInfo& the_pass(std::string_view name) {
  const PassInfo* pass = find_pass(name);
  NAUT_CHECK(pass, "there is no pass {}", name);
  return *pass;
}

std::vector<const PassInfo*> passes_of(Stage stage) {
  std::vector<const PassInfo*> out;
  for (const PassInfo& p : passes()) {
    if (p.stage == stage) out.push_back(&p);
  }
  return out;
}

std::string nearest_pass(std::string_view name) {
  std::vector<std::string> names;
  for (const PassInfo& p : passes()) names.emplace_back(p.name);
  return base::nearest_name(std::string(name), names);
}

}  // namespace nautilus::compile
