// Nautilus prelude for the host: the names of sm_90a.cuh with the same meaning, carried out by the
// emulator (src/emulator). The text of src/emulator/host_table.h stands before this one. Only
// declarations and one-line calls: the compiler sees it anew with every kernel.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

static const nautilus::emulator::HostTable* nautilus_host;
extern "C" __attribute__((visibility("default"))) void nautilus_bind(const nautilus::emulator::HostTable* table) {
  nautilus_host = table;
}
// The line of the call in the kernel. A type of its own: an int would be taken for a coordinate; and
// no struct, for which g++ takes the line of the declaration.
namespace host { enum class Line : int {}; }
#define HERE host::Line line = (host::Line)__builtin_LINE()

#define DEVICE static inline __attribute__((unused))
#define KERNEL(name, threads) KERNEL_MIN_CTAS(name, threads, 1)
#define KERNEL_MIN_CTAS(name, threads, ctas)                                                             \
  extern "C" __attribute__((visibility("default"))) const int name##_threads;                          \
  const int name##_threads = threads;                                                                  \
  extern "C" __attribute__((visibility("default"))) const int name##_ctas;                             \
  const int name##_ctas = ctas;                                                                        \
  extern "C" __attribute__((visibility("default"))) const unsigned long long name##_parameter_bytes;   \
  const unsigned long long name##_parameter_bytes = sizeof(Params);                                    \
  extern "C" __attribute__((visibility("default"))) void name(const Params& p)
#define KERNEL_CLUSTER(name, threads, ctas)                                                            \
  extern "C" __attribute__((visibility("default"))) const int name##_cluster;                          \
  const int name##_cluster = ctas;                                                                     \
  KERNEL(name, threads)
#define KERNEL_CLUSTER_MIN_CTAS(name, threads, ctas, together) KERNEL_CLUSTER(name, threads, ctas)
#define SHARED_BASE(name) const u32 name = nautilus_host->shared_base()
#define UNROLL
#define NO_UNROLL
#define ROLE(name) nautilus_host->role(name)

struct alignas(64) TensorMap { unsigned char opaque[128]; };

// ---- who am I
DEVICE int thread_index() { return nautilus_host->thread_index(); }
DEVICE int block_index() { return nautilus_host->block_index(); }
DEVICE int block_count() { return nautilus_host->block_count(); }
DEVICE int uniform(int x, HERE) { return nautilus_host->uniform(x, (int)line); }

