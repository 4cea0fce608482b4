// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose matrix products have operands of 8 and 32 bits, floats and integers: one warp group
// multiplies 64 rows by N columns, 128 bytes along k, four instructions deep.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "layout/descriptor.h"
#include "test/emulator/test_kernels.h"

namespace nautilus::emulator {
namespace {

constexpr std::string_view kKernels = R"(
struct Params {
  TensorMap A, B;
  u64 a_desc, b_desc;
  int a_step[4], b_step[4];
  float* out;
};
enum { TILE_A = 8192, BAR = 8192 + 256 * 128 };

template <int N> DEVICE void load(const Params& p) {
  SHARED_BASE(smem);
  if (thread_index() == 0) {
    mbar_init(smem + BAR, 1);
    mbar_init_fence();
  }
  sync_cta();
  if (thread_index() == 0) {
    mbar_expect(smem + BAR, TILE_A + N * 128);
    tma_load(smem, &p.A, smem + BAR, 0, 0, 0);
    tma_load(smem + TILE_A, &p.B, smem + BAR, 0, 0, 0);
  }
  mbar_wait(smem + BAR, 0);
}

template <class T, int R> DEVICE void store(const Params& p, T (&C)[R]) {
  const int thread = thread_index(), lane = thread % 32;
  const int row = thread / 32 * 16 + lane / 4, col = 2 * (lane % 4);
  for (int i = 0; i < R; ++i)
    store_f32(p.out, 2 * R * (row + i / 2 % 2 * 8) + i / 4 * 8 + col + i % 2, (float)C[i]);
}

// The first product begins at 0 (INIT) or adds to what is there (ADD).
#define PRODUCTS(name, T, BEFORE, N, FIRST)                               \
  KERNEL(name##_n##N##_##FIRST, 128) {                                    \
    load<N>(p);                                                           \
    T C[N / 2];                                                           \
    for (int i = 0; i < N / 2; ++i) C[i] = BEFORE;                        \
    wgmma_fence();                                                        \
    wgmma_##name##_n##N<FIRST, 0>(C, 0, p.a_desc, p.b_desc);              \
    for (int k = 1; k < 4; ++k)                                           \
      wgmma_##name##_n##N<ADD, 0>(C, 0, p.a_desc + p.a_step[k], p.b_desc + p.b_step[k]); \
    wgmma_commit();                                                       \
    wgmma_wait<0>(C);                                                     \
    store(p, C);                                                          \
  }
#define FLOATS(name, N, FIRST) PRODUCTS(name, float, 0.5f, N, FIRST)
#define INTEGERS(name, N, FIRST) PRODUCTS(name, int, -7, N, FIRST)
#define KINDS(N, FIRST)                                                   \
  FLOATS(tf32, N, FIRST) FLOATS(f8e4m3, N, FIRST) FLOATS(f8e5m2, N, FIRST) \
  FLOATS(f8e4m3_f8e5m2, N, FIRST) FLOATS(f8e5m2_f8e4m3, N, FIRST)
#define INTEGER_KINDS(N, FIRST)                                           \
  INTEGERS(i8, N, FIRST) INTEGERS(u8, N, FIRST) INTEGERS(i8_u8, N, FIRST) INTEGERS(u8_i8, N, FIRST)
KINDS(8, INIT) KINDS(64, INIT) KINDS(64, ADD) KINDS(152, INIT) KINDS(256, ADD)
INTEGER_KINDS(8, INIT) INTEGER_KINDS(64, INIT) INTEGER_KINDS(64, ADD) INTEGER_KINDS(176, INIT) INTEGER_KINDS(256, ADD)

KERNEL(turned_f8, 128) {
  load<64>(p);
  float C[32];
  wgmma_fence();
  wgmma_f8e4m3_n64<INIT, 1>(C, 0, p.a_desc, p.b_desc);
  wgmma_commit();
  wgmma_wait<0>(C);
}
KERNEL(turned_i8, 128) {
  load<64>(p);
  int C[32];
  wgmma_fence();
  wgmma_i8_n64<INIT, 1>(C, 0, p.a_desc, p.b_desc);
  wgmma_commit();
  wgmma_wait<0>(C);
}
// Sums that leave 32 bits.
KERNEL(wrapping_n64_INIT, 128) {
  load<64>(p);
  int C[32];
  for (int i = 0; i < 32; ++i) C[i] = 2147483647;
  wgmma_fence();
  wgmma_u8_n64<ADD, 0>(C, 0, p.a_desc, p.b_desc);
  for (int k = 1; k < 4; ++k) wgmma_u8_n64<ADD, 0>(C, 0, p.a_desc + p.a_step[k], p.b_desc + p.b_step[k]);
  wgmma_commit();
  wgmma_wait<0>(C);
  for (int i = 0; i < 32; ++i) C[i] = (int)((u32)C[i] + 2147483649u);
  store(p, C);
}
KERNEL(turned_tf32, 128) {
  load<64>(p);
  float C[32];
  wgmma_fence();
  wgmma_tf32_n64<INIT, 1>(C, 0, p.a_desc, p.b_desc);
  wgmma_commit();
  wgmma_wait<0>(C);
}
KERNEL(registers_tf32, 128) {
  load<64>(p);
  float C[32];
  u32 A[4] = {0, 0, 0, 0};
  wgmma_fence();
  wgmma_tf32_n64<INIT, 0>(C, 0, A, 0, p.b_desc);
  wgmma_commit();
  wgmma_wait<0>(C, A);
}
)";

const CompiledBody& body() {
  static const std::unique_ptr<CompiledBody> compiled = compile_for_test(std::string(kKernels));
  return *compiled;
}

struct Params {
  TensorMap a, b;
  uint64_t a_desc, b_desc;
  std::array<int, 4> a_step, b_step;
  float* out;
};

enum class Type { TF32, F8E4M3, F8E5M2, I8, U8 };

int bytes_of(Type type) { return type == Type::TF32 ? 4 : 1; }

// The bits of an integer: of one up to 4 for floats. What the unit must not see of tf32 numbers is
// set.
uint32_t bits_of_integer(Type type, int x) {
  if (type == Type::I8 || type == Type::U8) return static_cast<uint32_t>(x) & 0xffu;
  const auto value = static_cast<float>(std::abs(x));
  if (type == Type::TF32) return bits_of_float(x < 0 ? -value : value) | 0x1abcu;
  const int digits = type == Type::F8E4M3 ? 3 : 2;
  const int bias = type == Type::F8E4M3 ? 7 : 15;
  if (x == 0) return 0;
  const int exponent = std::ilogb(value);
  const auto fraction = static_cast<int>(std::ldexp(value, digits - exponent)) - (1 << digits);
  return static_cast<uint32_t>((x < 0 ? 0x80 : 0) | (exponent + bias) << digits | fraction);
}

// Rows of 128 bytes, of small integers.
struct Rows {
  Rows(Type type, int row_count, base::Random& random)
      : element(type), rows(row_count), cols(128 / bytes_of(type)) {
    for (int i = 0; i < rows * cols; ++i) {
      int x = static_cast<int>(random.integer(-4, 4));
      if (type == Type::I8) x = static_cast<int>(random.integer(-128, 127));
      if (type == Type::U8) x = static_cast<int>(random.integer(0, 255));
      // tf32 zero with more digits would be a number below the normal ones.
      if (x == 0 && type == Type::TF32) x = 1;
      numbers.push_back(x);
      const uint32_t bits = bits_of_integer(type, x);
      for (int b = 0; b < bytes_of(type); ++b) bytes.push_back(static_cast<uint8_t>(bits >> 8 * b));
    }
    bytes.resize(bytes.size() + 128);
  }

