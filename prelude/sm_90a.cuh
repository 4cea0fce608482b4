// Nautilus prelude for sm_90a: the only place with inline assembly. Each function wraps one
// instruction (or one small idiom), so that a kernel body is plain C++ over these names and the
// same text also runs in the emulator.
#pragma nv_diag_suppress 177  // a kernel uses a part of this
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
#define DEVICE static __device__ __forceinline__
#define KERNEL(name, threads)                                   \
  extern "C" __global__ void __launch_bounds__(threads, 1)      \
  name(const __grid_constant__ Params p)
// A kernel of which so many CTAs share a multiprocessor: its registers are limited accordingly.
#define KERNEL_MIN_CTAS(name, threads, ctas)                      \
  extern "C" __global__ void __launch_bounds__(threads, ctas)   \
  name(const __grid_constant__ Params p)
// A kernel whose CTAs run in clusters of so many neighbours.
#define KERNEL_CLUSTER(name, threads, ctas)                     \
  extern "C" __global__ void __cluster_dims__(ctas, 1, 1) __launch_bounds__(threads, 1) \
  name(const __grid_constant__ Params p)
// The same, so many of which share a multiprocessor.
#define KERNEL_CLUSTER_MIN_CTAS(name, threads, ctas, together)                            \
  extern "C" __global__ void __cluster_dims__(ctas, 1, 1) __launch_bounds__(threads, together) \
  name(const __grid_constant__ Params p)
