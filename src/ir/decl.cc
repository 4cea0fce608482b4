// SPDX-License-Identifier: Apache-2.0
#include "ir/decl.h"

#include <algorithm>

namespace nautilus::ir {

NAUT_DEFINE_OP(Dim)
NAUT_DEFINE_OP(Static)
NAUT_DEFINE_OP(Machine)
NAUT_DEFINE_OP(Size)
NAUT_DEFINE_OP(Param)
NAUT_DEFINE_OP(Fact)
NAUT_DEFINE_OP(Numerics)
NAUT_DEFINE_OP(Target)

const std::vector<std::string_view>& words(HintKind) {
  static const std::vector<std::string_view> spellings = {"example", "asked"};
  return spellings;
}

const std::vector<std::string_view>& words(Rounding) {
  static const std::vector<std::string_view> spellings = {"licensed", "exact", "bf16", "tf32"};
  return spellings;
}

double operand_roundoff(Rounding rounding) {
  switch (rounding) {
    case Rounding::Licensed:
    case Rounding::Exact:
      return 0;
    case Rounding::Bf16:
      return expr::unit_roundoff(DType::BF16);
    case Rounding::Tf32:
      return 0x1p-11;  // ten bits behind the first one
  }
  return 0;
}

bool declare_decl(const Op& op, expr::Scope& scope) {
  if (const auto* dim = op.get<Dim>()) {
    scope.add_var(dim->name.str(), DType::I64);
  } else if (const auto* param = op.get<Param>()) {
    scope.add_var(param->name.str(), param->dtype);
  } else if (const auto* machine = op.get<Machine>()) {
    scope.add_var(machine->name.str(), DType::I64);
  } else if (const auto* size = op.get<Size>()) {
    scope.add_var(size->name.str(), DType::I64);
  } else {
    return op.is<Static>() || op.is<Fact>() || op.is<Numerics>() || op.is<Target>();
  }
  return true;
}

expr::Facts facts_of(const Program& program, expr::ExprPool& pool) {
  expr::Facts facts;
  for (const Op& op : program.body) {
    if (const auto* dim = op.get<Dim>()) facts.add_size(pool.index(dim->name));
  }
  for (const Op& op : program.body) {
    if (const auto* fact = op.get<Fact>()) facts.assume(fact->condition);
    if (const auto* machine = op.get<Machine>())
      facts.assume(pool.binary(expr::Op::Ge, pool.index(machine->name), pool.integer(1)));
    const auto* size = op.get<Size>();
    if (!size) continue;
    const Expr var = pool.index(size->name);
    facts.add_size(var);
    const bool is_above = size->value.op() == expr::Op::Max;
    if (is_above && size->value[0].op() == expr::Op::IntConst)
      facts.assume(pool.binary(expr::Op::Ge, var, size->value[0]));
    if (is_above && size->value[1].op() == expr::Op::IntConst)
      facts.assume(pool.binary(expr::Op::Ge, var, size->value[1]));
  }
  return facts;
}

Numerics numerics_of(const Program& program) {
  for (const Op& op : program.body) {
    if (const auto* n = op.get<Numerics>()) return *n;
  }
  return {};
}

bool allows_coarse_functions(const Program& program, const std::vector<DType>& outputs) {
  if (numerics_of(program).rounding == Rounding::Exact) return false;
  return std::all_of(outputs.begin(), outputs.end(),
                     [](DType d) { return expr::is_float(d) && expr::bytes(d) <= 2; });
}

}  // namespace nautilus::ir
