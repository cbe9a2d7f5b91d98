// Matrix multiply-accumulate of wave32: D (16x16) = A (16x16) B (16x16) + C.
//
// Lane l = 16 h + c holds row c of A and column c of B, k = 0..15. Each half h of the wave makes its own rows of D from its
// own lanes: element j of lane l is D[2j + h][c], made of A in lane 16 h + 2j + h and of B in lane l. The sums are exact
// or nearly so (f64 for products of 16-bit floats, f32 for products of small integers) and rounded once.
#include "valu/matrix_memory.hpp"

namespace rdna {
namespace {

RDNA_INLINE void require_all_lanes(Wave& w, const Inst& i) {
  if (w.exec() != ~0u) [[unlikely]] {
    trap(w, i, Fault::divergence, -1, "WMMA needs all 32 lanes active in EXEC");
  }
}

// Register j of C: eight registers, or one constant for all.
RDNA_INLINE u32x addend(const Wave& w, const InstInfo& info, int j) {
  const Operand& c = info.src[2];
  if (c.kind == OperandKind::vgpr) return block<u32, kLanes>(w.v[c.reg + j]);
  return u32x(scalar_operand(w, c));
}

// Whether results would overwrite registers of C that are still to be read.
bool overlaps(const Inst& i, const Operand& c) {
  return c.kind == OperandKind::vgpr && c.reg != i.dst && c.reg < i.dst + kResults && i.dst < c.reg + kResults;
}

RDNA_INLINE Block<u32, kHalf> twice(Block<u32, 8> x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
}

// D where few columns are all there is. `addends` is null where C is a constant.
RDNA_INLINE void multiply_known(const Rows<double>& rows, const KnownColumns& known, const u32 (*addends)[kLanes],
                                float constant, u32 (*results)[kLanes]) {
  alignas(64) u32 gathered_addends[kResults][kHalf];
  if (addends != nullptr) {
    for (int j = 0; j < kResults; ++j)
      block<u32, kHalf>(gathered_addends[j]) = gathered(addends[j], known.gather);
    in_memory(&gathered_addends);
  }
  const auto initial = [&](int j, int h) __attribute__((always_inline)) {
    if (addends == nullptr) return Eight(constant);
    return converted<double, float, 8>(reinterpret_cast<const float*>(&gathered_addends[j][8 * h]));
  };
  const auto rounded = [](Eight sums) __attribute__((always_inline)) {
    return twice(bits<Block<u32, 8>>(convert<Block<float, 8>>(sums)));
  };
  if (known.count == 4) {
    multiply_four(rows, known.columns.b[0], [&](int j) __attribute__((always_inline)) { return initial(j, 0); },
                  [&](int j, Eight sums) __attribute__((always_inline)) {
      const auto both = rounded(sums);
      for (int h = 0; h < 2; ++h) block<u32, kHalf>(&results[j][kHalf * h]) = permuted(both, known.spread[h]);
    });
  } else {
    multiply_eight(rows, known.columns.b[0], initial, [&](int j, Eight low, Eight high) __attribute__((always_inline)) {
      block<u32, kHalf>(results[j]) = permuted(rounded(low), known.spread[0]);
      block<u32, kHalf>(&results[j][kHalf]) = permuted(rounded(high), known.spread[1]);
    });
  }
}

template <class Format>
void wmma_f32(Wave& w, const Inst& i) {
  require_all_lanes(w, i);
  const InstInfo& info = *i.info;
  const Operand& c = info.src[2];
  const u32(*addends)[kLanes] = &w.v[c.reg];
  u32(*results)[kLanes] = &w.v[i.dst];
  alignas(128) u32 copy[kResults][kLanes];
  const u32 keep = info.neg_hi & 4 ? 0x7fffffffu : ~0u, flip = info.neg_lo & 4 ? 0x80000000u : 0u;
  float constant = 0.0f;
  if (c.kind != OperandKind::vgpr) {
    constant = bits<float>((scalar_operand(w, c) & keep) ^ flip);
    addends = nullptr;
  } else if (keep != ~0u || flip != 0 || overlaps(i, c)) {
    for (int j = 0; j < kResults; ++j) block<u32, kLanes>(copy[j]) = (block<u32, kLanes>(addends[j]) & keep) ^ flip;
    addends = copy;
  }
  MatrixMemory& memory = matrix_memory(w);
  const KnownFactors factors = known_factors(w, i, memory);
  const Rows<double>& rows = memory.rows;
  if (!factors.a) load_rows<Format>(&w.v[info.src[0].reg], sign_mask(info, 0), memory.rows);
  const u32 reg_b = info.src[1].reg, signs_b = sign_mask(info, 1);
  const KnownColumns& known = columns_of<Format>(w, memory, reg_b, signs_b, factors);
  if (known.count < kHalf && (addends == nullptr || repeats(known, addends, kResults))) {
    return multiply_known(rows, known, addends, constant, results);
  }
  Columns<double> all;
  if (known.count < kHalf) load_all_columns<Format>(&w.v[reg_b], signs_b, all);
  using V = Block<double, kHostLanes<double>>;
  const auto initial = [&](int j, int lane) __attribute__((always_inline)) {
    if (addends == nullptr) return V(constant);
    return converted<double, float, kHostLanes<double>>(reinterpret_cast<const float*>(&addends[j][lane]));
  };
  const Columns<double>& columns = known.count < kHalf ? all : known.columns;
  multiply(rows, columns, known.count == kHalf && known.twice, initial, [=](int j, int lane, V sums) __attribute__((always_inline)) {
    block<float, kHostLanes<double>>(&results[j][lane]) = convert<Block<float, kHostLanes<double>>>(sums);
  });
}

// C and D take one half of each register, which op_sel bit 2 chooses; D's other half stays.
template <class Format>
void wmma_16(Wave& w, const Inst& i) {
  require_all_lanes(w, i);
  const InstInfo& info = *i.info;
  const bool high = info.op_sel & 4, registers = info.src[2].kind == OperandKind::vgpr;
  Rows<double> rows;
  load_rows<Format>(&w.v[info.src[0].reg], sign_mask(info, 0), rows);
  Columns<double> columns;
  load_all_columns<Format>(&w.v[info.src[1].reg], sign_mask(info, 1), columns);
  alignas(128) float addends[kResults][kLanes];
  alignas(256) double results[kResults][kLanes];
  const u32 keep = info.neg_hi & 4 ? 0x7fffu : 0xffffu, flip = info.neg_lo & 4 ? 0x8000u : 0u;
  for (int j = 0; j < kResults; ++j) {
    u32x c = addend(w, info, j);
    if (high && registers) c >>= 16;
    block<float, kLanes>(addends[j]) = Format::wide((c & keep) ^ flip);
  }
  using V = Block<double, kHostLanes<double>>;
  const auto initial = [&](int j, int lane) __attribute__((always_inline)) {
    return converted<double, float, kHostLanes<double>>(&addends[j][lane]);
  };
  multiply(rows, columns, false, initial, [&](int j, int lane, V sums) __attribute__((always_inline)) {
    block<double, kHostLanes<double>>(&results[j][lane]) = sums;
  });
  for (int j = 0; j < kResults; ++j) {
    const u32x result = convert<u32x>(Format::rounded(block<double, kLanes>(results[j])));
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
  Rows<float> rows;
  Columns<float> columns;
  for (int k = 0; k < kDepth; ++k) {
    const u32x column = w.row(info.src[1].reg + k / kFields);
    const auto values = integer_field<width>(column, k % kFields, signed_b);
    block<float, kHalf>(columns.b[0][k]) = values.lo;
    block<float, kHalf>(columns.b[1][k]) = values.hi;
    const auto row = used_rows(w.row(info.src[0].reg + k / kFields));
    block<float, kHalf>(rows.a[k]) = integer_field<width>(row, k % kFields, signed_a);
  }
  alignas(128) float sums[kResults][kLanes];
  using V = Block<float, kHostLanes<float>>;
  const auto initial = [](int, int) __attribute__((always_inline)) { return V(0.0f); };
  multiply(rows, columns, false, initial, [&](int j, int lane, V value) __attribute__((always_inline)) {
    block<float, kHostLanes<float>>(&sums[j][lane]) = value;
  });
  u32x results[kResults];
  for (int j = 0; j < kResults; ++j) {
    const i32x sum = convert<i32x>(block<float, kLanes>(sums[j]));
    const u32x c = addend(w, info, j);
    results[j] = saturate ? bits<u32x>(__builtin_elementwise_add_sat(sum, bits<i32x>(c))) : bits<u32x>(sum) + c;
  }
  for (int j = 0; j < kResults; ++j) w.row(i.dst + j) = results[j];
}

const Registration registration{
    {"v_wmma_f32_16x16x16_f16", wmma_f32<HalfFloat>},
    {"v_wmma_f32_16x16x16_bf16", wmma_f32<BrainFloat>},
    {"v_wmma_f16_16x16x16_f16", wmma_16<HalfFloat>},
    {"v_wmma_bf16_16x16x16_bf16", wmma_16<BrainFloat>},
    {"v_wmma_i32_16x16x16_iu8", wmma_integer<8, false>},
    {"v_wmma_i32_16x16x16_iu8.clamp", wmma_integer<8, true>},
    {"v_wmma_i32_16x16x16_iu4", wmma_integer<4, false>},
    {"v_wmma_i32_16x16x16_iu4.clamp", wmma_integer<4, true>},
};

}  // namespace
}  // namespace rdna
