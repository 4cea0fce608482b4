// SPDX-License-Identifier: Apache-2.0
#include "compile/tile_trial.h"

#include "compile/kernels.h"
#include "lower/points/points_kernel.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::compile {
namespace {

// The declarations and this nest: what other statements write is given.
ir::Program alone(const ir::Program& program, const ir::Op& nest) {
  const std::set<std::string> written = lower::written_by(lower::MapNest{{}, {nest}});
  ir::Program out{program.level, program.name, {}};
  for (const ir::Op& op : program.body) {
    if (const auto* b = op.get<scalar::Buffer>()) {
      scalar::Buffer buffer = *b;
      if (buffer.role != scalar::Role::Local) {
        buffer.role = written.contains(std::string(b->name.str())) ? scalar::Role::Output
                                                                   : scalar::Role::Input;
      }
      out.body.push_back(ir::make(std::move(buffer), op.span()));
    } else if (op.is<ir::Dim>() || op.is<ir::Static>() || op.is<ir::Param>() || op.is<ir::Fact>() ||
               op.is<ir::Numerics>() || op.is<ir::Target>() || op.is<ir::Size>() ||
               op.is<ir::Machine>()) {
      out.body.push_back(op);
    }
  }
  auto loop = nest.as<scalar::For>();
  loop.combine = scalar::Combine::Kernel;  // what follows is not here
  out.body.push_back(ir::make(std::move(loop), nest.span()));
  return out;
}

std::string first_message(const diag::Sink& sink) {
  return sink.all().empty() ? "no reason was given" : sink.all()[0].message;
}

}  // namespace

std::string tile_refusal(const ir::Program& program, const ir::Op& nest, ir::PassContext& context) {
  diag::Sink sink(context.sink.sources());
  ir::PassContext own{context.pool, sink, context.disabled_rules};
  const auto kernel = program_to_matile(alone(program, nest), own);
  if (!kernel) return first_message(sink);
  if (!matile::verify_final(*kernel, sink)) return first_message(sink);
  return "";
}

}  // namespace nautilus::compile
