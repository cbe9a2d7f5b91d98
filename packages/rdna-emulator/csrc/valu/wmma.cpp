// Matrix multiply-accumulate of wave32: D (16x16) = A (16x16) B (16x16) + C.
//
// Lane l = 16 h + c holds row c of A and column c of B, k = 0..15. Each half h of the wave makes its own rows of D from its
// own lanes: element j of lane l is D[2j + h][c], made of A in lane 16 h + 2j + h and of B in lane l. The sums are exact
// or nearly so (f64 for products of 16-bit floats, f32 for products of small integers) and rounded once.
#include <string>

#include "valu/float.hpp"

namespace rdna {
namespace {

constexpr int kDepth = 16, kResults = 8, kHalf = 16;

// Rows of A that a half uses, row 2j + h of half h at [8 h + j]; columns of B by lane. Both by k.
template <class T>
struct alignas(256) Factors {
  T a[kDepth][kHalf];
  T b[kDepth][kLanes];
};

template <class T>
using Block = T __attribute__((ext_vector_type(kHalf)));

// The sums of one half: kRows results at a time, in `kWidth` lanes, so that they stay in registers.
template <class T>
RDNA_INLINE void multiply_half(const Factors<T>& f, int h, T (&sums)[kResults][kLanes]) {
#if __AVX512F__
  constexpr int kRows = 8, kWidth = 128 / sizeof(T);  // 16 registers of sums
#else
  constexpr int kRows = 4, kWidth = 64 / sizeof(T);  // 8 registers
#endif
  constexpr int kColumns = kWidth < kHalf ? kWidth : kHalf;
  using V = T __attribute__((ext_vector_type(kColumns), aligned(32)));
  for (int c = 0; c < kHalf; c += kColumns) {
    for (int j = 0; j < kResults; j += kRows) {
      V sum[kRows];
      for (int r = 0; r < kRows; ++r) sum[r] = *reinterpret_cast<const V*>(&sums[j + r][kHalf * h + c]);
#pragma clang loop unroll(disable)
      for (int k = 0; k < kDepth; ++k) {
        const V column = *reinterpret_cast<const V*>(&f.b[k][kHalf * h + c]);
        for (int r = 0; r < kRows; ++r) sum[r] = __builtin_elementwise_fma(V(f.a[k][8 * h + j + r]), column, sum[r]);
      }
      for (int r = 0; r < kRows; ++r) *reinterpret_cast<V*>(&sums[j + r][kHalf * h + c]) = sum[r];
    }
  }
}

template <class T>
RDNA_INLINE void multiply(const Factors<T>& f, T (&sums)[kResults][kLanes]) {
  multiply_half(f, 0, sums);
  multiply_half(f, 1, sums);
}

// Lanes of a register of A that are used: 0, 2, .. 14 by the lower half, 17, 19, .. 31 by the upper.
template <class Row>
RDNA_INLINE auto used_rows(Row row) {
  return __builtin_shufflevector(row, row, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
}

// f32 rounded to odd: a second rounding, to a 16-bit format, is then the only one.
RDNA_INLINE f32x to_odd(f64x x) {
  const f32x near = convert<f32x>(x);
  const f64x back = convert<f64x>(near);
  const i32x inexact = convert<i32x>((back < x) | (back > x));
  const i32x away = convert<i32x>(absolute(back) > absolute(x));
  const i32x even = (bits<i32x>(near) & 1) - 1;
  const i32x step = away != 0 ? i32x(-1) : i32x(1);
  return bits<f32x>(bits<i32x>(near) + (step & inexact & even));
}

struct Half {  // f16 pairs
  template <class Row>
  RDNA_INLINE static auto low(Row x) {
    return convert<Like<Row, float>>(bits<Like<Row, f16>>(convert<Like<Row, u16>>(x)));
  }
  template <class Row>
  RDNA_INLINE static auto high(Row x) {
    return low(x >> 16);
  }
  RDNA_INLINE static u16x rounded(f64x x) {
    return bits<u16x>(convert<f16x>(to_odd(x)));
  }
  RDNA_INLINE static f32x wide(u32x x) { return low(x); }
};

struct Brain {  // bfloat16 pairs
  template <class Row>
  RDNA_INLINE static auto low(Row x) {
    return bits<Like<Row, float>>(x << 16);
  }
  template <class Row>
  RDNA_INLINE static auto high(Row x) {
    return bits<Like<Row, float>>(x & 0xffff0000u);
  }
  RDNA_INLINE static u16x rounded(f64x x) {
    return to_brain(to_odd(x));
  }
  RDNA_INLINE static f32x wide(u32x x) { return low(x); }
};

RDNA_INLINE u32 sign_mask(const InstInfo& info, int k) {
  return (info.neg_lo >> k & 1 ? 0x8000u : 0u) | (info.neg_hi >> k & 1 ? 0x80000000u : 0u);
}

template <class Format>
RDNA_INLINE void load_factors(Wave& w, const InstInfo& info, Factors<double>& f) {
  const u32 signs_a = sign_mask(info, 0), signs_b = sign_mask(info, 1);
  for (int r = 0; r < kDepth / 2; ++r) {
    const u32x column = w.row(info.src[1].reg + r) ^ signs_b;
    *reinterpret_cast<f64x*>(f.b[2 * r]) = convert<f64x>(Format::low(column));
    *reinterpret_cast<f64x*>(f.b[2 * r + 1]) = convert<f64x>(Format::high(column));
    const auto rows = used_rows(w.row(info.src[0].reg + r)) ^ signs_a;
    *reinterpret_cast<Block<double>*>(f.a[2 * r]) = convert<Block<double>>(Format::low(rows));
    *reinterpret_cast<Block<double>*>(f.a[2 * r + 1]) = convert<Block<double>>(Format::high(rows));
  }
}

void require_all_lanes(Wave& w, const Inst& i) {
  if (w.exec() != ~0u) trap(w, i, Fault::divergence, -1, "WMMA needs all 32 lanes active in EXEC");
}

// Register j of C: eight registers, or one constant for all.
RDNA_INLINE u32x addend(const Wave& w, const InstInfo& info, int j) {
  const Operand& c = info.src[2];
  if (c.kind == OperandKind::vgpr) return *reinterpret_cast<const u32x*>(w.v[c.reg + j]);
  return u32x(scalar_operand(w, c));
}

template <class Format>
void wmma_f32(Wave& w, const Inst& i) {
  require_all_lanes(w, i);
  const InstInfo& info = *i.info;
  Factors<double> f;
  load_factors<Format>(w, info, f);
  alignas(256) double sums[kResults][kLanes];
  const u32 keep = info.neg_hi & 4 ? 0x7fffffffu : ~0u, flip = info.neg_lo & 4 ? 0x80000000u : 0u;
  for (int j = 0; j < kResults; ++j) {
    const u32x c = (addend(w, info, j) & keep) ^ flip;
    *reinterpret_cast<f64x*>(sums[j]) = convert<f64x>(bits<f32x>(c));
  }
  multiply(f, sums);
  for (int j = 0; j < kResults; ++j)
    w.row(i.dst + j) = bits<u32x>(convert<f32x>(*reinterpret_cast<const f64x*>(sums[j])));
}

// C and D take one half of each register, which op_sel bit 2 chooses; D's other half stays.
template <class Format>
void wmma_16(Wave& w, const Inst& i) {
  require_all_lanes(w, i);
  const InstInfo& info = *i.info;
  const bool high = info.op_sel & 4, registers = info.src[2].kind == OperandKind::vgpr;
  Factors<double> f;
  load_factors<Format>(w, info, f);
  alignas(256) double sums[kResults][kLanes];
  const u32 keep = info.neg_hi & 4 ? 0x7fffu : 0xffffu, flip = info.neg_lo & 4 ? 0x8000u : 0u;
  for (int j = 0; j < kResults; ++j) {
    u32x c = addend(w, info, j);
    if (high && registers) c >>= 16;
    *reinterpret_cast<f64x*>(sums[j]) = convert<f64x>(Format::wide((c & keep) ^ flip));
  }
  multiply(f, sums);
  for (int j = 0; j < kResults; ++j) {
    const u32x result = convert<u32x>(Format::rounded(*reinterpret_cast<const f64x*>(sums[j])));
    u32x& row = w.row(i.dst + j);
    row = high ? (row & 0xffffu) | result << 16 : (row & 0xffff0000u) | result;
  }
}

// Integers of `width` bits, extended by sign or by zeros. The sum of 16 products stays below 2^24: exact in f32.
template <int width, class Row>
RDNA_INLINE Like<Row, float> integer_field(Row x, int n, bool is_signed) {
  const Row top = x << static_cast<u32>(32 - width * (n + 1));
  using I = Like<Row, i32>;
  const I value = is_signed ? bits<I>(top) >> (32 - width) : bits<I>(top >> (32u - width));
  return convert<Like<Row, float>>(value);
}

template <int width, bool saturate>
void wmma_integer(Wave& w, const Inst& i) {
  require_all_lanes(w, i);
  const InstInfo& info = *i.info;
  const bool signed_a = info.neg_lo & 1, signed_b = info.neg_lo & 2;
  constexpr int kFields = 32 / width;
  Factors<float> f;
  for (int k = 0; k < kDepth; ++k) {
    const u32x column = w.row(info.src[1].reg + k / kFields);
    *reinterpret_cast<f32x*>(f.b[k]) = integer_field<width>(column, k % kFields, signed_b);
    const auto rows = used_rows(w.row(info.src[0].reg + k / kFields));
    *reinterpret_cast<Block<float>*>(f.a[k]) = integer_field<width>(rows, k % kFields, signed_a);
  }
  alignas(128) float sums[kResults][kLanes] = {};
  multiply(f, sums);
  u32x results[kResults];
  for (int j = 0; j < kResults; ++j) {
    const i32x sum = convert<i32x>(*reinterpret_cast<const f32x*>(sums[j]));
    const u32x c = addend(w, info, j);
    results[j] = saturate ? bits<u32x>(__builtin_elementwise_add_sat(sum, bits<i32x>(c))) : bits<u32x>(sum) + c;
  }
  for (int j = 0; j < kResults; ++j) w.row(i.dst + j) = results[j];
}

const Registration registration{
    {"v_wmma_f32_16x16x16_f16", wmma_f32<Half>},
    {"v_wmma_f32_16x16x16_bf16", wmma_f32<Brain>},
    {"v_wmma_f16_16x16x16_f16", wmma_16<Half>},
    {"v_wmma_bf16_16x16x16_bf16", wmma_16<Brain>},
    {"v_wmma_i32_16x16x16_iu8", wmma_integer<8, false>},
    {"v_wmma_i32_16x16x16_iu8.clamp", wmma_integer<8, true>},
    {"v_wmma_i32_16x16x16_iu4", wmma_integer<4, false>},
    {"v_wmma_i32_16x16x16_iu4.clamp", wmma_integer<4, true>},
};

}  // namespace
}  // namespace rdna
