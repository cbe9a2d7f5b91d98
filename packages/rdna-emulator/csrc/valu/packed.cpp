// VOP3P operations on two halves, mixed-precision multiply-add and dot products.
#include "valu/float.hpp"

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
RDNA_INLINE T saturating_multiply_add(T a, T b, T c) {
  using E = Element<T>;
  using Wide = std::conditional_t<std::is_signed_v<E>, i32, u32>;
  using W = Like<T, Wide>;
  const W sum = convert<W>(a) * convert<W>(b) + convert<W>(c);
  constexpr Wide kLow = std::numeric_limits<E>::min(), kHigh = std::numeric_limits<E>::max();
  return convert<T>(least(greatest(sum, W(kLow)), W(kHigh)));
}

// The mixed operations come here as f32: the prologue has converted f16 sources.
void fma_mixlo(Wave& w, const Inst& i) {
  const f32x value = fused(load<f32x>(w, i, 0), load<f32x>(w, i, 1), load<f32x>(w, i, 2));
  const u32x half = convert<u32x>(bits<u16x>(convert<f16x>(value)));
  w.write(i.dst, (w.row(i.dst) & 0xffff0000u) | half);
}
void fma_mixhi(Wave& w, const Inst& i) {
  const f32x value = fused(load<f32x>(w, i, 0), load<f32x>(w, i, 1), load<f32x>(w, i, 2));
  const u32x half = convert<u32x>(bits<u16x>(convert<f16x>(value)));
  w.write(i.dst, (w.row(i.dst) & 0xffffu) | half << 16);
}

RDNA_INLINE f32x low_half(u32x x) { return convert<f32x>(bits<f16x>(convert<u16x>(x))); }
RDNA_INLINE f32x high_half(u32x x) { return convert<f32x>(bits<f16x>(convert<u16x>(x >> 16))); }
RDNA_INLINE f32x low_brain(u32x x) { return bits<f32x>(x << 16); }
RDNA_INLINE f32x high_brain(u32x x) { return bits<f32x>(x & 0xffff0000u); }

RDNA_INLINE f32x dot2_half(u32x a, u32x b, f32x c) {
  return fused(high_half(a), high_half(b), fused(low_half(a), low_half(b), c));
}
RDNA_INLINE f32x dot2_brain(u32x a, u32x b, f32x c) {
  return fused(high_brain(a), high_brain(b), fused(low_brain(a), low_brain(b), c));
}

// Field n of `width` bits, extended by its sign or by zeros.
RDNA_INLINE i32x field(u32x x, int n, int width, bool is_signed) {
  const u32x top = x << static_cast<u32>(32 - width * (n + 1));
  const u32 down = static_cast<u32>(32 - width);
  return is_signed ? bits<i32x>(top) >> static_cast<i32>(down) : bits<i32x>(top >> down);
}

template <int width>
RDNA_INLINE i32x dot(u32x a, u32x b, bool signed_a, bool signed_b) {
  i32x sum = 0;
  for (int n = 0; n < 32 / width; ++n) sum += field(a, n, width, signed_a) * field(b, n, width, signed_b);
  return sum;
}

template <int width, bool saturate>
void dot_signs(Wave& w, const Inst& i) {  // neg_lo says which sources are signed
  const u32x a = load<u32x>(w, i, 0), b = load<u32x>(w, i, 1);
  const i32x c = load<i32x>(w, i, 2);
  i32x sum;
  switch (i.info->neg_lo & 3) {
    case 0: sum = dot<width>(a, b, false, false); break;
    case 1: sum = dot<width>(a, b, true, false); break;
    case 2: sum = dot<width>(a, b, false, true); break;
    default: sum = dot<width>(a, b, true, true); break;
  }
  w.write(i.dst, saturate ? __builtin_elementwise_add_sat(sum, c) : bits<i32x>(bits<u32x>(sum) + bits<u32x>(c)));
}

template <int width>
RDNA_INLINE u32x dot_unsigned(u32x a, u32x b) {
  return bits<u32x>(dot<width>(a, b, false, false));
}

