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

// Rows of A that a half uses, row 2j + h of half h at [8 h + j]; columns of B by lane. Both by k. `Sum` is the type of the
// sums: A has it already, B gets it as it is used.
template <class T, class Sum>
struct alignas(256) Factors {
  Sum a[kDepth][kHalf];
  T b[kDepth][kLanes];
};

template <class T, int n>
using Block = T __attribute__((ext_vector_type(n)));

template <class To, class From, int n>
RDNA_INLINE Block<To, n> converted(const From* from) {
  return convert<Block<To, n>>(*reinterpret_cast<const Block<From, n>*>(from));
}

// Makes the compiler keep an array in memory: the host converts a memory operand with half the work of a register.
RDNA_INLINE void in_memory(void* array) { asm volatile("" : : "r"(array) : "memory"); }

// One half of D, as many results at a time as stay in registers. `initial(j, lane)` gives the addend and
// `finish(j, lane, sums)` takes the sums of kRegister lanes from `lane` on.
template <int kRegister, class T, class Sum, class Initial, class Finish>
RDNA_INLINE void multiply_half(const Factors<T, Sum>& f, int h, Initial initial, Finish finish) {
  constexpr int kRows = kRegister * sizeof(Sum) == 64 ? 8 : 4, kRegisters = kHalf / kRegister < 2 ? 1 : 2;
  using V = Block<Sum, kRegister>;
  for (int c = kHalf * h; c < kHalf * (h + 1); c += kRegisters * kRegister) {
    for (int j = 0; j < kResults; j += kRows) {
      V sum[kRows][kRegisters];
      for (int r = 0; r < kRows; ++r)
        for (int n = 0; n < kRegisters; ++n) sum[r][n] = initial(j + r, c + n * kRegister);
#pragma clang loop unroll(disable)
      for (int k = 0; k < kDepth; ++k) {
        V column[kRegisters];
        for (int n = 0; n < kRegisters; ++n) column[n] = converted<Sum, T, kRegister>(&f.b[k][c + n * kRegister]);
        for (int r = 0; r < kRows; ++r)
          for (int n = 0; n < kRegisters; ++n)
            sum[r][n] = __builtin_elementwise_fma(V(f.a[k][8 * h + j + r]), column[n], sum[r][n]);
      }
      for (int r = 0; r < kRows; ++r)
        for (int n = 0; n < kRegisters; ++n) finish(j + r, c + n * kRegister, sum[r][n]);
    }
  }
}

#if __AVX512F__
constexpr int kHostBytes = 64;
#else
constexpr int kHostBytes = 32;
#endif
constexpr int kDoubles = kHostBytes / sizeof(double), kFloats = kHostBytes / sizeof(float);

