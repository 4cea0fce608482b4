// SPDX-License-Identifier: Apache-2.0
//
// For tests: full attention, D = 128, tiles of 192 x 80 with three warp groups that take turns; the
// second product of a tile runs under the softmax of the next.
#pragma once

#include <cmath>

#include "test/emulator/test_kernels.h"

namespace nautilus::emulator {

inline constexpr std::string_view kAttention = R"(
struct Params { TensorMap Qm, Km, Vm, Om; int M, N, H; float c; };
KERNEL(attention, 512) {
  SHARED_BASE(smem);
  const int thread = thread_index();
  const int group = uniform(thread / 128), warp = uniform(thread / 32) % 4, lane = thread % 32;
  const int mt = (p.M + 191) / 192, nt = (p.N + 79) / 80, tiles = mt * p.H;
  if (thread == 0) {
    for (int i = 0; i < 3; ++i) Ring<1>::init(smem + 180224 + 16 * i, 4);
    Ring<2>::init(smem + 180272, 12);
    Ring<2>::init(smem + 180304, 12);
    mbar_init_fence();
  }
  sync_cta();
  if (group == 0) {
    registers_down<32>();
    if (warp == 0 && lane == 0) {
      ROLE("load.kq");
      Ring<1> Q0(smem + 180224), Q1(smem + 180240), Q2(smem + 180256);
      Ring<2> K(smem + 180272);
      for (int t = block_index(); t < tiles; t += block_count()) {
        const int h = t / mt, i0 = t % mt * 192;
        for (int n = 0; n < nt; ++n) {
          const u32 full = K.fill(20480);
          tma_load(smem + 49152 + K.slot * 20480, &p.Km, full, 0, 80 * n, 0, h);
          if (n == 0) {
            const u32 q0 = Q0.fill(16384);
            tma_load(smem, &p.Qm, q0, 0, i0, 0, h);
            Q0.advance();
            const u32 q1 = Q1.fill(16384);
            tma_load(smem + 16384, &p.Qm, q1, 0, i0 + 64, 0, h);
            Q1.advance();
            const u32 q2 = Q2.fill(16384);
            tma_load(smem + 32768, &p.Qm, q2, 0, i0 + 128, 0, h);
            Q2.advance();
          }
          K.advance();
        }
      }
    } else if (warp == 1 && lane == 0) {
      ROLE("load.v");
      Ring<2> V(smem + 180304);
      for (int t = block_index(); t < tiles; t += block_count()) {
        for (int n = 0; n < nt; ++n) {
          const u32 full = V.fill(20480);
          tma_load(smem + 90112 + V.slot * 20480, &p.Vm, full, 0, 80 * n, 0, t / mt);
          V.advance();
        }
      }
    }
  } else {
    registers_up<160>();
    const int w = group - 1;
    ROLE("compute");
    Ring<1> Q(smem + 180224 + 16 * w);
    Ring<2> K(smem + 180272), V(smem + 180304);
    Turn<3> A(4, w);
    const u64 q_desc = matrix_descriptor(smem + w * 16384, 16, 1024, 1);
    const u64 k_desc = matrix_descriptor(smem + 49152, 16, 1024, 1);
    const u64 v_desc = matrix_descriptor(smem + 90112, 10240, 1024, 1);
    float S[40], O[64];
    u32 P[20];
    for (int t = block_index(); t < tiles; t += block_count()) {
      const int h = t / mt, r = t % mt * 192 + 64 * w;
      Q.get();
      K.get();
      wgmma_fence();
      wgmma_bf16_n80<INIT, 0>(S, 0, q_desc, k_desc + K.slot * 1280);
      UNROLL for (int k = 1; k < 8; ++k)
        wgmma_bf16_n80<ADD, 0>(S, 0, q_desc + k / 4 * 512 + k % 4 * 2,
                               k_desc + K.slot * 1280 + k / 4 * 640 + k % 4 * 2);
      wgmma_commit();
      wgmma_wait<0>(S);
      K.release(0, lane);
      K.advance();
      float m0 = -infinity(), m1 = -infinity();
      UNROLL for (int i = 0; i < 40; ++i) {
        if (8 * (i / 4) + 2 * (lane % 4) + i % 2 >= p.N) S[i] = -infinity();
        if (i % 4 < 2) m0 = maximum(m0, S[i]); else m1 = maximum(m1, S[i]);
      }
      m0 = maximum(m0, lane_xor(m0, 1));
      m0 = maximum(m0, lane_xor(m0, 2));
      m1 = maximum(m1, lane_xor(m1, 1));
      m1 = maximum(m1, lane_xor(m1, 2));
      float l0 = 0.f, l1 = 0.f;
      UNROLL for (int i = 0; i < 40; ++i) {
        S[i] = exp2_approx(S[i] * p.c - (i % 4 < 2 ? m0 : m1) * p.c);
        if (i % 4 < 2) l0 += S[i]; else l1 += S[i];
      }
      UNROLL for (int i = 0; i < 20; ++i) P[i] = pack_bf16(S[2 * i], S[2 * i + 1]);
      UNROLL for (int i = 0; i < 64; ++i) O[i] = 0.f;
      for (int n = 1; n < nt; ++n) {
        K.get();
        A.enter();
        wgmma_fence();
        wgmma_bf16_n80<INIT, 0>(S, 0, q_desc, k_desc + K.slot * 1280);
        UNROLL for (int k = 1; k < 8; ++k)
          wgmma_bf16_n80<ADD, 0>(S, 0, q_desc + k / 4 * 512 + k % 4 * 2,
                               k_desc + K.slot * 1280 + k / 4 * 640 + k % 4 * 2);
        wgmma_commit();
        V.get();
        wgmma_fence();
        UNROLL for (int k = 0; k < 5; ++k)
          wgmma_bf16_n128<ADD, 1>(O, 0, P, 4 * k, v_desc + V.slot * 1280 + k * 128);
        wgmma_commit();
        A.leave();
        wgmma_wait<1>(S);
        K.release(0, lane);
      K.advance();
        float t0 = -infinity(), t1 = -infinity();
        UNROLL for (int i = 0; i < 40; ++i) {
          if (80 * n + 8 * (i / 4) + 2 * (lane % 4) + i % 2 >= p.N) S[i] = -infinity();
          if (i % 4 < 2) t0 = maximum(t0, S[i]); else t1 = maximum(t1, S[i]);
        }
        const bool up = vote_any((t0 - m0) * p.c > 8.f || (t1 - m1) * p.c > 8.f);
        float a0 = 1.f, a1 = 1.f;
        if (up) {
          t0 = maximum(t0, lane_xor(t0, 1));
          t0 = maximum(t0, lane_xor(t0, 2));
          t1 = maximum(t1, lane_xor(t1, 1));
          t1 = maximum(t1, lane_xor(t1, 2));
          t0 = maximum(t0, m0);
          t1 = maximum(t1, m1);
          a0 = exp2_approx((m0 - t0) * p.c);
          a1 = exp2_approx((m1 - t1) * p.c);
          m0 = t0;
          m1 = t1;
          l0 *= a0;
          l1 *= a1;
        }
        UNROLL for (int i = 0; i < 40; ++i) {
          S[i] = exp2_approx(S[i] * p.c - (i % 4 < 2 ? m0 : m1) * p.c);
          if (i % 4 < 2) l0 += S[i]; else l1 += S[i];
        }
        wgmma_wait<0>(O, P);
        V.release(0, lane);
      V.advance();
        UNROLL for (int i = 0; i < 20; ++i) P[i] = pack_bf16(S[2 * i], S[2 * i + 1]);
        if (up) UNROLL for (int i = 0; i < 64; ++i) O[i] *= i % 4 < 2 ? a0 : a1;
      }
      Q.release(0, lane);
      Q.advance();
      V.get();
      wgmma_fence();
      UNROLL for (int k = 0; k < 5; ++k)
        wgmma_bf16_n128<ADD, 1>(O, 0, P, 4 * k, v_desc + V.slot * 1280 + k * 128);
      wgmma_commit();
      wgmma_wait<0>(O, P);
      V.release(0, lane);
      V.advance();
      l0 += lane_xor(l0, 1);
      l0 += lane_xor(l0, 2);
      l1 += lane_xor(l1, 1);
      l1 += lane_xor(l1, 2);
      const u32 o = smem + 131072 + w * 16384;
      if (thread % 128 == 0) tma_wait_read<0>();
      bar_sync(1 + w, 128);
      const int row = 16 * warp + lane % 16;
      UNROLL for (int s = 0; s < 8; ++s) {
        const float* x = O + 8 * s;
        stmatrix_x4(o + s / 4 * 8192 + row * 128 + ((s % 4 * 2 + lane / 16) ^ (row & 7)) * 16,
                    pack_bf16(x[0] / l0, x[1] / l0), pack_bf16(x[2] / l1, x[3] / l1),
                    pack_bf16(x[4] / l0, x[5] / l0), pack_bf16(x[6] / l1, x[7] / l1));
      }
      fence_async();
      bar_sync(1 + w, 128);
      if (thread % 128 == 0) {
        tma_store(&p.Om, o, 0, r, 0, h);
        tma_commit();
      }
    }
    if (thread % 128 == 0) tma_wait_read<0>();
  }
}
)";