// ---- arithmetic
DEVICE float infinity() { return __builtin_inff(); }
namespace host {
// What .ftz does to arguments and results.
DEVICE float flushed(float x) { return __builtin_fabsf(x) < 1.17549435e-38f ? __builtin_copysignf(0.f, x) : x; }
DEVICE u32 bits_of(float x) { u32 bits; __builtin_memcpy(&bits, &x, 4); return bits; }
DEVICE float float_of(u32 bits) { float x; __builtin_memcpy(&x, &bits, 4); return x; }
DEVICE u32 bf16_bits(float x) {
  const u32 bits = bits_of(x);
  return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
// How much of its documented error, -0.9 to 0.9 of it, a coarse function of the device has here at x: nobody can
// rely on more than is documented.
DEVICE float error_share(float x) {
  u32 h = bits_of(x) * 0x9e3779b9u;
  h = (h ^ h >> 15) * 0x85ebca6bu;
  return 0.9f * (float)(int)(h ^ h >> 13) / 2147483648.f;
}
}  // namespace host
DEVICE float exp2_approx(float x) { return host::flushed(__builtin_exp2f(host::flushed(x))); }
// lg2.approx: an error of 2^-22 of the larger of 1 and the result. The logarithm of 1 is 0.
DEVICE float log2_approx(float x) {
  const float y = __builtin_log2f(host::flushed(x));
  const float size = __builtin_fabsf(y) > 1.f ? __builtin_fabsf(y) : 1.f;
  return y == 0.f || __builtin_isinf(y) ? y : y + size * 2.38418579e-7f * host::error_share(x);
}
DEVICE float rsqrt_approx(float x) { return 1.f / __builtin_sqrtf(host::flushed(x)); }
// tanh.approx: a relative error of 2^-11; beyond 1 it does not go, and where it is 1 it stays.
DEVICE float tanh_approx(float x) {
  const float y = __builtin_tanhf(x);
  const float z = y * (1.f + 4.8828125e-4f * host::error_share(x));
  return __builtin_fabsf(y) == 1.f || __builtin_fabsf(z) > 1.f ? __builtin_copysignf(1.f, y) : z;
}
DEVICE float choose(bool c, float x, float y) { return c ? x : y; }
DEVICE float divide(float x, float y) { return x / y; }
DEVICE float sqrt_approx(float x) { return __builtin_sqrtf(x); }
DEVICE float sqrt_of(float x) { return __builtin_sqrtf(x); }
// The formula of the device, not the library's function: it is what has to be right.
DEVICE float erf_of(float x, double c = 1) {
  const float limit = (float)(4 / c);
  const float a = __builtin_fabsf(x) > limit ? limit : __builtin_fabsf(x);
  const double c2 = c * c, c3 = c2 * c, c4 = c2 * c2;
  float p = __builtin_fmaf(a, (float)(0.000100211713 * c4 * c3), (float)(-0.000461521937 * c3 * c3));
  p = __builtin_fmaf(a, p, (float)(-0.00230234186 * c4 * c));
  p = __builtin_fmaf(a, p, (float)(0.0294526126 * c4));
  p = __builtin_fmaf(a, p, (float)(-0.14896372 * c3));
  p = __builtin_fmaf(a, p, (float)(-0.918328643 * c2));
  p = __builtin_fmaf(a, p, (float)(-1.62791371 * c));
  return __builtin_copysignf(1.f - exp2_approx(a * p), x);
}
DEVICE float floor_of(float x) { return __builtin_floorf(x); }
DEVICE float round_of(float x) { return __builtin_rintf(x); }
DEVICE float absolute(float x) { return __builtin_fabsf(x); }
// One NaN argument gives the other one, as on the device.
DEVICE int absolute(int x) { return x < 0 ? -x : x; }
DEVICE float maximum(float x, float y) { return x != x ? y : y != y ? x : x > y ? x : y; }
DEVICE float minimum(float x, float y) { return x != x ? y : y != y ? x : x < y ? x : y; }
DEVICE int maximum(int x, int y) { return x > y ? x : y; }
DEVICE int minimum(int x, int y) { return x < y ? x : y; }
DEVICE int floor_div(int x, int y) { return (x >= 0 ? x : x - y + 1) / y; }
DEVICE int floor_mod(int x, int y) { return x - floor_div(x, y) * y; }
DEVICE u32 as_bits(float x) { return host::bits_of(x); }
DEVICE float as_float(u32 bits) { return host::float_of(bits); }
DEVICE u64 as_bits(double x) { u64 bits; __builtin_memcpy(&bits, &x, 8); return bits; }
DEVICE double as_double(u64 bits) { double x; __builtin_memcpy(&x, &bits, 8); return x; }
DEVICE float round_tf32(float x) {
  const u32 bits = host::bits_of(x);
  return x != x ? x : host::float_of((bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u);
}
DEVICE u32 pack_bf16(float lo, float hi) { return host::bf16_bits(lo) | host::bf16_bits(hi) << 16; }
DEVICE u32 pack_f16(float lo, float hi) { return nautilus_host->to_f16(lo) | (u32)nautilus_host->to_f16(hi) << 16; }
DEVICE float unpack_bf16(u32 pair, int half) { return host::float_of(half ? pair & 0xffff0000u : pair << 16); }
DEVICE float unpack_f16(u32 pair, int half) { return nautilus_host->from_f16((u16)(half ? pair >> 16 : pair & 0xffffu)); }

template <int I> DEVICE void forget(u32 (&)[I]) {}
DEVICE u64 hidden(u64 x) { return x; }
DEVICE int hidden(int x) { return x; }
template <class T> DEVICE T* hidden(T* x) { return x; }
DEVICE int anew(int x) { return x; }

// ---- lanes of a warp
DEVICE float lane_xor(float x, int mask, HERE) { return nautilus_host->lane_xor(x, mask, (int)line); }
DEVICE float lane_from(float x, int lane, HERE) { return nautilus_host->lane_from(x, lane, (int)line); }
DEVICE void sync_warp(HERE) { nautilus_host->sync_warp((int)line); }
DEVICE bool vote_any(bool x, HERE) { return nautilus_host->vote_any(x, (int)line); }

// ---- global memory
namespace host {
template <class T> DEVICE const T* readable(const T* at, int bytes, Line line) {
  nautilus_host->global_access(at, bytes, false, (int)line);
  return at;
}
template <class T> DEVICE T* writable(T* at, int bytes, Line line) {
  nautilus_host->global_access(at, bytes, true, (int)line);
  return at;
}
}  // namespace host
template <class T> DEVICE T read_global(const T* p, HERE) { return *host::readable(p, (int)sizeof(T), line); }
DEVICE float load_f32(const float* p, u64 i, HERE) { return *host::readable(p + i, 4, line); }
DEVICE float load_fresh_f32(const float* p, u64 i, HERE) { return *host::readable(p + i, 4, line); }
DEVICE float load_bf16(const u16* p, u64 i, HERE) { return host::float_of((u32)*host::readable(p + i, 2, line) << 16); }
DEVICE float load_f16(const u16* p, u64 i, HERE) { return unpack_f16(*host::readable(p + i, 2, line), 0); }
DEVICE float load_f32_where(bool is_there, const float* p, u64 i, float other, HERE) { return is_there ? load_f32(p, i, line) : other; }
DEVICE u16 load_16_where(bool is_there, const u16* p, u64 i, HERE) { return is_there ? *host::readable(p + i, 2, line) : (u16)0; }
DEVICE float load_bf16_where(bool is_there, const u16* p, u64 i, float other, HERE) { return is_there ? load_bf16(p, i, line) : other; }
DEVICE float load_f16_where(bool is_there, const u16* p, u64 i, float other, HERE) { return is_there ? load_f16(p, i, line) : other; }
DEVICE void store_f32(float* p, u64 i, float x, HERE) { *host::writable(p + i, 4, line) = x; }
DEVICE void store_bf16(u16* p, u64 i, float x, HERE) { *host::writable(p + i, 2, line) = (u16)host::bf16_bits(x); }
DEVICE void store_f16(u16* p, u64 i, float x, HERE) { *host::writable(p + i, 2, line) = nautilus_host->to_f16(x); }
// Lines: N elements of one thread, so many apart, of which the first `left` exist; one by one here.
template <int N> DEVICE bool is_whole_line(const void*, int, u64, int) { return false; }
template <class T> DEVICE bool is_pair(const T* p, u64 i) { return (u64)(p + i) % (2 * sizeof(T)) == 0; }
DEVICE void store_pair_f32(float* p, u64 i, float x, float y, HERE) {
  host::writable(p + i, 8, line);
  store_f32(p, i, x, line);
  store_f32(p, i + 1, y, line);
}
DEVICE void store_pair_bf16(u16* p, u64 i, float x, float y, HERE) {
  host::writable(p + i, 4, line);
  store_bf16(p, i, x, line);
  store_bf16(p, i + 1, y, line);
}
DEVICE void store_pair_f16(u16* p, u64 i, float x, float y, HERE) {
  host::writable(p + i, 4, line);
  store_f16(p, i, x, line);
  store_f16(p, i + 1, y, line);
}
template <int N> DEVICE void load_line_f32(float (&out)[N], const float* p, u64 i, u64 apart, int left, HERE) {
  for (int k = 0; k < N; ++k) out[k] = k < left ? load_f32(p, i + (u64)k * apart, line) : 0.f;
}
template <int N> DEVICE void store_line_f32(float* p, u64 i, const float (&in)[N], u64 apart, int left, HERE) {
  for (int k = 0; k < N && k < left; ++k) store_f32(p, i + (u64)k * apart, in[k], line);
}
template <int N> DEVICE void load_line_bf16(float (&out)[N], const u16* p, u64 i, u64 apart, int left, HERE) {
  for (int k = 0; k < N; ++k) out[k] = k < left ? load_bf16(p, i + (u64)k * apart, line) : 0.f;
}
template <int N> DEVICE void store_line_bf16(u16* p, u64 i, const float (&in)[N], u64 apart, int left, HERE) {
  for (int k = 0; k < N && k < left; ++k) store_bf16(p, i + (u64)k * apart, in[k], line);
}
template <int N> DEVICE void load_line_f16(float (&out)[N], const u16* p, u64 i, u64 apart, int left, HERE) {
  for (int k = 0; k < N; ++k) out[k] = k < left ? load_f16(p, i + (u64)k * apart, line) : 0.f;
}
template <int N> DEVICE void store_line_f16(u16* p, u64 i, const float (&in)[N], u64 apart, int left, HERE) {
  for (int k = 0; k < N && k < left; ++k) store_f16(p, i + (u64)k * apart, in[k], line);
}
template <int N> DEVICE void load_whole_f32(float (&out)[N], const float* p, u64 i, HERE) {
  for (int k = 0; k < N; k += 4) host::readable(p + i + k, 16, line);
  load_line_f32(out, p, i, 1, N, line);
}
template <int N> DEVICE void store_whole_f32(float* p, u64 i, const float (&in)[N], HERE) {
  for (int k = 0; k < N; k += 4) host::writable(p + i + k, 16, line);
  store_line_f32(p, i, in, 1, N, line);
}
template <int N> DEVICE void load_whole_bf16(float (&out)[N], const u16* p, u64 i, HERE) {
  for (int k = 0; k < N; k += 8) host::readable(p + i + k, 16, line);
  load_line_bf16(out, p, i, 1, N, line);
}
template <int N> DEVICE void store_whole_bf16(u16* p, u64 i, const float (&in)[N], HERE) {
  for (int k = 0; k < N; k += 8) host::writable(p + i + k, 16, line);
  store_line_bf16(p, i, in, 1, N, line);
}
template <int N> DEVICE void load_whole_f16(float (&out)[N], const u16* p, u64 i, HERE) {
  for (int k = 0; k < N; k += 8) host::readable(p + i + k, 16, line);
  load_line_f16(out, p, i, 1, N, line);
}
template <int N> DEVICE void store_whole_f16(u16* p, u64 i, const float (&in)[N], HERE) {
  for (int k = 0; k < N; k += 8) host::writable(p + i + k, 16, line);
  store_line_f16(p, i, in, 1, N, line);
}
struct alignas(16) Vector16 { u32 x[4]; };
DEVICE Vector16 load_vector(const u16* p, u64 i, HERE) {
  Vector16 v;
  __builtin_memcpy(&v, host::readable(p + i, 16, line), 16);
  return v;
}
template <class T> DEVICE bool is_aligned_16(const T* p, u64 i) { return (u64)(p + i) % 16 == 0; }
template <class T> DEVICE Vector16 load_vector_when(bool when, const T* p, u64 i, u32 other, HERE) {
  Vector16 v = {{other, other, other, other}};
  if (when) __builtin_memcpy(&v, host::readable(p + i, 16, line), 16);
  return v;
}
template <class T> DEVICE Vector16 load_vector_often(bool when, const T* p, u64 i, u32 other, HERE) {
  return load_vector_when(when, p, i, other, line);
}
template <class T> DEVICE void store_vector(T* p, u64 i, u32 a, u32 b, u32 c, u32 d, HERE) {
  const u32 v[4] = {a, b, c, d};
  __builtin_memcpy(host::writable(p + i, 16, line), v, 16);
}
template <class T> DEVICE void prefetch_cache(const T* p, u64 i, u64 bytes, HERE) {
  if (bytes < 16) return;
  host::readable(p + i, 16, line);  // the first and the last piece lie inside the tensor
  host::readable(p + i + (bytes / 16 * 16 - 16) / sizeof(T), 16, line);
}
DEVICE int global_add(int* p, int x, HERE) { return nautilus_host->global_add(p, x, (int)line); }
DEVICE void global_set(int* p, int x, HERE) { nautilus_host->global_set(p, x, (int)line); }
DEVICE void global_fence(HERE) { nautilus_host->global_fence((int)line); }

// ---- shared memory
DEVICE void shared_store_i32(u32 address, int x, HERE) { nautilus_host->shared_store(address, (u32)x, (int)line); }
DEVICE int shared_load_i32(u32 address, HERE) { return (int)nautilus_host->shared_load(address, (int)line); }
DEVICE void shared_store_f32(u32 address, float x, HERE) { nautilus_host->shared_store(address, host::bits_of(x), (int)line); }
DEVICE float shared_load_f32(u32 address, HERE) { return host::float_of(nautilus_host->shared_load(address, (int)line)); }
DEVICE void shared_load_f32x2(u32 address, float& x, float& y, HERE) {
  x = host::float_of(nautilus_host->shared_load(address, (int)line));
  y = host::float_of(nautilus_host->shared_load(address + 4, (int)line));
}
DEVICE void shared_load_f32x4(u32 address, float* x, HERE) {
  for (u32 k = 0; k < 4; ++k) x[k] = host::float_of(nautilus_host->shared_load(address + 4 * k, (int)line));
}
DEVICE void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d, HERE) {
  const u32 registers[4] = {a, b, c, d};
  nautilus_host->stmatrix_x4(address, registers, (int)line);
}
DEVICE void ldmatrix_x4(u32 address, u32 (&x)[4], HERE) { nautilus_host->ldmatrix_x4(address, x, false, (int)line); }
DEVICE void ldmatrix_x4_trans(u32 address, u32 (&x)[4], HERE) { nautilus_host->ldmatrix_x4(address, x, true, (int)line); }
template <int LENGTH> DEVICE void mma_bf16(float (&d)[LENGTH], int at, const u32 (&a)[4], u32 b0, u32 b1, HERE) {
  const u32 b[2] = {b0, b1};
  nautilus_host->mma(d + at, a, b, false, (int)line);
}
template <int LENGTH> DEVICE void mma_f16(float (&d)[LENGTH], int at, const u32 (&a)[4], u32 b0, u32 b1, HERE) {
  const u32 b[2] = {b0, b1};
  nautilus_host->mma(d + at, a, b, true, (int)line);
}
DEVICE void fence_async(HERE) { nautilus_host->fence_async((int)line); }

// ---- barriers
DEVICE void wait_for_kernels_in_front() { nautilus_host->wait_for_kernels_in_front(); }
DEVICE void let_next_kernel_begin() {}
DEVICE void sync_cta(HERE) { nautilus_host->bar_sync(0, 0, (int)line); }
DEVICE void bar_sync(int id, int threads, HERE) { nautilus_host->bar_sync(id, threads, (int)line); }
DEVICE void bar_arrive(int id, int threads, HERE) { nautilus_host->bar_arrive(id, threads, (int)line); }
DEVICE void mbar_init(u32 bar, int count, HERE) { nautilus_host->mbar_init(bar, count, (int)line); }
DEVICE void mbar_init_fence(HERE) { nautilus_host->mbar_init_fence((int)line); }
DEVICE void mbar_expect(u32 bar, int bytes, HERE) { nautilus_host->mbar_expect(bar, bytes, (int)line); }
DEVICE void mbar_arrive(u32 bar, HERE) { nautilus_host->mbar_arrive(bar, (int)line); }
DEVICE void mbar_arrive_remote(u32 bar, int rank, HERE) { nautilus_host->mbar_arrive_remote(bar, rank, (int)line); }
DEVICE void shared_store_remote_f32(u32 address, int rank, float x, HERE) {
  nautilus_host->shared_store_remote(address, rank, host::bits_of(x), (int)line);
}
DEVICE void sync_cluster(HERE) { nautilus_host->sync_warp((int)line); nautilus_host->sync_cluster((int)line); }
DEVICE void mbar_wait(u32 bar, int parity, HERE) { nautilus_host->mbar_wait(bar, parity, -1, (int)line); }

// As on the device, and `taken` counts all slots passed so far, so that a wait can say which turn of
// the ring it means and not only its parity.
template <int SLOTS, int CTAS = 1> struct Ring {
  u32 barriers;
  int slot, phase;
  long long taken;
  static void init(u32 at, int readers, HERE) { nautilus_host->ring_init(at, SLOTS, readers, (int)line); }
  explicit Ring(u32 at) : barriers(at), slot(0), phase(0), taken(0) {}
  void advance() { ++taken; if (++slot == SLOTS) { slot = 0; phase ^= 1; } }
  void jump(int slots) { const int x = slot + slots; phase ^= (x / SLOTS) & 1; slot = x % SLOTS; taken += slots; }
  long long turn() const { return taken / SLOTS; }
  // The two halves of a fill of ring number `copy`, apart, so that mutation tests can leave one out.
  u32 wait_copy(int copy, host::Line line) {
    const u32 full = barriers + 16 * SLOTS * copy + 8 * slot;
    nautilus_host->mbar_wait(full + 8 * SLOTS, phase ^ 1, turn(), (int)line);
    return full;
  }
  u32 expect_copy(int copy, int bytes, host::Line line) {
    const u32 full = barriers + 16 * SLOTS * copy + 8 * slot;
    nautilus_host->mbar_expect(full, bytes, (int)line);
    return full;
  }
  u32 fill(int bytes, HERE) { return fill_copy(0, bytes, line); }
  u32 fill_copy(int copy, int bytes, HERE) { wait_copy(copy, line); return expect_copy(copy, bytes, line); }
  u32 fill_without_wait(int bytes, HERE) { return expect_copy(0, bytes, line); }
  u32 fill_without_expect(int, HERE) { return wait_copy(0, line); }
  u32 fill_copy_without_wait(int copy, int bytes, HERE) { return expect_copy(copy, bytes, line); }
  u32 fill_copy_without_expect(int copy, int, HERE) { return wait_copy(copy, line); }
  void get(HERE) { nautilus_host->mbar_wait(barriers + 8 * slot, phase, turn() + 1, (int)line); }
  void release(int back, int lane, HERE) {
    int s = slot - back;
    if (back > 0 && s < 0) s += SLOTS;
    if (CTAS == 1) { if (lane == 0) nautilus_host->mbar_arrive(barriers + 8 * (SLOTS + s), (int)line); }
    else if (lane < CTAS) nautilus_host->mbar_arrive_remote(barriers + 8 * (SLOTS + s), lane, (int)line);
  }
  void skip(int lane, HERE) { get(line); nautilus_host->sync_warp((int)line); release(0, lane, line); advance(); }
  void claim(HERE) { wait_copy(0, line); }
  void publish(HERE) { nautilus_host->mbar_arrive(barriers + 8 * slot, (int)line); }
};

template <int GROUPS> struct Turn {
  int mine, next;
  Turn(int first, int w, HERE) : mine(first + w), next(first + (w == GROUPS - 1 ? 0 : w + 1)) {
    if (w == GROUPS - 1) nautilus_host->bar_arrive(first, 256, (int)line);
  }
  void enter(HERE) { nautilus_host->bar_sync(mine, 256, (int)line); }
  void leave(HERE) { nautilus_host->bar_arrive(next, 256, (int)line); }
};

// ---- the copy engine
DEVICE void tma_prefetch(const TensorMap*) {}
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1, HERE) {
  const int at[] = {c0, c1};
  nautilus_host->tma_load(to, m, bar, 2, at, (int)line);
}
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, HERE) {
  const int at[] = {c0, c1, c2};
  nautilus_host->tma_load(to, m, bar, 3, at, (int)line);
}
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3, HERE) {
  const int at[] = {c0, c1, c2, c3};
  nautilus_host->tma_load(to, m, bar, 4, at, (int)line);
}
DEVICE void tma_load(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3, int c4, HERE) {
  const int at[] = {c0, c1, c2, c3, c4};
  nautilus_host->tma_load(to, m, bar, 5, at, (int)line);
}
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1, HERE) {
  const int at[] = {c0, c1};
  nautilus_host->tma_load_all(to, m, bar, (1u << CTAS) - 1, 2, at, (int)line);
}
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, HERE) {
  const int at[] = {c0, c1, c2};
  nautilus_host->tma_load_all(to, m, bar, (1u << CTAS) - 1, 3, at, (int)line);
}
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3, HERE) {
  const int at[] = {c0, c1, c2, c3};
  nautilus_host->tma_load_all(to, m, bar, (1u << CTAS) - 1, 4, at, (int)line);
}
template <int CTAS> DEVICE void tma_load_all(u32 to, const TensorMap* m, u32 bar, int c0, int c1, int c2, int c3, int c4, HERE) {
  const int at[] = {c0, c1, c2, c3, c4};
  nautilus_host->tma_load_all(to, m, bar, (1u << CTAS) - 1, 5, at, (int)line);
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1, HERE) {
  const int at[] = {c0, c1};
  nautilus_host->tma_store(m, from, 2, at, (int)line);
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1, int c2, HERE) {
  const int at[] = {c0, c1, c2};
  nautilus_host->tma_store(m, from, 3, at, (int)line);
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1, int c2, int c3, HERE) {
  const int at[] = {c0, c1, c2, c3};
  nautilus_host->tma_store(m, from, 4, at, (int)line);
}
DEVICE void tma_store(const TensorMap* m, u32 from, int c0, int c1, int c2, int c3, int c4, HERE) {
  const int at[] = {c0, c1, c2, c3, c4};
  nautilus_host->tma_store(m, from, 5, at, (int)line);
}
DEVICE void tma_commit(HERE) { nautilus_host->tma_commit((int)line); }
template <int PENDING> DEVICE void tma_wait_read(HERE) { nautilus_host->tma_wait_read(PENDING, (int)line); }

