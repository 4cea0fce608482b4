// SPDX-License-Identifier: Apache-2.0
#include "plan/code.h"

#include <algorithm>

#include "expr/print.h"

namespace nautilus::plan {

using expr::DType;
using expr::Value;
using Op = expr::Op;

void Code::push(Step step, int operands) {
  height_ += 1 - operands;
  depth_ = std::max(depth_, height_);
  steps_.push_back(step);
}

Code Code::of(expr::Expr e, const Slots& slots) {
  Code code;
  code.add(e, slots);
  return code;
}

void Code::add(expr::Expr e, const Slots& slots) {
  Step step;
  switch (e.op()) {
    case Op::IntConst:
    case Op::BoolConst:
      step.constant = expr::int_value(e.integer());
      return push(step, 0);
    case Op::FloatConst:
      step.constant = expr::float_value(e.number());
      step.result = e.dtype();
      return push(step, 0);
    case Op::Var: {
      const auto slot = slots.find(e.name().str());
      NAUT_CHECK(slot != slots.end(), "`{}` has no value", e.name().str());
      step.kind = Kind::Slot;
      step.index = slot->second;
      return push(step, 0);
    }
    case Op::Read:
    case Op::Reduce:
      NAUT_CHECK(false, "{} in an expression of sizes", expr::to_string(e));
    default:
      break;
  }
  for (expr::Expr arg : e.args()) add(arg, slots);
  step.kind = Kind::Apply;
  step.op = e.op();
  step.result = e.dtype();
  step.operand = e.args().back().dtype();
  step.index = static_cast<int>(e.args().size());
  if (e.dtype() == DType::I64 && step.operand == DType::I64) {
    switch (e.op()) {
      case Op::Add:
        step.kind = Kind::Add;
        break;
      case Op::Sub:
        step.kind = Kind::Sub;
        break;
      case Op::Mul:
        step.kind = Kind::Mul;
        break;
      case Op::FloorDiv:
        step.kind = Kind::FloorDiv;
        break;
      case Op::Mod:
        step.kind = Kind::Mod;
        break;
      case Op::Min:
        step.kind = Kind::Min;
        break;
      case Op::Max:
        step.kind = Kind::Max;
        break;
      default:
        break;
    }
  }
  push(step, step.index);
}

Code Code::of(const expr::Poly& poly, const Slots& slots) {
  Code code;
  Step step;
  bool is_first = true;
  for (const auto& [monomial, coefficient] : poly.terms()) {
    const bool has_factor = coefficient != 1 || monomial.empty();
    if (has_factor) {
      step.kind = Kind::Constant;
      step.constant = expr::int_value(coefficient);
      code.push(step, 0);
    }
    step.kind = Kind::Mul;
    for (size_t k = 0; k < monomial.size(); ++k) {
      code.add(monomial[k], slots);
      if (has_factor || k > 0) code.push(step, 2);
    }
    step.kind = Kind::Add;
    if (!is_first) code.push(step, 2);
    is_first = false;
  }
  if (is_first) code.push({}, 0);
  return code;
}

Value Code::run_steps(const Value* slots, Value* stack) const {
  Value* top = stack;  // behind the newest value
  for (const Step& s : steps_) {
    const auto binary = [&](int64_t value) { (--top)[-1].i = value; };
    switch (s.kind) {
      case Kind::Constant:
        *top++ = s.constant;
        break;
      case Kind::Slot:
        *top++ = slots[s.index];
        break;
      case Kind::Add:
        binary(expr::wrapping_add(top[-2].i, top[-1].i));
        break;
      case Kind::Sub:
        binary(expr::wrapping_sub(top[-2].i, top[-1].i));
        break;
      case Kind::Mul:
        binary(expr::wrapping_mul(top[-2].i, top[-1].i));
        break;
      case Kind::FloorDiv:
        binary(expr::floor_div(top[-2].i, top[-1].i));
        break;
      case Kind::Mod:
        binary(expr::floor_mod(top[-2].i, top[-1].i));
        break;
      case Kind::Min:
        binary(std::min(top[-2].i, top[-1].i));
        break;
      case Kind::Max:
        binary(std::max(top[-2].i, top[-1].i));
        break;
      case Kind::Apply:
        top -= s.index;
        *top = expr::apply(s.op, s.result, s.operand, top);
        ++top;
        break;
    }
  }
  return stack[0];
}

}  // namespace nautilus::plan
