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

// By k: the rows of A that are used, row 2j + h of half h at [8 h + j], and the columns of B by lane. `Sum` is the type of the
// sums: A has it already, B gets it as it is used.
template <class T, class Sum>
struct alignas(256) Factors {
  Sum a[kDepth][kHalf];
  T b[kDepth][kLanes];
};

#if __AVX512F__
constexpr int kHostBytes = 64;
#else
constexpr int kHostBytes = 32;
#endif
template <class T>
constexpr int kHostLanes = kHostBytes / static_cast<int>(sizeof(T));

// Sums for `rows` rows of A from `row` on and `registers` host registers of columns from `column` on.
template <int rows, int registers, class T, class Sum, class V>
RDNA_INLINE void accumulate(const Factors<T, Sum>& f, int row, int column, V (&sums)[rows][registers]) {
  constexpr int kWidth = kHostLanes<Sum>;
#pragma clang loop unroll(disable)
  for (int k = 0; k < kDepth; ++k) {
    V columns[registers];
    for (int n = 0; n < registers; ++n) columns[n] = converted<Sum, T, kWidth>(&f.b[k][column + n * kWidth]);
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < registers; ++n)
        sums[r][n] = __builtin_elementwise_fma(V(f.a[k][row + r]), columns[n], sums[r][n]);
  }
}

// All of D, as many results at a time as stay in registers. `initial(j, lane)` gives the addends and `finish(j, lane, sums)`
// takes the sums of one host register of lanes, from `lane` on.
template <class T, class Sum, class Initial, class Finish>
RDNA_INLINE void multiply(const Factors<T, Sum>& f, Initial initial, Finish finish) {
  constexpr int kWidth = kHostLanes<Sum>, kRegisters = kHalf / kWidth < 2 ? 1 : 2, kRows = kHostBytes / 8;
  for (int h = 0; h < 2; ++h) {
    for (int lane = kHalf * h; lane < kHalf * (h + 1); lane += kRegisters * kWidth) {
      for (int j = 0; j < kResults; j += kRows) {
        Block<Sum, kWidth> sums[kRows][kRegisters];
        for (int r = 0; r < kRows; ++r)
          for (int n = 0; n < kRegisters; ++n) sums[r][n] = initial(j + r, lane + n * kWidth);
        accumulate(f, kResults * h + j, lane, sums);
        for (int r = 0; r < kRows; ++r)
          for (int n = 0; n < kRegisters; ++n) finish(j + r, lane + n * kWidth, sums[r][n]);
      }
    }
  }
}

// The same where eight columns are all there is, the first eight of each half of B: `initial(j, lane)` is asked for the
// first lanes of each half, and `finish(j, lane, sums)` takes eight sums, for lanes from 0 or 16 on.
template <class Initial, class Finish>
RDNA_INLINE void multiply_eight(const Factors<float, double>& f, Initial initial, Finish finish) {
  constexpr int kWidth = kHostLanes<double>, kRegisters = 8 / kWidth, kRows = kHostBytes / 8 / kRegisters;
  using V = Block<double, kWidth>;
  for (int j = 0; j < kResults; j += kRows) {
    V sums[2][kRows][kRegisters];
    for (int h = 0; h < 2; ++h)
      for (int r = 0; r < kRows; ++r)
        for (int n = 0; n < kRegisters; ++n) sums[h][r][n] = initial(j + r, kHalf * h + n * kWidth);
#pragma clang loop unroll(disable)
    for (int k = 0; k < kDepth; ++k) {
      for (int h = 0; h < 2; ++h) {
        for (int n = 0; n < kRegisters; ++n) {
          const V columns = converted<double, float, kWidth>(&f.b[k][kHalf * h + n * kWidth]);
          for (int r = 0; r < kRows; ++r)
            sums[h][r][n] = __builtin_elementwise_fma(V(f.a[k][kResults * h + j + r]), columns, sums[h][r][n]);
        }
      }
    }
    for (int h = 0; h < 2; ++h) {
      for (int r = 0; r < kRows; ++r) {
        alignas(64) double eight[8];
        for (int n = 0; n < kRegisters; ++n) block<double, kWidth>(&eight[n * kWidth]) = sums[h][r][n];
        finish(j + r, kHalf * h, block<double, 8>(eight));
      }
    }
  }
}