// ---- the matrix unit
template <int N> DEVICE void registers_up(HERE) { nautilus_host->registers(N, true, (int)line); }
template <int N> DEVICE void registers_down(HERE) { nautilus_host->registers(N, false, (int)line); }
DEVICE u64 matrix_descriptor(u32 address, u32 leading, u32 stride, u32 swizzle) {
  return (u64)((address & 0x3ffff) >> 4) | ((u64)(leading >> 4) << 16) | ((u64)(stride >> 4) << 32) | ((u64)swizzle << 62);
}
DEVICE u64 descriptor_at(u64 base, int units) { return (base & 0xffffffff00000000ull) | (u32)((u32)base + (u32)units); }
DEVICE void wgmma_fence(HERE) { nautilus_host->wgmma_fence((int)line); }
DEVICE void wgmma_commit(HERE) { nautilus_host->wgmma_commit((int)line); }
template <int PENDING> DEVICE void wgmma_wait(HERE) { nautilus_host->wgmma_wait(PENDING, nullptr, 0, (int)line); }
template <int PENDING, class A, int I> DEVICE void wgmma_wait(A (&a)[I], HERE) {
  const nautilus::emulator::RegisterArray arrays[] = {{a, I}};
  nautilus_host->wgmma_wait(PENDING, arrays, 1, (int)line);
}
template <int PENDING, class A, int I, class B, int J> DEVICE void wgmma_wait(A (&a)[I], B (&b)[J], HERE) {
  const nautilus::emulator::RegisterArray arrays[] = {{a, I}, {b, J}};
  nautilus_host->wgmma_wait(PENDING, arrays, 2, (int)line);
}
template <int PENDING, class A, int I, class B, int J, class C, int K>
DEVICE void wgmma_wait(A (&a)[I], B (&b)[J], C (&c)[K], HERE) {
  const nautilus::emulator::RegisterArray arrays[] = {{a, I}, {b, J}, {c, K}};
  nautilus_host->wgmma_wait(PENDING, arrays, 3, (int)line);
}
template <int PENDING, class A, int I, class B, int J, class C, int K, class D, int L>
DEVICE void wgmma_wait(A (&a)[I], B (&b)[J], C (&c)[K], D (&d)[L], HERE) {
  const nautilus::emulator::RegisterArray arrays[] = {{a, I}, {b, J}, {c, K}, {d, L}};
  nautilus_host->wgmma_wait(PENDING, arrays, 4, (int)line);
}
enum { ADD = 1, INIT = 0 };

