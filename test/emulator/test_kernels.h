// SPDX-License-Identifier: Apache-2.0
//
// For tests: kernel bodies as the emitter writes them, and what is needed to launch them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "emulator/emulator.h"
#include "emulator/half.h"
#include "runtime/tensor_map.h"

namespace nautilus::emulator {

// As in host.h.
struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

inline uint16_t bf16_bits(float x) {
  const uint32_t bits = bits_of_float(x);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Dimensions innermost first; strides in elements from the second dimension on.
inline TensorMap map_of(void* data, std::vector<int64_t> dims, std::vector<int64_t> strides,
                        std::vector<int> box, layout::Swizzle swizzle = layout::Swizzle::B128) {
  runtime::TensorMapView view;
  view.address = reinterpret_cast<uintptr_t>(data);
  view.rank = static_cast<uint8_t>(dims.size());
  view.element = runtime::MapElement::BF16;
  view.swizzle = swizzle;
  for (size_t i = 0; i < dims.size(); ++i) {
    view.dims[i] = dims[i];
    view.strides[i] = i == 0 ? 2 : 2 * strides[i - 1];
    view.box[i] = box[i];
  }
  TensorMap map = {};
  std::memcpy(&map, &view, sizeof view);
  return map;
}

// Rows of `cols` bf16 values, each row a multiple of 16 bytes long.
struct Matrix {
  Matrix(int row_count, int col_count)
      : rows(row_count),
        cols(col_count),
        stride((col_count + 7) / 8 * 8),
        data(static_cast<size_t>(row_count) * static_cast<size_t>(stride) + 8) {}

  uint16_t* begin() {
    const auto address = reinterpret_cast<uintptr_t>(data.data());
    return data.data() + (16 - address % 16) % 16 / 2;
  }
  uint16_t& bits(int row, int col) { return begin()[row * stride + col]; }
  float at(int row, int col) { return bf16_value(bits(row, col)); }
  void set(int row, int col, float x) { bits(row, col) = bf16_bits(x); }
  TensorMap map(int box_cols, int box_rows, layout::Swizzle swizzle = layout::Swizzle::B128) {
    return map_of(begin(), {cols, rows}, {stride}, {box_cols, box_rows}, swizzle);
  }

  int rows;
  int cols;
  int stride;
  std::vector<uint16_t> data;
};

// Keeps what it compiles, apart from the user's own cache.
inline std::unique_ptr<CompiledBody> compile_for_test(const std::string& body) {
  std::string error;
  const CompileOptions options = {.cache_folder = testing::TempDir() + "/nautilus_emulator_cache"};
  auto compiled = CompiledBody::compile(body, options, &error);
  EXPECT_NE(compiled, nullptr) << error;
  return compiled;
}

// Replaces the one place where `from` stands.
inline std::string edited(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const size_t at = out.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at == std::string::npos) return out;
  EXPECT_EQ(out.find(from, at + 1), std::string::npos) << from << " stands twice";
  return out.replace(at, from.size(), to);
}

// C = A B^T in tiles of 128 x 256, as two warp groups of 64 rows; a ring of 4 slots.
inline constexpr std::string_view kGemm = R"(
struct Params { TensorMap Am, Bm, Cm; int M, N, K; };
KERNEL(gemm, 384) {
  SHARED_BASE(smem);
  const int thread = thread_index();
  const int group = uniform(thread / 128), warp = uniform(thread / 32) % 4, lane = thread % 32;
  const int kb = (p.K + 63) / 64, mt = (p.M + 127) / 128, nt = (p.N + 255) / 256;
  if (thread == 0) {
    Ring<4>::init(smem + 229376, 8);
    mbar_init_fence();
  }
  sync_cta();
  if (group == 0) {
    registers_down<24>();
    if (warp == 0 && lane == 0) {
      ROLE("load");
      Ring<4> AB(smem + 229376);
      for (int t = block_index(); t < mt * nt; t += block_count()) {
        const int m = t % mt, n = t / mt;
        for (int k = 0; k < kb; ++k) {
          const u32 full = AB.fill(49152);
          tma_load(smem + AB.slot * 49152, &p.Am, full, 64 * k, 128 * m);
          tma_load(smem + AB.slot * 49152 + 16384, &p.Bm, full, 64 * k, 256 * n);
          AB.advance();
        }
      }
    }
  } else {
    registers_up<240>();
    const int w = group - 1;
    ROLE("compute");
    Ring<4> AB(smem + 229376);
    const u64 a_desc = matrix_descriptor(smem + w * 8192, 16, 1024, 1);
    const u64 b_desc = matrix_descriptor(smem + 16384, 16, 1024, 1);
    int stage = 0;
    float C[128];
    for (int t = block_index(); t < mt * nt; t += block_count()) {
      const int m = t % mt, n = t / mt;
      AB.get();
      wgmma_fence();
      wgmma_bf16_n256<INIT, 0>(C, 0, a_desc + AB.slot * 3072, b_desc + AB.slot * 3072);
      UNROLL for (int i = 1; i < 4; ++i)
        wgmma_bf16_n256<ADD, 0>(C, 0, a_desc + AB.slot * 3072 + 2 * i,
                                b_desc + AB.slot * 3072 + 2 * i);
      wgmma_commit();
      AB.advance();
      for (int k = 1; k < kb; ++k) {
        AB.get();
        wgmma_fence();
        UNROLL for (int i = 0; i < 4; ++i)
          wgmma_bf16_n256<ADD, 0>(C, 0, a_desc + AB.slot * 3072 + 2 * i,
                                b_desc + AB.slot * 3072 + 2 * i);
        wgmma_commit();
        wgmma_wait<1>();
        AB.release(1, lane);
        AB.advance();
      }
      wgmma_wait<0>(C);
      AB.release(1, lane);
      UNROLL for (int q = 0; q < 4; ++q) {
        const u32 c = smem + 196608 + w * 16384 + stage * 8192;
        if (thread % 128 == 0) tma_wait_read<1>();
        bar_sync(1 + w, 128);
        const int row = 16 * warp + lane % 16;
        UNROLL for (int r = 0; r < 4; ++r) {
          const float* x = C + 32 * q + 8 * r;
          stmatrix_x4(c + row * 128 + ((2 * r + lane / 16) ^ (row & 7)) * 16, pack_bf16(x[0], x[1]),
                      pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7]));
        }
        fence_async();
        bar_sync(1 + w, 128);
        if (thread % 128 == 0) {
          tma_store(&p.Cm, c, 256 * n + 64 * q, 128 * m + 64 * w);
          tma_commit();
        }
        stage ^= 1;
      }
    }
    if (thread % 128 == 0) tma_wait_read<0>();
  }
}
)";

