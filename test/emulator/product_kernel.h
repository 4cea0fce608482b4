// SPDX-License-Identifier: Apache-2.0
//
// For tests: one warp group multiplies one tile, 64 x 128 by 64 along k, in all the ways that
// operands may lie, and with one mistake at a time.
#pragma once

#include <array>

#include "layout/descriptor.h"
#include "test/emulator/test_kernels.h"

namespace nautilus::emulator {

inline constexpr std::string_view kProduct = R"(
struct Params {
  TensorMap A, B;
  u64 a_desc, b_desc;
  int a_step[4], b_step[4];
  const u16* a;
  float* out;
};
enum Bug { Right, Half, NoFence, NoCommit, NoWait, NoName, WriteA, WriteC, NoMbarWait,
           NoExpect, NoInitFence, NoInitSync, NoInit, BadDescriptor, Diverge, LateStore,
           BadRegister };

template <int BUG, int REGISTERS, int TRANS_B> DEVICE void product(const Params& p) {
  SHARED_BASE(smem);
  const int thread = thread_index(), lane = thread % 32, warp = uniform(thread / 32);
  const u32 bar = smem + 24576;
  if (thread == 0) {
    if (BUG != NoInit) mbar_init(bar, 1);
    if (BUG != NoInitFence) mbar_init_fence();
  }
  if (BUG != NoInitSync) sync_cta();
  ROLE("compute");
  if (thread == 0) {
    if (BUG != NoExpect) mbar_expect(bar, 24576);
    tma_load(smem, &p.A, bar, 0, 0, 0);
    tma_load(smem + 8192, &p.B, bar, 0, 0, 0);
  }
  if (BUG != NoMbarWait) mbar_wait(bar, 0);
  float C[64];
  u32 A[16];
  const int row = 16 * warp + lane / 4, col = 2 * (lane % 4);
  for (int i = 0; i < 16; ++i) {
    const int r = row + i % 2 * 8, k = i / 4 * 16 + i / 2 % 2 * 8 + col;
    A[i] = pack_bf16(load_bf16(p.a, 64 * r + k), load_bf16(p.a, 64 * r + k + 1));
  }
  if (BUG == LateStore && warp == 1) shared_store_i32(smem + 8192 + 4 * lane, 0);
  if (BUG == LateStore) bar_sync(1, 128);
  if (BUG != NoFence) wgmma_fence();
  if (BUG == Diverge && warp == 2) wgmma_fence();
  const u64 a = p.a_desc;
  u64 b = p.b_desc;
  if (BUG == BadDescriptor) b += 16384;
  for (int k = 0; k < 4; ++k) {
    const int first = BUG == BadRegister ? 4 * k + 1 : 4 * k;
    if (REGISTERS && k == 0) wgmma_bf16_n128<INIT, TRANS_B>(C, 0, A, first, b + p.b_step[k]);
    if (REGISTERS && k > 0) wgmma_bf16_n128<ADD, TRANS_B>(C, 0, A, first, b + p.b_step[k]);
    const u64 ak = a + p.a_step[k], bk = b + p.b_step[k];
    if (BUG == Half && k == 0) wgmma_f16_n128<INIT, TRANS_B>(C, 0, ak, bk);
    else if (BUG == Half) wgmma_f16_n128<ADD, TRANS_B>(C, 0, ak, bk);
    else if (!REGISTERS && k == 0) wgmma_bf16_n128<INIT, TRANS_B>(C, 0, ak, bk);
    else if (!REGISTERS) wgmma_bf16_n128<ADD, TRANS_B>(C, 0, ak, bk);
  }
  if (BUG != NoCommit) wgmma_commit();
  if (BUG == WriteA) A[3] = 0x3f803f80;
  if (BUG == WriteC && thread == 70) C[5] = 0.f;
  if (BUG == NoName) wgmma_wait<0>();
  if (BUG != NoName && BUG != NoWait) wgmma_wait<0>(C, A);
  for (int i = 0; i < 64; ++i)
    store_f32(p.out, 128 * (row + i / 2 % 2 * 8) + i / 4 * 8 + col + i % 2, C[i]);
}
#define VARIANT(bug, registers, trans) \
  KERNEL(product_##bug##_##registers##_##trans, 128) { product<bug, registers, trans>(p); }
VARIANT(Right, 0, 0)
VARIANT(Right, 0, 1)
VARIANT(Right, 1, 0)
VARIANT(Right, 1, 1)
VARIANT(Half, 0, 0)
VARIANT(Half, 0, 1)
VARIANT(NoFence, 0, 0)
VARIANT(NoCommit, 0, 0)
VARIANT(NoWait, 0, 0)
VARIANT(NoName, 0, 0)
VARIANT(WriteA, 1, 0)
VARIANT(WriteC, 0, 0)
VARIANT(NoMbarWait, 0, 0)
VARIANT(NoExpect, 0, 0)
VARIANT(NoInitFence, 0, 0)
VARIANT(NoInitSync, 0, 0)
VARIANT(NoInit, 0, 0)
VARIANT(BadDescriptor, 0, 0)
VARIANT(Diverge, 0, 0)
VARIANT(LateStore, 0, 0)
VARIANT(BadRegister, 1, 0)
)";

struct ProductParams {
  TensorMap a, b;
  uint64_t a_desc, b_desc;
  std::array<int, 4> a_step, b_step;
  const uint16_t* a_rows;
  float* out;
};

struct ProductResult {
  std::string report;
  int wrong = 0;
};

inline ProductResult run_product(const CompiledBody& body, const std::string& variant,
                                 layout::Swizzle swizzle, uint64_t seed) {
  const bool is_transposed = variant.back() == '1';
  const bool is_half = variant.starts_with("Half");
  const auto value = [&](uint16_t bits) { return is_half ? f16_value(bits) : bf16_value(bits); };
  Matrix a(64, 64);
  Matrix b(is_transposed ? 64 : 128, is_transposed ? 128 : 64);
  base::Random random(5);
  for (Matrix* matrix : {&a, &b}) {
    for (int i = 0; i < matrix->rows; ++i) {
      for (int j = 0; j < matrix->cols; ++j) {
        const auto x = static_cast<float>(random.integer(-4, 4));
        matrix->bits(i, j) = is_half ? f16_bits(x) : bf16_bits(x);
      }
    }
  }
  // A tile in panels is one box of three dimensions.
  const auto map = [&](Matrix& matrix) {
    const int inner = layout::span_bytes(swizzle) / 2;
    return map_of(matrix.begin(), {inner, matrix.rows, matrix.cols / inner}, {matrix.stride, inner},
                  {inner, matrix.rows, matrix.cols / inner}, swizzle);
  };
  const layout::Operand left = {{64, 64, swizzle}, layout::Major::K, 1024};
  const layout::Operand right = {
      {b.rows, b.cols, swizzle}, is_transposed ? layout::Major::MN : layout::Major::K, 1024 + 8192};
  std::vector<float> out(64 * 128);
  ProductParams params = {map(a),
                          map(b),
                          layout::encode(layout::step_descriptor(left, 0)),
                          layout::encode(layout::step_descriptor(right, 0)),
                          {},
                          {},
                          a.begin(),
                          out.data()};
  for (int k = 0; k < 4; ++k) {
    params.a_step[static_cast<size_t>(k)] = static_cast<int>(layout::step_advance(left, k));
    params.b_step[static_cast<size_t>(k)] = static_cast<int>(layout::step_advance(right, k));
  }
  ProductResult result;
  result.report =
      run(body, {"product_" + variant, 1, 128, 24584, &params, sizeof params}, {.seed = seed});
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 128; ++j) {
      float sum = 0;
      for (int k = 0; k < 64; ++k) {
        sum += value(a.bits(i, k)) * value(is_transposed ? b.bits(k, j) : b.bits(j, k));
      }
      if (out[static_cast<size_t>(i * 128 + j)] != sum) ++result.wrong;
    }
  }
  return result;
}

}  // namespace nautilus::emulator