  int at(int row, int col) const { return numbers[static_cast<size_t>(row * cols + col)]; }
  layout::PanelTile tile(layout::Swizzle swizzle) const {
    return {rows, cols, swizzle, bytes_of(element)};
  }
  // All panels of the tile in one box.
  TensorMap map(layout::Swizzle swizzle) {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    uint8_t* begin = bytes.data() + (128 - address % 128) % 128;
    std::memmove(begin, bytes.data(), static_cast<size_t>(128 * rows));
    const int inner = layout::span_bytes(swizzle) / bytes_of(element);
    runtime::TensorMapView view;
    view.address = reinterpret_cast<uintptr_t>(begin);
    view.rank = 3;
    view.element = element == Type::TF32 ? runtime::MapElement::F32 : runtime::MapElement::U8;
    view.swizzle = swizzle;
    const std::array<int, 3> box = {inner, rows, cols / inner};
    const std::array<int, 3> strides = {bytes_of(element), 128, layout::span_bytes(swizzle)};
    for (size_t i = 0; i < 3; ++i) {
      view.dims[i] = view.box[i] = box[i];
      view.strides[i] = strides[i];
    }
    TensorMap out = {};
    std::memcpy(&out, &view, sizeof view);
    return out;
  }

  Type element;
  int rows;
  int cols;
  std::vector<int> numbers;
  std::vector<uint8_t> bytes;
};

struct Problem {
  std::string name;
  Type a, b;
  int n;
  float before;  // what the accumulator holds
};

// The report, or how many results are wrong.
std::string run_product(const Problem& problem, const std::string& kernel,
                        layout::Swizzle swizzle) {
  base::Random random(11);
  Rows a(problem.a, 64, random);
  Rows b(problem.b, problem.n, random);
  const layout::Operand left = {a.tile(swizzle), layout::Major::K, 1024};
  const layout::Operand right = {b.tile(swizzle), layout::Major::K, 1024 + 8192};
  std::vector<float> out(static_cast<size_t>(64 * problem.n));
  Params params = {a.map(swizzle),
                   b.map(swizzle),
                   layout::encode(layout::step_descriptor(left, 0)),
                   layout::encode(layout::step_descriptor(right, 0)),
                   {},
                   {},
                   out.data()};
  for (int k = 0; k < 4; ++k) {
    params.a_step[static_cast<size_t>(k)] = static_cast<int>(layout::step_advance(left, k));
    params.b_step[static_cast<size_t>(k)] = static_cast<int>(layout::step_advance(right, k));
  }
  constexpr int kSharedBytes = 8192 + 256 * 128 + 8;
  std::string report =
      run(body(), {kernel, 1, 128, kSharedBytes, &params, sizeof params}, {.seed = 1});
  if (!report.empty()) return report;
  int wrong = 0;
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < problem.n; ++j) {
      int sum = 0;
      for (int k = 0; k < a.cols; ++k) sum += a.at(i, k) * b.at(j, k);
      const float expected = static_cast<float>(sum) + problem.before;
      if (out[static_cast<size_t>(i * problem.n + j)] != expected) ++wrong;
    }
  }
  return wrong == 0 ? "" : std::to_string(wrong) + " wrong";
}

