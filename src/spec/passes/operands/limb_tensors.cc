// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/limb_tensors.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "algebra/exact_halves.h"
#include "ir/operand_width.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using LimbOp = expr::Op;

constexpr std::array<std::string_view, 3> kSuffix = {"high", "middle", "low"};
constexpr double kLargestBf16 = 0x1.FEp127;

}  // namespace

LimbKind limb_kind(ir::Rounding contract, const target::Matrix& matrix) {
  const target::OperandWidth* tf32 = ir::operand_width(matrix, DType::TF32);
  switch (contract) {
    case ir::Rounding::Licensed:
    case ir::Rounding::Exact:
      return {DType::BF16, 3, false};
    case ir::Rounding::Tf32:
      return tf32 ? LimbKind{DType::TF32, 1, !tf32->is_any_major} : LimbKind{DType::BF16, 2, false};
    case ir::Rounding::Bf16:
      return {DType::BF16, 1, false};
  }
  return {};
}

ir::Names LimbTensors::names(std::string_view base, Expr value) {
  const size_t count = algebra::exact_halves(value).in_bf16 ? 1 : kind_.count;
  ir::Names out;
  for (size_t k = 0; k < count; ++k) {
    const bool is_last = k > 0 && k + 1 == count;
    out.push_back(names_.fresh(fmt::format("{}.{}", base, is_last ? kSuffix.back() : kSuffix[k])));
  }
  return out;
}

// Each is computed from the value itself, so that one kernel makes all of them, whatever order of
// axes they get.
void LimbTensors::make(const ir::Names& names, Expr value, const ir::Axes& axes,
                       std::vector<Let>& made) {
  size_t count = 0;
  const auto add = [&](Expr number) {
    const Let limb{names[count++], axes, kind_.dtype, number};
    types_.emplace(std::string(limb.name.str()), limb.type());
    made.push_back(limb);
    return pool_.cast(DType::F32, number);
  };
  if (names.size() == 1) {
    add(pool_.cast(kind_.dtype, value));
    return;
  }
  const auto f32 = [&](double x) { return pool_.floating(x, DType::F32); };
  const auto rounded = [&](Expr x) { return pool_.cast(kind_.dtype, x); };
  const auto minus = [&](Expr x, Expr y) { return pool_.binary(LimbOp::Sub, x, y); };
  const Expr is_finite = pool_.binary(LimbOp::Lt, pool_.unary(LimbOp::Abs, value),
                                      f32(std::numeric_limits<double>::infinity()));
  const Expr sign = pool_.select(pool_.binary(LimbOp::Lt, value, f32(0)), f32(-1), f32(1));
  // The largest numbers would be rounded to infinity.
  const Expr inside = pool_.binary(
      LimbOp::Min, pool_.binary(LimbOp::Max, value, f32(-kLargestBf16)), f32(kLargestBf16));
  Expr rest = minus(value, add(rounded(pool_.select(is_finite, inside, sign))));
  while (count < names.size()) {
    const bool is_last = count + 1 == names.size();
    rest = minus(rest, add(rounded(pool_.select(is_finite, rest, is_last ? value : f32(0)))));
  }
}

Limbs LimbTensors::elements(const ir::Names& limbs, const std::vector<Expr>& at) {
  Limbs out;
  for (const ir::Name name : limbs)
    out.push_back(pool_.cast(DType::F32, pool_.read(name, kind_.dtype, at)));
  return out;
}

}  // namespace nautilus::spec
