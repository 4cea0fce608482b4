// SPDX-License-Identifier: Apache-2.0
#include "lower/program_nests.h"

#include <span>

#include "expr/walk.h"
#include "ir/machine.h"
#include "ir/walk.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::lower {
namespace {

using ir::Op;

void declare(const Op& op, ir::Name machine, ProgramNests& out, expr::ExprPool& pool) {
  const auto take = [&](ir::Name name) {
    out.names.take(name.str());
    out.has_own_machine |= name == machine;
  };
  if (const auto* d = op.get<ir::Dim>()) take(d->name);
  if (const auto* p = op.get<ir::Param>()) take(p->name);
  if (const auto* s = op.get<ir::Static>()) take(s->name);
  if (const auto* s = op.get<ir::Size>()) {
    take(s->name);
    out.has_sizes = true;
    out.computed.insert(pool.index(s->name));
  }
  out.has_sizes |= op.is<ir::Machine>();
  if (const auto* b = op.get<scalar::Buffer>()) {
    take(b->name);
    out.buffers.emplace(b->name.str(), b->type);
    if (b->role == scalar::Role::Output) out.outputs.emplace(b->name.str());
    if (b->role == scalar::Role::Local) out.locals.emplace(b->name.str());
  }
}

void add_nest(const Op& op, std::vector<MapNest>& nests) {
  MapNest nest = map_nest(op);
  const bool is_behind_rank_zero =
      nest.axes.empty() && !nests.empty() && nests.back().axes.empty() && !is_grid(nests.back());
  const bool is_loop = op.is<scalar::For>() && !is_grid(nest);
  // argmax has two inits.
  const bool is_init =
      op.is<scalar::Init>() && is_behind_rank_zero && nests.back().body.back().is<scalar::Init>();
  if (is_behind_rank_zero && (is_loop || is_init))
    nests.back().body.push_back(op);
  else
    nests.push_back(std::move(nest));
}

}  // namespace

bool is_grid(const MapNest& nest) {
  const auto* f = nest.body[0].get<scalar::For>();
  return f && f->kind == scalar::LoopKind::Grid;
}

bool is_declaration(const Op& op) {
  return op.is<ir::Dim>() || op.is<ir::Static>() || op.is<ir::Param>() || op.is<ir::Fact>() ||
         op.is<ir::Numerics>() || op.is<ir::Target>();
}

ProgramNests program_nests(const ir::Program& program, expr::ExprPool& pool) {
  ProgramNests out(pool);
  const ir::Name machine = ir::machine_name(program, pool);
  for (const Op& op : program.body) {
    if (op.is<scalar::Kernel>()) continue;
    const bool is_declared =
        op.is<scalar::Buffer>() || is_declaration(op) || op.is<ir::Machine>() || op.is<ir::Size>();
    if (is_declared)
      declare(op, machine, out, pool);
    else
      add_nest(op, out.nests);
  }
  for (const MapNest& nest : out.nests) {
    const auto look = [&](const ir::Axes& axes) {
      for (const ir::Axis& a : axes) out.has_own_machine |= a.name == machine;
    };
    look(nest.axes);
    ir::for_each_op(nest.body, [&](const Op& op) {
      if (const auto* f = op.get<scalar::For>()) look(f->axes);
    });
  }
  out.names.take(machine.str());
  return out;
}

std::set<std::string> kept_for(std::set<std::string> outputs, std::span<const MapNest> nests) {
  for (const MapNest& nest : nests) {
    for (const Op& op : nest.body) {
      ir::for_each_expr(op, [&](expr::Expr e) {
        for (ir::Name t : expr::tensors_read(e)) outputs.emplace(t.str());
      });
    }
  }
  return outputs;
}

std::set<std::string> ProgramNests::kept_after(size_t begin) const {
  return kept_for(outputs, std::span<const MapNest>(nests).subspan(begin));
}

void ProgramNests::add(LoweredKernel parts) {
  for (Op& op : parts.plan) kernels.push_back(std::move(op));
  kernels.push_back(std::move(parts.kernel));
  kernels.push_back(std::move(parts.launch));
}

}  // namespace nautilus::lower
