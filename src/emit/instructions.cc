// SPDX-License-Identifier: Apache-2.0
#include "emit/instructions.h"

#include <fmt/format.h>

#include "layout/descriptor.h"

namespace nautilus::emit {
namespace {

std::string placeholders(int first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}%{}", i ? "," : "", first + i);
  return "{" + out + "}";
}

// In the instruction's name.
std::string_view ptx_name(expr::DType dtype) {
  switch (dtype) {
    case expr::DType::F8E4M3:
      return "e4m3";
    case expr::DType::F8E5M2:
      return "e5m2";
    case expr::DType::I8:
      return "s8";
    case expr::DType::I32:
      return "s32";
    default:
      return expr::name(dtype);
  }
}

// m64nN with steps of 32 bytes along the depth, f32 accumulator, or s32 of integers. The mode is a
// template parameter: with INIT the accumulator is only written, so that it needs no value before.
// Only operands of 16 bits may be stored by rows of the depth, which immediates of the instruction
// say, as they say the signs of floats.
std::string product(const OperandDTypes& dtypes, int n, FirstOperand first) {
  const int bytes = expr::bytes(dtypes.b);
  const bool has_majors = bytes == 2;
  const bool a_in_registers = first == FirstOperand::Registers;
  const bool is_transposed = first == FirstOperand::DepthByRows;
  const bool is_integer = expr::is_int(dtypes.b);
  const int count = n / 2;
  const auto statement = [&](bool is_init) {
    std::string outputs;
    for (int i = 0; i < count; ++i)
      outputs += fmt::format("{}\"{}{}\"(d[at + {}])", i ? "," : "", is_init ? "=" : "+",
                             is_integer ? "r" : "f", i);
    const int next = count;
    std::string operands = a_in_registers ? placeholders(next, 4) : fmt::format("%{}", next);
    const int b = next + (a_in_registers ? 4 : 1);
    const std::string inputs =
        a_in_registers ? "\"r\"(a[a_at]),\"r\"(a[a_at + 1]),\"r\"(a[a_at + 2]),\"r\"(a[a_at + 3])"
                       : "\"l\"(a)";
    const std::string majors = !has_majors      ? ""
                               : a_in_registers ? fmt::format(", %{}", b + 1)
                               : is_transposed  ? fmt::format(", 1, %{}", b + 1)
                                                : fmt::format(", 0, %{}", b + 1);
    return fmt::format(
        "    asm volatile(\"wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}, {}, %{}, {}{}{};"
        "\"\n      : {}\n      : {},\"l\"(b){});\n",
        n, layout::k_step_elements(bytes), ptx_name(expr::compute_dtype(dtypes.b)),
        ptx_name(dtypes.a), ptx_name(dtypes.b), placeholders(0, count), operands, b,
        is_init ? 0 : 1, is_integer ? "" : ", 1, 1", majors, outputs, inputs,
        has_majors ? ",\"n\"(TRANS_B)" : "");
  };
  return fmt::format(
      "template <int MODE, int TRANS_B, int LENGTH{}>\n"
      "DEVICE void {}({} (&d)[LENGTH], int at, {}, u64 b) {{\n"
      "  if constexpr (MODE == INIT) {{\n{}  }} else {{\n{}  }}\n}}\n",
      a_in_registers ? ", int A_LENGTH" : "", product_name(dtypes, n, first),
      is_integer ? "int" : "float", a_in_registers ? "u32 (&a)[A_LENGTH], int a_at" : "u64 a",
      statement(true), statement(false));
}

std::string wait(const std::vector<RegisterArray>& arrays) {
  std::string parameters;
  std::string outputs;
  for (size_t k = 0; k < arrays.size(); ++k) {
    const auto& [type, length] = arrays[k];
    parameters += fmt::format("{}{} (&x{})[{}]", k ? ", " : "", type, k, length);
    for (int i = 0; i < length; ++i)
      outputs += fmt::format("{}\"+{}\"(x{}[{}])", outputs.empty() ? "" : ",",
                             type == "float" ? "f" : "r", k, i);
  }
  return fmt::format(
      "template <int PENDING> DEVICE void wgmma_wait({}) {{\n"
      "  asm volatile(\"wgmma.wait_group.sync.aligned %{};\" : {} : \"n\"(PENDING) : "
      "\"memory\");\n}}\n",
      parameters,
      [&] {
        int count = 0;
        for (const RegisterArray& a : arrays) count += a.length;
        return count;
      }(),
      outputs);
}

}  // namespace

std::string product_name(const OperandDTypes& dtypes, int n, FirstOperand first) {
  const std::string_view a = expr::name(dtypes.a);
  const std::string_view b = expr::name(dtypes.b);
  return fmt::format("wgmma_{}_n{}{}", a == b ? std::string(b) : fmt::format("{}_{}", a, b), n,
                     first == FirstOperand::DepthByRows ? "_transposed" : "");
}

std::string Instructions::text() const {
  std::string out;
  for (const auto& [dtypes, n, first] : products) out += product(dtypes, n, first);
  for (const auto& arrays : waits) out += wait(arrays);
  return out;
}

}  // namespace nautilus::emit
