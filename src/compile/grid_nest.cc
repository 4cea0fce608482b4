// SPDX-License-Identifier: Apache-2.0
#include "compile/grid_nest.h"

#include <set>

#include "choose/tiles/choose_tile_lines.h"
#include "compile/kernels.h"
#include "compile/manager.h"
#include "decision/lines.h"
#include "ir/walk.h"
#include "lower/tiles/tile_loads.h"
#include "lower/tiles/vrtile_to_matile.h"
#include "lower/to_vrtile/scalar_to_vrtile.h"
#include "matile/ops.h"
#include "scalar/ops.h"
#include "vrtile/ops.h"

namespace nautilus::compile {
namespace {

using ir::Op;
using lower::FreshNames;
using lower::LoweredKernel;

const Op* nest_of(const ir::Program& tiles) {
  for (const Op& op : tiles.body) {
    if (op.is<vrtile::Par>()) return &op;
  }
  return nullptr;
}

// The kernel alone, as a program of its own, through its passes: what one of them or the verifier
// finds is the reason.
std::optional<LoweredKernel> finished(const ir::Program& tiles, const LoweredKernel& parts,
                                      ir::PassContext& context) {
  FreshNames ignored(context.pool);
  ir::Program alone = lower::tile_declarations(tiles, ignored, context.pool);
  const size_t first = alone.body.size();
  for (const Op& op : parts.plan) alone.body.push_back(op);
  alone.body.push_back(parts.kernel);
  alone.body.push_back(parts.launch);
  trace(the_pass("vrtile_to_matile"), alone, context);
  std::optional<ir::Program> done;
  if (matile::verify(alone, context.sink)) done = finish_kernels(alone, context);
  if (!done) return std::nullopt;
  LoweredKernel out = parts;
  out.plan.clear();
  for (size_t k = first; k < done->body.size(); ++k) {
    const Op& op = done->body[k];
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

// Lines of the nest that somebody wrote, whoever reads them.
ir::Block written_lines(const ir::Program& tiles) {
  const Op* nest = nest_of(tiles);
  return nest ? decision::written(decision::lines(nest->as<vrtile::Par>().body)) : ir::Block{};
}

// Where somebody wrote lines, a kernel that cannot be made is a refusal of these; without them it
// is what the compiler itself should not have tried.
lower::NoKernel blamed(const ir::Block& written, lower::NoKernel refused) {
  if (written.empty() || refused.code == diag::Code::DecisionRefused) return refused;
  return {decision::refusal(written, refused.why), diag::Code::DecisionRefused};
}

// The first message is the reason; without one, `other`.
lower::NoKernel no_kernel(const diag::Sink& sink, std::string other) {
  if (sink.all().empty()) return {std::move(other)};
  const diag::Diagnostic& first = sink.all()[0];
  const bool is_line = first.code == diag::Code::DecisionRefused;
  return {first.message, is_line ? first.code : diag::Code::BadPass};
}

// One attempt: its messages are the reason, and its decisions count, if it succeeds. `last`: the
// nest with its lines as it was tried before. The same lines would be the same kernel: that is
// asked, not tried.
std::optional<LoweredKernel> lower_with(const ir::Program& tiles, decision::OperandPath path,
                                        std::optional<Op>& last, FreshNames& names,
                                        ir::PassContext& context, lower::NoKernel* refused) {
  TraceAttempt attempt(context);
  FreshNames tried = names;
  diag::Sink sink(context.sink.sources());
  ir::Block decided = context.decided ? *context.decided : ir::Block{};
  ir::PassContext own = context.with(sink, decided);
  std::string failure;
  // What no line says is decided before the nest is lowered, which only reads lines.
  const auto nest = choose::with_tile_lines(tiles, *nest_of(tiles), path, own, &failure);
  if (nest && last && *nest == *last) return std::nullopt;  // for the reason that is known
  last = nest;
  std::optional<LoweredKernel> parts;
  if (nest) {
    const ir::Program complete = tile_unit(tiles, *nest, tiles.name);
    if (!(complete == tiles)) trace(the_pass("choose_tile_lines"), complete, own);
    parts = lower::lower_tile_nest({complete, *nest_of(complete), complete.name}, nullptr, tried,
                                   own, &failure);
  }
  auto out = parts ? finished(tiles, *parts, own) : std::nullopt;
  if (!out) {
    *refused = no_kernel(sink, failure.empty() ? "a pass refused it" : failure);
    return std::nullopt;
  }
  names = tried;
  if (context.decided) *context.decided = std::move(decided);
  attempt.keep();
  return out;
}

}  // namespace

ir::Program tile_unit(const ir::Program& tiles, const Op& nest, std::string name) {
  std::set<std::string> stored;
  ir::for_each_op({nest}, [&](const Op& op) {
    if (const auto* s = op.get<vrtile::Store>()) stored.emplace(s->target.str());
  });
  ir::Program unit{tiles.level, std::move(name), {}};
  for (const Op& op : tiles.body) {
    if (const auto* t = op.get<vrtile::Tensor>()) {
      const bool is_stored = stored.contains(std::string(t->name.str()));
      const auto role = is_stored ? vrtile::TensorRole::Output : vrtile::TensorRole::Input;
      unit.body.push_back(ir::make(vrtile::Tensor{t->name, t->type, role}, op.span()));
    } else if (!op.is<vrtile::Par>()) {
      unit.body.push_back(op);
    }
  }
  unit.body.push_back(nest);
  return unit;
}

std::optional<LoweredKernel> lower_tiles(const ir::Program& program, const std::string& after,
                                         FreshNames& names, ir::PassContext& context,
                                         lower::NoKernel* refused) {
  TraceAttempt attempt(context);
  // A refusal of a stage is a reason here, not an error: the caller has another form.
  diag::Sink sink(context.sink.sources());
  ir::Block decided = context.decided ? *context.decided : ir::Block{};
  ir::PassContext own = context.with(sink, decided);
  const ir::Block written = written_lines(program);
  std::optional<ir::Program> tiles = program;
  for (const PassInfo* pass : passes_after(Stage::Tiles, after)) {
    tiles = apply(*pass, *tiles, own);
    if (!tiles) {
      *refused = blamed(written, no_kernel(sink, "a pass of the tile level refused it"));
      return std::nullopt;
    }
  }
  if (!nest_of(*tiles)) {
    *refused = blamed(written, {"nothing of it is left"});
    return std::nullopt;
  }
  // Copied boxes need slots and loading warps; a kernel that has none left reads elements.
  using decision::OperandPath;
  std::optional<Op> last;
  auto parts = lower_with(*tiles, OperandPath::Copied, last, names, own, refused);
  if (!parts) parts = lower_with(*tiles, OperandPath::Direct, last, names, own, refused);
  if (!parts) {
    *refused = blamed(written, std::move(*refused));
    return std::nullopt;
  }
  if (context.decided) *context.decided = std::move(decided);
  attempt.keep();
  return parts;
}

std::optional<LoweredKernel> lower_grid_nest(const ir::Program& program, const Op& nest,
                                             std::string_view name, FreshNames& names,
                                             ir::PassContext& context, lower::NoKernel* refused) {
  TraceAttempt attempt(context);
  diag::Sink sink(context.sink.sources());
  ir::Block decided = context.decided ? *context.decided : ir::Block{};
  ir::PassContext own = context.with(sink, decided);
  const auto tiles = lower::nest_to_vrtile(program, nest, own);
  if (!tiles || !nest_of(*tiles)) {
    const ir::Block lines = decision::lines(nest.as<scalar::For>().body);
    *refused = blamed(decision::written(lines), no_kernel(sink, "nothing of it is left"));
    return std::nullopt;
  }
  if (std::string why = lower::refuse_second_operands(*tiles, *nest_of(*tiles), context.pool);
      !why.empty()) {
    const ir::Block lines = decision::lines(nest.as<scalar::For>().body);
    *refused = blamed(decision::written(lines), {std::move(why)});
    return std::nullopt;
  }
  const std::string kernel(FreshNames(names).make(name).str());
  const ir::Program unit = tile_unit(*tiles, *nest_of(*tiles), kernel);
  trace(the_pass("scalar_to_vrtile"), unit, own);
  auto parts = lower_tiles(unit, "", names, own, refused);
  if (!parts) return std::nullopt;
  if (context.decided) *context.decided = std::move(decided);
  attempt.keep();
  return parts;
}

}  // namespace nautilus::compile