const Registration registration{
    {"v_pk_mad_i16", operation<[](u16h a, u16h b, u16h c) { return a * b + c; }>},
    {"v_pk_mad_u16", operation<[](u16h a, u16h b, u16h c) { return a * b + c; }>},
    {"v_pk_mad_i16.clamp", operation<[](i16h a, i16h b, i16h c) { return saturating_multiply_add(a, b, c); }>},
    {"v_pk_mad_u16.clamp", operation<[](u16h a, u16h b, u16h c) { return saturating_multiply_add(a, b, c); }>},
    {"v_pk_mul_lo_u16", operation<[](u16h a, u16h b) { return a * b; }>},
    {"v_pk_add_i16", operation<[](u16h a, u16h b) { return a + b; }>},
    {"v_pk_sub_i16", operation<[](u16h a, u16h b) { return a - b; }>},
    {"v_pk_add_u16", operation<[](u16h a, u16h b) { return a + b; }>},
    {"v_pk_sub_u16", operation<[](u16h a, u16h b) { return a - b; }>},
    {"v_pk_add_i16.clamp", operation<[](i16h a, i16h b) { return __builtin_elementwise_add_sat(a, b); }>},
    {"v_pk_sub_i16.clamp", operation<[](i16h a, i16h b) { return __builtin_elementwise_sub_sat(a, b); }>},
    {"v_pk_add_u16.clamp", operation<[](u16h a, u16h b) { return __builtin_elementwise_add_sat(a, b); }>},
    {"v_pk_sub_u16.clamp", operation<[](u16h a, u16h b) { return __builtin_elementwise_sub_sat(a, b); }>},
    {"v_pk_lshlrev_b16", operation<[](u16h a, u16h b) { return b << (a & u16(15)); }>},
    {"v_pk_lshrrev_b16", operation<[](u16h a, u16h b) { return b >> (a & u16(15)); }>},
    {"v_pk_ashrrev_i16", operation<[](i16h a, i16h b) { return b >> (a & i16(15)); }>},
    {"v_pk_min_i16", operation<[](i16h a, i16h b) { return least(a, b); }>},
    {"v_pk_max_i16", operation<[](i16h a, i16h b) { return greatest(a, b); }>},
    {"v_pk_min_u16", operation<[](u16h a, u16h b) { return least(a, b); }>},
    {"v_pk_max_u16", operation<[](u16h a, u16h b) { return greatest(a, b); }>},
    {"v_pk_add_f16", operation<[](f16h a, f16h b) { return a + b; }>},
    {"v_pk_mul_f16", operation<[](f16h a, f16h b) { return a * b; }>},
    {"v_pk_min_f16", operation<[](f16h a, f16h b) { return minimum(a, b); }>},
    {"v_pk_max_f16", operation<[](f16h a, f16h b) { return maximum(a, b); }>},
    {"v_pk_fma_f16", operation<[](f16h a, f16h b, f16h c) { return fused_half(a, b, c); }>},
    {"v_pk_fmac_f16", operation<[](f16h a, f16h b, f16h c) { return fused_half(a, b, c); }>},
    {"v_fma_mix_f32", operation<[](f32x a, f32x b, f32x c) { return fused(a, b, c); }>},
    {"v_fma_mixlo_f16", fma_mixlo},
    {"v_fma_mixhi_f16", fma_mixhi},
    {"v_dot2_f32_f16", operation<[](u32x a, u32x b, f32x c) { return dot2_half(a, b, c); }>},
    {"v_dot2_f32_bf16", operation<[](u32x a, u32x b, f32x c) { return dot2_brain(a, b, c); }>},
    {"v_dot2acc_f32_f16", operation<[](u32x a, u32x b, f32x c) { return dot2_half(a, b, c); }>},
    {"v_dot2acc_f32_bf16", operation<[](u32x a, u32x b, f32x c) { return dot2_brain(a, b, c); }>},
    {"v_dot2_f16_f16", operation<[](u32x a, u32x b, f16x c) {
       return convert<f16x>(dot2_half(a, b, convert<f32x>(c)));
     }>},
    {"v_dot2_bf16_bf16", operation<[](u32x a, u32x b, u16x c) {
       return to_brain(dot2_brain(a, b, bits<f32x>(convert<u32x>(c) << 16)));
     }>},
    {"v_dot4_i32_iu8", dot_signs<8, false>},
    {"v_dot4_i32_iu8.clamp", dot_signs<8, true>},
    {"v_dot8_i32_iu4", dot_signs<4, false>},
    {"v_dot8_i32_iu4.clamp", dot_signs<4, true>},
    {"v_dot4_u32_u8", operation<[](u32x a, u32x b, u32x c) { return dot_unsigned<8>(a, b) + c; }>},
    {"v_dot8_u32_u4", operation<[](u32x a, u32x b, u32x c) { return dot_unsigned<4>(a, b) + c; }>},
    {"v_dot4_u32_u8.clamp",
     operation<[](u32x a, u32x b, u32x c) { return __builtin_elementwise_add_sat(dot_unsigned<8>(a, b), c); }>},
    {"v_dot8_u32_u4.clamp",
     operation<[](u32x a, u32x b, u32x c) { return __builtin_elementwise_add_sat(dot_unsigned<4>(a, b), c); }>},
};

}  // namespace
}  // namespace rdna
