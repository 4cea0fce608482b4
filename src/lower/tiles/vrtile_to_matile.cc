// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/vrtile_to_matile.h"

#include <fmt/format.h>

#include "ir/decl.h"
#include "ir/machine.h"
#include "lower/tiles/tile_lowering.h"

namespace nautilus::lower {

using ir::Op;

ir::Program tile_declarations(const ir::Program& program, FreshNames& names, expr::ExprPool& pool) {
  ir::Program out{&matile::level(), program.name, {}};
  bool has_machine = false;
  for (const Op& op : program.body) {
    if (const auto* t = op.get<vrtile::Tensor>()) {
      names.take(t->name.str());
      const auto role = t->role == vrtile::TensorRole::Input    ? matile::TensorRole::Input
                        : t->role == vrtile::TensorRole::Output ? matile::TensorRole::Output
                                                                : matile::TensorRole::Temp;
      out.body.push_back(ir::make(matile::Tensor{t->name, t->type, role}, op.span()));
    } else if (const auto* let = op.get<vrtile::Let>()) {
      names.take(let->name.str());
      out.body.push_back(ir::make(matile::Let{let->name, let->value}, op.span()));
    } else if (const auto* size = op.get<ir::Size>()) {
      names.take(size->name.str());
      out.body.push_back(ir::make(matile::Let{size->name, size->value}, op.span()));
    } else if (!op.is<vrtile::Par>()) {
      if (const auto* d = op.get<ir::Dim>()) names.take(d->name.str());
      if (const auto* p = op.get<ir::Param>()) names.take(p->name.str());
      has_machine |= op.is<matile::Machine>();
      out.body.push_back(op);
    }
  }
  // Every plan asks for the number of multiprocessors, once.
  const ir::Name machine = ir::machine_name(program, pool);
  names.take(machine.str());
  if (!has_machine) out.body.push_back(ir::make(matile::Machine{machine}));
  return out;
}

std::optional<LoweredKernel> lower_tile_nest(const GridNest& nest, NestAnswers* rules,
                                             FreshNames& names, ir::PassContext& context,
                                             std::string* why) {
  return NestLowering(nest, names, context, rules, why).run();
}

std::optional<ir::Program> vrtile_to_matile(const ir::Program& program, ir::PassContext& context) {
  FreshNames names(context.pool);
  ir::Program out = tile_declarations(program, names, context.pool);
  for (const Op& op : program.body) {
    if (!op.is<vrtile::Par>()) continue;
    std::string why;
    auto parts = lower_tile_nest({program, op, program.name}, nullptr, names, context, &why);
    if (!parts) {
      context.sink.report(diag::Code::BadPass, op.span(),
                          fmt::format("this nest is no kernel of tiles: {}", why));
      return std::nullopt;
    }
    for (Op& p : parts->plan) out.body.push_back(std::move(p));
    out.body.push_back(std::move(parts->kernel));
    out.body.push_back(std::move(parts->launch));
  }
  // A shape that no op of a nest has shows here.
  if (!matile::verify(out, context.sink)) return std::nullopt;
  return out;
}

}  // namespace nautilus::lower
