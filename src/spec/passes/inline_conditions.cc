// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/inline_conditions.h"

#include <map>
#include <set>

#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {
namespace {

using expr::Expr;

// Longer ones are computed once.
constexpr size_t kMostNodes = 64;

bool is_condition(const Let& let) {
  if (expr::is_float(let.dtype) || expr::has_reduce(let.body)) return false;
  size_t nodes = 0;
  expr::for_each(let.body, [&](Expr) { ++nodes; });
  return nodes <= kMostNodes;
}

}  // namespace

std::optional<ir::Program> inline_conditions(const ir::Program& program, ir::PassContext& context) {
  std::set<std::string> kept;
  for (ir::Name name : outputs(program)) kept.emplace(name.str());
  std::map<std::string, Let> conditions;
  ir::Program out{program.level, program.name, {}};
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) {
      out.body.push_back(op);
      continue;
    }
    Let copy = *let;
    copy.body = expr::rebuild(context.pool, let->body, [&](Expr e) {
      if (e.op() != expr::Op::Read) return e;
      const auto it = conditions.find(std::string(e.name().str()));
      if (it == conditions.end()) return e;
      expr::Substitution at;
      for (size_t k = 0; k < it->second.axes.size(); ++k)
        at.emplace(context.pool.index(it->second.axes[k].name), e[k]);
      return expr::substitute(context.pool, it->second.body, at);
    });
    if (!kept.contains(std::string(let->name.str())) && is_condition(copy))
      conditions.emplace(let->name.str(), copy);
    else
      out.body.push_back(ir::make(std::move(copy), op.span()));
  }
  return out;
}

}  // namespace nautilus::spec
