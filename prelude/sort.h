// ---- rows in order
// A number as an integer that is in the same order; zeros are equal.
DEVICE u32 in_order(float x) {
  const u32 bits = as_bits(x + 0.f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
DEVICE u32 in_order(int x) { return (u32)x ^ 0x80000000u; }

DEVICE u64 in_order(double x) {
  const u64 bits = as_bits(x + 0.);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
DEVICE u64 in_order(long long x) { return (u64)x ^ 1ull << 63; }

// Of an element at `index` of its row: the first Bits of its number in order, then the index, so that no two are equal.
// Elements without a place come behind all others.
template <class Key, int Bits, int IndexBits> DEVICE Key sort_key(u32 number, bool has_place, u32 index) {
  if (!has_place) return (Key)1 << (Bits + IndexBits) | index;
  return (Key)(number >> (32 - Bits)) << IndexBits | index;
}

// Of an element whose number has 64 bits.
struct LongKey {
  u64 number;
  u32 index;
};
DEVICE bool operator<(const LongKey& a, const LongKey& b) {
  return a.number < b.number || (a.number == b.number && a.index < b.index);
}
DEVICE LongKey long_key(u64 number, bool has_place, u32 index) {
  LongKey key;
  key.number = has_place ? number : ~0ull;
  key.index = has_place ? index : 1u << 31 | index;
  return key;
}

// Behind all elements.
DEVICE void leave_out(u32& key) { key = ~0u; }
DEVICE void leave_out(u64& key) { key = ~0ull; }
DEVICE void leave_out(LongKey& key) { key = long_key(0, false, ~0u); }

DEVICE u32 index_of(u32 key) { return key; }
DEVICE u32 index_of(u64 key) { return (u32)key; }
DEVICE u32 index_of(const LongKey& key) { return key.index; }

DEVICE u64 lane_xor(u64 x, int mask) { return (u64)lane_xor((long long)x, mask); }
DEVICE u32 lane_xor(u32 x, int mask) { return (u32)lane_xor((int)x, mask); }
DEVICE LongKey lane_xor(const LongKey& x, int mask) {
  LongKey y;
  y.number = lane_xor(x.number, mask);
  y.index = lane_xor(x.index, mask);
  return y;
}
DEVICE void put_key(u32 address, u64 x) { shared_put(address, (long long)x); }
DEVICE void put_key(u32 address, u32 x) { shared_put(address, (int)x); }
DEVICE void put_key(u32 address, const LongKey& x) {
  put_key(address, x.number);
  put_key(address + 8, x.index);
}
DEVICE void take_key(u32 address, u64& x) { long long y; shared_take(address, y); x = (u64)y; }
DEVICE void take_key(u32 address, u32& x) { int y; shared_take(address, y); x = (u32)y; }
DEVICE void take_key(u32 address, LongKey& x) {
  take_key(address, x.number);
  take_key(address + 8, x.index);
}

// The smaller one of two keys, or the larger one.
template <class Key> DEVICE Key chosen_key(Key a, Key b, bool is_first) { return (a < b) == is_first ? a : b; }

// Keys of one thread: places k and k ^ mask, the smaller one first.
template <int Each, class Key> DEVICE void sort_own(Key (&key)[Each], int mask) {
  UNROLL for (int k = 0; k < Each; ++k) {
    const int other = k ^ mask;
    if (other < k) continue;
    const Key a = key[k], b = key[other];
    key[k] = a < b ? a : b;
    key[other] = a < b ? b : a;
  }
}

// Each thread keeps the smaller ones of its keys and those of lane ^ mask, or the larger ones; the other's in reverse
// where runs are put together. Lanes of a warp that are `apart` exchange them by shuffles, others in shared memory.
template <int Each, int Lanes, bool IsReverse, class Key>
DEVICE void sort_lanes(Key (&key)[Each], int lane, int mask, bool is_first, int apart, u32 shared) {
  Key other[Each];
  if (Lanes <= 32 || mask < 32) {
    UNROLL for (int k = 0; k < Each; ++k) other[k] = lane_xor(key[IsReverse ? Each - 1 - k : k], mask * apart);
  } else {
    UNROLL for (int k = 0; k < Each; ++k) put_key(shared + (u32)sizeof(Key) * (u32)(k * Lanes + lane), key[k]);
    sync_cta();
    UNROLL for (int k = 0; k < Each; ++k)
      take_key(shared + (u32)sizeof(Key) * (u32)((IsReverse ? Each - 1 - k : k) * Lanes + (lane ^ mask)), other[k]);
    sync_cta();
  }
  UNROLL for (int k = 0; k < Each; ++k) key[k] = chosen_key(key[k], other[k], is_first);
}

// Sorts Each * Lanes keys, of which place lane * Each + k is key[k] of a lane: runs of twice the length each time. Only
// the first keys are asked for, those of Keep lanes: longer runs are not kept, and all lanes have copies of the first.
template <int Each, int Lanes, int Keep, class Key> DEVICE void sort_keys(Key (&key)[Each], int lane, int apart, u32 shared) {
  UNROLL for (int run = 2; run <= Each; run *= 2) {
    sort_own(key, run - 1);
    UNROLL for (int step = run / 4; step > 0; step /= 2) sort_own(key, step);
  }
  NO_UNROLL for (int lanes = 2; lanes <= Lanes; lanes *= 2) {
    const bool is_kept = lanes <= Keep;
    const int half = lanes / 2, mirrored = is_kept ? half - 1 : Keep - 1;
    sort_lanes<Each, Lanes, true>(key, lane, half + mirrored, !is_kept || (lane & half) == 0, apart, shared);
    NO_UNROLL for (int mask = (mirrored + 1) / 2; mask > 0; mask /= 2)
      sort_lanes<Each, Lanes, false>(key, lane, mask, (lane & mask) == 0, apart, shared);
    UNROLL for (int step = Each / 2; step > 0; step /= 2) sort_own(key, step);
  }
}

// The first number from `from` to `to` for which `holds` is not so, or `to`: it is so for all before and for none behind.
template <class Holds> DEVICE long long first_without(long long from, long long to, Holds holds) {
  u32 at = 0, count = to > from ? (u32)(to - from) : 0u;
  while (count > 1) {
    const u32 half = count / 2;
    if (holds(from + (long long)(at + half - 1))) at += half;
    count -= half;
  }
  if (count > 0 && holds(from + (long long)at)) at += 1;
  return from + (long long)at;
}
// The same where it is near `from`: steps twice as long each time find the part to look in.
template <class Holds> DEVICE long long first_without_near(long long from, long long to, Holds holds) {
  const u32 count = to > from ? (u32)(to - from) : 0u;
  u32 at = 0, step = 1;
  while (at + step <= count && holds(from + (long long)(at + step - 1))) {
    at += step;
    step *= 2;
  }
  return first_without(from + (long long)at, at + step <= count ? from + (long long)(at + step - 1) : to, holds);
}
