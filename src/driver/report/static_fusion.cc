// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "driver/load/load.h"
#include "driver/report/warnings.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "ir/walk.h"

namespace nautilus::driver {
namespace {

// The program with these sizes fixed when compiling.
ir::Program with_statics(const ir::Program& program, const std::map<std::string, int64_t>& sizes,
                         expr::ExprPool& pool) {
  expr::Substitution values;
  for (const auto& [name, size] : sizes)
    values.emplace(pool.var(pool.name(name), expr::DType::I64), pool.integer(size));
  ir::Program out = program;
  for (ir::Op& op : out.body) {
    const auto* d = op.get<ir::Dim>();
    const auto size = d ? sizes.find(std::string(d->name.str())) : sizes.end();
    if (size != sizes.end()) {
      op = ir::make(ir::Static{d->name, size->second}, op.span());
    } else {
      op = ir::map_exprs(op, [&](ir::Expr e) { return expr::substitute(pool, e, values); });
    }
  }
  return out;
}

// Launches of the program with these sizes static; nothing if it has no kernels so.
std::optional<size_t> launches_with(const ir::Program& program,
                                    const std::map<std::string, int64_t>& sizes, Unit& unit) {
  // In a unit of its own: messages about the changed program are not for the user.
  Unit own;
  own.target = unit.target;
  const auto fixed =
      load_text("static", ir::print(with_statics(program, sizes, unit.pool)), {}, own);
  std::string error;
  const auto kernels =
      fixed ? make_kernels(*fixed, {.has_notes = true}, own, &error) : std::nullopt;
  if (!kernels) return std::nullopt;
  const auto facts = program_facts(*fixed, *kernels, own);
  return facts ? std::optional(facts->launches.size()) : std::nullopt;
}

}  // namespace

void report_static_fusion(const ir::Program& program, const ProgramFacts& facts, Unit& unit) {
  // With nothing between kernels there is nothing to fuse.
  if (facts.passed.empty()) return;
  std::map<std::string, int64_t> dims;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) dims.emplace(d->name.str(), *d->hint);
  }
  const size_t now = facts.launches.size();
  const auto best = dims.empty() ? std::nullopt : launches_with(program, dims, unit);
  if (!best || *best >= now) return;
  // One size alone may do.
  std::string names;
  if (dims.size() > 1) {
    for (const auto& [name, size] : dims) {
      const auto alone = launches_with(program, {{name, size}}, unit);
      if (!alone || *alone > *best) continue;
      names = fmt::format("{} = {}", name, size);
      break;
    }
  }
  if (names.empty()) {
    for (const auto& [name, size] : dims)
      names += fmt::format("{}{} = {}", names.empty() ? "" : ", ", name, size);
  }
  unit.sink
      .report(
          diag::Code::StaticWouldFuse, place_of(program, facts.passed.front().name),
          fmt::format("the program takes {} launches, and {} with `static {}`", now, *best, names))
      .with_help(
          "a size that is known when compiling lets a kernel hold a whole axis; `nautilus "
          "build` and a program opened with sizes can have several such values");
}

}  // namespace nautilus::driver
