// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_body.h"

#include "emit/identifier.h"
#include "emit/points/points_held.h"
#include "emit/points/points_inside.h"
#include "emit/points/points_lines.h"
#include "emit/points/points_patches.h"
#include "emit/points/points_statements.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/windows.h"

namespace nautilus::emit {
namespace {

using expr::Expr;

// Text of the condition that all lines of the kernel lie on whole vectors; empty if some tensor's
// cannot.
std::string are_aligned(PointsScope& scope, const ir::Block& ops) {
  NameSet lines;
  std::set<std::string> steps;  // of first places of lines, in bytes
  const auto add = [&](ir::Name tensor, std::span<const Expr> indices) {
    if (!has_line(scope, tensor, indices)) return;
    const auto own = line_steps(scope, scope.grid.last, tensor, indices);
    if (!own) return;  // it is loaded and stored as its address allows
    lines.emplace(tensor.str());
    const int64_t bytes = expr::bytes(scope.global(tensor).type.dtype);
    for (Expr step : *own) steps.insert(fmt::format("{} * {}", bytes, scope.text(step)));
  };
  ir::for_each_op(ops, [&](const ir::Op& op) {
    if (const auto* w = op.get<matile::Write>()) add(w->target, w->indices);
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() == expr::Op::Read) add(e.name(), e.args());
      });
    });
  });
  std::string all;
  const int64_t vector = ir::target_of(scope.program).memory.vector_bytes;
  for (const std::string& name : lines) {
    const GlobalTensor& global = scope.globals.find(name)->second;
    const int64_t bytes = expr::bytes(global.type.dtype);
    if (scope.grid.points_per_thread * bytes % vector != 0) return "";
    all += fmt::format("{}((u64)p.{}", all.empty() ? "" : " && ", identifier(name));
    for (size_t k = 0; k + 1 < global.strides.size(); ++k)
      all += fmt::format(" | {} * {}", bytes, global.strides[k]);
    all += fmt::format(") % {} == 0", vector);
  }
  for (const std::string& step : steps)
    all += fmt::format("{}({}) % {} == 0", all.empty() ? "" : " && ", step, vector);
  return all;
}

// From now on elements of all tensors are neighbours along their last dimensions. Text of
// the condition that they do; empty if that is known.
std::string take_strides_of_one(PointsScope& scope) {
  std::string along;
  for (auto& [name, global] : scope.globals) {
    if (global.strides.empty() || global.strides.back() == "1") continue;
    along += fmt::format("{}{} == 1", along.empty() ? "" : " && ", global.strides.back());
    global.strides.back() = "1";
  }
  return along;
}

// The block for threads inside; the branch stays open.
void write_inside(PointsScope& scope, const ir::Block& ops, const std::string& condition) {
  PointsMode& mode = scope.mode;
  scope.out.open("if ({}) {{", condition);
  const expr::Facts facts = scope.facts;
  for (Expr a : scope.inside.asked) scope.facts.assume(a);
  mode.is_inside = mode.are_whole = true;
  scope.grid.held > 0 ? write_held(scope, ops) : write_block(scope, ops);
  scope.kept_lines.clear();
  scope.window_places.clear();
  mode.is_inside = mode.are_whole = false;
  scope.facts = facts;
}

// The block twice where conditions can be asked once: for threads inside, and for the others. Where
// points are spread, threads at an edge are in every row: they have a third text, in which elements
// are neighbours and turns are written one by one, too.
void write_texts(PointsScope& scope, const ir::Block& ops) {
  Writer& out = scope.out;
  const PointsGrid& grid = scope.grid;
  PointsMode& mode = scope.mode;
  // Of a window whose turns are not written one by one nothing is shared.
  mode.are_written_out = matile::window_turns(ops) <= grid.windows;
  if (grid.lanes == 1 && mode.are_written_out) collect_conditions(scope, ops);
  std::string inside = are_inside(scope);
  const std::string aligned =
      grid.is_line && (!grid.across || grid.spread > 0) ? are_aligned(scope, ops) : "";
  const bool has_asked = !scope.inside.asked.empty();
  const bool has_inside =
      grid.held > 0 || has_asked || !aligned.empty() || (grid.spread > 0 && !inside.empty());
  if (!has_inside) return write_block(scope, ops);
  if (!aligned.empty()) inside += " && " + aligned;
  const GlobalTensors globals = scope.globals;
  const std::string along = take_strides_of_one(scope);
  const bool has_edges = grid.spread > 0 && has_asked && !along.empty();
  if (has_edges)
    out.open("if ({}) {{", along);
  else if (!along.empty())
    inside += (inside.empty() ? "" : " && ") + along;
  if (inside.empty()) inside = "true";  // it only holds what loops read
  mode.are_lines_whole = !aligned.empty();
  write_inside(scope, ops, inside);
  mode.are_lines_whole = false;
  if (has_edges) {
    out.open_else();
    mode.is_near = true;
    write_block(scope, ops);
    mode.is_near = false;
    out.close();
  }
  scope.globals = globals;
  out.open_else();
  write_block(scope, ops);
  out.close();
}

}  // namespace

void write_body(PointsScope& scope, const ir::Block& ops) {
  scope.grid.is_patch ? write_patches(scope, ops) : write_texts(scope, ops);
}

}  // namespace nautilus::emit
