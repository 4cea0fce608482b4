// SPDX-License-Identifier: Apache-2.0
//
// All facts stand in one table; the functions derive from it. Rounding to a narrow format works in
// double arithmetic: adding and subtracting a constant with the same unit in the last place as the
// result makes the hardware round once, to nearest even. This needs the default rounding mode and
// no -ffast-math.
#include "expr/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace nautilus::expr {

namespace {

enum class ValueClass : uint8_t { Bool, Int, Float };

struct Format {
  std::string_view name;
  ValueClass kind;
  int bytes;
  // Floats: precision with the hidden bit, exponents of the least and of the largest normal
  // value, the largest finite value. Integers: `precision` is the number of value bits.
  int precision;
  int min_exponent;
  int max_exponent;
  double max_finite;
  // Whether overflow saturates rather than giving an infinity.
  bool saturates;
  bool has_infinity;
  // Integers only.
  int64_t min, max;
  // Floats: low bits of the pattern that are always 0.
  int unused_bits = 0;
};

constexpr int64_t kI32Min = std::numeric_limits<int32_t>::min();
constexpr int64_t kI32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();

constexpr Format kFormats[kDTypeCount] = {
    {"bool", ValueClass::Bool, 1, 1, 0, 0, 0, false, false, 0, 1},
    {"i8", ValueClass::Int, 1, 7, 0, 0, 0, false, false, -128, 127},
    {"u8", ValueClass::Int, 1, 8, 0, 0, 0, false, false, 0, 255},
    {"i32", ValueClass::Int, 4, 31, 0, 0, 0, false, false, kI32Min, kI32Max},
    {"i64", ValueClass::Int, 8, 63, 0, 0, 0, false, false, kI64Min, kI64Max},
    {"f8e4m3", ValueClass::Float, 1, 4, -6, 8, 448.0, true, false, 0, 0},
    {"f8e5m2", ValueClass::Float, 1, 3, -14, 15, 57344.0, true, true, 0, 0},
    {"f16", ValueClass::Float, 2, 11, -14, 15, 65504.0, false, true, 0, 0},
    {"bf16", ValueClass::Float, 2, 8, -126, 127, 0x1.FEp127, false, true, 0, 0},
    {"f32", ValueClass::Float, 4, 24, -126, 127, 0x1.FFFFFEp127, false, true, 0, 0},
    {"f64", ValueClass::Float, 8, 53, -1022, 1023, std::numeric_limits<double>::max(), false, true,
     0, 0},
    {"tf32", ValueClass::Float, 4, 11, -126, 127, 0x1.FFCp127, false, true, 0, 0, 13},
};

const Format& format_of(DType type) {
  const auto index = static_cast<size_t>(type);
  NAUT_CHECK(index < kDTypeCount, "no dtype has number {}", index);
  return kFormats[index];
}

const Format& float_format_of(DType type) {
  const Format& f = format_of(type);
  NAUT_CHECK(f.kind == ValueClass::Float, "a float type is needed, not {}", f.name);
  return f;
}

const Format& int_format_of(DType type) {
  const Format& f = format_of(type);
  NAUT_CHECK(f.kind != ValueClass::Float, "an integer type or bool is needed, not {}", f.name);
  return f;
}

// 2^exponent for exponents of normal doubles.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// The exponent of the unit in the last place of the subnormals.
int least_exponent(const Format& f) { return f.min_exponent - (f.precision - 1); }

int used_bits(const Format& f) { return f.bytes * 8 - f.unused_bits; }

// Without the unused bits.
uint64_t nan_bits(const Format& f) {
  if (!f.has_infinity) return 0x7F;
  // All exponent bits and the quiet bit, which is the highest of the significand.
  const uint64_t below_sign = (uint64_t{1} << (used_bits(f) - 1)) - 1;
  return below_sign & ~((uint64_t{1} << (f.precision - 2)) - 1);
}

}  // namespace

std::string_view name(DType type) { return format_of(type).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kFormats[i].name == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const Format& f : kFormats) names.emplace_back(f.name);
  return names;
}

int bytes(DType type) { return format_of(type).bytes; }

int significand_bits(DType type) { return is_float(type) ? format_of(type).precision : 0; }

double unit_roundoff(DType type) {
  return is_float(type) ? power_of_two(-format_of(type).precision) : 0.0;
}

double max_finite(DType type) { return float_format_of(type).max_finite; }

DType compute_dtype(DType type) {
  switch (type) {
    case DType::I8:
    case DType::U8:
      return DType::I32;
    case DType::F8E4M3:
    case DType::F8E5M2:
    case DType::F16:
    case DType::BF16:
    case DType::TF32:
      return DType::F32;
    case DType::Bool:
    case DType::I32:
    case DType::I64:
    case DType::F32:
    case DType::F64:
      return type;
  }
  return type;
}

bool holds_every_value(DType target, DType source) {
  if (target == source) return true;
  const Format& t = format_of(target);
  const Format& s = format_of(source);
  if (s.kind == ValueClass::Float) {
    return t.kind == ValueClass::Float && t.precision >= s.precision &&
           least_exponent(t) <= least_exponent(s) && t.max_finite >= s.max_finite &&
           (t.has_infinity || !s.has_infinity);
  }
  if (t.kind != ValueClass::Float) return t.min <= s.min && t.max >= s.max;
  // The least value of a signed type is a power of two, so that its magnitude needs no bit more
  // than the largest value.
  return t.precision >= s.precision && t.max_finite >= -static_cast<double>(s.min);
}

