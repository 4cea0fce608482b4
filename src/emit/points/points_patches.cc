// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_patches.h"

#include <algorithm>

#include "emit/points/points_loops.h"
#include "emit/points/points_statements.h"
#include "emit/points/points_windows.h"
#include "matile/windows.h"

namespace nautilus::emit {
namespace {

using expr::Expr;

// Dimensions of known extents at the end of a tensor usually lie without gaps: their strides are
// numbers for threads that have whole patches, which become part of the address of a load. Text of
// the conditions that they are, each after `&&`.
std::string take_known_strides(PointsScope& scope) {
  std::string conditions;
  for (auto& [name, global] : scope.globals) {
    const std::vector<std::string> strides = global.strides;
    int64_t stride = 1;
    for (size_t k = global.strides.size(); k-- > 0;) {
      global.strides[k] = std::to_string(stride);
      const Expr extent = global.type.dims[k];
      if (extent.op() != expr::Op::IntConst) break;
      stride *= extent.integer();
    }
    for (size_t k = 0; k < strides.size(); ++k) {
      if (global.strides[k] != strides[k])
        conditions += fmt::format(" && {} == {}", strides[k], global.strides[k]);
    }
  }
  return conditions;
}

// Text of the condition that places in a tensor which loops and points move are 32-bit numbers.
std::string are_near(PointsScope& scope) {
  std::map<std::string, std::string> sums;
  for (const auto& [name, k] : scope.patch.moved) {
    const GlobalTensor& global = scope.globals.find(name)->second;
    std::string& sum = sums[name];
    sum += fmt::format("{}(u64){} * {}", sum.empty() ? "" : " + ", scope.text(global.type.dims[k]),
                       global.strides[k]);
  }
  std::string all;
  for (const auto& [name, sum] : sums) all += fmt::format(" && {} < 2147483648ull", sum);
  return all;
}

void write_whole(PointsScope& scope, const ir::Block& ops) {
  scope.mode.is_inside = scope.mode.are_whole = true;
  write_block(scope, ops);
  scope.mode.is_inside = scope.mode.are_whole = false;
}

// Points of a patch one after the other, each as the only one of its thread.
void write_single_points(PointsScope& scope, const ir::Block& ops) {
  PointsScope single = scope;
  std::string& row = single.local(scope.grid.across.name());
  std::string& column = single.local(scope.grid.last.name());
  single.out.open("NO_UNROLL for (int over = again_across; over < exist_across; ++over) {{");
  single.out.open("NO_UNROLL for (int beside = again; beside < exist; ++beside) {{");
  row = fmt::format("({} + over)", row);
  column = fmt::format("({} + beside)", column);
  single.grid.across = {};
  single.grid.points_across = single.grid.points_per_thread = 1;
  single.grid.spread = 0;
  single.grid.is_patch = false;
  write_block(single, ops);
  single.out.close();
  single.out.close();
  scope.out = std::move(single.out);
}

}  // namespace

void write_patches(PointsScope& scope, const ir::Block& ops) {
  Writer& out = scope.out;
  const GlobalTensors globals = scope.globals;
  const std::string known = take_known_strides(scope);
  // What is found out before the loops is what they are found to need.
  PointsScope trial = scope;
  write_whole(trial, ops);
  out.open("if (exist == {} && exist_across == {}{}{}) {{", scope.grid.points_per_thread,
           scope.grid.points_across, known, are_near(trial));
  for (const auto& [condition, name] : trial.patch.conditions) {
    scope.take(name);
    out.line("const bool {} = {};", name, scope.text(condition));
  }
  for (const auto& [place, name] : trial.patch.pointers) {
    scope.take(name);
    out.line("const auto {} = hidden({});", name, place);
  }
  scope.patch.conditions = trial.patch.conditions;
  scope.patch.pointers = trial.patch.pointers;
  write_whole(scope, ops);
  scope.globals = globals;
  out.open_else();
  write_single_points(scope, ops);
  out.close();
}

void write_patch_loop(PointsScope& scope, const matile::Loop& l) {
  if (matile::is_window(l) && matile::all_turns(l) <= scope.grid.windows)
    return write_window(scope, l);
  const bool is_innermost =
      std::ranges::all_of(l.body, [](const ir::Op& op) { return op.is<matile::Assign>(); });
  const OwnNames own(scope);
  const LoopText loop = begin_loop(scope, l);
  scope.patch.loops.emplace(l.var.str());
  scope.out.open("{}{} {{", is_innermost ? "" : "NO_UNROLL ", loop.head());
  scope.window_places.clear();
  if (is_innermost) {
    for (const ir::Op& op : l.body) write_turn(scope, op.as<matile::Assign>(), {});
  } else {
    write_block(scope, l.body);
  }
  scope.window_places.clear();
  scope.named.clear();
  scope.out.close();
  scope.patch.loops.erase(std::string(l.var.str()));
}

}  // namespace nautilus::emit
