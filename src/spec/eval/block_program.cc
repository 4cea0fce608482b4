// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/block_program.h"

#include <cmath>

#include "expr/walk.h"

namespace nautilus::spec {

using expr::DType;
using expr::Op;
using expr::Value;
using ir::Expr;

double constant_bound(Op op, DType dtype, Value value) {
  if (op != Op::FloatConst || !std::isfinite(value.f)) return 0;
  return std::fabs(expr::round_to(dtype, value.f) - value.f);
}

BlockProgram::BlockProgram(Expr body, const ir::Axes& axes, int run_axis,
                           const BoundedTensors& tensors, const ir::Environment& env,
                           expr::Functions functions)
    : axes_(axes), run_axis_(run_axis), tensors_(tensors), env_(env), functions_(functions) {
  compile(body, -1);
}

int BlockProgram::emit(Instruction instruction) {
  code_.push_back(std::move(instruction));
  return static_cast<int>(code_.size()) - 1;
}

bool BlockProgram::has_read(Expr e) {
  if (const auto it = has_read_.find(e); it != has_read_.end()) return it->second;
  bool found = e.op() == Op::Read;
  for (Expr a : e.args()) found |= has_read(a);
  has_read_.emplace(e, found);
  return found;
}

// Kernels may convert an index in two parts.
bool BlockProgram::is_coarse_position(Expr e) {
  if (functions_ != expr::Functions::Coarse || e.op() != Op::Cast || e.dtype() != DType::F32 ||
      e[0].dtype() != DType::I64 || has_read(e))
    return false;
  bool has_axis = false;
  expr::for_each(e, [&](Expr x) {
    if (x.op() != Op::Var) return;
    for (const auto& a : axes_) has_axis |= a.name == x.name();
  });
  return has_axis;
}

int BlockProgram::use(Instruction& in, int reg) const {
  in.is_varying |= code_[static_cast<size_t>(reg)].is_varying;
  in.is_exact &= code_[static_cast<size_t>(reg)].is_exact;
  return reg;
}

int BlockProgram::compile(Expr e, int mask) {
  if (!has_read(e)) mask = -1;
  const auto slot = static_cast<size_t>(mask + 1);
  if (memo_.size() <= slot) memo_.resize(slot + 1);
  if (const auto it = memo_[slot].find(e); it != memo_[slot].end()) return it->second;

  // Widening changes neither value nor bound.
  if (e.op() == Op::Cast && is_float(e.dtype()) && is_float(e[0].dtype()) &&
      expr::holds_every_value(e.dtype(), e[0].dtype())) {
    const int reg = compile(e[0], mask);
    // The body's result is the last register; a widening at the root must not hide it behind an
    // operand's.
    if (reg == static_cast<int>(code_.size()) - 1) {
      memo_[slot].emplace(e, reg);
      return reg;
    }
  }
  const int reg = emit(instruction_of(e, mask));
  if (memo_.size() <= slot) memo_.resize(slot + 1);
  memo_[slot].emplace(e, reg);
  return reg;
}

Instruction BlockProgram::instruction_of(Expr e, int mask) {
  Instruction in{.op = e.op(), .dtype = e.dtype(), .operand = e.dtype()};
  switch (e.op()) {
    case Op::IntConst:
    case Op::BoolConst:
    case Op::FloatConst:
      in.constant = ir::evaluate(e, env_);
      in.is_exact = constant_bound(e.op(), e.dtype(), in.constant) == 0;
      break;
    case Op::Var:
      for (size_t k = 0; k < axes_.size(); ++k) {
        if (axes_[k].name == e.name()) in.axis = static_cast<int>(k);
      }
      if (in.axis < 0) in.constant = ir::evaluate(e, env_);
      in.is_varying = in.axis >= 0 && in.axis == run_axis_;
      break;
    case Op::Read:
      take_read(in, e, mask);
      break;
    case Op::Select:
      in.args[0] = use(in, compile(e[0], mask));
      for (int branch = 1; branch <= 2; ++branch) {
        const Expr x = e[static_cast<size_t>(branch)];
        const int inner = has_read(x) ? branch_mask(in.args[0], branch == 1, mask) : -1;
        in.args[branch] = use(in, compile(x, inner));
      }
      break;
    default:
      take_operation(in, e, mask);
  }
  return in;
}

void BlockProgram::take_read(Instruction& in, Expr e, int mask) {
  in.tensor = &tensors_.find(e.name().str())->second;
  in.name = e.name().str();
  in.strides = expr::strides_of(in.tensor->value.shape);
  in.is_strided = true;
  for (Expr i : e.args()) {
    in.indices.push_back(use(in, compile(i, mask)));
    const Instruction& index = code_[static_cast<size_t>(in.indices.back())];
    in.is_strided &=
        index.is_exact && (!index.is_varying || (index.op == Op::Var && index.axis == run_axis_));
  }
  in.is_exact &= in.tensor->bound.empty();
  if (mask >= 0) in.mask = use(in, mask);
}

// The register that says where a branch of `where` is evaluated.
int BlockProgram::branch_mask(int condition, bool is_first, int mask) {
  const auto logic = [&](Op op, int left, int right) {
    Instruction in{.op = op, .dtype = DType::Bool, .operand = DType::Bool};
    in.args[0] = use(in, left);
    if (right >= 0) in.args[1] = use(in, right);
    return emit(std::move(in));
  };
  const int inner = is_first ? condition : logic(Op::Not, condition, -1);
  return mask >= 0 ? logic(Op::And, mask, inner) : inner;
}

void BlockProgram::take_operation(Instruction& in, Expr e, int mask) {
  NAUT_CHECK(e.op() != Op::Reduce, "a nested reduction reached the evaluator");
  for (size_t i = 0; i < e.args().size(); ++i) in.args[i] = use(in, compile(e[i], mask));
  in.operand = e.args().back().dtype();
  // Float arithmetic rounds in a kernel; moving, comparing and integer arithmetic do not.
  if (is_float(e.dtype()) && e.op() != Op::Cast && e.op() != Op::Neg && e.op() != Op::Abs &&
      e.op() != Op::Min && e.op() != Op::Max && e.op() != Op::Floor && e.op() != Op::Round) {
    in.is_exact = false;
  }
  in.is_position = is_coarse_position(e);
  in.is_exact &= !in.is_position;
}

}  // namespace nautilus::spec
