// SPDX-License-Identifier: Apache-2.0
#include "algebra/op_slots.h"

namespace nautilus::algebra {

double op_slots(expr::Op op, const target::Costs& costs) {
  using expr::Op;
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Div:
      return costs.special_slots;
    case Op::Sin:
    case Op::Cos:
    case Op::Log1p:
    case Op::Expm1:
    case Op::Erf:
      return 3 * costs.special_slots;
    case Op::Pow:
      return 8 * costs.special_slots;
    case Op::Tanh:
    case Op::Sigmoid:
      return 2 * costs.special_slots;
    case Op::Max:
    case Op::Min:
      return costs.extreme_slots;
    case Op::Cast:
      return costs.cast_slots;
    case Op::Var:
    case Op::IntConst:
    case Op::FloatConst:
    case Op::BoolConst:
      return 0;
    default:
      return 1;
  }
}

}  // namespace nautilus::algebra