// Lanes of a register of A that are used: 0, 2, .. 14 by the lower half, 17, 19, .. 31 by the upper.
RDNA_INLINE Block<u32, kHalf> used_rows(u32x row) {
  return __builtin_shufflevector(row, row, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
}

RDNA_INLINE u32 set_lanes(Block<u32, kHalf> x) { return bits<u16>(convert<Block<bool, kHalf>>(x != 0)); }

RDNA_INLINE Block<u32, kHalf> permuted(Block<u32, kHalf> x, Block<u32, kHalf> from) {
#if __AVX512F__
  return bits<Block<u32, kHalf>>(__builtin_ia32_permvarsi512(bits<Block<int, kHalf>>(x), bits<Block<int, kHalf>>(from)));
#else
  const auto half = [](auto values, auto order) __attribute__((always_inline)) {
    return bits<Block<u32, 8>>(__builtin_ia32_permvarsi256(bits<Block<int, 8>>(values), bits<Block<int, 8>>(order)));
  };
  const auto low_from = half(x.lo, from.lo), high_from = half(x.lo, from.hi);
  Block<u32, kHalf> low, high;
  low.lo = low_from, low.hi = high_from;
  high.lo = half(x.hi, from.lo), high.hi = half(x.hi, from.hi);
  return from < 8u ? low : high;
#endif
}

// At most eight columns of sixteen, each of which the columns after it repeat up to the next.
struct Columns {
  u32 firsts = 0;                // their mask
  Block<u32, kHalf> first = 0u;  // where each is
  Block<u32, kHalf> spread = 0u; // which of them stands in each column
};

// Kernels have a few patterns: they are kept.
inline const Columns& columns_of(u32 firsts) {
  thread_local Columns known[64];
  Columns& columns = known[firsts * 0x9e37u >> 10 & 63];
  if (columns.firsts != firsts) {
    columns.firsts = firsts;
    u32 count = 0;
    for (u32 lane = 0; lane < kHalf; ++lane) {
      if (firsts >> lane & 1) columns.first[count++] = lane;
      columns.spread[lane] = count - 1;
    }
  }
  return columns;
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
struct Half {  // f16
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

struct Brain {  // bfloat16
  RDNA_INLINE static Block<u32, kHalf> arranged(Block<u32, kHalf> pairs) { return pairs; }
  RDNA_INLINE static void split(const u32* registers, float* low, float* high) {
    const auto pairs = block<u32, kHalf>(registers);
    block<u32, kHalf>(low) = pairs << 16;
    block<u32, kHalf>(high) = pairs & 0xffff0000u;
  }
  RDNA_INLINE static f32x wide(u32x x) { return bits<f32x>(x << 16); }
  RDNA_INLINE static u16x rounded(f64x x) { return to_brain(to_odd(x)); }
};

// The factors of registers a[8] and b[8], whose signs change by masks; the columns of each half of B in another order, if
// there is one.
template <class Format>
RDNA_INLINE void load_factors(const u32 (*a)[kLanes], const u32 (*b)[kLanes], u32 signs_a, u32 signs_b,
                              Factors<float, double>& f, const Block<u32, kHalf>* order = nullptr) {
  alignas(64) u32 pairs[kDepth / 2][3][kHalf];
  for (int r = 0; r < kDepth / 2; ++r) {
    block<u32, kHalf>(pairs[r][0]) = Format::arranged(used_rows(block<u32, kLanes>(a[r])) ^ signs_a);
    for (int h = 0; h < 2; ++h) {
      const auto columns = block<u32, kHalf>(&b[r][kHalf * h]) ^ signs_b;
      block<u32, kHalf>(pairs[r][1 + h]) = Format::arranged(order ? permuted(columns, *order) : columns);
    }
  }
  in_memory(&pairs);
  alignas(64) float rows[kDepth][kHalf];
  for (int r = 0; r < kDepth / 2; ++r) {
    Format::split(pairs[r][0], rows[2 * r], rows[2 * r + 1]);
    for (int h = 0; h < 2; ++h)
      Format::split(pairs[r][1 + h], &f.b[2 * r][kHalf * h], &f.b[2 * r + 1][kHalf * h]);
  }
  in_memory(&rows);
  for (int k = 0; k < kDepth; ++k) block<double, kHalf>(f.a[k]) = converted<double, float, kHalf>(rows[k]);
  in_memory(&f);
}

}  // namespace rdna
