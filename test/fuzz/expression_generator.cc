// SPDX-License-Identifier: Apache-2.0
#include "expression_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace nautilus::fuzz {

using expr::DType;
using expr::is_float;
using expr::is_int;

void ExpressionGenerator::push_axis(int extent) {
  // Some of these are also names inside library functions, which must not capture them.
  static constexpr std::string_view kNames[] = {"i", "j", "k", "x", "e", "m", "c", "p", "mu", "n"};
  std::string name;
  do {
    name = kNames[static_cast<size_t>(random_.integer(0, std::size(kNames) - 1))];
  } while (std::any_of(axes_.begin(), axes_.end(), [&](const Axis& a) { return a.name == name; }));
  axes_.push_back({name, extent, 0});
}

Axis ExpressionGenerator::pop_axis() {
  Axis axis = axes_.back();
  axes_.pop_back();
  return axis;
}

std::string ExpressionGenerator::written(const Axis& axis) {
  if (axis.direct_uses > 0 && chance(0.8)) return axis.name;
  return fmt::format("{} < {}", axis.name, world_.extents[static_cast<size_t>(axis.extent)].text);
}

std::string ExpressionGenerator::pick(std::initializer_list<std::string_view> words) {
  return std::string(words.begin()[random_.integer(0, static_cast<int64_t>(words.size()) - 1)]);
}

std::string ExpressionGenerator::literal(DType dtype) {
  if (dtype == DType::Bool) return pick({"true", "false"});
  if (is_int(dtype)) {
    return chance(0.1) ? pick({"1000003", "2147483647", "(-2147483647)", "65536"})
                       : pick({"0", "1", "2", "3", "(-1)", "7"});
  }
  if (chance(0.03)) return pick({"inf", "(-inf)", "1e30", "1e-30", "(-0.0)"});
  return pick({"0.5", "2", "1.25", "(-0.75)", "3", "1e-3", "1", "0", "0.0", "0.1"});
}

std::string ExpressionGenerator::value(DType dtype, int depth) {
  if (depth <= 0) return leaf(dtype);
  if (chance(0.06)) return let(dtype, depth);
  if (chance(0.08)) return choice(dtype, depth);
  if (dtype == DType::Bool) return boolean(depth);
  return is_float(dtype) ? floating(dtype, depth) : integer(dtype, depth);
}

// A value, or (together with a value) a number or an index.
std::string ExpressionGenerator::operand(DType dtype, int depth) {
  if (chance(0.2)) return literal(dtype);
  if (chance(0.12) && dtype != DType::I32 && dtype != DType::Bool) return index_value(2);
  return value(dtype, depth);
}

std::string ExpressionGenerator::choice(DType dtype, int depth) {
  std::string x = value(dtype, depth - 1);
  std::string y = operand(dtype, depth - 1);
  if (chance(0.5)) std::swap(x, y);
  return fmt::format("where({}, {}, {})", boolean(depth - 1), x, y);
}

std::string ExpressionGenerator::let(DType dtype, int depth) {
  const DType kinds[] = {dtype, DType::F32, DType::F64, DType::I32, DType::Bool};
  const DType kind = kinds[random_.integer(0, 4)];
  const std::string name = fmt::format("t{}", lets_++);
  const std::string bound = value(kind, depth - 1);
  values_.push_back({name, kind});
  const std::string rounds = chance(0.3) ? fmt::format(" repeat[{}] {}", random_.integer(0, 3),
                                                       value(kind, std::min(depth - 1, 2)))
                                         : "";
  const std::string body = value(dtype, depth - 1);
  values_.pop_back();
  return fmt::format("(let {} = {}{} in {})", name, bound, rounds, body);
}

std::string ExpressionGenerator::tame(DType dtype, int depth) {
  switch (random_.integer(0, 3)) {
    case 0:
      return fmt::format("tanh({})", value(dtype, depth - 1));
    case 1:
      return fmt::format("sigmoid({})", value(dtype, depth - 1));
    case 2:
      return fmt::format("clamp({}, -2, 2)", value(dtype, depth - 1));
    default:
      return fmt::format("sin({})", value(dtype, depth - 1));
  }
}