// Sums of integers are numbers that f32 holds, too: below 2^24.
constexpr std::array<std::pair<Type, Type>, 4> kIntegers = {
    {{Type::I8, Type::I8}, {Type::U8, Type::U8}, {Type::I8, Type::U8}, {Type::U8, Type::I8}}};
constexpr std::array<const char*, 4> kIntegerNames = {"i8", "u8", "i8_u8", "u8_i8"};

constexpr std::array<std::pair<Type, Type>, 5> kTypes = {{{Type::TF32, Type::TF32},
                                                          {Type::F8E4M3, Type::F8E4M3},
                                                          {Type::F8E5M2, Type::F8E5M2},
                                                          {Type::F8E4M3, Type::F8E5M2},
                                                          {Type::F8E5M2, Type::F8E4M3}}};
constexpr std::array<const char*, 5> kNames = {"tf32", "f8e4m3", "f8e5m2", "f8e4m3_f8e5m2",
                                               "f8e5m2_f8e4m3"};

using Sizes = std::array<std::pair<int, bool>, 5>;

// `before`: of kernels that add to what is there.
template <size_t N>
void expect_exact(const std::array<std::pair<Type, Type>, N>& types,
                  const std::array<const char*, N>& names, const Sizes& sizes, float before) {
  for (size_t i = 0; i < N; ++i) {
    for (const auto& [n, is_added] : sizes) {
      const Problem problem = {names[i], types[i].first, types[i].second, n,
                               is_added ? before : 0.f};
      const std::string kernel =
          problem.name + "_n" + std::to_string(n) + (is_added ? "_ADD" : "_INIT");
      for (const layout::Swizzle swizzle :
           {layout::Swizzle::B128, layout::Swizzle::B64, layout::Swizzle::B32}) {
        EXPECT_EQ(run_product(problem, kernel, swizzle), "")
            << kernel << " " << layout::swizzle_name(swizzle);
      }
    }
  }
}

TEST(EmulatedOperands, EveryTypeAndMixIsExact) {
  expect_exact(kTypes, kNames, {{{8, false}, {64, false}, {64, true}, {152, false}, {256, true}}},
               0.5f);
}

TEST(EmulatedOperands, IntegersAreExactInEveryMix) {
  expect_exact(kIntegers, kIntegerNames,
               {{{8, false}, {64, false}, {64, true}, {176, false}, {256, true}}}, -7);
}

TEST(EmulatedOperands, SumsOfIntegersWrapAround) {
  const Problem problem = {"wrapping", Type::U8, Type::U8, 64, 0};
  EXPECT_EQ(run_product(problem, "wrapping_n64_INIT", layout::Swizzle::B128), "");
}

void expect_report(const std::string& kernel, Type type, const std::string& part) {
  const Problem problem = {kernel, type, type, 64, 0};
  const std::string report = run_product(problem, kernel, layout::Swizzle::B128);
  EXPECT_NE(report.find(part), std::string::npos) << report;
}

TEST(EmulatedOperands, OnlySixteenBitOperandsAreTransposedOrInRegisters) {
  expect_report("turned_f8", Type::F8E4M3,
                "wgmma of a transposed operand with elements of 1 bytes");
  expect_report("turned_i8", Type::I8, "wgmma of a transposed operand with elements of 1 bytes");
  expect_report("turned_tf32", Type::TF32,
                "wgmma of a transposed operand with elements of 4 bytes");
  expect_report("registers_tf32", Type::TF32, "wgmma with A in registers and elements of 4 bytes");
}

}  // namespace
}  // namespace nautilus::emulator
