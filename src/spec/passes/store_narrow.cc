// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/store_narrow.h"

#include <map>
#include <set>

#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;

bool is_widened_half(Expr e) {
  if (e.op() != expr::Op::Cast || e.dtype() != DType::F32) return false;
  const bool is_half = e[0].dtype() == DType::BF16 || e[0].dtype() == DType::F16;
  // A plain element of a tensor is in memory already.
  return is_half && e[0].op() == expr::Op::Cast;
}

}  // namespace

std::optional<ir::Program> store_narrow(const ir::Program& program, ir::PassContext& context) {
  std::set<std::string> kept;
  for (ir::Name name : outputs(program)) kept.emplace(name.str());
  std::map<std::string, DType> narrow;
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
      const auto it = narrow.find(std::string(e.name().str()));
      if (it == narrow.end()) return e;
      return context.pool.cast(e.dtype(), context.pool.read(e.name(), it->second, e.args()));
    });
    if (!kept.contains(std::string(let->name.str())) && is_widened_half(copy.body)) {
      copy.body = copy.body[0];
      copy.dtype = copy.body.dtype();
      narrow.emplace(let->name.str(), copy.dtype);
    }
    out.body.push_back(ir::make(std::move(copy), op.span()));
  }
  return out;
}

}  // namespace nautilus::spec
