// SPDX-License-Identifier: Apache-2.0
//
// The element types of tensors and their exact arithmetic meaning: sizes, precision, rounding,
// wrapping, conversion and bit patterns. Every level of the compiler and the reference evaluator
// take these facts from here, so that a value means the same in all of them. Floats of every type
// are carried in doubles that the type can represent, integers in int64_t.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::expr {

// F8E4M3 is the "fn" variant: largest value 448, no infinities. F8E5M2 is IEEE-like. TF32 is F32
// without its 13 low bits, which are 0 where it is stored.
enum class DType : uint8_t { Bool, I8, U8, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64, TF32 };

inline constexpr int kDTypeCount = 12;

std::string_view name(DType type);
std::optional<DType> parse_dtype(std::string_view text);
// In the order of the enum.
std::vector<std::string> dtype_names();

constexpr bool is_float(DType type) { return type >= DType::F8E4M3; }
// Bool is neither an integer nor a float.
constexpr bool is_int(DType type) { return type > DType::Bool && type < DType::F8E4M3; }
constexpr bool is_half(DType type) { return type == DType::F16 || type == DType::BF16; }
// Kernels have vectors of neighbouring elements of these.
constexpr bool has_vectors(DType type) {
  return is_half(type) || type == DType::F32 || type == DType::TF32;
}
// The elements that some machine has as operands of matrix instructions; `target::Matrix` says
// which sizes of them a machine has (ir::operand_width). The sums are of their `compute_dtype`.
constexpr bool is_operand(DType type) {
  return is_half(type) || type == DType::F8E4M3 || type == DType::F8E5M2 || type == DType::TF32 ||
         type == DType::I8 || type == DType::U8;
}
// Whether products may have operands of both: 8-bit floats mix, and so do 8-bit integers.
constexpr bool are_operands_together(DType a, DType b) {
  const bool are_bytes = !is_half(a) && !is_half(b) && a != DType::TF32 && b != DType::TF32;
  return is_operand(a) && is_operand(b) && (a == b || (are_bytes && is_float(a) == is_float(b)));
}
int bytes(DType type);

// The precision p of a float, hidden bit included; 0 for the other types.
int significand_bits(DType type);
// 2^-p: the largest relative error of rounding to nearest in the normal range; 0 for integers
// and Bool, which are exact.
double unit_roundoff(DType type);
double max_finite(DType type);

// The type in which arithmetic on `type` is done: F32 for floats of 8 and 16 bits and TF32, I32 for
// integers of 8 bits, otherwise the type itself.
DType compute_dtype(DType type);

// Whether every value of `source`, signed zeros and infinities included, is a value of `target`.
bool holds_every_value(DType target, DType source);

// The nearest value of a float type, ties to even, in a single rounding with exact subnormals. F16,
// BF16, TF32 and F32 overflow to infinity by the IEEE rule. The 8-bit types saturate: a value
// beyond the largest finite one, infinities included, becomes the largest finite value with its
// sign, as CUDA's satfinite conversions do. NaN stays NaN.
double round_to(DType type, double value);

// Two's complement wrap to an integer type; for Bool 0 or 1, whether the value is not 0.
int64_t wrap_to(DType type, int64_t value);

// Truncation toward zero; NaN becomes 0, and a value out of range the nearest end of the range. For
// Bool 0 or 1, whether the value is not 0: there NaN and 0.5 become 1, as in C.
int64_t float_to_int(DType type, double value);

// The range of an integer type or of Bool.
int64_t int_min(DType type);
int64_t int_max(DType type);

// The bit pattern, in the low bits, of the float nearest to `value` (by round_to). Every NaN has
// the same pattern, without sign and payload, since those differ between machines.
uint64_t encode(DType type, double value);
// The value of a bit pattern; bits above the type's width are ignored. Exact for all types. An
// infinite F8E5M2 pattern decodes to an infinity, which encode then saturates.
double decode(DType type, uint64_t bits);

}  // namespace nautilus::expr
