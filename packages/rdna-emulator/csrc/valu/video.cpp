// Operations on four bytes in a register: sums of absolute differences and the rounded average.
#include "valu/lanes.hpp"

namespace rdna {
namespace {

RDNA_INLINE u32x byte(u32x x, int n) { return (x >> static_cast<u32>(8 * n)) & 0xffu; }
RDNA_INLINE u32x distance(u32x a, u32x b) { return __builtin_elementwise_max(a, b) - __builtin_elementwise_min(a, b); }

RDNA_INLINE u32x sum_of_distances(u32x a, u32x b) {
  u32x sum = 0u;
  for (int n = 0; n < 4; ++n) sum += distance(byte(a, n), byte(b, n));
  return sum;
}

// Bytes of the reference that are zero do not count.
RDNA_INLINE u32x masked_sum_of_distances(u32x a, u32x reference) {
  u32x sum = 0u;
  for (int n = 0; n < 4; ++n) {
    const u32x r = byte(reference, n);
    sum += r == 0u ? u32x(0u) : distance(byte(a, n), r);
  }
  return sum;
}

RDNA_INLINE u32x average(u32x a, u32x b, u32x round) {
  u32x result = 0u;
  for (int n = 0; n < 4; ++n)
    result |= ((byte(a, n) + byte(b, n) + (byte(round, n) & 1u)) >> 1) << static_cast<u32>(8 * n);
  return result;
}

template <bool masked>
RDNA_INLINE u32x sum_at(u64x window, int n, u32x reference) {  // of the four bytes from byte n of the window on
  const u32x bytes = convert<u32x>(window >> static_cast<u64>(8 * n));
  return masked ? masked_sum_of_distances(bytes, reference) : sum_of_distances(bytes, reference);
}

template <bool masked>
RDNA_INLINE u64x four_sums(u64x window, u32x reference, u64x addends) {  // 16 bits each
  u64x result = 0ull;
  for (int n = 0; n < 4; ++n) {
    const u32x addend = convert<u32x>(addends >> static_cast<u64>(16 * n)) & 0xffffu;
    const u32x sum = (sum_at<masked>(window, n, reference) + addend) & 0xffffu;
    result |= convert<u64x>(sum) << static_cast<u64>(16 * n);
  }
  return result;
}

void mqsad_u32_u8(Wave& w, const Inst& i) {  // the same with 32 bits each: four registers of addends and of results
  const Operand& addends = i.info->src[2];
  if (addends.kind != OperandKind::vgpr) {
    trap(w, i, Fault::unsupported, -1, "v_mqsad_u32_u8 takes its 128-bit source from vector registers only");
  }
  const u64x window = w.vector_source64(i, 0);
  const u32x reference = w.vector_source<u32x>(i, 1);
  u32x results[4];
  for (int n = 0; n < 4; ++n) results[n] = sum_at<true>(window, n, reference) + w.row(addends.reg + n);
  for (int n = 0; n < 4; ++n) w.write(static_cast<u16>(i.dst + n), results[n]);
}

const Registration registration{
    {"v_lerp_u8", operation<[](u32x a, u32x b, u32x c) { return average(a, b, c); }>},
    {"v_sad_u8", operation<[](u32x a, u32x b, u32x c) { return sum_of_distances(a, b) + c; }>},
    {"v_sad_hi_u8", operation<[](u32x a, u32x b, u32x c) { return (sum_of_distances(a, b) << 16) + c; }>},
    {"v_sad_u16", operation<[](u32x a, u32x b, u32x c) {
       return distance(a & 0xffffu, b & 0xffffu) + distance(a >> 16, b >> 16) + c;
     }>},
    {"v_sad_u32", operation<[](u32x a, u32x b, u32x c) { return distance(a, b) + c; }>},
    {"v_msad_u8", operation<[](u32x a, u32x b, u32x c) { return masked_sum_of_distances(a, b) + c; }>},
    {"v_qsad_pk_u16_u8", operation<[](u64x a, u32x b, u64x c) { return four_sums<false>(a, b, c); }>},
    {"v_mqsad_pk_u16_u8", operation<[](u64x a, u32x b, u64x c) { return four_sums<true>(a, b, c); }>},
    {"v_mqsad_u32_u8", mqsad_u32_u8},
};

}  // namespace
}  // namespace rdna
