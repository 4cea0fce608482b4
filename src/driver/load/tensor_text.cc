// SPDX-License-Identifier: Apache-2.0
#include "driver/load/tensor_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace nautilus::driver {

using expr::DType;
using expr::Tensor;

std::string tensor_text(const Tensor& t, int64_t max_elements) {
  const int64_t width = t.shape.empty() ? 1 : t.shape.back();
  const int64_t rows = width == 0 ? 0 : t.size() / width;
  const bool is_cut = t.size() > max_elements;
  const int64_t shown_rows = is_cut ? std::min<int64_t>(rows, 6) : rows;
  const int64_t shown_width = is_cut ? std::min<int64_t>(width, 8) : width;
  std::string out;
  for (int64_t r = 0; r < shown_rows; ++r) {
    std::string row;
    for (int64_t c = 0; c < shown_width; ++c) {
      const auto at = static_cast<size_t>(r * width + c);
      if (c) row += " ";
      if (t.dtype == DType::Bool) {
        row += t.data[at].i ? "true" : "false";
      } else if (is_float(t.dtype) && std::isnan(t.data[at].f)) {
        row += "nan";  // its sign differs between machines and means nothing
      } else if (is_float(t.dtype)) {
        row += fmt::format("{:.6g}", t.data[at].f);
      } else {
        row += fmt::format("{}", t.data[at].i);
      }
    }
    if (shown_width < width) row += " ...";
    out += "  " + row + "\n";
  }
  if (shown_rows < rows) out += fmt::format("  ... ({} rows)\n", rows);
  return out;
}

namespace {

template <class T>
T item(const base::NpyArray& a, int64_t i) {
  T value;
  std::memcpy(&value, a.bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

// A number of an array.
struct Number {
  double real = 0;
  int64_t integer = 0;
  bool is_integer = true;
};

Number real(double value) { return {value, 0, false}; }
Number integer(int64_t value) { return {0, value, true}; }

// Nothing for kinds that are no numbers.
std::optional<Number> number_at(const base::NpyArray& a, std::string_view kind, int64_t i) {
  if (kind == "f8") return real(item<double>(a, i));
  if (kind == "f4") return real(static_cast<double>(item<float>(a, i)));
  if (kind == "f2") return real(expr::decode(DType::F16, item<uint16_t>(a, i)));
  if (kind == "i8") return integer(item<int64_t>(a, i));
  if (kind == "i4") return integer(item<int32_t>(a, i));
  if (kind == "i2") return integer(item<int16_t>(a, i));
  if (kind == "i1") return integer(item<int8_t>(a, i));
  if (kind == "u4") return integer(item<uint32_t>(a, i));
  if (kind == "u2") return integer(item<uint16_t>(a, i));
  if (kind == "u1" || kind == "b1") return integer(item<uint8_t>(a, i));
  return std::nullopt;
}

// The bits of a float of up to 16 bits, which arrays have no type for.
Number number_of_bits(const base::NpyArray& a, DType dtype, int64_t i) {
  const uint64_t bits = expr::bytes(dtype) == 1 ? item<uint8_t>(a, i) : item<uint16_t>(a, i);
  return real(expr::decode(dtype, bits));
}

bool fits(int64_t value, DType dtype) {
  return dtype == DType::Bool ? value == 0 || value == 1 : expr::wrap_to(dtype, value) == value;
}

}  // namespace

std::optional<Tensor> from_npy(const base::NpyArray& a, DType dtype, std::string* error) {
  const std::string kind = a.descr.size() >= 3 ? a.descr.substr(1) : "";
  Tensor t;
  const auto count = expr::element_count(a.shape);
  if (!count) {
    *error = "the array has too many elements";
    return std::nullopt;
  }
  t.dtype = dtype;
  t.shape = a.shape;
  t.data.resize(static_cast<size_t>(*count));
  const bool is_narrow = is_float(dtype) && expr::bytes(dtype) <= 2;
  const bool is_raw = is_narrow && (kind == (expr::bytes(dtype) == 1 ? "V1" : "V2") ||
                                    kind == (expr::bytes(dtype) == 1 ? "u1" : "u2"));
  for (int64_t i = 0; i < *count; ++i) {
    const auto number = is_raw ? number_of_bits(a, dtype, i) : number_at(a, kind, i);
    if (!number) {
      *error = fmt::format("arrays of type `{}` cannot be used for {}", a.descr, expr::name(dtype));
      return std::nullopt;
    }
    expr::Value& v = t.data[static_cast<size_t>(i)];
    if (is_float(dtype)) {
      v.f = expr::round_to(
          dtype, number->is_integer ? static_cast<double>(number->integer) : number->real);
    } else if (!number->is_integer) {
      *error = fmt::format("the array holds floats, the input is {}", expr::name(dtype));
      return std::nullopt;
    } else if (!fits(number->integer, dtype)) {
      *error = fmt::format("the value {} does not fit {}", number->integer, expr::name(dtype));
      return std::nullopt;
    } else {
      v.i = number->integer;
    }
  }
  return t;
}

namespace {

std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return "<f8";
    case DType::F16:
      return "<f2";
    case DType::F32:
    case DType::TF32:
    case DType::BF16:
    case DType::F8E4M3:
    case DType::F8E5M2:
      return "<f4";
    case DType::I64:
      return "<i8";
    case DType::I32:
      return "<i4";
    case DType::I8:
      return "|i1";
    case DType::U8:
      return "|u1";
    case DType::Bool:
      return "|b1";
  }
  return "";
}

}  // namespace

base::NpyArray to_npy(const Tensor& t) {
  base::NpyArray a;
  a.descr = descr_of(t.dtype);
  a.shape = t.shape;
  auto put = [&](const auto& value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    a.bytes.insert(a.bytes.end(), p, p + sizeof(value));
  };
  for (const expr::Value& v : t.data) {
    switch (t.dtype) {
      case DType::F64:
        put(v.f);
        break;
      case DType::F16:
        put(static_cast<uint16_t>(expr::encode(DType::F16, v.f)));
        break;
      case DType::F32:
      case DType::TF32:
      case DType::BF16:
      case DType::F8E4M3:
      case DType::F8E5M2:
        put(static_cast<float>(v.f));
        break;
      case DType::I64:
        put(v.i);
        break;
      case DType::I32:
        put(static_cast<int32_t>(v.i));
        break;
      case DType::I8:
        put(static_cast<int8_t>(v.i));
        break;
      case DType::U8:
      case DType::Bool:
        put(static_cast<uint8_t>(v.i));
        break;
    }
  }
  return a;
}

}  // namespace nautilus::driver
