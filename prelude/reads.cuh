// Nautilus prelude for the device: reads of global memory by threads. A file of several kernels has it twice where some
// of them have ordered reads and others do not, each in a namespace of its own.
//
// Ordered reads stay where the text has them. A kernel that begins while others still write needs them: reads by the
// way for constant data are not kept behind its wait.
#undef READ_ONLY
#undef READ_ASM
#ifdef ORDERED_READS
#define READ_ONLY ""
#define READ_ASM asm volatile
template <class T> DEVICE T read_global(const T* p) { return *p; }
#else
#define READ_ONLY ".nc"
#define READ_ASM asm
template <class T> DEVICE T read_global(const T* p) { return __ldg(p); }
#endif
DEVICE float load_f32(const float* p, u64 i) { return read_global(p + i); }
DEVICE float load_bf16(const u16* p, u64 i) { return __uint_as_float((u32)read_global(p + i) << 16); }
DEVICE float load_f16(const u16* p, u64 i) { return unpack_f16(read_global(p + i), 0); }
// One load that is or is not done, without a branch; `other` where it is not.
DEVICE float load_f32_where(bool is_there, const float* p, u64 i, float other) {
  float x = other;
  READ_ASM("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global" READ_ONLY ".f32 %0, [%1]; }" : "+f"(x) : "l"(p + i), "r"((u32)is_there));
  return x;
}
DEVICE u16 load_16_where(bool is_there, const u16* p, u64 i) {
  u16 x = 0;
  READ_ASM("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global" READ_ONLY ".u16 %0, [%1]; }" : "+h"(x) : "l"(p + i), "r"((u32)is_there));
  return x;
}
DEVICE float load_bf16_where(bool is_there, const u16* p, u64 i, float other) {
  const float x = __uint_as_float((u32)load_16_where(is_there, p, i) << 16);
  return is_there ? x : other;
}
DEVICE float load_f16_where(bool is_there, const u16* p, u64 i, float other) {
  const float x = unpack_f16(load_16_where(is_there, p, i), 0);
  return is_there ? x : other;
}
template <int N> DEVICE void load_whole_f32(float (&line)[N], const float* p, u64 i) {
  UNROLL for (int k = 0; k + 3 < N; k += 4) {
    const float4 v = read_global((const float4*)(p + i + k));
    line[k] = v.x, line[k + 1] = v.y, line[k + 2] = v.z, line[k + 3] = v.w;
  }
}
template <int N> DEVICE void load_whole_bf16(float (&line)[N], const u16* p, u64 i) {
  UNROLL for (int k = 0; k + 7 < N; k += 8) {
    const uint4 v = read_global((const uint4*)(p + i + k));
    const u32 pairs[4] = {v.x, v.y, v.z, v.w};
    UNROLL for (int n = 0; n < 4; ++n) {
      line[k + 2 * n] = __uint_as_float(pairs[n] << 16);
      line[k + 2 * n + 1] = __uint_as_float(pairs[n] & 0xffff0000u);
    }
  }
}
template <int N> DEVICE void load_whole_f16(float (&line)[N], const u16* p, u64 i) {
  UNROLL for (int k = 0; k + 7 < N; k += 8) {
    const uint4 v = read_global((const uint4*)(p + i + k));
    const u32 pairs[4] = {v.x, v.y, v.z, v.w};
    UNROLL for (int n = 0; n < 8; ++n) line[k + n] = unpack_f16(pairs[n / 2], n % 2);
  }
}
template <int N> DEVICE void load_line_f32(float (&line)[N], const float* p, u64 i, u64 apart, int left) {
  if (is_whole_line<N>(p + i, 4, apart, left)) return load_whole_f32(line, p, i);
  UNROLL for (int k = 0; k < N; ++k) line[k] = k < left ? load_f32(p, i + k * apart) : 0.f;
}
template <int N> DEVICE void load_line_bf16(float (&line)[N], const u16* p, u64 i, u64 apart, int left) {
  if (is_whole_line<N>(p + i, 2, apart, left)) return load_whole_bf16(line, p, i);
  UNROLL for (int k = 0; k < N; ++k) line[k] = k < left ? load_bf16(p, i + k * apart) : 0.f;
}
template <int N> DEVICE void load_line_f16(float (&line)[N], const u16* p, u64 i, u64 apart, int left) {
  if (is_whole_line<N>(p + i, 2, apart, left)) return load_whole_f16(line, p, i);
  UNROLL for (int k = 0; k < N; ++k) line[k] = k < left ? load_f16(p, i + k * apart) : 0.f;
}
DEVICE Vector16 load_vector(const u16* p, u64 i) {
  Vector16 v;
  asm volatile("ld.global" READ_ONLY ".L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x[0]), "=r"(v.x[1]), "=r"(v.x[2]), "=r"(v.x[3]) : "l"(p + i));
  return v;
}
// 16 bytes from the aligned address of element i; where the condition does not hold, `other` in each
// word. One predicated instruction, so that many stand back to back. The data is read once: it passes
// the first level cache by. The second form keeps it there.
template <class T> DEVICE Vector16 load_vector_when(bool when, const T* p, u64 i, u32 other) {
  Vector16 v = {{other, other, other, other}};
  asm volatile("{\n.reg .pred when;\nsetp.ne.b32 when, %5, 0;\n"
               "@when ld.global" READ_ONLY ".L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];\n}"
               : "+r"(v.x[0]), "+r"(v.x[1]), "+r"(v.x[2]), "+r"(v.x[3]) : "l"(p + i), "r"((int)when));
  return v;
}
template <class T> DEVICE Vector16 load_vector_often(bool when, const T* p, u64 i, u32 other) {
  Vector16 v = {{other, other, other, other}};
  asm volatile("{\n.reg .pred when;\nsetp.ne.b32 when, %5, 0;\n"
               "@when ld.global" READ_ONLY ".L1::evict_last.v4.u32 {%0,%1,%2,%3}, [%4];\n}"
               : "+r"(v.x[0]), "+r"(v.x[1]), "+r"(v.x[2]), "+r"(v.x[3]) : "l"(p + i), "r"((int)when));
  return v;
}
DEVICE float load_tf32(const float* p, u64 i) { return load_f32(p, i); }
DEVICE float load_tf32_where(bool is_there, const float* p, u64 i, float other) { return load_f32_where(is_there, p, i, other); }
template <int N> DEVICE void load_whole_tf32(float (&line)[N], const float* p, u64 i) { load_whole_f32(line, p, i); }
template <int N> DEVICE void load_line_tf32(float (&line)[N], const float* p, u64 i, u64 apart, int left) { load_line_f32(line, p, i, apart, left); }
DEVICE double load_f64(const double* p, u64 i) { return read_global(p + i); }
DEVICE int load_i32(const int* p, u64 i) { return read_global(p + i); }
// Without a branch, so that equal ones are loaded once.
DEVICE int load_i32_when(bool c, const int* p, u64 i, int other) {
  int x;
  READ_ASM("{ .reg .pred c; setp.ne.s32 c, %1, 0; mov.b32 %0, %3; @c ld.global" READ_ONLY ".b32 %0, [%2]; }" : "=r"(x) : "r"((int)c), "l"(p + i), "r"(other));
  return x;
}
// Not moved to where its value is used: barriers hold a load back that other threads could change.
DEVICE int load_i32_here(bool c, const int* p, u64 i, int other) {
  int x;
  asm volatile("{ .reg .pred c; setp.ne.s32 c, %1, 0; mov.b32 %0, %3; @c ld.global.b32 %0, [%2]; }" : "=r"(x) : "r"((int)c), "l"(p + i), "r"(other));
  return x;
}
DEVICE int load_bool_here(bool c, const unsigned char* p, u64 i, int other) {
  int x;
  asm volatile("{ .reg .pred c; setp.ne.s32 c, %1, 0; mov.b32 %0, %3; @c ld.global.u8 %0, [%2]; }" : "=r"(x) : "r"((int)c), "l"(p + i), "r"(other));
  return x;
}
DEVICE bool load_bool_when(bool c, const unsigned char* p, u64 i, int other) {
  int x;
  READ_ASM("{ .reg .pred c; setp.ne.s32 c, %1, 0; mov.b32 %0, %3; @c ld.global" READ_ONLY ".u8 %0, [%2]; }" : "=r"(x) : "r"((int)c), "l"(p + i), "r"(other));
  return x != 0;
}
DEVICE long long load_i64_when(bool c, const long long* p, u64 i, long long other) {
  long long x;
  READ_ASM("{ .reg .pred c; setp.ne.s32 c, %1, 0; mov.b64 %0, %3; @c ld.global" READ_ONLY ".b64 %0, [%2]; }" : "=l"(x) : "r"((int)c), "l"(p + i), "l"(other));
  return x;
}
DEVICE long long load_i64(const long long* p, u64 i) { return read_global(p + i); }
DEVICE int load_i8(const unsigned char* p, u64 i) { return (signed char)read_global(p + i); }
DEVICE int load_u8(const unsigned char* p, u64 i) { return read_global(p + i); }
DEVICE bool load_bool(const unsigned char* p, u64 i) { return read_global(p + i) != 0; }
DEVICE float load_f8e4m3(const unsigned char* p, u64 i) { return unpack_f8e4m3(read_global(p + i)); }
DEVICE float load_f8e5m2(const unsigned char* p, u64 i) { return unpack_f8e5m2(read_global(p + i)); }
// All of them, at an address that is a multiple of their bytes.
template <class T, int N> DEVICE void load_packed(Packed<T, N>& v, const T* p, u64 i) {
  constexpr int WORDS = N * sizeof(T) / 4;
  UNROLL for (int k = 0; k + 3 < WORDS; k += 4) {
    const uint4 x = read_global((const uint4*)(p + i) + k / 4);
    v.x[k] = x.x, v.x[k + 1] = x.y, v.x[k + 2] = x.z, v.x[k + 3] = x.w;
  }
  if (WORDS == 2) {
    const uint2 x = read_global((const uint2*)(p + i));
    v.x[0] = x.x, v.x[WORDS - 1] = x.y;
  }
  if (WORDS == 1) v.x[0] = read_global((const u32*)(p + i));
}
// Those from `first` up to before `end`, so many apart; 0 for the others.
template <class T, int N> DEVICE void load_some(Packed<T, N>& v, const T* p, u64 i, u64 apart, long long first, long long end) {
  UNROLL for (int k = 0; k < N; ++k) put_bits(v, k, k >= first && k < end ? element_bits(read_global(p + i + k * apart)) : 0);
}
