// SPDX-License-Identifier: Apache-2.0
#include "schedule/apply/round.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "ir/walk.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

// A rounded copy of what a statement computes.
struct RoundedCopy {
  const Statement& of;
  ir::Name name;
  expr::DType dtype;
};

ir::Name name_of_copy(const ir::Program& program, std::string_view temp, expr::DType dtype,
                      expr::ExprPool& pool) {
  std::set<std::string_view> names;
  for (const ir::Op& op : program.body) {
    if (const auto* b = op.get<scalar::Buffer>()) names.insert(b->name.str());
  }
  std::string name = fmt::format("{}.{}", temp, expr::name(dtype));
  while (names.contains(name)) name += "_";
  return pool.name(name);
}

// Reads in products with a factor of that dtype become reads of the copy; by ops of the program.
std::map<size_t, expr::Substitution> reads_of_copy(const RoundedCopy& copy,
                                                   const StatementList& list,
                                                   expr::ExprPool& pool) {
  std::map<size_t, expr::Substitution> changes;
  for (const Statement& q : list.statements) {
    if (q.is_opaque || q.id == copy.of.id || !q.is_reduction() || q.reducer != expr::Reducer::Sum)
      continue;
    const auto factors = algebra::factors(q.value);
    const bool is_partner = std::any_of(factors.begin(), factors.end(), [&](Expr f) {
      return algebra::is_half_element(f) && algebra::element_of(f).dtype() == copy.dtype;
    });
    if (!is_partner) continue;
    for (Expr f : factors) {
      if (f.op() != Op::Read || f.name() != copy.of.target) continue;
      const Expr read = pool.read(copy.name, copy.dtype, f.args());
      for (size_t k : q.ops) changes[k].emplace(f, pool.cast(f.dtype(), read));
    }
  }
  return changes;
}

// The nest that fills the copy.
ir::Op copying_nest(const RoundedCopy& copy, diag::Span span, expr::ExprPool& pool) {
  ir::Exprs indices;
  for (const ir::Axis& a : copy.of.axes) indices.push_back(pool.index(a.name));
  const Expr value = pool.cast(copy.dtype, pool.read(copy.of.target, copy.of.dtype, indices));
  scalar::For nest{copy.of.axes, scalar::LoopKind::Map, {}};
  nest.body.push_back(ir::make(scalar::Store{copy.name, indices, value}, span));
  return ir::make(std::move(nest), span);
}

}  // namespace

Outcome<ir::Program> round_operand(const ir::Program& program, std::string_view temp,
                                   expr::DType dtype, expr::ExprPool& pool) {
  const StatementList list = statements_of(program, pool);
  const auto writer = list.writer.find(temp);
  if (writer == list.writer.end())
    return Rejection{"round", fmt::format("there is no statement `{}`", temp)};
  const Statement& s = list.statements[static_cast<size_t>(writer->second)];
  if (ir::numerics_of(program).rounding == ir::Rounding::Exact)
    return Rejection{"round", "`numerics exact` forbids rounding an operand"};
  if (s.is_opaque || s.axes.empty() || s.dtype != expr::DType::F32 ||
      (dtype != expr::DType::BF16 && dtype != expr::DType::F16))
    return Rejection{"round", fmt::format("`{}` is no f32 tensor with axes, or {} no 16-bit float",
                                          temp, expr::name(dtype))};
  const RoundedCopy copy{s, name_of_copy(program, temp, dtype, pool), dtype};
  const auto changes = reads_of_copy(copy, list, pool);
  if (changes.empty())
    return Rejection{"round",
                     fmt::format("no contraction with {} reads `{}`", expr::name(dtype), temp)};
  ir::Program out{program.level, program.name, {}};
  for (size_t k = 0; k < program.body.size(); ++k) {
    const ir::Op& op = program.body[k];
    const auto change = changes.find(k);
    out.body.push_back(change == changes.end() ? op : ir::map_exprs(op, [&](Expr e) {
      return expr::substitute(pool, e, change->second);
    }));
    const auto* b = op.get<scalar::Buffer>();
    if (b && b->name == s.target)
      out.body.push_back(ir::make(
          scalar::Buffer{copy.name, {dtype, b->type.dims}, scalar::Role::Temp}, op.span()));
    if (k == s.ops.back()) out.body.push_back(copying_nest(copy, op.span(), pool));
  }
  return out;
}

std::map<std::string, expr::DType> operands_to_round(const StatementList& list,
                                                     const std::vector<Kernel>& kernels) {
  std::map<std::string, expr::DType> out;
  for (const Kernel& k : kernels) {
    for (const Dot& d : k.fusion.dots) {
      const Expr a = d.a[0];
      if (d.a.size() != 1 || a.op() != Op::Read || a.dtype() != expr::DType::F32 ||
          k.fusion.find(a))
        continue;
      const Statement* s = list.producer(a.name());
      if (!s || s->is_opaque || s->axes.empty()) continue;
      out.emplace(a.name().str(), d.column_element.dtype());
    }
  }
  return out;
}

}  // namespace nautilus::schedule
