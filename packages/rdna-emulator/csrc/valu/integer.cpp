// 32-bit integer and bit operations.
#include <iterator>

#include "valu/lanes.hpp"

namespace rdna {
namespace {

RDNA_INLINE i32x signed24(i32x x) { return (x << 8) >> 8; }
RDNA_INLINE u32x unsigned24(u32x x) { return x & 0xffffffu; }
RDNA_INLINE u32x low32(u64x x) { return convert<u32x>(x); }
RDNA_INLINE u32x high32(u64x x) { return convert<u32x>(x >> 32); }
RDNA_INLINE i64x wide(i32x x) { return convert<i64x>(x); }
RDNA_INLINE u64x wide(u32x x) { return convert<u64x>(x); }

template <class T>
RDNA_INLINE T least(T a, T b) {
  return __builtin_elementwise_min(a, b);
}
template <class T>
RDNA_INLINE T greatest(T a, T b) {
  return __builtin_elementwise_max(a, b);
}
template <class T>
RDNA_INLINE T median(T a, T b, T c) {
  return greatest(least(a, b), least(greatest(a, b), c));
}

// Most significant bit first; the width for zero.
RDNA_INLINE u32x leading_zeros(u32x x) { return __builtin_elementwise_clzg(x, u32x(32u)); }

RDNA_INLINE u32x field_mask(u32x width) { return (u32x(1u) << (width & 31u)) - 1u; }

// Byte `n` of each lane.
RDNA_INLINE u32x byte(u32x x, int n) { return (x >> static_cast<u32>(8 * n)) & 0xffu; }

// One byte of v_perm: selectors 0-3 take a byte of `low`, 4-7 of `high`, 8-11 the sign of every second byte, 12 is 0x00, above 0xff.
RDNA_INLINE u32x selected_byte(u32x high, u32x low, u32x selector) {
  const u32x from = (selector & 4u) != 0u ? high : low;
  const u32x plain = (from >> ((selector & 3u) * 8u)) & 0xffu;
  const u32x signs = (selector & 2u) != 0u ? high : low;
  const u32x sign = ((signs >> ((selector & 1u) * 16u + 15u)) & 1u) * 0xffu;
  return selector < 8u ? plain : selector < 12u ? sign : selector == 12u ? u32x(0u) : u32x(0xffu);
}

// Byte n of a lane is byte index[n] of the same lane of x; 0 where the index has bit 7.
RDNA_INLINE u32x bytes_of_lane(u32x x, u32x index) {
#if __AVX512BW__
  using Host = __m512i;
  const auto shuffled = [](Host value, Host from) RDNA_LAMBDA_INLINE { return _mm512_shuffle_epi8(value, from); };
#elif __AVX2__
  using Host = __m256i;
  const auto shuffled = [](Host value, Host from) RDNA_LAMBDA_INLINE { return _mm256_shuffle_epi8(value, from); };
#else
  u32x result = 0u;
  for (u32 n = 0; n < 32; n += 8) {
    const u32x from = index >> n & 0xffu;
    result |= (from < 4u ? (x >> (from & 3u) * 8u) & 0xffu : u32x(0u)) << n;
  }
  return result;
#endif
#if __AVX2__
  index |= (kLaneIndex & 3u) * 0x04040404u;  // the host counts the bytes of four lanes
  alignas(128) Host values[sizeof x / sizeof(Host)], indices[sizeof x / sizeof(Host)];
  std::memcpy(values, &x, sizeof x);
  std::memcpy(indices, &index, sizeof index);
  for (std::size_t n = 0; n < std::size(values); ++n) values[n] = shuffled(values[n], indices[n]);
  std::memcpy(&x, values, sizeof x);
  return x;
#endif
}

RDNA_INLINE u32x permute_bytes(u32x high, u32x low, u32x selectors) {
  u32x result = 0u;
  if (__builtin_reduce_or(selectors & 0xf8f8f8f8u) == 0u) {  // no signs and constants
    const u32x from = selectors & 0x03030303u, upper = (selectors & 0x04040404u) << 5u;
    return bytes_of_lane(low, from | upper) | bytes_of_lane(high, from | (upper ^ 0x80808080u));
  }
  for (int n = 0; n < 4; ++n) result |= selected_byte(high, low, byte(selectors, n)) << static_cast<u32>(8 * n);
  return result;
}

RDNA_INLINE i32x signed_field(i32x x, u32x offset, u32x width) {
  const u32x n = width & 31u;
  const i32x shifted = bits<i32x>(bits<u32x>(x >> bits<i32x>(offset & 31u)) << ((32u - n) & 31u));
  return n == 0u ? i32x(0) : shifted >> bits<i32x>((32u - n) & 31u);
}

template <bool kSubtract>
RDNA_INLINE void carry_operation(Wave& w, const Inst& i, int first, int second, bool with_carry) {
  const u32x a = w.vector_source<u32x>(i, first), b = w.vector_source<u32x>(i, second);
  const u32 active = w.exec();
  u32x result = kSubtract ? a - b : a + b;
  u32x carry = bits<u32x>(kSubtract ? a < b : result < a);
  if (with_carry) {
    const u32x in = lane_mask(w.s[i.smask]);
    const u32x before = result;
    result = kSubtract ? result + in : result - in;  // `in` is 0 or -1
    carry |= bits<u32x>(kSubtract ? before < result : result < before);
  }
  w.write(i.dst, result);
  w.s[i.sdst] = lane_bits(bits<i32x>(carry)) & active;
}

void add_co(Wave& w, const Inst& i) { carry_operation<false>(w, i, 0, 1, false); }
void sub_co(Wave& w, const Inst& i) { carry_operation<true>(w, i, 0, 1, false); }
void subrev_co(Wave& w, const Inst& i) { carry_operation<true>(w, i, 1, 0, false); }
void add_co_ci(Wave& w, const Inst& i) { carry_operation<false>(w, i, 0, 1, true); }
void sub_co_ci(Wave& w, const Inst& i) { carry_operation<true>(w, i, 0, 1, true); }
void subrev_co_ci(Wave& w, const Inst& i) { carry_operation<true>(w, i, 1, 0, true); }

const Registration registration{
    {"v_not_b32", operation<[](u32x a) { return ~a; }>},
    {"v_bfrev_b32", operation<[](u32x a) { return __builtin_elementwise_bitreverse(a); }>},
    {"v_clz_i32_u32", operation<[](u32x a) { return a == 0u ? u32x(~0u) : leading_zeros(a); }>},
    {"v_ctz_i32_b32",
     operation<[](u32x a) { return a == 0u ? u32x(~0u) : __builtin_elementwise_popcount(~a & (a - 1u)); }>},
    {"v_cls_i32", operation<[](i32x a) {
       const u32x changed = bits<u32x>(a ^ (a >> 31));
       return changed == 0u ? u32x(~0u) : leading_zeros(changed);
     }>},
    {"v_and_b32", operation<[](u32x a, u32x b) { return a & b; }>},
    {"v_or_b32", operation<[](u32x a, u32x b) { return a | b; }>},
    {"v_xor_b32", operation<[](u32x a, u32x b) { return a ^ b; }>},
    {"v_xnor_b32", operation<[](u32x a, u32x b) { return ~(a ^ b); }>},
    {"v_lshlrev_b32", operation<[](u32x a, u32x b) { return b << (a & 31u); }>},
    {"v_lshrrev_b32", operation<[](u32x a, u32x b) { return b >> (a & 31u); }>},
    {"v_ashrrev_i32", operation<[](i32x a, i32x b) { return b >> (a & 31); }>},
    {"v_add_nc_u32", operation<[](u32x a, u32x b) { return a + b; }>},
    {"v_sub_nc_u32", operation<[](u32x a, u32x b) { return a - b; }>},
    {"v_subrev_nc_u32", operation<[](u32x a, u32x b) { return b - a; }>},
    {"v_add_nc_i32", operation<[](u32x a, u32x b) { return a + b; }>},
    {"v_sub_nc_i32", operation<[](u32x a, u32x b) { return a - b; }>},
    {"v_add_nc_u32.clamp", operation<[](u32x a, u32x b) { return __builtin_elementwise_add_sat(a, b); }>},
    {"v_sub_nc_u32.clamp", operation<[](u32x a, u32x b) { return __builtin_elementwise_sub_sat(a, b); }>},
    {"v_subrev_nc_u32.clamp", operation<[](u32x a, u32x b) { return __builtin_elementwise_sub_sat(b, a); }>},
    {"v_add_nc_i32.clamp", operation<[](i32x a, i32x b) { return __builtin_elementwise_add_sat(a, b); }>},
    {"v_sub_nc_i32.clamp", operation<[](i32x a, i32x b) { return __builtin_elementwise_sub_sat(a, b); }>},
    {"v_add_co_u32", add_co},
    {"v_sub_co_u32", sub_co},
    {"v_subrev_co_u32", subrev_co},
    {"v_add_co_ci_u32", add_co_ci},
    {"v_sub_co_ci_u32", sub_co_ci},
    {"v_subrev_co_ci_u32", subrev_co_ci},
    {"v_min_i32", operation<[](i32x a, i32x b) { return least(a, b); }>},
    {"v_max_i32", operation<[](i32x a, i32x b) { return greatest(a, b); }>},
    {"v_min_u32", operation<[](u32x a, u32x b) { return least(a, b); }>},
    {"v_max_u32", operation<[](u32x a, u32x b) { return greatest(a, b); }>},
    {"v_min3_i32", operation<[](i32x a, i32x b, i32x c) { return least(least(a, b), c); }>},
    {"v_max3_i32", operation<[](i32x a, i32x b, i32x c) { return greatest(greatest(a, b), c); }>},
    {"v_med3_i32", operation<[](i32x a, i32x b, i32x c) { return median(a, b, c); }>},
    {"v_min3_u32", operation<[](u32x a, u32x b, u32x c) { return least(least(a, b), c); }>},
    {"v_max3_u32", operation<[](u32x a, u32x b, u32x c) { return greatest(greatest(a, b), c); }>},
    {"v_med3_u32", operation<[](u32x a, u32x b, u32x c) { return median(a, b, c); }>},
    {"v_maxmin_i32", operation<[](i32x a, i32x b, i32x c) { return least(greatest(a, b), c); }>},
    {"v_minmax_i32", operation<[](i32x a, i32x b, i32x c) { return greatest(least(a, b), c); }>},
    {"v_maxmin_u32", operation<[](u32x a, u32x b, u32x c) { return least(greatest(a, b), c); }>},
    {"v_minmax_u32", operation<[](u32x a, u32x b, u32x c) { return greatest(least(a, b), c); }>},
    {"v_mul_lo_u32", operation<[](u32x a, u32x b) { return a * b; }>},
    {"v_mul_hi_u32", operation<[](u32x a, u32x b) { return high32(wide(a) * wide(b)); }>},
    {"v_mul_hi_i32", operation<[](i32x a, i32x b) { return high32(bits<u64x>(wide(a) * wide(b))); }>},
    {"v_mul_i32_i24", operation<[](i32x a, i32x b) { return bits<u32x>(signed24(a)) * bits<u32x>(signed24(b)); }>},
    {"v_mul_hi_i32_i24",
     operation<[](i32x a, i32x b) { return high32(bits<u64x>(wide(signed24(a)) * wide(signed24(b)))); }>},
    {"v_mul_u32_u24", operation<[](u32x a, u32x b) { return unsigned24(a) * unsigned24(b); }>},
    {"v_mul_hi_u32_u24",
     operation<[](u32x a, u32x b) { return high32(wide(unsigned24(a)) * wide(unsigned24(b))); }>},
    {"v_mad_i32_i24",
     operation<[](i32x a, i32x b, u32x c) { return bits<u32x>(signed24(a)) * bits<u32x>(signed24(b)) + c; }>},
    {"v_mad_u32_u24", operation<[](u32x a, u32x b, u32x c) { return unsigned24(a) * unsigned24(b) + c; }>},
    {"v_mad_i32_i24.clamp", operation<[](i32x a, i32x b, i32x c) {
       const i64x sum = wide(signed24(a)) * wide(signed24(b)) + wide(c);
       return convert<i32x>(least(greatest(sum, i64x(-0x80000000ll)), i64x(0x7fffffffll)));
     }>},
    {"v_mad_u32_u24.clamp", operation<[](u32x a, u32x b, u32x c) {
       return low32(least(wide(unsigned24(a)) * wide(unsigned24(b)) + wide(c), u64x(0xffffffffull)));
     }>},
    {"v_mad_u32_u16",
     operation<[](u16x a, u16x b, u32x c) { return convert<u32x>(a) * convert<u32x>(b) + c; }>},
    {"v_mad_i32_i16", operation<[](i16x a, i16x b, u32x c) {
       return bits<u32x>(convert<i32x>(a) * convert<i32x>(b)) + c;
     }>},
    {"v_bfe_u32", operation<[](u32x a, u32x b, u32x c) { return (a >> (b & 31u)) & field_mask(c); }>},
    {"v_bfe_i32", operation<[](i32x a, u32x b, u32x c) { return signed_field(a, b, c); }>},
    {"v_bfi_b32", operation<[](u32x a, u32x b, u32x c) { return (a & b) | (~a & c); }>},
    {"v_bfm_b32", operation<[](u32x a, u32x b) { return field_mask(a) << (b & 31u); }>},
    {"v_alignbit_b32",
     operation<[](u32x a, u32x b, u32x c) { return (b >> (c & 31u)) | ((a << 1) << (31u - (c & 31u))); }>},
    {"v_alignbyte_b32", operation<[](u32x a, u32x b, u32x c) {
       const u32x n = (c & 3u) * 8u;
       return (b >> n) | ((a << 1) << (31u - n));
     }>},
    {"v_perm_b32", operation<[](u32x a, u32x b, u32x c) { return permute_bytes(a, b, c); }>},
    {"v_lshl_add_u32", operation<[](u32x a, u32x b, u32x c) { return (a << (b & 31u)) + c; }>},
    {"v_add_lshl_u32", operation<[](u32x a, u32x b, u32x c) { return (a + b) << (c & 31u); }>},
    {"v_lshl_or_b32", operation<[](u32x a, u32x b, u32x c) { return (a << (b & 31u)) | c; }>},
    {"v_add3_u32", operation<[](u32x a, u32x b, u32x c) { return a + b + c; }>},
    {"v_and_or_b32", operation<[](u32x a, u32x b, u32x c) { return (a & b) | c; }>},
    {"v_or3_b32", operation<[](u32x a, u32x b, u32x c) { return a | b | c; }>},
    {"v_xor3_b32", operation<[](u32x a, u32x b, u32x c) { return a ^ b ^ c; }>},
    {"v_xad_u32", operation<[](u32x a, u32x b, u32x c) { return (a ^ b) + c; }>},
    {"v_bcnt_u32_b32", operation<[](u32x a, u32x b) { return __builtin_elementwise_popcount(a) + b; }>},
    {"v_mbcnt_lo_u32_b32",
     operation<[](u32x a, u32x b) { return __builtin_elementwise_popcount(a & (kLaneBit - 1u)) + b; }>},
    {"v_mbcnt_hi_u32_b32", operation<[](u32x, u32x b) { return b; }>},
};

}  // namespace
}  // namespace rdna
