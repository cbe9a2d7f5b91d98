// 16-bit integer operations: results keep the other half of their register.
#include "valu/lanes.hpp"

namespace rdna {
namespace {

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

const Registration registration{
    {"v_not_b16", operation<[](u16x a) { return ~a; }>},
    {"v_and_b16", operation<[](u16x a, u16x b) { return a & b; }>},
    {"v_or_b16", operation<[](u16x a, u16x b) { return a | b; }>},
    {"v_xor_b16", operation<[](u16x a, u16x b) { return a ^ b; }>},
    {"v_lshlrev_b16", operation<[](u16x a, u16x b) { return b << (a & u16(15)); }>},
    {"v_lshrrev_b16", operation<[](u16x a, u16x b) { return b >> (a & u16(15)); }>},
    {"v_ashrrev_i16", operation<[](i16x a, i16x b) { return b >> (a & i16(15)); }>},
    {"v_add_nc_u16", operation<[](u16x a, u16x b) { return a + b; }>},
    {"v_sub_nc_u16", operation<[](u16x a, u16x b) { return a - b; }>},
    {"v_add_nc_i16", operation<[](u16x a, u16x b) { return a + b; }>},
    {"v_sub_nc_i16", operation<[](u16x a, u16x b) { return a - b; }>},
    {"v_add_nc_u16.clamp", operation<[](u16x a, u16x b) { return __builtin_elementwise_add_sat(a, b); }>},
    {"v_sub_nc_u16.clamp", operation<[](u16x a, u16x b) { return __builtin_elementwise_sub_sat(a, b); }>},
    {"v_add_nc_i16.clamp", operation<[](i16x a, i16x b) { return __builtin_elementwise_add_sat(a, b); }>},
    {"v_sub_nc_i16.clamp", operation<[](i16x a, i16x b) { return __builtin_elementwise_sub_sat(a, b); }>},
    {"v_mul_lo_u16", operation<[](u16x a, u16x b) { return a * b; }>},
    {"v_mad_u16", operation<[](u16x a, u16x b, u16x c) { return a * b + c; }>},
    {"v_mad_i16", operation<[](u16x a, u16x b, u16x c) { return a * b + c; }>},
    {"v_mad_u16.clamp", operation<[](u16x a, u16x b, u16x c) {
       // a * b + c fits in 32 bits: 65535 * 65535 + 65535 = 65535 * 65536.
       const u32x sum = convert<u32x>(a) * convert<u32x>(b) + convert<u32x>(c);
       return convert<u16x>(least(sum, u32x(0xffffu)));
     }>},
    {"v_mad_i16.clamp", operation<[](i16x a, i16x b, i16x c) {
       const i32x sum = convert<i32x>(a) * convert<i32x>(b) + convert<i32x>(c);
       return convert<i16x>(least(greatest(sum, i32x(-32768)), i32x(32767)));
     }>},
    {"v_min_u16", operation<[](u16x a, u16x b) { return least(a, b); }>},
    {"v_max_u16", operation<[](u16x a, u16x b) { return greatest(a, b); }>},
    {"v_min_i16", operation<[](i16x a, i16x b) { return least(a, b); }>},
    {"v_max_i16", operation<[](i16x a, i16x b) { return greatest(a, b); }>},
    {"v_min3_u16", operation<[](u16x a, u16x b, u16x c) { return least(least(a, b), c); }>},
    {"v_max3_u16", operation<[](u16x a, u16x b, u16x c) { return greatest(greatest(a, b), c); }>},
    {"v_med3_u16", operation<[](u16x a, u16x b, u16x c) { return median(a, b, c); }>},
    {"v_min3_i16", operation<[](i16x a, i16x b, i16x c) { return least(least(a, b), c); }>},
    {"v_max3_i16", operation<[](i16x a, i16x b, i16x c) { return greatest(greatest(a, b), c); }>},
    {"v_med3_i16", operation<[](i16x a, i16x b, i16x c) { return median(a, b, c); }>},
};

}  // namespace
}  // namespace rdna
