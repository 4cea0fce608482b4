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