#define SHARED_BASE(name)                                       \
  extern __shared__ __align__(1024) unsigned char name##_bytes[]; \
  const u32 name = (u32)__cvta_generic_to_shared(name##_bytes)
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#define ROLE(name)  // who runs the next block; the emulator reports it

struct alignas(64) TensorMap { unsigned char opaque[128]; };

// ---- who am I
DEVICE int thread_index() { return (int)threadIdx.x; }
DEVICE int block_index() { return (int)blockIdx.x; }
DEVICE int block_count() { return (int)gridDim.x; }
// The value of lane 0, known to be equal in the whole warp.
DEVICE int uniform(int x) { return __shfl_sync(~0u, x, 0); }

// ---- arithmetic
DEVICE float infinity() { return __int_as_float(0x7f800000); }
DEVICE float exp2_approx(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// log2_approx, tanh_approx and erf_of are coarse, for programs that allow it (docs/language.md, section 8). This one has an
// error of 2^-22 of the larger of 1 and the result, and takes subnormal numbers for 0.
DEVICE float log2_approx(float x) { float y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float rsqrt_approx(float x) { float y; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// A relative error of 2^-23, without the branch for special numbers that the exact one has.
DEVICE float sqrt_approx(float x) { float y; asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// A relative error of 2^-11.
DEVICE float tanh_approx(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// Both are computed, whatever the condition.
DEVICE float choose(bool c, float x, float y) { return c ? x : y; }
DEVICE float divide(float x, float y) { return __fdividef(x, y); }
DEVICE float sqrt_of(float x) { return sqrtf(x); }
// erf(c x) = 1 - exp2(-p(|c x|)), where p fits -log2(erfc) on 0 .. 4; beyond, erf rounds to 1. One special function, no
// branch; the absolute error is below 2e-7 with an exact exp2 and below 4.4e-7 with this one. A constant factor c > 0 of the
// argument goes into the coefficients, which the compiler computes. host.h has the same formula.
DEVICE float erf_of(float x, double c = 1) {
  float a;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(a) : "f"(fabsf(x)), "f"((float)(4 / c)));
  const double c2 = c * c, c3 = c2 * c, c4 = c2 * c2;
  float p = fmaf(a, (float)(0.000100211713 * c4 * c3), (float)(-0.000461521937 * c3 * c3));
  p = fmaf(a, p, (float)(-0.00230234186 * c4 * c));
  p = fmaf(a, p, (float)(0.0294526126 * c4));
  p = fmaf(a, p, (float)(-0.14896372 * c3));
  p = fmaf(a, p, (float)(-0.918328643 * c2));
  p = fmaf(a, p, (float)(-1.62791371 * c));
  return copysignf(1.f - exp2_approx(a * p), x);
}
DEVICE float floor_of(float x) { return floorf(x); }
DEVICE float round_of(float x) { return rintf(x); }
DEVICE float absolute(float x) { return fabsf(x); }
DEVICE int absolute(int x) { return x < 0 ? -x : x; }
DEVICE float maximum(float x, float y) { return fmaxf(x, y); }
DEVICE float minimum(float x, float y) { return fminf(x, y); }
DEVICE int maximum(int x, int y) { return max(x, y); }
DEVICE int minimum(int x, int y) { return min(x, y); }
// Rounds towards minus infinity, y > 0.
DEVICE int floor_div(int x, int y) { return (x >= 0 ? x : x - y + 1) / y; }
DEVICE int floor_mod(int x, int y) { return x - floor_div(x, y) * y; }
DEVICE u32 as_bits(float x) { return __float_as_uint(x); }
DEVICE float as_float(u32 bits) { return __uint_as_float(bits); }
DEVICE u64 as_bits(double x) { return (u64)__double_as_longlong(x); }
DEVICE double as_double(u64 bits) { return __longlong_as_double((long long)bits); }
// Two 16-bit floats in one register, the first in the low half.
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
DEVICE float round_tf32(float x) { u32 r; asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); return __uint_as_float(r); }
DEVICE u32 pack_f16(float lo, float hi) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
DEVICE float unpack_bf16(u32 pair, int half) { return __uint_as_float(half ? pair & 0xffff0000u : pair << 16); }
DEVICE float unpack_f16(u32 pair, int half) {
  float y; const u16 h = (u16)(half ? pair >> 16 : pair & 0xffffu);
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(h)); return y;
}

// The compiler keeps nothing that it computed from these registers: it does not know that the extent of
// the grid's third axis is 1. (An empty asm statement would hold back only half of it, not ptxas.)
template <int I> DEVICE void forget(u32 (&x)[I]) {
  u32 one;
  asm volatile("mov.u32 %0, %%nctaid.z;" : "=r"(one));
  UNROLL for (int i = 0; i < I; ++i) x[i] += one - 1;
}
// The same number: what is computed from it is computed here, neither kept from before nor for later.
DEVICE int anew(int x) {
  int one;
  asm volatile("mov.u32 %0, %%nctaid.z;" : "=r"(one));
  return x + (one - 1);
}

// The same number, of which the compiler does not know how it came about: it would take sums apart that have a number of
// the instruction in them.
DEVICE u64 hidden(u64 x) { asm("" : "+l"(x)); return x; }
DEVICE int hidden(int x) { asm("" : "+r"(x)); return x; }
template <class T> DEVICE T* hidden(T* x) { asm("" : "+l"(x)); return x; }

// ---- lanes of a warp
DEVICE float lane_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
// What lane `lane` passes as x.
DEVICE float lane_from(float x, int lane) { return __shfl_sync(~0u, x, lane); }
DEVICE int lane_from(int x, int lane) { return __shfl_sync(~0u, x, lane); }
DEVICE bool vote_any(bool x) { return __any_sync(~0u, x); }
DEVICE void sync_warp() { __syncwarp(); }

// ---- global memory
// What other CTAs of the same launch may have written.
DEVICE float load_fresh_f32(const float* p, u64 i) { return __ldcg(p + i); }
DEVICE void store_f32(float* p, u64 i, float x) { p[i] = x; }
DEVICE void store_bf16(u16* p, u64 i, float x) { p[i] = (u16)(pack_bf16(x, 0.f) & 0xffffu); }
DEVICE void store_f16(u16* p, u64 i, float x) { p[i] = (u16)(pack_f16(x, 0.f) & 0xffffu); }
// Two neighbours, at an address that takes both at once.
template <class T> DEVICE bool is_pair(const T* p, u64 i) { return (u64)(p + i) % (2 * sizeof(T)) == 0; }
DEVICE void store_pair_f32(float* p, u64 i, float x, float y) { *(float2*)(p + i) = make_float2(x, y); }
DEVICE void store_pair_bf16(u16* p, u64 i, float x, float y) { *(u32*)(p + i) = pack_bf16(x, y); }
DEVICE void store_pair_f16(u16* p, u64 i, float x, float y) { *(u32*)(p + i) = pack_f16(x, y); }
// Lines: N elements of one thread, so many apart, of which the first `left` exist; neighbours that lie well in 16 bytes
// at a time.
template <int N> DEVICE bool is_whole_line(const void* at, int bytes, u64 apart, int left) {
  return left >= N && apart == 1 && N * bytes % 16 == 0 && (u64)at % 16 == 0;
}
template <int N> DEVICE void store_whole_f32(float* p, u64 i, const float (&line)[N]) {
  UNROLL for (int k = 0; k + 3 < N; k += 4)
    *(float4*)(p + i + k) = make_float4(line[k], line[k + 1], line[k + 2], line[k + 3]);
}
template <int N> DEVICE void store_whole_bf16(u16* p, u64 i, const float (&line)[N]) {
  UNROLL for (int k = 0; k + 7 < N; k += 8)
    *(uint4*)(p + i + k) = make_uint4(pack_bf16(line[k], line[k + 1]), pack_bf16(line[k + 2], line[k + 3]),
                                      pack_bf16(line[k + 4], line[k + 5]), pack_bf16(line[k + 6], line[k + 7]));
}
template <int N> DEVICE void store_whole_f16(u16* p, u64 i, const float (&line)[N]) {
  UNROLL for (int k = 0; k + 7 < N; k += 8)
    *(uint4*)(p + i + k) = make_uint4(pack_f16(line[k], line[k + 1]), pack_f16(line[k + 2], line[k + 3]),
                                      pack_f16(line[k + 4], line[k + 5]), pack_f16(line[k + 6], line[k + 7]));
}
template <int N> DEVICE void store_line_f32(float* p, u64 i, const float (&line)[N], u64 apart, int left) {
  if (is_whole_line<N>(p + i, 4, apart, left)) return store_whole_f32(p, i, line);
  UNROLL for (int k = 0; k < N; ++k)
    if (k < left) store_f32(p, i + k * apart, line[k]);
}
template <int N> DEVICE void store_line_bf16(u16* p, u64 i, const float (&line)[N], u64 apart, int left) {
  if (is_whole_line<N>(p + i, 2, apart, left)) return store_whole_bf16(p, i, line);
  UNROLL for (int k = 0; k < N; ++k)
    if (k < left) store_bf16(p, i + k * apart, line[k]);
}
template <int N> DEVICE void store_line_f16(u16* p, u64 i, const float (&line)[N], u64 apart, int left) {
  if (is_whole_line<N>(p + i, 2, apart, left)) return store_whole_f16(p, i, line);
  UNROLL for (int k = 0; k < N; ++k)
    if (k < left) store_f16(p, i + k * apart, line[k]);
}
struct alignas(16) Vector16 { u32 x[4]; };
template <class T> DEVICE bool is_aligned_16(const T* p, u64 i) { return (u64)(p + i) % 16 == 0; }
template <class T> DEVICE void store_vector(T* p, u64 i, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p + i), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
// Asks the second-level cache for whole 16 bytes, from an aligned address on.
template <class T> DEVICE void prefetch_cache(const T* p, u64 i, u64 bytes) {
  const u32 whole = (u32)bytes / 16 * 16;
  if (whole > 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(p + i), "r"(whole) : "memory");
}
DEVICE int global_add(int* p, int x) { return atomicAdd(p, x); }
DEVICE void global_set(int* p, int x) { atomicExch(p, x); }
DEVICE void global_fence() { __threadfence(); }

// ---- shared memory
DEVICE void shared_store_i32(u32 address, int x) { asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(x) : "memory"); }
DEVICE int shared_load_i32(u32 address) { int x; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address) : "memory"); return x; }
DEVICE void shared_store_f32(u32 address, float x) { asm volatile("st.shared.f32 [%0], %1;" :: "r"(address), "f"(x) : "memory"); }
DEVICE float shared_load_f32(u32 address) { float x; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory"); return x; }
DEVICE void shared_load_f32x2(u32 address, float& x, float& y) {
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}
DEVICE void shared_load_f32x4(u32 address, float* x) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(address) : "memory");
}
DEVICE void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" :: "r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEVICE void ldmatrix_x4(u32 address, u32 (&x)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address) : "memory");
}
// The same with each 8 x 8 block transposed.
DEVICE void ldmatrix_x4_trans(u32 address, u32 (&x)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address) : "memory");
}
// d[at .. at+3] += a . b of one warp: 16 x 8 x 16.
template <int LENGTH> DEVICE void mma_bf16(float (&d)[LENGTH], int at, const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[at]), "+f"(d[at + 1]), "+f"(d[at + 2]), "+f"(d[at + 3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <int LENGTH> DEVICE void mma_f16(float (&d)[LENGTH], int at, const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[at]), "+f"(d[at + 1]), "+f"(d[at + 2]), "+f"(d[at + 3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Writes of ordinary instructions become visible to the copy engine and the matrix unit.
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- kernels in a row
// A kernel may begin while the one in front of it still runs; what that one wrote is there after this call, and
// nothing may be read or written before.
DEVICE void wait_for_kernels_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// ---- barriers
DEVICE void sync_cta() { __syncthreads(); }
DEVICE void bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory"); }
DEVICE void bar_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory"); }
DEVICE void mbar_init(u32 bar, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEVICE void mbar_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void mbar_expect(u32 bar, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory"); }
DEVICE void mbar_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
// At the barrier at the same place in the CTA of that rank in the cluster. Without a scope: with that of the
// cluster, attention ran at 484 instead of 662 TFLOP/s (docs/decisions/0009).
DEVICE void mbar_arrive_remote(u32 bar, int rank) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" :: "r"(bar), "r"(rank) : "memory");
}
// At the same place in the CTA of that rank in the cluster.
DEVICE void shared_store_remote_f32(u32 address, int rank, float x) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "st.shared::cluster.f32 [there], %2;\n}" :: "r"(address), "r"(rank), "f"(x) : "memory");
}
// All threads of all CTAs of the cluster. Lanes without work may come late, the instructions take whole warps.
DEVICE void sync_cluster() {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// try_wait may give up after a hardware time limit, hence the loop.
DEVICE void mbar_wait(u32 bar, int parity) {
  asm volatile("{\n.reg .pred done;\nAGAIN:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra READY;\nbra AGAIN;\nREADY:\n}" :: "r"(bar), "r"(parity) : "memory");
}

// A ring of SLOTS buffers between one filling thread and the reading warps. `barriers` holds SLOTS
// full barriers (one arrival and the bytes announced) and SLOTS empty ones (one arrival per reading
// warp). Every role keeps its own cursor, and moves it on (`advance`) when it is done with a slot.
// Where copies are multicast to CTAS of a cluster, a slot is free when the readers of all of them have
// given it back, and every loader has to know: a warp arrives in each CTA.
template <int SLOTS, int CTAS = 1> struct Ring {
  u32 barriers;
  int slot, phase;
  DEVICE void init(u32 at, int readers) {
    for (int i = 0; i < SLOTS; ++i) { mbar_init(at + 8 * i, 1); mbar_init(at + 8 * (SLOTS + i), readers); }
  }
  __device__ __forceinline__ explicit Ring(u32 at) : barriers(at), slot(0), phase(0) {}
  __device__ __forceinline__ void advance() { if (++slot == SLOTS) { slot = 0; phase ^= 1; } }
  // Steps over slots that are another reader's.
  __device__ __forceinline__ void jump(int slots) { const int x = slot + slots; phase ^= (x / SLOTS) & 1; slot = x % SLOTS; }
  // Waits until the slot is free and announces what will be copied; the barrier for the copies.
  __device__ __forceinline__ u32 fill(int bytes) { return fill_copy(0, bytes); }
  // The same for ring number `copy` of several that are filled together.
  __device__ __forceinline__ u32 fill_copy(int copy, int bytes) {
    const u32 full = barriers + 16 * SLOTS * copy + 8 * slot;
    mbar_wait(full + 8 * SLOTS, phase ^ 1);
    mbar_expect(full, bytes);
    return full;
  }
  // Waits until the slot is full.
  __device__ __forceinline__ void get() { mbar_wait(barriers + 8 * slot, phase); }
  // Gives back the slot `back` before this one; called by all lanes of the warp.
  __device__ __forceinline__ void release(int back, int lane) {
    int s = slot - back;
    if (back > 0 && s < 0) s += SLOTS;
    if (CTAS == 1) { if (lane == 0) mbar_arrive(barriers + 8 * (SLOTS + s)); }
    else if (lane < CTAS) mbar_arrive_remote(barriers + 8 * (SLOTS + s), lane);
  }
  // Gets and gives back a slot that others need. No lane may be left waiting when it is given back.
  __device__ __forceinline__ void skip(int lane) { get(); __syncwarp(); release(0, lane); advance(); }
  // As fill, for a slot that the filling thread writes itself; publish hands it over.
  __device__ __forceinline__ void claim() { mbar_wait(barriers + 8 * (SLOTS + slot), phase ^ 1); }
  __device__ __forceinline__ void publish() { mbar_arrive(barriers + 8 * slot); }
};

// A fixed order of GROUPS warp groups: each enters after the one before it has left. Uses the named
// barriers first .. first + GROUPS - 1.
template <int GROUPS> struct Turn {
  int mine, next;
  __device__ __forceinline__ Turn(int first, int w) : mine(first + w), next(first + (w == GROUPS - 1 ? 0 : w + 1)) {
    if (w == GROUPS - 1) bar_arrive(first, 256);
  }
  __device__ __forceinline__ void enter() { bar_sync(mine, 256); }
  __device__ __forceinline__ void leave() { bar_arrive(next, 256); }
};

// ---- the copy engine
DEVICE void tma_prefetch(const TensorMap* m) { asm volatile("prefetch.tensormap [%0];" :: "l"(m) : "memory"); }
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];"
               :: "r"(to), "l"(m), "r"(bar), "r"(c0), "r"(c1) : "memory");
}
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5}], [%2];"
               :: "r"(to), "l"(m), "r"(bar), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], [%2];"
               :: "r"(to), "l"(m), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6,%7}], [%2];"
               :: "r"(to), "l"(m), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// The box lands at the same place in all CTAS of the cluster, and its bytes count at the barrier of each.
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4,%5}], [%2], %3;"
               :: "r"(to), "l"(m), "r"(bar), "h"((u16)((1 << CTAS) - 1)), "r"(c0), "r"(c1) : "memory");
}
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4,%5,%6}], [%2], %3;"
               :: "r"(to), "l"(m), "r"(bar), "h"((u16)((1 << CTAS) - 1)), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4,%5,%6,%7}], [%2], %3;"
               :: "r"(to), "l"(m), "r"(bar), "h"((u16)((1 << CTAS) - 1)), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4,%5,%6,%7,%8}], [%2], %3;"
               :: "r"(to), "l"(m), "r"(bar), "h"((u16)((1 << CTAS) - 1)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2,%3}], [%1];" :: "l"(m), "r"(from), "r"(c0), "r"(c1) : "memory");
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2,%3,%4}], [%1];" :: "l"(m), "r"(from), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2,%3,%4,%5}], [%1];"
               :: "l"(m), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2,%3,%4,%5,%6}], [%1];"
               :: "l"(m), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
