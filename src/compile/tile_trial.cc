// SPDX-License-Identifier: Apache-2.0
#include "compile/tile_trial.h"

#include <algorithm>
#include <unordered_set>

#include "compile/kernels.h"
#include "compile/plain_names.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/points_kernel.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::compile {
namespace {

// Names that expressions or targets of the op have.
void add_names(const ir::Op& op, std::unordered_set<ir::Name>& names) {
  ir::for_each_expr(op, [&](expr::Expr root) {
    expr::for_each(root, [&](expr::Expr e) {
      if (e.op() == expr::Op::Read || e.op() == expr::Op::Var) names.insert(e.name());
    });
  });
  ir::for_each_op({op}, [&](const ir::Op& inner) {
    for (const ir::Field& f : inner.info().fields) {
      if (f.kind == ir::FieldKind::Name) names.insert(ir::field_value<ir::Name>(inner.data(), f));
    }
  });
}

// This nest and the declarations that it needs: what other statements write is given.
ir::Program alone(const ir::Program& program, const ir::Op& nest) {
  const std::set<std::string> written = lower::written_by(lower::MapNest{{}, {nest}});
  std::unordered_set<ir::Name> names;
  add_names(nest, names);
  ir::Program out{program.level, program.name, {}};
  auto loop = nest.as<scalar::For>();
  loop.combine = scalar::Combine::Kernel;  // what follows is not here
  out.body.push_back(ir::make(std::move(loop), nest.span()));
  // From the last to the first: what a declaration names is declared before it.
  for (auto it = program.body.rbegin(); it != program.body.rend(); ++it) {
    const ir::Op& op = *it;
    if (const auto* b = op.get<scalar::Buffer>()) {
      if (!names.contains(b->name)) continue;
      scalar::Buffer buffer = *b;
      if (buffer.role != scalar::Role::Local) {
        buffer.role = written.contains(std::string(b->name.str())) ? scalar::Role::Output
                                                                   : scalar::Role::Input;
      }
      out.body.push_back(ir::make(std::move(buffer), op.span()));
      add_names(op, names);
    } else if (const auto* s = op.get<ir::Size>()) {
      if (!names.contains(s->name)) continue;
      out.body.push_back(op);
      add_names(op, names);
    } else if (op.is<ir::Dim>() || op.is<ir::Static>() || op.is<ir::Param>() || op.is<ir::Fact>() ||
               op.is<ir::Numerics>() || op.is<ir::Target>() || op.is<ir::Machine>()) {
      out.body.push_back(op);
    }
  }
  std::reverse(out.body.begin(), out.body.end());
  return out;
}

std::string first_message(const diag::Sink& sink) {
  return sink.all().empty() ? "no reason was given" : sink.all()[0].message;
}

}  // namespace

size_t TileTrials::Hash::operator()(const ir::Program& program) const {
  size_t h = 0;
  for (const ir::Op& op : program.body) h = h * 31 + ir::hash(op);
  return h;
}

std::string TileTrials::refusal(const ir::Program& program, const ir::Op& nest,
                                ir::PassContext& context) {
  const ir::Program own = alone(program, nest);
  // Equal equations of different tensors have nests that differ only in names, and names affect
  // only the text of a refusal.
  const ir::Program plain = with_plain_names(own, context.pool);
  return lowered(plain, context).empty() ? "" : lowered(own, context);
}

std::vector<std::string> TileTrials::refusals() const {
  std::vector<std::string> out;
  for (const auto& [program, why] : known_) {
    if (!why.empty()) out.push_back(why);
  }
  return out;
}

const std::string& TileTrials::lowered(const ir::Program& program, ir::PassContext& context) {
  if (const auto it = known_.find(program); it != known_.end()) return it->second;
  diag::Sink sink(context.sink.sources());
  ir::PassContext quiet{context.pool, sink, context.disabled_rules};
  const auto kernel = program_to_matile(program, quiet);
  const bool is_kernel = kernel && matile::verify_final(*kernel, sink);
  return known_.emplace(program, is_kernel ? "" : first_message(sink)).first->second;
}

}  // namespace nautilus::compile