// The products, called as functions. Objects: naming 32 widths of each costs the compiler far less than functions do.
namespace host {
using nautilus::emulator::Operand;
// The type of sums of products.
template <Operand A> struct Sum { using type = float; };
template <> struct Sum<Operand::I8> { using type = int; };
template <> struct Sum<Operand::U8> { using type = int; };
template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;
template <int N, Operand A, Operand B, bool IS_INIT, bool TRANS_A, bool TRANS_B> struct Product {
  template <class T, int R> void operator()(T (&acc)[R], int first, u64 a, u64 b, HERE) const {
    static_assert(is_same<T, typename Sum<A>::type>, "the dtype of the sums");
    const nautilus::emulator::ProductCall call = {acc, R, first, nullptr, 0, 0, a, b, N, A, B, IS_INIT, TRANS_B, TRANS_A};
    nautilus_host->wgmma(&call, (int)line);
  }
  template <int R, int Q> void operator()(float (&acc)[R], int first, const u32 (&a)[Q], int a_first, u64 b, HERE) const {
    const nautilus::emulator::ProductCall call = {acc, R, first, a, Q, a_first, 0, b, N, A, B, IS_INIT, TRANS_B, TRANS_A};
    nautilus_host->wgmma(&call, (int)line);
  }
};
}  // namespace host
#define WGMMA(name, n, a, b, trans_a)      \
  template <int MODE, int TRANS_B> constexpr host::Product<n, host::Operand::a, host::Operand::b, MODE == INIT, trans_a, TRANS_B != 0> name = {};