DEVICE void tma_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until at most PENDING groups of stores still read shared memory.
template <int PENDING> DEVICE void tma_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(PENDING) : "memory"); }

// ---- the matrix unit
template <int N> DEVICE void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }
template <int N> DEVICE void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N)); }
// Address of an operand in shared memory for the matrix unit. swizzle: 0 none, 1 128 B, 2 64 B, 3 32 B.
DEVICE u64 matrix_descriptor(u32 address, u32 leading, u32 stride, u32 swizzle) {
  return (u64)((address & 0x3ffff) >> 4) | ((u64)(leading >> 4) << 16) | ((u64)(stride >> 4) << 32) | ((u64)swizzle << 62);
}
// The descriptor of an operand `units` of 16 bytes further on. Only the low word counts addresses.
DEVICE u64 descriptor_at(u64 base, int units) { return (base & 0xffffffff00000000ull) | (u32)((u32)base + (u32)units); }
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most PENDING matrix groups run; overloads below name the registers that become valid.
template <int PENDING> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory"); }
enum { ADD = 1, INIT = 0 };

// ---- scalar code (kernels of points): every dtype of the language, integers of their own width
DEVICE double maximum(double x, double y) { return fmax(x, y); }
DEVICE double minimum(double x, double y) { return fmin(x, y); }
DEVICE long long maximum(long long x, long long y) { return x > y ? x : y; }
DEVICE long long minimum(long long x, long long y) { return x < y ? x : y; }
DEVICE int lane_xor(int x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE long long lane_xor(long long x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE double lane_xor(double x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE double absolute(double x) { return fabs(x); }
DEVICE long long absolute(long long x) { return x < 0 ? (long long)(0 - (u64)x) : x; }
DEVICE float exp_of(float x) { return expf(x); }
DEVICE double exp_of(double x) { return exp(x); }
DEVICE float exp2_of(float x) { return exp2f(x); }
DEVICE double exp2_of(double x) { return exp2(x); }
DEVICE float log_of(float x) { return logf(x); }
DEVICE double log_of(double x) { return log(x); }
DEVICE float log2_of(float x) { return log2f(x); }
DEVICE double log2_of(double x) { return log2(x); }
DEVICE float log1p_of(float x) { return log1pf(x); }
DEVICE double log1p_of(double x) { return log1p(x); }
DEVICE float expm1_of(float x) { return expm1f(x); }
DEVICE double expm1_of(double x) { return expm1(x); }
DEVICE double sqrt_of(double x) { return sqrt(x); }
DEVICE float rsqrt_of(float x) { return 1.f / sqrtf(x); }
DEVICE double rsqrt_of(double x) { return 1 / sqrt(x); }
DEVICE float tanh_of(float x) { return tanhf(x); }
DEVICE double tanh_of(double x) { return tanh(x); }
DEVICE float erf_exact(float x) { return erff(x); }
DEVICE double erf_exact(double x) { return erf(x); }
DEVICE float sin_of(float x) { return sinf(x); }
DEVICE double sin_of(double x) { return sin(x); }
DEVICE float cos_of(float x) { return cosf(x); }
DEVICE double cos_of(double x) { return cos(x); }
DEVICE float pow_of(float x, float y) { return powf(x, y); }
DEVICE double pow_of(double x, double y) { return pow(x, y); }
DEVICE double floor_of(double x) { return floor(x); }
DEVICE double round_of(double x) { return rint(x); }
// Neither form has an exponential that overflows.
DEVICE float sigmoid_of(float x) { const float e = expf(x < 0 ? x : -x); return x < 0 ? e / (1.f + e) : 1.f / (1.f + e); }
DEVICE double sigmoid_of(double x) { const double e = exp(x < 0 ? x : -x); return x < 0 ? e / (1 + e) : 1 / (1 + e); }
#include "scalar.h"
DEVICE u32 pack_f8e4m3(float x) { u16 r; asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.f), "f"(x)); return r & 0xffu; }
DEVICE u32 pack_f8e5m2(float x) { u16 r; asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.f), "f"(x)); return r & 0xffu; }
DEVICE float unpack_f8e4m3(u32 bits) { u32 r; asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"((u16)bits)); return unpack_f16(r, 0); }
DEVICE float unpack_f8e5m2(u32 bits) { u32 r; asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(r) : "h"((u16)bits)); return unpack_f16(r, 0); }
DEVICE float round_f8e4m3(float x) { return unpack_f8e4m3(pack_f8e4m3(x)); }
DEVICE float round_f8e5m2(float x) { return unpack_f8e5m2(pack_f8e5m2(x)); }
DEVICE float load_own_tf32(const float* p, u64 i) { return *(const volatile float*)(p + i); }
DEVICE void store_tf32(float* p, u64 i, float x) { p[i] = round_tf32(x); }
DEVICE void store_pair_tf32(float* p, u64 i, float x, float y) { store_pair_f32(p, i, round_tf32(x), round_tf32(y)); }
template <int N> DEVICE void store_whole_tf32(float* p, u64 i, const float (&line)[N]) {
  float rounded[N];
  UNROLL for (int k = 0; k < N; ++k) rounded[k] = round_tf32(line[k]);
  store_whole_f32(p, i, rounded);
}
template <int N> DEVICE void store_line_tf32(float* p, u64 i, const float (&line)[N], u64 apart, int left) {
  if (is_whole_line<N>(p + i, 4, apart, left)) return store_whole_tf32(p, i, line);
  UNROLL for (int k = 0; k < N; ++k)
    if (k < left) store_tf32(p, i + k * apart, line[k]);
}
// What this thread has written before.
template <class T> DEVICE T read_own(const T* p) { return *(const volatile T*)p; }
DEVICE float load_own_f32(const float* p, u64 i) { return read_own(p + i); }
DEVICE float load_own_bf16(const u16* p, u64 i) { return __uint_as_float((u32)read_own(p + i) << 16); }
DEVICE float load_own_f16(const u16* p, u64 i) { return unpack_f16(read_own(p + i), 0); }
DEVICE double load_own_f64(const double* p, u64 i) { return read_own(p + i); }
DEVICE int load_own_i32(const int* p, u64 i) { return read_own(p + i); }
DEVICE long long load_own_i64(const long long* p, u64 i) { return read_own(p + i); }
DEVICE int load_own_i8(const unsigned char* p, u64 i) { return (signed char)read_own(p + i); }
DEVICE int load_own_u8(const unsigned char* p, u64 i) { return read_own(p + i); }
DEVICE bool load_own_bool(const unsigned char* p, u64 i) { return read_own(p + i) != 0; }
DEVICE float load_own_f8e4m3(const unsigned char* p, u64 i) { return unpack_f8e4m3(read_own(p + i)); }
DEVICE float load_own_f8e5m2(const unsigned char* p, u64 i) { return unpack_f8e5m2(read_own(p + i)); }
DEVICE void store_f64(double* p, u64 i, double x) { p[i] = x; }
DEVICE void store_i32(int* p, u64 i, int x) { p[i] = x; }
DEVICE void store_pair_i32(int* p, u64 i, int x, int y) { *(int2*)(p + i) = make_int2(x, y); }
DEVICE void store_i64(long long* p, u64 i, long long x) { p[i] = x; }
DEVICE void store_i8(unsigned char* p, u64 i, int x) { p[i] = (unsigned char)x; }
DEVICE void store_u8(unsigned char* p, u64 i, int x) { p[i] = (unsigned char)x; }
DEVICE void store_bool(unsigned char* p, u64 i, bool x) { p[i] = x ? 1 : 0; }
DEVICE void store_f8e4m3(unsigned char* p, u64 i, float x) { p[i] = (unsigned char)pack_f8e4m3(x); }
DEVICE void store_f8e5m2(unsigned char* p, u64 i, float x) { p[i] = (unsigned char)pack_f8e5m2(x); }
// Elements that many threads combine with values of their own, in any order. An extreme ignores NaN. The bits of floats
// without a sign are in the order of the floats, and with one in the opposite order; there is no -0 to put in.
DEVICE void scatter_sum_f32(float* p, u64 i, float x) { atomicAdd(p + i, x); }
// Those of a line, of which the first `left` exist.
template <int N> DEVICE void scatter_line_sum_f32(float* p, u64 i, const float (&line)[N], u64 apart, int left) {
  if (is_whole_line<N>(p + i, 4, apart, left)) {
    UNROLL for (int k = 0; k + 3 < N; k += 4)
      asm volatile("red.global.add.v4.f32 [%0], {%1,%2,%3,%4};"
                   :: "l"(p + i + k), "f"(line[k]), "f"(line[k + 1]), "f"(line[k + 2]), "f"(line[k + 3]) : "memory");
    return;
  }
  UNROLL for (int k = 0; k < N; ++k)
    if (k < left) scatter_sum_f32(p, i + k * apart, line[k]);
}
DEVICE void scatter_sum_f64(double* p, u64 i, double x) { atomicAdd(p + i, x); }
DEVICE void scatter_sum_i32(int* p, u64 i, int x) { atomicAdd(p + i, x); }
DEVICE void scatter_sum_i64(long long* p, u64 i, long long x) { atomicAdd((u64*)p + i, (u64)x); }
DEVICE void scatter_max_f32(float* p, u64 i, float x) {
  if (x >= 0) atomicMax((int*)p + i, (int)as_bits(x + 0.f));
  if (x < 0) atomicMin((u32*)p + i, as_bits(x));
}
DEVICE void scatter_min_f32(float* p, u64 i, float x) {
  if (x >= 0) atomicMin((int*)p + i, (int)as_bits(x + 0.f));
  if (x < 0) atomicMax((u32*)p + i, as_bits(x));
}
DEVICE void scatter_max_f64(double* p, u64 i, double x) {
  if (x >= 0) atomicMax((long long*)p + i, (long long)as_bits(x + 0.));
  if (x < 0) atomicMin((u64*)p + i, as_bits(x));
}
DEVICE void scatter_min_f64(double* p, u64 i, double x) {
  if (x >= 0) atomicMin((long long*)p + i, (long long)as_bits(x + 0.));
  if (x < 0) atomicMax((u64*)p + i, as_bits(x));
}
DEVICE void scatter_max_i32(int* p, u64 i, int x) { atomicMax(p + i, x); }
DEVICE void scatter_min_i32(int* p, u64 i, int x) { atomicMin(p + i, x); }
DEVICE void scatter_max_i64(long long* p, u64 i, long long x) { atomicMax(p + i, x); }
DEVICE void scatter_min_i64(long long* p, u64 i, long long x) { atomicMin(p + i, x); }
DEVICE void scatter_any_bool(unsigned char* p, u64 i, bool x) { if (x) p[i] = 1; }
DEVICE void scatter_all_bool(unsigned char* p, u64 i, bool x) { if (!x) p[i] = 0; }
// The same in shared memory.
DEVICE void shared_scatter_sum_f32(u32 address, float x) { asm volatile("red.shared.add.f32 [%0], %1;" :: "r"(address), "f"(x) : "memory"); }
DEVICE void shared_scatter_sum_f64(u32 address, double x) { asm volatile("red.shared.add.f64 [%0], %1;" :: "r"(address), "d"(x) : "memory"); }
DEVICE void shared_scatter_sum_i32(u32 address, int x) { asm volatile("red.shared.add.s32 [%0], %1;" :: "r"(address), "r"(x) : "memory"); }
DEVICE void shared_scatter_sum_i64(u32 address, long long x) { asm volatile("red.shared.add.u64 [%0], %1;" :: "r"(address), "l"(x) : "memory"); }
DEVICE void shared_scatter_max_i32(u32 address, int x) { asm volatile("red.shared.max.s32 [%0], %1;" :: "r"(address), "r"(x) : "memory"); }
DEVICE void shared_scatter_min_i32(u32 address, int x) { asm volatile("red.shared.min.s32 [%0], %1;" :: "r"(address), "r"(x) : "memory"); }
DEVICE void shared_scatter_max_i64(u32 address, long long x) { asm volatile("red.shared.max.s64 [%0], %1;" :: "r"(address), "l"(x) : "memory"); }
DEVICE void shared_scatter_min_i64(u32 address, long long x) { asm volatile("red.shared.min.s64 [%0], %1;" :: "r"(address), "l"(x) : "memory"); }
DEVICE void shared_scatter_max_f32(u32 address, float x) {
  if (x >= 0) shared_scatter_max_i32(address, (int)as_bits(x + 0.f));
  if (x < 0) asm volatile("red.shared.min.u32 [%0], %1;" :: "r"(address), "r"(as_bits(x)) : "memory");
}
DEVICE void shared_scatter_max_f64(u32 address, double x) {
  if (x >= 0) shared_scatter_max_i64(address, (long long)as_bits(x + 0.));
  if (x < 0) asm volatile("red.shared.min.u64 [%0], %1;" :: "r"(address), "l"(as_bits(x)) : "memory");
}
DEVICE void shared_scatter_min_f32(u32 address, float x) {
  if (x >= 0) shared_scatter_min_i32(address, (int)as_bits(x + 0.f));
  if (x < 0) asm volatile("red.shared.max.u32 [%0], %1;" :: "r"(address), "r"(as_bits(x)) : "memory");
}
DEVICE void shared_scatter_min_f64(u32 address, double x) {
  if (x >= 0) shared_scatter_min_i64(address, (long long)as_bits(x + 0.));
  if (x < 0) asm volatile("red.shared.max.u64 [%0], %1;" :: "r"(address), "l"(as_bits(x)) : "memory");
}
template <class T, int N> DEVICE void store_packed(T* p, u64 i, const Packed<T, N>& v) {
  constexpr int WORDS = N * sizeof(T) / 4;
  UNROLL for (int k = 0; k + 3 < WORDS; k += 4) ((uint4*)(p + i))[k / 4] = make_uint4(v.x[k], v.x[k + 1], v.x[k + 2], v.x[k + 3]);
  if (WORDS == 2) *(uint2*)(p + i) = make_uint2(v.x[0], v.x[WORDS - 1]);
  if (WORDS == 1) *(u32*)(p + i) = v.x[0];
}
// A number that warps exchange.
DEVICE void shared_put(u32 address, float x) { shared_store_f32(address, x); }
DEVICE void shared_put(u32 address, int x) { shared_store_i32(address, x); }
DEVICE void shared_put(u32 address, long long x) { asm volatile("st.shared.b64 [%0], %1;" :: "r"(address), "l"(x) : "memory"); }
DEVICE void shared_put(u32 address, double x) { asm volatile("st.shared.f64 [%0], %1;" :: "r"(address), "d"(x) : "memory"); }
DEVICE void shared_take(u32 address, float& x) { x = shared_load_f32(address); }
DEVICE void shared_take(u32 address, int& x) { x = shared_load_i32(address); }
DEVICE void shared_take(u32 address, long long& x) { asm volatile("ld.shared.b64 %0, [%1];" : "=l"(x) : "r"(address) : "memory"); }
DEVICE void shared_take(u32 address, double& x) { asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(address) : "memory"); }
#include "sort.h"