struct AttentionParams {
  TensorMap q, k, v, o;
  int m, n, h;
  float c;
};

struct AttentionResult {
  std::string report;
  double error = 0;  // the largest, relative to the largest output
  Statistics statistics;
};

inline AttentionResult run_attention(const CompiledBody& body, int heads, int m, int n, int grid,
                                     uint64_t seed) {
  constexpr int kDim = 128;
  Matrix q(heads * m, kDim);
  Matrix k(heads * n, kDim);
  Matrix v(heads * n, kDim);
  Matrix o(heads * m, kDim);
  base::Random random(11);
  for (Matrix* matrix : {&q, &k, &v}) {
    for (int i = 0; i < matrix->rows; ++i) {
      for (int d = 0; d < kDim; ++d) matrix->set(i, d, static_cast<float>(random.normal()));
    }
  }
  const auto map = [&](Matrix& matrix, int rows, int box_rows) {
    return map_of(matrix.begin(), {64, rows, 2, heads}, {kDim, 64, int64_t{rows} * kDim},
                  {64, box_rows, 2, 1});
  };
  const double scale = 1 / std::sqrt(128.);
  const AttentionParams params = {map(q, m, 64),
                                  map(k, n, 80),
                                  map(v, n, 80),
                                  map(o, m, 64),
                                  m,
                                  n,
                                  heads,
                                  static_cast<float>(scale * 1.4426950408889634)};
  AttentionResult result;
  result.report = run(body, {"attention", grid, 512, 180336, &params, sizeof params},
                      {.seed = seed}, &result.statistics);
  double largest = 0;
  double worst = 0;
  std::vector<double> weight(static_cast<size_t>(n));
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < m; i += 13) {  // a sample of rows
      double sum = 0;
      for (int j = 0; j < n; ++j) {
        double dot = 0;
        for (int d = 0; d < kDim; ++d) dot += double{q.at(h * m + i, d)} * k.at(h * n + j, d);
        sum += weight[static_cast<size_t>(j)] = std::exp(dot * scale);
      }
      for (int d = 0; d < kDim; ++d) {
        double value = 0;
        for (int j = 0; j < n; ++j) value += weight[static_cast<size_t>(j)] * v.at(h * n + j, d);
        largest = std::max(largest, std::abs(value / sum));
        const double difference = std::abs(value / sum - o.at(h * m + i, d));
        worst = difference <= worst ? worst : difference;  // NaN counts
      }
    }
  }
  result.error = worst / largest;
  return result;
}

}  // namespace nautilus::emulator