std::string ExpressionGenerator::floating(DType dtype, int depth) {
  switch (random_.integer(0, 13)) {
    case 0:
    case 1:
    case 2: {
      std::string x = value(dtype, depth - 1);
      std::string y = operand(dtype, depth - 1);
      if (chance(0.5)) std::swap(x, y);
      return fmt::format("({} {} {})", x, pick({"+", "-", "*"}), y);
    }
    case 3:
      if (dtype == DType::F64) {  // f32 promotes
        return fmt::format("({} {} {})", value(DType::F32, depth - 1), pick({"+", "-", "*"}),
                           value(DType::F64, depth - 1));
      }
      return fmt::format("(-{})", value(dtype, depth - 1));
    case 4:
      return fmt::format("{}({}, {})", pick({"min", "max"}), value(dtype, depth - 1),
                         operand(dtype, depth - 1));
    case 5:
    case 6:
      return elementary(dtype, depth);
    case 7:
    case 8:
    case 9:
      return reduction(dtype, depth);
    case 10:
      return pointwise_call(dtype, depth);
    case 11:
      return axis_call(dtype, depth);
    case 12: {
      const DType from[] = {DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool};
      const std::string x = value(from[random_.integer(0, 4)], depth - 1);
      if (dtype == DType::F64) return fmt::format("f64({})", x);
      return fmt::format("{}({})", pick({"f32", "f32", "bf16", "f16", "f8e4m3", "f8e5m2"}), x);
    }
    default:
      return dtype == DType::F32 && !world_.functions.empty() ? user_call(depth)
                                                              : elementary(dtype, depth);
  }
}

