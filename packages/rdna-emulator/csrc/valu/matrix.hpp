// The inner part of matrix multiply-accumulate: factors in memory as the host wants them, and the sums in its registers.
#pragma once
#include "valu/float.hpp"

namespace rdna {

constexpr int kDepth = 16, kResults = 8, kHalf = 16;

template <class T, int n>
using Block = T __attribute__((ext_vector_type(n)));

template <class T, int n, class From>
RDNA_INLINE Block<T, n>& block(From* at) {
  return *reinterpret_cast<Block<T, n>*>(at);
}
template <class T, int n, class From>
RDNA_INLINE const Block<T, n>& block(const From* at) {
  return *reinterpret_cast<const Block<T, n>*>(at);
}
template <class To, class From, int n>
RDNA_INLINE Block<To, n> converted(const From* from) {
  return convert<Block<To, n>>(block<From, n>(from));
}

// Makes the compiler keep an array in memory: the host converts a memory operand with half the work of a register.
RDNA_INLINE void in_memory(void* array) { asm volatile("" : : "r"(array) : "memory"); }

// By k: the rows of A, and the columns of B for each half of the wave.
template <class T>
struct alignas(256) Rows {
  T a[kDepth][kHalf];
};
template <class T>
struct alignas(256) Columns {
  T b[2][kDepth][kHalf];
};

#if __AVX512F__
constexpr int kHostBytes = 64;
#else
constexpr int kHostBytes = 32;
#endif
template <class T>
constexpr int kHostLanes = kHostBytes / static_cast<int>(sizeof(T));

// All of D, as many results at a time as stay in registers. `initial(j, lane)` gives the addends and
// `finish(j, lane, sums)` takes the sums of one host register of lanes, from `lane` on. With `twice` the upper half of
// the wave has the columns of the lower one.
template <class T, class Initial, class Finish>
RDNA_INLINE void multiply(const Rows<T>& rows, const Columns<T>& columns, bool twice, Initial initial, Finish finish) {
  constexpr int kWidth = kHostLanes<T>, kRegisters = kHalf / kWidth < 2 ? 1 : 2, kRows = kHostBytes / 8;
  for (int h = 0; h < 2; ++h) {
    const T(*b_of)[kHalf] = columns.b[twice ? 0 : h];
    for (int column = 0; column < kHalf; column += kRegisters * kWidth) {
      const int lane = kHalf * h + column;
      for (int j = 0; j < kResults; j += kRows) {
        Block<T, kWidth> sums[kRows][kRegisters];
        for (int r = 0; r < kRows; ++r)
          for (int n = 0; n < kRegisters; ++n) sums[r][n] = initial(j + r, lane + n * kWidth);
#pragma clang loop unroll(disable)
        for (int k = 0; k < kDepth; ++k) {
          Block<T, kWidth> b[kRegisters];
          for (int n = 0; n < kRegisters; ++n) b[n] = block<T, kWidth>(&b_of[k][column + n * kWidth]);
          for (int r = 0; r < kRows; ++r)
            for (int n = 0; n < kRegisters; ++n)
              sums[r][n] = __builtin_elementwise_fma(Block<T, kWidth>(rows.a[k][2 * (j + r) + h]), b[n], sums[r][n]);
        }
        for (int r = 0; r < kRows; ++r)
          for (int n = 0; n < kRegisters; ++n) finish(j + r, lane + n * kWidth, sums[r][n]);
      }
    }
  }
}

using Eight = Block<double, 8>;

// Few columns of B, eight numbers for each k: four of each half, in turns, where A gives them rows 2j and 2j + 1 in
// turns; or eight of one half, which take row 2j + h.
RDNA_INLINE Eight rows_of_four(const double* a, int j) {
  const auto pair = block<double, 2>(&a[2 * j]);
  return __builtin_shufflevector(pair, pair, 0, 1, 0, 1, 0, 1, 0, 1);
}

// Both halves of four columns at once: `initial(j)` gives eight addends, `finish(j, sums)` takes the sums.
template <class Initial, class Finish>
RDNA_INLINE void multiply_four(const Rows<double>& rows, const double (*b)[kHalf], Initial initial, Finish finish) {
  constexpr int kRows = kHostBytes / 8;
  for (int j = 0; j < kResults; j += kRows) {
    Eight sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = initial(j + r);
#pragma clang loop unroll(disable)
    for (int k = 0; k < kDepth; ++k) {
      const auto columns = block<double, 8>(b[k]);
      for (int r = 0; r < kRows; ++r)
        sums[r] = __builtin_elementwise_fma(rows_of_four(rows.a[k], j + r), columns, sums[r]);
    }
    for (int r = 0; r < kRows; ++r) finish(j + r, sums[r]);
  }
}

// Eight columns: `initial(j, h)` gives the addends of half h, `finish(j, lower, upper)` takes the sums of both.
template <class Initial, class Finish>
RDNA_INLINE void multiply_eight(const Rows<double>& rows, const double (*b)[kHalf], Initial initial, Finish finish) {
  constexpr int kRows = kHostBytes * kHostBytes / 512;
  for (int j = 0; j < kResults; j += kRows) {
    Eight sums[2][kRows];
    for (int h = 0; h < 2; ++h)
      for (int r = 0; r < kRows; ++r) sums[h][r] = initial(j + r, h);
#pragma clang loop unroll(disable)
    for (int k = 0; k < kDepth; ++k) {
      for (int h = 0; h < 2; ++h) {
        const auto columns = block<double, 8>(&b[k][8 * h]);
        for (int r = 0; r < kRows; ++r)
          sums[h][r] = __builtin_elementwise_fma(Eight(rows.a[k][2 * (j + r) + h]), columns, sums[h][r]);
      }
    }
    for (int r = 0; r < kRows; ++r) finish(j + r, sums[0][r], sums[1][r]);
  }
}

// Of a register of A, the lane of each row that is used: even rows by the lower half, odd ones by the upper.
RDNA_INLINE Block<u32, kHalf> used_rows(u32x row) {
  return __builtin_shufflevector(row, row, 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31);
}

RDNA_INLINE u32 set_lanes(Block<u32, kHalf> x) { return bits<u16>(convert<Block<bool, kHalf>>(x != 0)); }

RDNA_INLINE Block<u32, kHalf> permuted(Block<u32, kHalf> x, Block<u32, kHalf> from) {
#if __AVX512F__
  return bits<Block<u32, kHalf>>(__builtin_ia32_permvarsi512(bits<Block<int, kHalf>>(x), bits<Block<int, kHalf>>(from)));
#elif __AVX2__
  const auto half = [](auto values, auto order) __attribute__((always_inline)) {
    return bits<Block<u32, 8>>(__builtin_ia32_permvarsi256(bits<Block<int, 8>>(values), bits<Block<int, 8>>(order)));
  };
  const auto low_from = half(x.lo, from.lo), high_from = half(x.lo, from.hi);
  Block<u32, kHalf> low, high;
  low.lo = low_from, low.hi = high_from;
  high.lo = half(x.hi, from.lo), high.hi = half(x.hi, from.hi);
  return from < 8u ? low : high;
#else
  alignas(64) u32 values[kHalf], order[kHalf], result[kHalf];
  block<u32, kHalf>(values) = x, block<u32, kHalf>(order) = from & 15u;
  for (int n = 0; n < kHalf; ++n) result[n] = values[order[n]];
  return block<u32, kHalf>(result);
#endif
}

// Sixteen of 32 lanes.
RDNA_INLINE Block<u32, kHalf> gathered(const u32* row, Block<u32, kHalf> from) {
  const auto low = block<u32, kHalf>(row), high = block<u32, kHalf>(row + kHalf);
#if __AVX512F__
  using I = Block<int, kHalf>;
  return bits<Block<u32, kHalf>>(__builtin_ia32_vpermi2vard512(bits<I>(low), bits<I>(from), bits<I>(high)));
#else
  return from < 16u ? permuted(low, from) : permuted(high, from & 15u);
#endif
}

// The low halves of 16 registers, then the high ones.
RDNA_INLINE Block<u16, 32> separated(Block<u32, kHalf> pairs) {
  const auto x = bits<Block<u16, 32>>(pairs);
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

// Formats of the factors: how pairs in 16 registers become two vectors of f32, in two steps through memory.
struct HalfFloat {  // f16
  static constexpr u8 kNumber = 1;
  RDNA_INLINE static Block<u32, kHalf> arranged(Block<u32, kHalf> pairs) {
    return bits<Block<u32, kHalf>>(separated(pairs));
  }
  RDNA_INLINE static void split(const u32* registers, float* low, float* high) {
    const f16* halves = reinterpret_cast<const f16*>(registers);
    block<float, kHalf>(low) = converted<float, f16, kHalf>(halves);
    block<float, kHalf>(high) = converted<float, f16, kHalf>(halves + kHalf);
  }
  RDNA_INLINE static f32x wide(u32x x) { return convert<f32x>(bits<f16x>(convert<u16x>(x))); }
  RDNA_INLINE static u16x rounded(f64x x) { return bits<u16x>(convert<f16x>(to_odd(x))); }
};

struct BrainFloat {  // bfloat16
  static constexpr u8 kNumber = 2;
  RDNA_INLINE static Block<u32, kHalf> arranged(Block<u32, kHalf> pairs) { return pairs; }
  RDNA_INLINE static void split(const u32* registers, float* low, float* high) {
    const auto pairs = block<u32, kHalf>(registers);
    block<u32, kHalf>(low) = pairs << 16;
    block<u32, kHalf>(high) = pairs & 0xffff0000u;
  }
  RDNA_INLINE static f32x wide(u32x x) { return bits<f32x>(x << 16); }
  RDNA_INLINE static u16x rounded(f64x x) { return to_brain(to_odd(x)); }
};

// The factors in registers a[8] and b[8], whose signs change by masks.
template <class Format>
RDNA_INLINE void load_rows(const u32 (*a)[kLanes], u32 signs, Rows<double>& rows) {
  alignas(64) u32 pairs[kDepth / 2][kHalf];
  for (int r = 0; r < kDepth / 2; ++r)
    block<u32, kHalf>(pairs[r]) = Format::arranged(used_rows(block<u32, kLanes>(a[r])));
  if (signs) [[unlikely]] {
    for (int r = 0; r < kDepth / 2; ++r) block<u32, kHalf>(pairs[r]) ^= Format::arranged(Block<u32, kHalf>(signs));
  }
  in_memory(&pairs);
  alignas(64) float wide[kDepth][kHalf];
  for (int r = 0; r < kDepth / 2; ++r) Format::split(pairs[r], wide[2 * r], wide[2 * r + 1]);
  in_memory(&wide);
  for (int k = 0; k < kDepth; ++k) block<double, kHalf>(rows.a[k]) = converted<double, float, kHalf>(wide[k]);
  in_memory(&rows);
}

// Sixteen lanes of b, which `arrange(r)` has taken of register r.
template <class Format, class Arrange>
RDNA_INLINE void load_columns(Arrange arrange, u32 signs, double (*b)[kHalf]) {
  alignas(64) u32 pairs[kDepth / 2][kHalf];
  for (int r = 0; r < kDepth / 2; ++r) block<u32, kHalf>(pairs[r]) = Format::arranged(arrange(r) ^ signs);
  in_memory(&pairs);
  alignas(64) float wide[kDepth][kHalf];
  for (int r = 0; r < kDepth / 2; ++r) Format::split(pairs[r], wide[2 * r], wide[2 * r + 1]);
  in_memory(&wide);
  for (int k = 0; k < kDepth; ++k) block<double, kHalf>(b[k]) = converted<double, float, kHalf>(wide[k]);
}

// The columns of one half of the wave, or of both.
template <class Format>
RDNA_INLINE void load_half(const u32 (*b)[kLanes], u32 signs, int h, Columns<double>& columns) {
  const auto lanes = [=](int r) __attribute__((always_inline)) { return block<u32, kHalf>(&b[r][kHalf * h]); };
  load_columns<Format>(lanes, signs, columns.b[h]);
}

template <class Format>
RDNA_INLINE void load_all_columns(const u32 (*b)[kLanes], u32 signs, Columns<double>& columns) {
  for (int h = 0; h < 2; ++h) load_half<Format>(b, signs, h, columns);
}

}  // namespace rdna
