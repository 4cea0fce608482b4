// SPDX-License-Identifier: Apache-2.0
//
// What a kernel on the host asks of the emulator. The text of this file stands before
// prelude/host.h in every compiled kernel, so it includes nothing and both sides see the same
// struct. A kernel library is bound to the table after it is loaded; it needs no symbol of the
// program that loads it. `line` is the line of the kernel's body.
#pragma once

namespace nautilus::emulator {

// The elements of a matrix product's operands.
enum class Operand : unsigned char { BF16, F16, TF32, F8E4M3, F8E5M2, I8, U8 };

// One product of 64 rows and n columns as a thread sees it, 32 bytes deep. `a` is null if A is in
// shared memory. The accumulator is an array of float, or of int where operands are integers.
struct ProductCall {
  void* accumulator;
  int accumulator_size;
  int first;
  const unsigned* a;
  int a_size;
  int a_first;
  unsigned long long a_descriptor;
  unsigned long long b_descriptor;
  int n;
  Operand a_operand;
  Operand b_operand;
  bool is_init;
  bool is_b_transposed;
  bool is_a_transposed;
};

struct RegisterArray {
  void* at;
  int size;
};

struct HostTable {
  int (*thread_index)();
  int (*block_index)();
  int (*block_count)();
  unsigned (*shared_base)();
  void (*role)(const char* name);
  void (*wait_for_kernels_in_front)();

  void (*sync_warp)(int line);
  int (*uniform)(int x, int line);
  float (*lane_xor)(float x, int mask, int line);
  float (*lane_from)(float x, int lane, int line);
  bool (*vote_any)(bool x, int line);

  unsigned short (*to_f16)(float x);
  float (*from_f16)(unsigned short bits);
  void (*global_access)(const void* at, int bytes, bool is_write, int line);
  int (*global_add)(int* at, int x, int line);
  void (*global_set)(int* at, int x, int line);
  void (*global_fence)(int line);

  void (*shared_store)(unsigned address, unsigned bits, int line);
  unsigned (*shared_load)(unsigned address, int line);
  // Where an element of so many bytes is, to be changed by an atomic operation.
  void* (*shared_combine)(unsigned address, int bytes, int line);
  void (*stmatrix_x4)(unsigned address, const unsigned* registers, int line);
  void (*ldmatrix_x4)(unsigned address, unsigned* registers, bool is_transposed, int line);
  // d[4] += a[4] . b[2] of one warp.
  void (*mma)(float* d, const unsigned* a, const unsigned* b, bool is_f16, int line);
  void (*fence_async)(int line);

  // 0 threads: all of the CTA.
  void (*bar_sync)(int id, int threads, int line);
  void (*bar_arrive)(int id, int threads, int line);
  void (*mbar_init)(unsigned at, int count, int line);
  void (*mbar_init_fence)(int line);
  void (*mbar_expect)(unsigned at, int bytes, int line);
  void (*mbar_arrive)(unsigned at, int line);
  // At the barrier at the same address in the CTA of that rank in the cluster.
  void (*mbar_arrive_remote)(unsigned at, int rank, int line);
  // At the same address in the CTA of that rank in the cluster.
  void (*shared_store_remote)(unsigned address, int rank, unsigned bits, int line);
  // All threads of all CTAs of the cluster.
  void (*sync_cluster)(int line);
  // `phases` is how many phases must have completed, -1 if the caller knows the parity only.
  void (*mbar_wait)(unsigned at, int parity, long long phases, int line);
  void (*ring_init)(unsigned at, int slots, int readers, int line);

  void (*tma_load)(unsigned to, const void* map, unsigned bar, int rank, const int* at, int line);
  // To the same place in every CTA of the mask.
  void (*tma_load_all)(unsigned to, const void* map, unsigned bar, unsigned mask, int rank,
                       const int* at, int line);
  void (*tma_store)(const void* map, unsigned from, int rank, const int* at, int line);
  void (*tma_commit)(int line);
  void (*tma_wait_read)(int pending, int line);

  void (*registers)(int count, bool is_up, int line);
  void (*wgmma_fence)(int line);
  void (*wgmma)(const ProductCall* call, int line);
  void (*wgmma_commit)(int line);
  void (*wgmma_wait)(int pending, const RegisterArray* arrays, int count, int line);
};

}  // namespace nautilus::emulator
