// Arithmetic that wraps. Division rounds towards minus infinity, and by 0 gives 0.
DEVICE int wrap_add(int x, int y) { return (int)((u32)x + (u32)y); }
DEVICE int wrap_sub(int x, int y) { return (int)((u32)x - (u32)y); }
DEVICE int wrap_mul(int x, int y) { return (int)((u32)x * (u32)y); }
DEVICE long long wrap_add(long long x, long long y) { return (long long)((u64)x + (u64)y); }
DEVICE long long wrap_sub(long long x, long long y) { return (long long)((u64)x - (u64)y); }
DEVICE long long wrap_mul(long long x, long long y) { return (long long)((u64)x * (u64)y); }
// x * 2^n, wrapped, and the floor of x / 2^n; a negative n counts as 0.
DEVICE int shift_left(int x, int n) { return n > 31 ? 0 : (int)((u32)x << (n < 0 ? 0 : n)); }
DEVICE int shift_right(int x, int n) { return x >> (n < 0 ? 0 : n > 31 ? 31 : n); }
DEVICE long long shift_left(long long x, long long n) { return n > 63 ? 0 : (long long)((u64)x << (n < 0 ? 0 : n)); }
DEVICE long long shift_right(long long x, long long n) { return x >> (n < 0 ? 0 : n > 63 ? 63 : n); }
template <class T> DEVICE T safe_div(T x, T y) {
  if (y == 0) return 0;
  if (y == -1) return wrap_sub((T)0, x);
  const T q = x / y;
  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}
