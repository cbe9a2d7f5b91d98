// Conversions between number formats. Float to integer saturates and gives 0 for NaN.
#include "valu/float.hpp"

namespace rdna {
namespace {

RDNA_INLINE f32x wide(f16x x) { return convert<f32x>(x); }
RDNA_INLINE f16x narrow(f32x x) { return convert<f16x>(x); }

template <int n>
RDNA_INLINE f32x byte_to_float(u32x x) {
  return convert<f32x>(bits<i32x>((x >> static_cast<u32>(8 * n)) & 0xffu));
}

// Toward zero: where the nearest f16 is larger in magnitude, the one below it (from infinity, the largest finite one).
RDNA_INLINE u16x truncated_half(f32x x) {
  const f16x nearest = narrow(x);
  const i32x over = absolute(wide(nearest)) > absolute(x);
  return bits<u16x>(nearest) + bits<u16x>(convert<i16x>(over));
}

// [-1, 1] to [-32767, 32767] and [0, 1] to [0, 65535], to nearest.
RDNA_INLINE i16x signed_normalized(f32x x) {
  const f32x number = x == x ? x : f32x(0.0f);
  const f32x bounded = __builtin_elementwise_max(__builtin_elementwise_min(number, f32x(1.0f)), f32x(-1.0f));
  return convert<i16x>(convert<i32x>(__builtin_elementwise_roundeven(bounded * 32767.0f)));
}
RDNA_INLINE u16x unsigned_normalized(f32x x) {
  const f32x number = x == x ? x : f32x(0.0f);
  const f32x bounded = __builtin_elementwise_max(__builtin_elementwise_min(number, f32x(1.0f)), f32x(0.0f));
  return convert<u16x>(convert<i32x>(__builtin_elementwise_roundeven(bounded * 65535.0f)));
}

template <class T>
RDNA_INLINE u32x pack(T low, T high) {
  return convert<u32x>(bits<u16x>(low)) | convert<u32x>(bits<u16x>(high)) << 16;
}

RDNA_INLINE u16x saturated_u16(u32x x) { return convert<u16x>(__builtin_elementwise_min(x, u32x(0xffffu))); }
RDNA_INLINE i16x saturated_i16(i32x x) {
  return convert<i16x>(__builtin_elementwise_max(__builtin_elementwise_min(x, i32x(32767)), i32x(-32768)));
}

RDNA_INLINE u16x half_to_u16(f16x x) {
  const i32x value = __builtin_elementwise_max(to_integer<i32>(wide(x)), i32x(0));
  return saturated_u16(bits<u32x>(value));
}

RDNA_INLINE u32x saturated_byte(u32x half) {  // of a signed 16-bit value
  const i32x value = bits<i32x>(half << 16) >> 16;
  return bits<u32x>(__builtin_elementwise_max(__builtin_elementwise_min(value, i32x(255)), i32x(0)));
}

RDNA_INLINE u32x insert_byte(f32x x, u32x position, u32x into) {
  const u32x shift = (position & 3u) * 8u;
  const u32x value = __builtin_elementwise_min(to_integer<u32>(x), u32x(255u));
  return (into & ~(u32x(0xffu) << shift)) | value << shift;
}

const Registration registration{
    {"v_cvt_f32_i32", operation<[](i32x a) { return convert<f32x>(a); }>},
    {"v_cvt_f32_u32", operation<[](u32x a) { return convert<f32x>(a); }>},
    {"v_cvt_i32_f32", operation<[](f32x a) { return to_integer<i32>(a); }>},
    {"v_cvt_u32_f32", operation<[](f32x a) { return to_integer<u32>(a); }>},
    {"v_cvt_nearest_i32_f32",
     operation<[](f32x a) { return to_integer<i32>(__builtin_elementwise_floor(a + 0.5f)); }>},
    {"v_cvt_floor_i32_f32", operation<[](f32x a) { return to_integer<i32>(__builtin_elementwise_floor(a)); }>},
    {"v_cvt_f16_f32", operation<[](f32x a) { return narrow(a); }>},
    {"v_cvt_f32_f16", operation<[](f16x a) { return wide(a); }>},
    {"v_cvt_f32_f64", operation<[](f64x a) { return convert<f32x>(a); }>},
    {"v_cvt_f64_f32", operation<[](f32x a) { return convert<f64x>(a); }>},
    {"v_cvt_f64_i32", operation<[](i32x a) { return convert<f64x>(a); }>},
    {"v_cvt_f64_u32", operation<[](u32x a) { return convert<f64x>(a); }>},
    {"v_cvt_i32_f64", operation<[](f64x a) { return to_integer<i32>(a); }>},
    {"v_cvt_u32_f64", operation<[](f64x a) { return to_integer<u32>(a); }>},
    {"v_cvt_f32_ubyte0", operation<[](u32x a) { return byte_to_float<0>(a); }>},
    {"v_cvt_f32_ubyte1", operation<[](u32x a) { return byte_to_float<1>(a); }>},
    {"v_cvt_f32_ubyte2", operation<[](u32x a) { return byte_to_float<2>(a); }>},
    {"v_cvt_f32_ubyte3", operation<[](u32x a) { return byte_to_float<3>(a); }>},
    {"v_cvt_off_f32_i4",
     operation<[](u32x a) { return convert<f32x>(bits<i32x>(a << 28) >> 28) * 0.0625f; }>},
    {"v_cvt_f16_u16", operation<[](u16x a) { return narrow(convert<f32x>(convert<i32x>(a))); }>},
    {"v_cvt_f16_i16", operation<[](i16x a) { return narrow(convert<f32x>(convert<i32x>(a))); }>},
    {"v_cvt_u16_f16", operation<[](f16x a) { return half_to_u16(a); }>},
    {"v_cvt_i16_f16", operation<[](f16x a) { return saturated_i16(to_integer<i32>(wide(a))); }>},
    {"v_cvt_i32_i16", operation<[](i16x a) { return convert<i32x>(a); }>},
    {"v_cvt_u32_u16", operation<[](u16x a) { return convert<u32x>(a); }>},
    {"v_cvt_norm_i16_f16", operation<[](f16x a) { return signed_normalized(wide(a)); }>},
    {"v_cvt_norm_u16_f16", operation<[](f16x a) { return unsigned_normalized(wide(a)); }>},
    {"v_cvt_pk_norm_i16_f16",
     operation<[](f16x a, f16x b) { return pack(signed_normalized(wide(a)), signed_normalized(wide(b))); }>},
    {"v_cvt_pk_norm_u16_f16",
     operation<[](f16x a, f16x b) { return pack(unsigned_normalized(wide(a)), unsigned_normalized(wide(b))); }>},
    {"v_cvt_pk_norm_i16_f32",
     operation<[](f32x a, f32x b) { return pack(signed_normalized(a), signed_normalized(b)); }>},
    {"v_cvt_pk_norm_u16_f32",
     operation<[](f32x a, f32x b) { return pack(unsigned_normalized(a), unsigned_normalized(b)); }>},
    {"v_cvt_pk_rtz_f16_f32", operation<[](f32x a, f32x b) { return pack(truncated_half(a), truncated_half(b)); }>},
    {"v_cvt_pk_i16_f32", operation<[](f32x a, f32x b) { return pack(to_integer<i16>(a), to_integer<i16>(b)); }>},
    {"v_cvt_pk_u16_f32", operation<[](f32x a, f32x b) { return pack(to_integer<u16>(a), to_integer<u16>(b)); }>},
    {"v_cvt_pk_u16_u32", operation<[](u32x a, u32x b) { return pack(saturated_u16(a), saturated_u16(b)); }>},
    {"v_cvt_pk_i16_i32", operation<[](i32x a, i32x b) { return pack(saturated_i16(a), saturated_i16(b)); }>},
    {"v_cvt_pk_u8_f32", operation<[](f32x a, u32x b, u32x c) { return insert_byte(a, b, c); }>},
    {"v_sat_pk_u8_i16",
     operation<[](u32x a) { return convert<u16x>(saturated_byte(a & 0xffffu) | saturated_byte(a >> 16) << 8); }>},
};

}  // namespace
}  // namespace rdna