struct GemmParams {
  TensorMap a, b, c;
  int m, n, k;
};

struct GemmResult {
  std::string report;
  int wrong = 0;  // elements of C
  Statistics statistics;
};

// Small integers, so that the result is exact. C is first filled with something else.
inline GemmResult run_gemm(const CompiledBody& body, int m, int n, int k, int grid, uint64_t seed) {
  Matrix a(m, k);
  Matrix b(n, k);
  Matrix c(m, n);
  base::Random random(7);
  for (int i = 0; i < m; ++i) {
    for (int x = 0; x < k; ++x) a.set(i, x, static_cast<float>(random.integer(-1, 1)));
  }
  for (int j = 0; j < n; ++j) {
    for (int x = 0; x < k; ++x) b.set(j, x, static_cast<float>(random.integer(-1, 1)));
  }
  for (uint16_t& bits : c.data) bits = 0x4321;
  const GemmParams params = {a.map(64, 128), b.map(64, 256), c.map(64, 64), m, n, k};
  GemmResult result;
  result.report = run(body,
                      {"gemm",
                       grid,
                       384,
                       229376 + 64,
                       &params,
                       sizeof params,
                       {{a.data.data(), a.data.size() * 2, false},
                        {b.data.data(), b.data.size() * 2, false},
                        {c.data.data(), c.data.size() * 2}}},
                      {.seed = seed}, &result.statistics);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int x = 0; x < k; ++x) sum += a.at(i, x) * b.at(j, x);
      if (c.bits(i, j) != bf16_bits(sum)) ++result.wrong;
    }
  }
  for (int i = 0; i < m; ++i) {
    for (int j = n; j < c.stride; ++j) result.wrong += c.bits(i, j) != 0x4321 ? 1 : 0;
  }
  return result;
}

}  // namespace nautilus::emulator