template <class T> DEVICE T safe_mod(T x, T y) {
  if (y == 0 || y == -1) return 0;
  const T r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
// The index along the fastest axis of a number of points, which is then that of the other axes.
DEVICE long long take_axis(u64& points, long long extent) {
  if (extent <= 0) return 0;  // there are no points; who asks has none
  if (points >> 32 == 0 && (u64)extent >> 32 == 0) {
    const u32 q = (u32)points / (u32)extent, r = (u32)points - q * (u32)extent;
    points = q;
    return r;
  }
  const u64 q = points / (u64)extent, r = points - q * (u64)extent;
  points = q;
  return (long long)r;
}
// Of element k of rows of so many columns. Rows that lie behind each other, as they do nearly always, are one.
DEVICE u64 walked_place(int k, int columns, u64 row_stride, u64 stride) {
  if (row_stride == (u64)columns * stride) return (u64)k * stride;
  const u32 row = columns > 0 ? (u32)k / (u32)columns : 0;
  return row * row_stride + ((u32)k - row * (u32)columns) * stride;
}
// Towards 0; NaN gives 0, what is out of range the end of the range.
template <class T> DEVICE int to_i32(T x) { return x != x ? 0 : x >= (T)2147483648.0 ? 2147483647 : x <= (T)-2147483648.0 ? -2147483647 - 1 : (int)x; }
template <class T> DEVICE long long to_i64(T x) {
  return x != x ? 0 : x >= (T)9223372036854775808.0 ? 9223372036854775807ll : x <= (T)-9223372036854775808.0 ? -9223372036854775807ll - 1 : (long long)x;
}
template <class T> DEVICE int to_i8(T x) { const int y = to_i32(x); return y > 127 ? 127 : y < -128 ? -128 : y; }
template <class T> DEVICE int to_u8(T x) { const int y = to_i32(x); return y > 255 ? 255 : y < 0 ? 0 : y; }
// The float between which and a double no narrower float lies: a second rounding is then the only one.
DEVICE float to_odd(double x) {
  const float y = (float)x;
  if ((double)y == x || x != x) return y;
  const bool is_beyond = (y < 0 ? -(double)y : (double)y) > (x < 0 ? -x : x);
  return as_float((as_bits(y) - (is_beyond ? 1u : 0u)) | 1u);
}
DEVICE float round_bf16(float x) { return unpack_bf16(pack_bf16(x, 0.f), 0); }
DEVICE float round_f16(float x) { return unpack_f16(pack_f16(x, 0.f), 0); }
// N neighbouring elements of a thread as they lie in memory, in words: those that are loaded ahead are taken apart
// where they are used. Elements are put in from the first one on.
template <class T, int N> struct Packed { u32 x[N * sizeof(T) / 4]; };
template <int N> DEVICE float packed_f32(const Packed<float, N>& v, int k) { return as_float(v.x[k]); }
template <int N> DEVICE float packed_tf32(const Packed<float, N>& v, int k) { return as_float(v.x[k]); }
template <int N> DEVICE float packed_bf16(const Packed<u16, N>& v, int k) { return unpack_bf16(v.x[k / 2], k % 2); }
template <int N> DEVICE float packed_f16(const Packed<u16, N>& v, int k) { return unpack_f16(v.x[k / 2], k % 2); }
template <int N> DEVICE double packed_f64(const Packed<double, N>& v, int k) { return as_double((u64)v.x[2 * k + 1] << 32 | v.x[2 * k]); }
template <int N> DEVICE int packed_i32(const Packed<int, N>& v, int k) { return (int)v.x[k]; }
template <int N> DEVICE long long packed_i64(const Packed<long long, N>& v, int k) { return (long long)((u64)v.x[2 * k + 1] << 32 | v.x[2 * k]); }
template <int N> DEVICE int packed_u8(const Packed<unsigned char, N>& v, int k) { return (int)(v.x[k / 4] >> k % 4 * 8 & 0xffu); }
template <int N> DEVICE int packed_i8(const Packed<unsigned char, N>& v, int k) { return (signed char)packed_u8(v, k); }
template <int N> DEVICE bool packed_bool(const Packed<unsigned char, N>& v, int k) { return packed_u8(v, k) != 0; }
template <class T, int N> DEVICE void put_bits(Packed<T, N>& v, int k, u64 bits) {
  if constexpr (sizeof(T) == 8) {
    v.x[2 * k] = (u32)bits;
    v.x[2 * k + 1] = (u32)(bits >> 32);
  } else {
    const int each = 4 / (int)sizeof(T), part = k % each;
    v.x[k / each] = part == 0 ? (u32)bits : v.x[k / each] | (u32)bits << part * 8 * (int)sizeof(T);
  }
}
template <int N> DEVICE void put_f32(Packed<float, N>& v, int k, float x) { put_bits(v, k, as_bits(x)); }
template <int N> DEVICE void put_tf32(Packed<float, N>& v, int k, float x) { put_bits(v, k, as_bits(round_tf32(x))); }
template <int N> DEVICE void put_bf16(Packed<u16, N>& v, int k, float x) { put_bits(v, k, pack_bf16(x, 0.f) & 0xffffu); }
template <int N> DEVICE void put_f16(Packed<u16, N>& v, int k, float x) { put_bits(v, k, pack_f16(x, 0.f) & 0xffffu); }
template <int N> DEVICE void put_f64(Packed<double, N>& v, int k, double x) { put_bits(v, k, as_bits(x)); }
template <int N> DEVICE void put_i32(Packed<int, N>& v, int k, int x) { put_bits(v, k, (u32)x); }
template <int N> DEVICE void put_i64(Packed<long long, N>& v, int k, long long x) { put_bits(v, k, (u64)x); }
template <int N> DEVICE void put_u8(Packed<unsigned char, N>& v, int k, int x) { put_bits(v, k, (unsigned char)x); }
template <int N> DEVICE void put_i8(Packed<unsigned char, N>& v, int k, int x) { put_bits(v, k, (unsigned char)x); }
template <int N> DEVICE void put_bool(Packed<unsigned char, N>& v, int k, bool x) { put_bits(v, k, x ? 1 : 0); }
DEVICE u64 element_bits(float x) { return as_bits(x); }
DEVICE u64 element_bits(double x) { return as_bits(x); }
DEVICE u64 element_bits(int x) { return (u32)x; }
DEVICE u64 element_bits(long long x) { return (u64)x; }
DEVICE u64 element_bits(u16 x) { return x; }
DEVICE u64 element_bits(unsigned char x) { return x; }
