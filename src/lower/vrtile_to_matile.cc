// SPDX-License-Identifier: Apache-2.0
#include "lower/vrtile_to_matile.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/decl.h"
#include "ir/machine.h"
#include "ir/walk.h"
#include "lower/tile_lowering.h"
#include "matile/passes/finish_kernels.h"

namespace nautilus::lower {
namespace {

using ir::Op;

// Sizes, scalars, facts and tensors of a VR-tile program; nothing for tensors between kernels,
// which a nest alone only reads or only writes.
std::optional<ir::Block> declarations(const ir::Program& program, const Op* alone,
                                      FreshNames& names, std::string* why) {
  std::set<std::string> stored;
  if (alone) {
    ir::for_each_op({*alone}, [&](const Op& op) {
      if (const auto* s = op.get<vrtile::Store>()) stored.emplace(s->target.str());
    });
  }
  ir::Block out;
  for (const Op& op : program.body) {
    if (const auto* t = op.get<vrtile::Tensor>()) {
      if (t->role == vrtile::TensorRole::Temp && !alone) {
        *why = fmt::format("`{}` is passed from kernel to kernel", t->name.str());
        return std::nullopt;
      }
      names.take(t->name.str());
      // A nest alone reads what earlier kernels have written like an input.
      const bool is_given =
          t->role == vrtile::TensorRole::Input ||
          (t->role == vrtile::TensorRole::Temp && !stored.contains(std::string(t->name.str())));
      out.push_back(ir::make(
          matile::Tensor{t->name, t->type,
                         is_given ? matile::TensorRole::Input : matile::TensorRole::Output},
          op.span()));
    } else if (const auto* let = op.get<vrtile::Let>()) {
      names.take(let->name.str());
      out.push_back(ir::make(matile::Let{let->name, let->value}, op.span()));
    } else if (const auto* size = op.get<ir::Size>()) {
      names.take(size->name.str());
      out.push_back(ir::make(matile::Let{size->name, size->value}, op.span()));
    } else if (!op.is<vrtile::Par>()) {
      if (const auto* d = op.get<ir::Dim>()) names.take(d->name.str());
      if (const auto* p = op.get<ir::Param>()) names.take(p->name.str());
      out.push_back(op);
    }
  }
  return out;
}

// Every plan asks for the number of multiprocessors, once.
void declare_machine(ir::Program& program, expr::ExprPool& pool) {
  const bool is_there = std::any_of(program.body.begin(), program.body.end(),
                                    [](const Op& op) { return op.is<matile::Machine>(); });
  if (!is_there) program.body.push_back(ir::make(matile::Machine{ir::machine_name(program, pool)}));
}

std::optional<KernelParts> lower_with(const ir::Program& program, const Op& nest,
                                      std::string_view name, OperandPath usual_path,
                                      FreshNames& names, ir::PassContext& context, std::string* why,
                                      const Beside& beside) {
  auto parts = NestLowering(program, nest, name, names, context, usual_path, why, beside).run();
  if (!parts) return std::nullopt;
  // The kernel alone, as a program of its own: what a pass or the verifier finds is the reason.
  FreshNames ignored(context.pool);
  auto body = declarations(program, &nest, ignored, why);
  if (!body) return std::nullopt;
  ir::Program alone{&matile::level(), program.name, std::move(*body)};
  declare_machine(alone, context.pool);
  const size_t first = alone.body.size();
  for (const Op& op : parts->plan) alone.body.push_back(op);
  alone.body.push_back(parts->kernel);
  alone.body.push_back(parts->launch);
  std::optional<ir::Program> finished;
  if (matile::verify(alone, context.sink)) finished = matile::finish_kernels(alone, context);
  if (!finished) return std::nullopt;
  KernelParts out = *parts;
  out.plan.clear();
  for (size_t k = first; k < finished->body.size(); ++k) {
    const Op& op = finished->body[k];
    if (op.is<matile::Kernel>()) {
      out.kernel = op;
    } else if (op.is<matile::Launch>()) {
      out.launch = op;
    } else {
      out.plan.push_back(op);
    }
  }
  return out;
}

}  // namespace

std::optional<KernelParts> lower_tile_nest_form(const ir::Program& program, const Op& nest,
                                                std::string_view name, FreshNames& names,
                                                ir::PassContext& context, std::string* why,
                                                const Beside& beside) {
  return NestLowering(program, nest, name, names, context, OperandPath::Copied, why, beside).run();
}

std::optional<KernelParts> lower_tile_nest(const ir::Program& program, const Op& nest,
                                           std::string_view name, FreshNames& names,
                                           ir::PassContext& context, std::string* why,
                                           const Beside& beside) {
  // Copied boxes need slots and loading warps; a kernel that has none left reads elements.
  for (const OperandPath path : {OperandPath::Copied, OperandPath::Direct}) {
    FreshNames tried = names;
    diag::Sink sink(context.sink.sources());
    ir::Block decided = context.decided ? *context.decided : ir::Block{};
    ir::PassContext own = context.with(sink, decided);
    std::string failure;
    if (auto parts = lower_with(program, nest, name, path, tried, own, &failure, beside)) {
      names = tried;
      if (context.decided) *context.decided = std::move(decided);
      return parts;
    }
    *why = sink.all().empty() ? failure : sink.all()[0].message;
  }
  return std::nullopt;
}

expr::Expr copies_guard(const ir::Program& program, const KernelParts& parts,
                        expr::ExprPool& pool) {
  using EK = expr::Op;
  const expr::Facts facts = ir::facts_of(program, pool);
  expr::Simplifier simplifier(pool);
  expr::Expr guard;
  const auto require = [&](expr::Expr condition) {
    condition = simplifier.simplify(condition, &facts);
    if (condition.is_true() || facts.prove(condition) == expr::Truth::True) return;
    std::vector<expr::Expr> known;
    for (expr::Expr e = guard; e; e = e.op() == EK::And ? e[0] : expr::Expr())
      known.push_back(e.op() == EK::And ? e[1] : e);
    if (std::find(known.begin(), known.end(), condition) != known.end()) return;
    guard = guard ? pool.binary(EK::And, guard, condition) : condition;
  };
  for (const Op& op : parts.plan) {
    const auto* map = op.get<matile::Map>();
    if (!map) continue;
    for (const Op& declared : program.body) {
      const auto* t = declared.get<vrtile::Tensor>();
      if (!t || t->name != map->value.name()) continue;
      for (expr::Expr dim : t->type.dims) require(pool.binary(EK::Ge, dim, pool.integer(1)));
      const expr::Expr grain = pool.integer(16 / expr::bytes(t->type.dtype));
      require(
          pool.binary(EK::Eq, pool.binary(EK::Mod, t->type.dims.back(), grain), pool.integer(0)));
    }
  }
  return guard;
}

std::optional<ir::Program> vrtile_to_matile(const ir::Program& program, ir::PassContext& context) {
  FreshNames names(context.pool);
  names.take(ir::machine_name(program, context.pool).str());
  std::string why;
  auto body = declarations(program, nullptr, names, &why);
  if (!body) {
    context.sink.report(diag::Code::BadPass, {}, why);
    return std::nullopt;
  }
  ir::Program out{&matile::level(), program.name, std::move(*body)};
  declare_machine(out, context.pool);
  for (const Op& op : program.body) {
    if (!op.is<vrtile::Par>()) continue;
    auto parts = lower_tile_nest_form(program, op, program.name + "_kernel", names, context, &why);
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