std::string ExpressionGenerator::elementary(DType dtype, int depth) {
  if (chance(0.05)) {  // wild: NaN and infinities have rules of their own
    return fmt::format("{}({})",
                       pick({"exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "rsqrt"}),
                       value(dtype, depth - 1));
  }
  switch (random_.integer(0, 6)) {
    case 0:
      return fmt::format("{}({})", pick({"exp", "exp2", "expm1"}), tame(dtype, depth - 1));
    case 1:
      if (chance(0.3)) return fmt::format("log1p(abs({}))", value(dtype, depth - 1));
      return fmt::format("{}(abs({}) + {})", pick({"log", "log2", "rsqrt"}),
                         value(dtype, depth - 1), pick({"0.5", "1", "0.01"}));
    case 2:
      return fmt::format("sqrt(abs({}))", value(dtype, depth - 1));
    case 3:
      return fmt::format("{}({})", pick({"tanh", "erf", "sigmoid", "sin", "cos"}),
                         value(dtype, depth - 1));
    case 4:
      return fmt::format("{}({})", pick({"abs", "floor", "round"}), value(dtype, depth - 1));
    case 5:
      return fmt::format("({} / ({} + 3))", operand(dtype, depth - 1), tame(dtype, depth - 1));
    default:
      return fmt::format("pow(abs({}) + 0.25, {})", tame(dtype, depth - 1),
                         chance(0.5) ? pick({"2", "0.5", "-1", "3"}) : tame(dtype, depth - 1));
  }
}

std::string ExpressionGenerator::integer(DType dtype, int depth) {
  switch (random_.integer(0, 8)) {
    case 0:
    case 1: {
      std::string x = value(dtype, depth - 1);
      std::string y = operand(dtype, depth - 1);
      if (chance(0.5)) std::swap(x, y);
      return fmt::format("({} {} {})", x, pick({"+", "-", "*"}), y);
    }
    case 2:
      if (chance(0.3)) {
        return fmt::format("{}({}, {})", pick({"bit_and", "bit_or", "bit_xor"}),
                           value(dtype, depth - 1), operand(dtype, depth - 1));
      }
      if (chance(0.2)) {
        return fmt::format("{}({}, {})", pick({"shift_left", "shift_right"}),
                           value(dtype, depth - 1),
                           chance(0.5) ? pick({"1", "3", "40"}) : value(dtype, depth - 1));
      }
      return fmt::format("({} {} {})", value(dtype, depth - 1), pick({"/", "%"}),
                         pick({"2", "3", "1", "5", "(-2)"}));
    case 3:
      return fmt::format("{}({}, {})", pick({"min", "max"}), value(dtype, depth - 1),
                         operand(dtype, depth - 1));
    case 4:
      return fmt::format("{}({})", pick({"-", "abs"}), value(dtype, depth - 1));
    case 5: {
      const DType from[] = {DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool};
      const std::string x = value(from[random_.integer(0, 4)], depth - 1);
      if (dtype == DType::I64) return fmt::format("i64({})", x);
      return fmt::format("{}({})", pick({"i32", "i32", "i8", "u8"}), x);
    }
    case 6:
    case 7:
      return dtype == DType::I64 && chance(0.5) ? arg_reduction(depth) : reduction(dtype, depth);
    default:
      if (dtype == DType::I64 && chance(0.5)) {
        return chance(0.5) ? fmt::format("random_bits({}, {})", index_value(1), index_value(2))
                           : fmt::format("i64([3, -1, 4][{} % 3])", index_value(2));
      }
      if (dtype == DType::I64) {
        return fmt::format("({} {} {})", value(DType::I32, depth - 1), pick({"+", "-", "*"}),
                           value(DType::I64, depth - 1));
      }
      return leaf(dtype);
  }
}

std::string ExpressionGenerator::boolean(int depth) {
  if (depth <= 0) return leaf(DType::Bool);
  switch (random_.integer(0, 7)) {
    case 7:
      return fmt::format("{}({})", pick({"isnan", "isinf", "isfinite"}),
                         value(chance(0.7) ? DType::F32 : DType::F64, depth - 1));
    case 0:
      return fmt::format("({} {} {})", boolean(depth - 1), pick({"and", "or", "==", "!="}),
                         boolean(depth - 1));
    case 1:
      return fmt::format("(not {})", boolean(depth - 1));
    case 2:
      return reduction(DType::Bool, depth);
    case 3:
      return fmt::format("({} {} {})", index_value(2), pick({"<", "<=", ">", ">=", "==", "!="}),
                         index_value(1));
    case 4:
      return leaf(DType::Bool);
    default: {
      const DType kinds[] = {DType::F32, DType::F64, DType::I32, DType::I64};
      const DType kind = kinds[random_.integer(0, 3)];
      return fmt::format("({} {} {})", value(kind, depth - 1),
                         pick({"<", "<=", ">", ">=", "==", "!="}), operand(kind, depth - 1));
    }
  }
}

std::string ExpressionGenerator::leaf(DType dtype) {
  std::vector<std::string> named;
  for (const Named& v : values_) {
    if (v.dtype == dtype) named.push_back(v.name);
  }
  if (!named.empty() && chance(0.6)) {
    return named[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(named.size()) - 1))];
  }
  if (chance(0.12)) {
    std::vector<std::string> scalars;
    for (const Scalar& s : world_.scalars) {
      if (expr::compute_dtype(s.dtype) == dtype) scalars.push_back(s.name);
    }
    if (!scalars.empty()) return scalars[random_.next() % scalars.size()];
  }
  if (const Tensor* tensor = tensor_of(dtype)) return read(*tensor);
  if (dtype == DType::Bool) {
    return fmt::format("({} {} {})", index_value(1), pick({"<", ">=", "=="}), index_value(1));
  }
  // No tensor of this dtype: another one, cast.
  const std::string cast(expr::name(dtype));
  for (const DType other : {DType::F32, DType::I32, DType::F64, DType::I64, DType::Bool}) {
    if (const Tensor* tensor = tensor_of(other)) return fmt::format("{}({})", cast, read(*tensor));
  }
  if (!named.empty()) return named[0];
  return fmt::format("{}({})", cast, chance(0.5) ? index_value(1) : literal(dtype));
}

}  // namespace nautilus::fuzz
