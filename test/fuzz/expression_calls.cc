// SPDX-License-Identifier: Apache-2.0
// Reductions and function calls.
#include <fmt/format.h>

#include <algorithm>

#include "expression_generator.h"

namespace nautilus::fuzz {

using expr::DType;
using expr::is_float;

namespace {

constexpr int64_t kMaxPoints = 1500;  // of one expression: the definition visits each

}  // namespace

int64_t ExpressionGenerator::points() const {
  int64_t product = 1;
  for (const Axis& a : axes_) {
    product *= std::max<int64_t>(1, world_.extents[static_cast<size_t>(a.extent)].value);
  }
  return product;
}

// An extent that does not make the expression too expensive, or -1.
int ExpressionGenerator::small_extent() {
  for (int attempt = 0; attempt < 4 && !world_.extents.empty(); ++attempt) {
    const auto k = static_cast<int>(random_.next() % world_.extents.size());
    if (points() * world_.extents[static_cast<size_t>(k)].value <= kMaxPoints) return k;
  }
  return -1;
}

std::string ExpressionGenerator::reduction(DType dtype, int depth) {
  const int first = small_extent();
  if (first < 0) return leaf(dtype);
  std::string reducer = dtype == DType::Bool ? pick({"any", "all"})
                        : is_float(dtype)
                            ? pick({"sum", "sum", "sum", "prod", "max", "min", "mean"})
                            : pick({"sum", "prod", "max", "min"});
  std::string suffix;
  DType body_dtype = dtype;
  if (dtype != DType::Bool && chance(0.2)) {
    suffix += fmt::format(" acc {}", expr::name(dtype));
    if (dtype == DType::F64) body_dtype = DType::F32;
    if (dtype == DType::I64) body_dtype = DType::I32;
  }
  if (reducer != "mean" && chance(0.2)) {
    suffix += fmt::format(" from {}", chance(0.5) && dtype != DType::Bool
                                          ? literal(dtype)
                                          : value(dtype, std::min(depth - 1, 1)));
  }
  push_axis(first);
  size_t count = 1;
  if (chance(0.2)) {
    if (const int second = small_extent(); second >= 0) {
      push_axis(second);
      ++count;
    }
  }
  std::string body = over_axis(axes_.size() - 1, body_dtype, depth - 1);
  if (reducer == "prod" && is_float(body_dtype)) body = fmt::format("(1 + 0.5 * tanh({}))", body);
  std::string axes;
  for (size_t k = 0; k < count; ++k) {
    const Axis axis = pop_axis();
    axes = written(axis) + (k ? ", " : "") + axes;
  }
  return fmt::format("({}[{}{}{}] {})", reducer, axes, count == 1 ? bound(axes) : "", suffix, body);
}

// A bound by an axis around the reduction, if its own extent need not be written.
std::string ExpressionGenerator::bound(const std::string& axis) {
  if (axes_.empty() || axis.find('<') != std::string::npos || !chance(0.25)) return "";
  const Axis& outer = axes_[random_.next() % axes_.size()];
  const std::string shift = chance(0.3) ? pick({" + 1", " - 1", " - 2"}) : "";
  return fmt::format(" {} {}{}", pick({"<=", "<=", "<", ">=", ">"}), outer.name, shift);
}

std::string ExpressionGenerator::arg_reduction(int depth) {
  const int extent = small_extent();
  if (extent < 0) return leaf(DType::I64);
  push_axis(extent);
  const DType kinds[] = {DType::F32, DType::F64, DType::I32};
  const std::string body = over_axis(axes_.size() - 1, kinds[random_.integer(0, 2)], depth - 1);
  const std::string axis = written(pop_axis());
  return fmt::format("({}[{}{}] {})", pick({"argmax", "argmin"}), axis, bound(axis), body);
}

// A value that depends on the axis: an element along it with something else, or a mere number.
std::string ExpressionGenerator::over_axis(size_t axis, DType dtype, int depth) {
  std::vector<const Tensor*> fitting;
  for (const Tensor& t : world_.tensors) {
    if (expr::compute_dtype(t.dtype) != dtype) continue;
    for (const int d : t.dims) {
      if (d == axes_[axis].extent) {
        fitting.push_back(&t);
        break;
      }
    }
  }
  std::string along;
  if (!fitting.empty()) {
    along = read_along(*fitting[random_.next() % fitting.size()], axis);
  } else if (dtype == DType::Bool) {
    along = fmt::format("({} % 2 == {})", axes_[axis].name, random_.integer(0, 1));
  } else {
    along = fmt::format("{}({})", expr::name(dtype), axes_[axis].name);
  }
  if (depth <= 0 || chance(0.3)) return along;
  if (dtype == DType::Bool) {
    return fmt::format("({} {} {})", along, pick({"and", "or", "!="}), value(dtype, depth));
  }
  std::string other = operand(dtype, depth);
  if (chance(0.3)) std::swap(along, other);
  // Without parentheses: the body of a reduction is a product.
  if (chance(0.4)) return fmt::format("{} * {}", along, other);
  return fmt::format("({} {} {})", along, pick({"+", "-", "*"}), other);
}

std::string ExpressionGenerator::pointwise_call(DType dtype, int depth) {
  const std::string x = value(dtype, depth - 1);
  switch (random_.integer(0, 5)) {
    case 0:
    case 1:
      return fmt::format(
          "{}({})",
          pick({"relu", "relu6", "relu_squared", "gelu", "gelu_tanh", "gelu_sigmoid", "silu",
                "softplus", "log_sigmoid", "mish", "hard_sigmoid", "hard_silu"}),
          x);
    case 2:
      return fmt::format("{}({})",
                         pick({"finite", "nonzero", "ceil", "trunc", "sign", "square", "cube"}), x);
    case 3:
      return fmt::format("{}({}, {})", pick({"leaky_relu", "elu"}), x, pick({"0.1", "1", "0.5"}));
    case 4:
      return fmt::format("{}({}, {})", pick({"glu", "reglu", "geglu", "swiglu"}), x,
                         operand(dtype, depth - 1));
    default:
      if (chance(0.2)) return fmt::format("dropout({}, 0.25, 3, {})", x, index_value(2));
      if (chance(0.2)) return fmt::format("({} * [0.5, 1, 1.25][{} % 3])", x, index_value(2));
      if (chance(0.3)) return fmt::format("softcap({}, 5)", x);
      if (chance(0.3)) return fmt::format("reciprocal(nonzero({}))", x);
      return fmt::format("lerp({}, {}, {})", x, operand(dtype, depth - 1), value(dtype, 0));
  }
}

std::string ExpressionGenerator::axis_call(DType dtype, int depth) {
  if (axes_.empty() || chance(0.4)) {
    // The call binds the axis, and only a direct use can tell its extent.
    const int extent = small_extent();
    if (extent < 0) return leaf(dtype);
    const std::vector<Axis> before = axes_;
    push_axis(extent);
    std::string x = over_axis(axes_.size() - 1, dtype, depth - 1);
    const Axis axis = pop_axis();
    if (axis.direct_uses == 0) {
      axes_ = before;  // uses in a text that is thrown away tell nothing
      return leaf(dtype);
    }
    return fmt::format("{}[{}]({})", pick({"logsumexp", "variance", "l2norm"}), axis.name, x);
  }
  const size_t at = random_.next() % axes_.size();
  std::string name = axes_[at].name;
  std::string x = over_axis(at, dtype, depth - 1);
  if (axes_.size() > 1 && chance(0.3)) {
    const size_t other = (at + 1) % axes_.size();
    x = fmt::format("{} + {}", x, over_axis(other, dtype, 0));
    name += ", " + axes_[other].name;
  }
  switch (random_.integer(0, 4)) {
    case 0:
      return fmt::format("{}[{}]({})", pick({"softmax", "log_softmax", "logsumexp", "l2norm"}),
                         name, x);
    case 1:
      return fmt::format("softmax_sink[{}]({}, {})", name, x, literal(dtype));
    case 2:
      return fmt::format("{}[{}]({}, 1e-3)", pick({"standardise", "l2normalise"}), name, x);
    case 3:
      return fmt::format("rmsnorm[{}]({}, {}, 1e-2)", name, x, operand(dtype, depth - 1));
    default:
      return fmt::format("layernorm[{}]({}, {}, {}, 1e-2)", name, x, operand(dtype, depth - 1),
                         literal(dtype));
  }
}

std::string ExpressionGenerator::user_call(int depth) {
  const Function& f = world_.functions[random_.next() % world_.functions.size()];
  std::string axis;
  std::string arguments;
  if (f.has_axis) {
    if (axes_.empty()) return leaf(DType::F32);
    const size_t at = random_.next() % axes_.size();
    axis = fmt::format("[{}]", axes_[at].name);
    arguments = over_axis(at, DType::F32, depth - 1);
  } else {
    arguments = value(DType::F32, depth - 1);
  }
  for (int k = 1; k < f.params; ++k) arguments += ", " + value(DType::F32, depth - 1);
  return fmt::format("{}{}({})", f.name, axis, arguments);
}

}  // namespace nautilus::fuzz