// Lanes of a register of A that are used: 0, 2, .. 14 by the lower half, 17, 19, .. 31 by the upper.
RDNA_INLINE Block<u32, kHalf> used_rows(u32x row) {
  return __builtin_shufflevector(row, row, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
}

// The low halves of 16 registers, then the high ones.
RDNA_INLINE Block<u16, 32> separated(Block<u32, kHalf> pairs) {
  const Block<u16, 32> x = bits<Block<u16, 32>>(pairs);
  return __builtin_shufflevector(x, x, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 1, 3, 5, 7, 9, 11, 13,
                                 15, 17, 19, 21, 23, 25, 27, 29, 31);
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

// Registers of A and B on their way to f32: 16 of A, then 32 of B, for each pair of k.
struct alignas(64) Pairs {
  u32 registers[kDepth / 2][3][kHalf];
};

struct Half {  // f16 pairs
  RDNA_INLINE static Block<u32, kHalf> arranged(Block<u32, kHalf> pairs) {
    return bits<Block<u32, kHalf>>(separated(pairs));
  }
  RDNA_INLINE static void split(const u32* registers, float* low, float* high) {
    const f16* halves = reinterpret_cast<const f16*>(registers);
    *reinterpret_cast<Block<float, kHalf>*>(low) = converted<float, f16, kHalf>(halves);
    *reinterpret_cast<Block<float, kHalf>*>(high) = converted<float, f16, kHalf>(halves + kHalf);
  }
  RDNA_INLINE static f32x wide(u32x x) { return convert<f32x>(bits<f16x>(convert<u16x>(x))); }
  RDNA_INLINE static u16x rounded(f64x x) { return bits<u16x>(convert<f16x>(to_odd(x))); }
};

struct Brain {  // bfloat16 pairs
  RDNA_INLINE static Block<u32, kHalf> arranged(Block<u32, kHalf> pairs) { return pairs; }
  RDNA_INLINE static void split(const u32* registers, float* low, float* high) {
    const auto pairs = *reinterpret_cast<const Block<u32, kHalf>*>(registers);
    *reinterpret_cast<Block<u32, kHalf>*>(low) = pairs << 16;
    *reinterpret_cast<Block<u32, kHalf>*>(high) = pairs & 0xffff0000u;
  }
  RDNA_INLINE static f32x wide(u32x x) { return bits<f32x>(x << 16); }
  RDNA_INLINE static u16x rounded(f64x x) { return to_brain(to_odd(x)); }
};

RDNA_INLINE u32 sign_mask(const InstInfo& info, int k) {
  return (info.neg_lo >> k & 1 ? 0x8000u : 0u) | (info.neg_hi >> k & 1 ? 0x80000000u : 0u);
}

template <class Format>
RDNA_INLINE void load_factors(Wave& w, const InstInfo& info, Factors<float, double>& f) {
  const u32 signs_a = sign_mask(info, 0), signs_b = sign_mask(info, 1);
  Pairs pairs;
  for (int r = 0; r < kDepth / 2; ++r) {
    using Registers = Block<u32, kHalf>;
    auto* to = reinterpret_cast<Registers*>(pairs.registers[r]);
    const auto* columns = reinterpret_cast<const Registers*>(w.v[info.src[1].reg + r]);
    to[0] = Format::arranged(used_rows(w.row(info.src[0].reg + r)) ^ signs_a);
    to[1] = Format::arranged(columns[0] ^ signs_b);
    to[2] = Format::arranged(columns[1] ^ signs_b);
  }
  in_memory(&pairs);
  alignas(64) float rows[kDepth][kHalf];
  for (int r = 0; r < kDepth / 2; ++r) {
    Format::split(pairs.registers[r][0], rows[2 * r], rows[2 * r + 1]);
    Format::split(pairs.registers[r][1], f.b[2 * r], f.b[2 * r + 1]);
    Format::split(pairs.registers[r][2], f.b[2 * r] + kHalf, f.b[2 * r + 1] + kHalf);
  }
  in_memory(&rows);
  for (int k = 0; k < kDepth; ++k)
    *reinterpret_cast<Block<double, kHalf>*>(f.a[k]) = converted<double, float, kHalf>(rows[k]);
  in_memory(&f);
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

// Whether results would overwrite registers of C that are still to be read.
bool overlaps(const Inst& i, const Operand& c) {
  return c.kind == OperandKind::vgpr && c.reg != i.dst && c.reg < i.dst + kResults && i.dst < c.reg + kResults;
}

template <class Format>
void wmma_f32(Wave& w, const Inst& i) {
  require_all_lanes(w, i);
  const InstInfo& info = *i.info;
  const Operand& c = info.src[2];
  Factors<float, double> f;
  load_factors<Format>(w, info, f);
  alignas(64) u32 copy[kResults][kLanes];
  const u32 keep = info.neg_hi & 4 ? 0x7fffffffu : ~0u, flip = info.neg_lo & 4 ? 0x80000000u : 0u;
  const u32(*addends)[kLanes] = &w.v[c.reg];
  if (c.kind != OperandKind::vgpr || keep != ~0u || flip != 0 || overlaps(i, c)) {
    for (int j = 0; j < kResults; ++j)
      *reinterpret_cast<u32x*>(copy[j]) = (addend(w, info, j) & keep) ^ flip;
    addends = copy;
  }
  using V = Block<double, kDoubles>;
  const auto initial = [&](int j, int lane) __attribute__((always_inline)) {
    return converted<double, float, kDoubles>(reinterpret_cast<const float*>(&addends[j][lane]));
  };
  const auto finish = [&](int j, int lane, V sums) __attribute__((always_inline)) {
    *reinterpret_cast<Block<float, kDoubles>*>(&w.v[i.dst + j][lane]) = convert<Block<float, kDoubles>>(sums);
  };
  for (int h = 0; h < 2; ++h) multiply_half<kDoubles>(f, h, initial, finish);
}

// C and D take one half of each register, which op_sel bit 2 chooses; D's other half stays.
template <class Format>
void wmma_16(Wave& w, const Inst& i) {
  require_all_lanes(w, i);
  const InstInfo& info = *i.info;
  const bool high = info.op_sel & 4, registers = info.src[2].kind == OperandKind::vgpr;
  Factors<float, double> f;
  load_factors<Format>(w, info, f);
  alignas(128) float addends[kResults][kLanes];
  alignas(256) double results[kResults][kLanes];
  const u32 keep = info.neg_hi & 4 ? 0x7fffu : 0xffffu, flip = info.neg_lo & 4 ? 0x8000u : 0u;
  for (int j = 0; j < kResults; ++j) {
    u32x c = addend(w, info, j);
    if (high && registers) c >>= 16;
    *reinterpret_cast<f32x*>(addends[j]) = Format::wide((c & keep) ^ flip);
  }
  using V = Block<double, kDoubles>;
  const auto initial = [&](int j, int lane) __attribute__((always_inline)) {
    return converted<double, float, kDoubles>(&addends[j][lane]);
  };
  const auto finish = [&](int j, int lane, V sums) __attribute__((always_inline)) {
    *reinterpret_cast<V*>(&results[j][lane]) = sums;
  };
  for (int h = 0; h < 2; ++h) multiply_half<kDoubles>(f, h, initial, finish);
  for (int j = 0; j < kResults; ++j) {
    const u32x result = convert<u32x>(Format::rounded(*reinterpret_cast<const f64x*>(results[j])));
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
  Factors<float, float> f;
  for (int k = 0; k < kDepth; ++k) {
    const u32x column = w.row(info.src[1].reg + k / kFields);
    *reinterpret_cast<f32x*>(f.b[k]) = integer_field<width>(column, k % kFields, signed_b);
    const auto rows = used_rows(w.row(info.src[0].reg + k / kFields));
    *reinterpret_cast<Block<float, kHalf>*>(f.a[k]) = integer_field<width>(rows, k % kFields, signed_a);
  }
  alignas(128) float sums[kResults][kLanes];
  using V = Block<float, kFloats>;
  const auto initial = [](int, int) __attribute__((always_inline)) { return V(0.0f); };
  const auto finish = [&](int j, int lane, V value) __attribute__((always_inline)) {
    *reinterpret_cast<V*>(&sums[j][lane]) = value;
  };
  for (int h = 0; h < 2; ++h) multiply_half<kFloats>(f, h, initial, finish);
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