#define WGMMA_N(n)                                               \
  WGMMA(wgmma_bf16_n##n, n, BF16, BF16, false)                   \
  WGMMA(wgmma_f16_n##n, n, F16, F16, false)                      \
  WGMMA(wgmma_bf16_n##n##_transposed, n, BF16, BF16, true)           \
  WGMMA(wgmma_f16_n##n##_transposed, n, F16, F16, true)              \
  WGMMA(wgmma_tf32_n##n, n, TF32, TF32, false)                   \
  WGMMA(wgmma_f8e4m3_n##n, n, F8E4M3, F8E4M3, false)             \
  WGMMA(wgmma_f8e5m2_n##n, n, F8E5M2, F8E5M2, false)             \
  WGMMA(wgmma_f8e4m3_f8e5m2_n##n, n, F8E4M3, F8E5M2, false)      \
  WGMMA(wgmma_f8e5m2_f8e4m3_n##n, n, F8E5M2, F8E4M3, false)
#define WGMMA_INTEGERS(n)                                        \
  WGMMA(wgmma_i8_n##n, n, I8, I8, false)                         \
  WGMMA(wgmma_u8_n##n, n, U8, U8, false)                         \
  WGMMA(wgmma_i8_u8_n##n, n, I8, U8, false)                      \
  WGMMA(wgmma_u8_i8_n##n, n, U8, I8, false)
WGMMA_N(8) WGMMA_N(16) WGMMA_N(24) WGMMA_N(32) WGMMA_N(40) WGMMA_N(48) WGMMA_N(56) WGMMA_N(64)
WGMMA_N(72) WGMMA_N(80) WGMMA_N(88) WGMMA_N(96) WGMMA_N(104) WGMMA_N(112) WGMMA_N(120) WGMMA_N(128)
WGMMA_N(136) WGMMA_N(144) WGMMA_N(152) WGMMA_N(160) WGMMA_N(168) WGMMA_N(176) WGMMA_N(184) WGMMA_N(192)
WGMMA_N(200) WGMMA_N(208) WGMMA_N(216) WGMMA_N(224) WGMMA_N(232) WGMMA_N(240) WGMMA_N(248) WGMMA_N(256)
WGMMA_INTEGERS(8) WGMMA_INTEGERS(16) WGMMA_INTEGERS(24) WGMMA_INTEGERS(32) WGMMA_INTEGERS(48) WGMMA_INTEGERS(64)
WGMMA_INTEGERS(80) WGMMA_INTEGERS(96) WGMMA_INTEGERS(112) WGMMA_INTEGERS(128) WGMMA_INTEGERS(144) WGMMA_INTEGERS(160)
WGMMA_INTEGERS(176) WGMMA_INTEGERS(192) WGMMA_INTEGERS(208) WGMMA_INTEGERS(224) WGMMA_INTEGERS(240) WGMMA_INTEGERS(256)

// ---- scalar code (kernels of points): every dtype of the language, integers of their own width
DEVICE double maximum(double x, double y) { return x != x ? y : y != y ? x : x > y ? x : y; }
DEVICE double minimum(double x, double y) { return x != x ? y : y != y ? x : x < y ? x : y; }
DEVICE long long maximum(long long x, long long y) { return x > y ? x : y; }
DEVICE long long minimum(long long x, long long y) { return x < y ? x : y; }
DEVICE int lane_from(int x, int lane, HERE) { return (int)host::bits_of(lane_from(host::float_of((u32)x), lane, line)); }
DEVICE int lane_xor(int x, int mask, HERE) { return (int)host::bits_of(lane_xor(host::float_of((u32)x), mask, line)); }
DEVICE long long lane_xor(long long x, int mask, HERE) {
  const u32 low = (u32)lane_xor((int)(u32)(u64)x, mask, line);
  const u32 high = (u32)lane_xor((int)(u32)((u64)x >> 32), mask, line);
  return (long long)((u64)high << 32 | low);
}
DEVICE double lane_xor(double x, int mask, HERE) {
  long long bits;
  __builtin_memcpy(&bits, &x, 8);
  bits = lane_xor(bits, mask, line);
  __builtin_memcpy(&x, &bits, 8);
  return x;
}
DEVICE double absolute(double x) { return __builtin_fabs(x); }
DEVICE long long absolute(long long x) { return x < 0 ? (long long)(0 - (u64)x) : x; }
DEVICE float exp_of(float x) { return __builtin_expf(x); }
DEVICE double exp_of(double x) { return __builtin_exp(x); }
DEVICE float exp2_of(float x) { return __builtin_exp2f(x); }
DEVICE double exp2_of(double x) { return __builtin_exp2(x); }
DEVICE float log_of(float x) { return __builtin_logf(x); }
DEVICE double log_of(double x) { return __builtin_log(x); }
DEVICE float log2_of(float x) { return __builtin_log2f(x); }
DEVICE double log2_of(double x) { return __builtin_log2(x); }
DEVICE float log1p_of(float x) { return __builtin_log1pf(x); }
DEVICE double log1p_of(double x) { return __builtin_log1p(x); }
DEVICE float expm1_of(float x) { return __builtin_expm1f(x); }
DEVICE double expm1_of(double x) { return __builtin_expm1(x); }
DEVICE double sqrt_of(double x) { return __builtin_sqrt(x); }
DEVICE float rsqrt_of(float x) { return 1.f / __builtin_sqrtf(x); }
DEVICE double rsqrt_of(double x) { return 1 / __builtin_sqrt(x); }
DEVICE float tanh_of(float x) { return __builtin_tanhf(x); }
DEVICE double tanh_of(double x) { return __builtin_tanh(x); }
DEVICE float erf_exact(float x) { return __builtin_erff(x); }
DEVICE double erf_exact(double x) { return __builtin_erf(x); }
DEVICE float sin_of(float x) { return __builtin_sinf(x); }
DEVICE double sin_of(double x) { return __builtin_sin(x); }
DEVICE float cos_of(float x) { return __builtin_cosf(x); }
DEVICE double cos_of(double x) { return __builtin_cos(x); }
DEVICE float pow_of(float x, float y) { return __builtin_powf(x, y); }
DEVICE double pow_of(double x, double y) { return __builtin_pow(x, y); }
DEVICE double floor_of(double x) { return __builtin_floor(x); }
DEVICE double round_of(double x) { return __builtin_rint(x); }
// Neither form has an exponential that overflows.
DEVICE float sigmoid_of(float x) { const float e = __builtin_expf(x < 0 ? x : -x); return x < 0 ? e / (1.f + e) : 1.f / (1.f + e); }
DEVICE double sigmoid_of(double x) { const double e = __builtin_exp(x < 0 ? x : -x); return x < 0 ? e / (1 + e) : 1 / (1 + e); }
#include "scalar.h"
namespace host {
// A float of 8 bits with `digits` stored digits: nearest, ties to even, saturating.
DEVICE u32 f8_bits(float x, int digits, int bias, float largest, u32 nan) {
  if (x != x) return nan;
  const u32 sign = bits_of(x) >> 31 << 7;
  const float a = __builtin_fabsf(x);
  if (a == 0) return sign;
  int e = a >= largest ? 0 : __builtin_ilogbf(a);
  if (e < 1 - bias) e = 1 - bias;
  const float q = a >= largest ? largest : __builtin_ldexpf(__builtin_rintf(__builtin_ldexpf(a, digits - e)), e - digits);
  if (q == 0) return sign;
  e = __builtin_ilogbf(q);
  if (e < 1 - bias) return sign | (u32)__builtin_ldexpf(q, digits - 1 + bias);
  return sign | (u32)(e + bias) << digits | ((u32)__builtin_ldexpf(q, digits - e) & ((1u << digits) - 1u));
}
DEVICE float f8_value(u32 bits, int digits, int bias) {
  const u32 e = (bits & 0x7fu) >> digits, m = bits & ((1u << digits) - 1u);
  const float a = e == 0 ? __builtin_ldexpf((float)m, 1 - bias - digits) : __builtin_ldexpf((float)(m | 1u << digits), (int)e - bias - digits);
  return bits & 0x80u ? -a : a;
}
}  // namespace host
DEVICE u32 pack_f8e4m3(float x) { return host::f8_bits(x, 3, 7, 448.f, 0x7fu); }
DEVICE u32 pack_f8e5m2(float x) { return host::f8_bits(x, 2, 15, 57344.f, 0x7fu); }
DEVICE float unpack_f8e4m3(u32 bits) { return (bits & 0x7fu) == 0x7fu ? __builtin_nanf("") : host::f8_value(bits, 3, 7); }
DEVICE float unpack_f8e5m2(u32 bits) {
  return (bits & 0x7fu) > 0x7cu ? __builtin_nanf("") : (bits & 0x7fu) == 0x7cu ? (bits & 0x80u ? -infinity() : infinity()) : host::f8_value(bits, 2, 15);
}
DEVICE float round_f8e4m3(float x) { return unpack_f8e4m3(pack_f8e4m3(x)); }
DEVICE float round_f8e5m2(float x) { return unpack_f8e5m2(pack_f8e5m2(x)); }
DEVICE float load_tf32(const float* p, u64 i, HERE) { return load_f32(p, i, line); }
DEVICE float load_tf32_where(bool is_there, const float* p, u64 i, float other, HERE) { return load_f32_where(is_there, p, i, other, line); }
DEVICE float load_own_tf32(const float* p, u64 i, HERE) { return load_f32(p, i, line); }
DEVICE void store_tf32(float* p, u64 i, float x, HERE) { store_f32(p, i, round_tf32(x), line); }
DEVICE void store_pair_tf32(float* p, u64 i, float x, float y, HERE) { store_pair_f32(p, i, round_tf32(x), round_tf32(y), line); }
template <int N> DEVICE void load_whole_tf32(float (&out)[N], const float* p, u64 i, HERE) { load_whole_f32(out, p, i, line); }
template <int N> DEVICE void load_line_tf32(float (&out)[N], const float* p, u64 i, u64 apart, int left, HERE) {
  load_line_f32(out, p, i, apart, left, line);
}
template <int N> DEVICE void store_line_tf32(float* p, u64 i, const float (&in)[N], u64 apart, int left, HERE) {
  for (int k = 0; k < N && k < left; ++k) store_tf32(p, i + (u64)k * apart, in[k], line);
}
template <int N> DEVICE void store_whole_tf32(float* p, u64 i, const float (&in)[N], HERE) {
  for (int k = 0; k < N; k += 4) host::writable(p + i + k, 16, line);
  store_line_tf32(p, i, in, 1, N, line);
}
DEVICE double load_f64(const double* p, u64 i, HERE) { return *host::readable(p + i, 8, line); }
DEVICE int load_i32(const int* p, u64 i, HERE) { return *host::readable(p + i, 4, line); }
DEVICE int load_i32_when(bool c, const int* p, u64 i, int other, HERE) { return c ? *host::readable(p + i, 4, line) : other; }
DEVICE int load_i32_here(bool c, const int* p, u64 i, int other, HERE) { return load_i32_when(c, p, i, other, line); }
DEVICE bool load_bool_when(bool c, const unsigned char* p, u64 i, int other, HERE) { return (c ? *host::readable(p + i, 1, line) : other) != 0; }
DEVICE int load_bool_here(bool c, const unsigned char* p, u64 i, int other, HERE) { return load_bool_when(c, p, i, other, line); }
DEVICE long long load_i64_when(bool c, const long long* p, u64 i, long long other, HERE) { return c ? *host::readable(p + i, 8, line) : other; }
DEVICE long long load_i64(const long long* p, u64 i, HERE) { return *host::readable(p + i, 8, line); }
DEVICE int load_i8(const unsigned char* p, u64 i, HERE) { return (signed char)*host::readable(p + i, 1, line); }
DEVICE int load_u8(const unsigned char* p, u64 i, HERE) { return *host::readable(p + i, 1, line); }
DEVICE bool load_bool(const unsigned char* p, u64 i, HERE) { return *host::readable(p + i, 1, line) != 0; }
DEVICE float load_f8e4m3(const unsigned char* p, u64 i, HERE) { return unpack_f8e4m3(*host::readable(p + i, 1, line)); }
DEVICE float load_f8e5m2(const unsigned char* p, u64 i, HERE) { return unpack_f8e5m2(*host::readable(p + i, 1, line)); }
// What this thread has written before.
template <class T> DEVICE T read_own(const T* p, HERE) { return read_global(p, line); }
DEVICE float load_own_f32(const float* p, u64 i, HERE) { return load_f32(p, i, line); }
DEVICE float load_own_bf16(const u16* p, u64 i, HERE) { return load_bf16(p, i, line); }
DEVICE float load_own_f16(const u16* p, u64 i, HERE) { return load_f16(p, i, line); }
DEVICE double load_own_f64(const double* p, u64 i, HERE) { return load_f64(p, i, line); }
DEVICE int load_own_i32(const int* p, u64 i, HERE) { return load_i32(p, i, line); }
DEVICE long long load_own_i64(const long long* p, u64 i, HERE) { return load_i64(p, i, line); }
DEVICE int load_own_i8(const unsigned char* p, u64 i, HERE) { return load_i8(p, i, line); }
DEVICE int load_own_u8(const unsigned char* p, u64 i, HERE) { return load_u8(p, i, line); }
DEVICE bool load_own_bool(const unsigned char* p, u64 i, HERE) { return load_bool(p, i, line); }
DEVICE float load_own_f8e4m3(const unsigned char* p, u64 i, HERE) { return load_f8e4m3(p, i, line); }
DEVICE float load_own_f8e5m2(const unsigned char* p, u64 i, HERE) { return load_f8e5m2(p, i, line); }
DEVICE void store_f64(double* p, u64 i, double x, HERE) { *host::writable(p + i, 8, line) = x; }
DEVICE void store_i32(int* p, u64 i, int x, HERE) { *host::writable(p + i, 4, line) = x; }
DEVICE void store_pair_i32(int* p, u64 i, int x, int y, HERE) {
  host::writable(p + i, 8, line);
  p[i] = x, p[i + 1] = y;
}
DEVICE void store_i64(long long* p, u64 i, long long x, HERE) { *host::writable(p + i, 8, line) = x; }
DEVICE void store_i8(unsigned char* p, u64 i, int x, HERE) { *host::writable(p + i, 1, line) = (unsigned char)x; }
DEVICE void store_u8(unsigned char* p, u64 i, int x, HERE) { *host::writable(p + i, 1, line) = (unsigned char)x; }
DEVICE void store_bool(unsigned char* p, u64 i, bool x, HERE) { *host::writable(p + i, 1, line) = x ? 1 : 0; }
DEVICE void store_f8e4m3(unsigned char* p, u64 i, float x, HERE) { *host::writable(p + i, 1, line) = (unsigned char)pack_f8e4m3(x); }
DEVICE void store_f8e5m2(unsigned char* p, u64 i, float x, HERE) { *host::writable(p + i, 1, line) = (unsigned char)pack_f8e5m2(x); }
// Elements that many threads combine with values of their own; here one thread runs at a time.
namespace host {
template <class T, class F> DEVICE void scatter(T* at, F combined, Line line) {
  writable(at, sizeof(T), line);
  *at = combined(*at);
}
}  // namespace host
#define SCATTER(name, T, X, value) \
  DEVICE void scatter_##name(T* p, u64 i, X x, HERE) { host::scatter(p + i, [=](T y) { return value; }, line); } \
  DEVICE void shared_scatter_##name(u32 address, X x, HERE) { \
    T* const at = (T*)nautilus_host->shared_combine(address, sizeof(T), (int)line); \
    const T y = *at; \
    *at = value; \
  }
SCATTER(sum_f32, float, float, y + x)
SCATTER(sum_f64, double, double, y + x)
SCATTER(sum_i32, int, int, wrap_add(y, x))
SCATTER(sum_i64, long long, long long, wrap_add(y, x))
SCATTER(max_f32, float, float, x > y ? x : y)
SCATTER(min_f32, float, float, x < y ? x : y)
SCATTER(max_f64, double, double, x > y ? x : y)
SCATTER(min_f64, double, double, x < y ? x : y)
SCATTER(max_i32, int, int, x > y ? x : y)
SCATTER(min_i32, int, int, x < y ? x : y)
SCATTER(max_i64, long long, long long, x > y ? x : y)
SCATTER(min_i64, long long, long long, x < y ? x : y)
SCATTER(any_bool, unsigned char, bool, x ? 1 : y)
SCATTER(all_bool, unsigned char, bool, x ? y : 0)
#undef SCATTER
template <int N> DEVICE void scatter_line_sum_f32(float* p, u64 i, const float (&in)[N], u64 apart, int left, HERE) {
  for (int k = 0; k < N && k < left; ++k) scatter_sum_f32(p, i + (u64)k * apart, in[k], line);
}
// All of them, at an address that is a multiple of their bytes.
template <class T, int N> DEVICE void load_packed(Packed<T, N>& v, const T* p, u64 i, HERE) {
  constexpr int BYTES = N * (int)sizeof(T), EACH = BYTES < 16 ? BYTES : 16;
  for (int k = 0; k < BYTES; k += EACH)
    __builtin_memcpy((char*)v.x + k, host::readable((const char*)(p + i) + k, EACH, line), EACH);
}
// Those from `first` up to before `end`, so many apart; 0 for the others.
template <class T, int N> DEVICE void load_some(Packed<T, N>& v, const T* p, u64 i, u64 apart, long long first, long long end, HERE) {
  for (int k = 0; k < N; ++k) put_bits(v, k, k >= first && k < end ? element_bits(read_global(p + i + (u64)k * apart, line)) : 0);
}
template <class T, int N> DEVICE void store_packed(T* p, u64 i, const Packed<T, N>& v, HERE) {
  constexpr int BYTES = N * (int)sizeof(T), EACH = BYTES < 16 ? BYTES : 16;
  for (int k = 0; k < BYTES; k += EACH)
    __builtin_memcpy(host::writable((char*)(p + i) + k, EACH, line), (const char*)v.x + k, EACH);
}
// A number that warps exchange.
DEVICE void shared_put(u32 address, float x, HERE) { shared_store_f32(address, x, line); }
DEVICE void shared_put(u32 address, int x, HERE) { shared_store_i32(address, x, line); }
DEVICE void shared_put(u32 address, long long x, HERE) {
  shared_store_i32(address, (int)(u32)(u64)x, line);
  shared_store_i32(address + 4, (int)(u32)((u64)x >> 32), line);
}
DEVICE void shared_put(u32 address, double x, HERE) { shared_put(address, (long long)as_bits(x), line); }
DEVICE void shared_take(u32 address, float& x, HERE) { x = shared_load_f32(address, line); }
DEVICE void shared_take(u32 address, int& x, HERE) { x = shared_load_i32(address, line); }
DEVICE void shared_take(u32 address, long long& x, HERE) {
  const u32 low = (u32)shared_load_i32(address, line), high = (u32)shared_load_i32(address + 4, line);
  x = (long long)((u64)high << 32 | low);
}
DEVICE void shared_take(u32 address, double& x, HERE) {
  long long bits;
  shared_take(address, bits, line);
  x = as_double((u64)bits);
}
#include "sort.h"
