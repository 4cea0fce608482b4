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
      return costs.functions.sine * costs.special_slots;
    case Op::Log1p:
    case Op::Expm1:
      return costs.functions.near_one * costs.special_slots;
    case Op::Pow:
      return costs.functions.power * costs.special_slots;
    case Op::Tanh:
      return costs.functions.hyperbolic_tangent * costs.special_slots;
    case Op::Sigmoid:
      return costs.functions.sigmoid * costs.special_slots;
    case Op::Erf:
      return costs.functions.error_function * costs.special_slots;
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