double round_to(DType type, double value) {
  const Format& f = float_format_of(type);
  if (type == DType::F64 || std::isnan(value)) return value;
  if (type == DType::F32) return static_cast<double>(static_cast<float>(value));

  const double magnitude = std::fabs(value);
  double rounded = std::numeric_limits<double>::infinity();
  if (magnitude < 2 * f.max_finite) {
    // Zero and subnormal doubles read as exponent -1023, below every min_exponent here.
    const int exponent = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023;
    const int unit = std::max(exponent, f.min_exponent) - (f.precision - 1);
    const double shift = power_of_two(unit + 52);
    rounded = (magnitude + shift) - shift;
    if (rounded > f.max_finite) rounded = std::numeric_limits<double>::infinity();
  }
  if (f.saturates && rounded > f.max_finite) rounded = f.max_finite;
  return std::copysign(rounded, value);
}

int64_t wrap_to(DType type, int64_t value) {
  switch (type) {
    case DType::Bool:
      return value != 0 ? 1 : 0;
    case DType::I8:
      return static_cast<int8_t>(value);
    case DType::U8:
      return static_cast<uint8_t>(value);
    case DType::I32:
      return static_cast<int32_t>(value);
    case DType::I64:
      return value;
    case DType::F8E4M3:
    case DType::F8E5M2:
    case DType::F16:
    case DType::BF16:
    case DType::F32:
    case DType::F64:
    case DType::TF32:
      break;
  }
  NAUT_CHECK(false, "wrap_to: an integer type or bool is needed, not {}", name(type));
  return 0;
}

int64_t float_to_int(DType type, double value) {
  const Format& f = int_format_of(type);
  if (f.kind == ValueClass::Bool) return value != 0.0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  // Both ends plus one are exact as doubles; the largest i64 itself is not.
  if (truncated >= power_of_two(f.precision)) return f.max;
  if (truncated <= static_cast<double>(f.min)) return f.min;
  return static_cast<int64_t>(truncated);
}

int64_t int_min(DType type) { return int_format_of(type).min; }

int64_t int_max(DType type) { return int_format_of(type).max; }

namespace {

// The pattern without its unused bits.
uint64_t encode_used(DType type, const Format& f, double value) {
  if (std::isnan(value)) return nan_bits(f);
  const double rounded = round_to(type, value);
  const int fraction_bits = f.precision - 1;
  const uint64_t sign = uint64_t{std::signbit(rounded)} << (used_bits(f) - 1);
  const double magnitude = std::fabs(rounded);
  // From here on the value is exact in the format, infinities having all exponent bits set.
  if (std::isinf(magnitude)) {
    const auto exponent_field = static_cast<uint64_t>(f.max_exponent - f.min_exponent + 2);
    return sign | exponent_field << fraction_bits;
  }
  if (type == DType::F64) return std::bit_cast<uint64_t>(rounded);
  if (magnitude < power_of_two(f.min_exponent)) {
    return sign | static_cast<uint64_t>(std::ldexp(magnitude, -least_exponent(f)));
  }
  const uint64_t bits = std::bit_cast<uint64_t>(magnitude);
  const auto exponent_field =
      static_cast<uint64_t>(static_cast<int>(bits >> 52) - 1023 - f.min_exponent + 1);
  const uint64_t fraction = (bits & ((uint64_t{1} << 52) - 1)) >> (52 - fraction_bits);
  return sign | exponent_field << fraction_bits | fraction;
}

double decode_used(DType type, const Format& f, uint64_t bits) {
  if (type == DType::F64) return std::bit_cast<double>(bits);
  const int width = used_bits(f);
  const int fraction_bits = f.precision - 1;
  const double sign = (bits >> (width - 1) & 1) != 0 ? -1.0 : 1.0;
  const uint64_t below_sign = bits & ((uint64_t{1} << (width - 1)) - 1);
  const auto exponent_field = static_cast<int>(below_sign >> fraction_bits);
  const uint64_t fraction = below_sign & ((uint64_t{1} << fraction_bits) - 1);

  if (f.has_infinity) {
    if (exponent_field == f.max_exponent - f.min_exponent + 2) {
      return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                           : sign * std::numeric_limits<double>::infinity();
    }
  } else if (below_sign == nan_bits(f)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const uint64_t hidden = exponent_field == 0 ? 0 : uint64_t{1} << fraction_bits;
  const int scale = least_exponent(f) + (exponent_field == 0 ? 0 : exponent_field - 1);
  return sign * std::ldexp(static_cast<double>(hidden | fraction), scale);
}

}  // namespace

uint64_t encode(DType type, double value) {
  const Format& f = float_format_of(type);
  return encode_used(type, f, value) << f.unused_bits;
}

double decode(DType type, uint64_t bits) {
  const Format& f = float_format_of(type);
  return decode_used(type, f, bits >> f.unused_bits);
}

}  // namespace nautilus::expr
