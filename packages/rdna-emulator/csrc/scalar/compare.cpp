// SOPC and the comparing SOPK forms: they write SCC only.
#include "core/machine.hpp"

namespace rdna {
namespace {

constexpr auto kEqual = [](auto a, auto b) { return a == b; };
constexpr auto kUnequal = [](auto a, auto b) { return a != b; };
constexpr auto kGreater = [](auto a, auto b) { return a > b; };
constexpr auto kGreaterEqual = [](auto a, auto b) { return a >= b; };
constexpr auto kLess = [](auto a, auto b) { return a < b; };
constexpr auto kLessEqual = [](auto a, auto b) { return a <= b; };
constexpr auto kLessGreater = [](auto a, auto b) { return a < b || a > b; };  // false with a NaN
constexpr auto kOrdered = [](auto a, auto b) { return a == a && b == b; };

template <auto F>
constexpr auto kNot = [](auto a, auto b) { return !F(a, b); };

template <class T, auto F>
void compare(Wave& w, const Inst& i) {
  w.set_scc(F(static_cast<T>(w.scalar_source(i, 0)), static_cast<T>(w.scalar_source(i, 1))));
}

template <auto F>
void compare_u64(Wave& w, const Inst& i) {
  w.set_scc(F(w.scalar_source64(i, 0), w.scalar_source64(i, 1)));
}

template <auto F>
void compare_f32(Wave& w, const Inst& i) {
  w.set_scc(F(__builtin_bit_cast(float, w.scalar_source(i, 0)), __builtin_bit_cast(float, w.scalar_source(i, 1))));
}

template <auto F>
void compare_f16(Wave& w, const Inst& i) {
  const auto half = [&](int k) {
    return static_cast<float>(__builtin_bit_cast(f16, static_cast<u16>(w.scalar_source(i, k))));
  };
  w.set_scc(F(half(0), half(1)));
}

template <auto F>
void compare_k_i32(Wave& w, const Inst& i) {
  w.set_scc(F(static_cast<i32>(w.scalar_source(i, 0)), static_cast<i32>(i.imm)));
}

template <auto F>
void compare_k_u32(Wave& w, const Inst& i) {
  w.set_scc(F(w.scalar_source(i, 0), i.imm & 0xffffu));
}

template <bool kValue>
void bitcmp_b32(Wave& w, const Inst& i) {
  w.set_scc((w.scalar_source(i, 0) >> (w.scalar_source(i, 1) & 31) & 1) == kValue);
}

template <bool kValue>
void bitcmp_b64(Wave& w, const Inst& i) {
  w.set_scc((w.scalar_source64(i, 0) >> (w.scalar_source(i, 1) & 63) & 1) == kValue);
}

const Registration kIntegers({
    {"s_cmp_eq_i32", compare<i32, kEqual>},
    {"s_cmp_lg_i32", compare<i32, kUnequal>},
    {"s_cmp_gt_i32", compare<i32, kGreater>},
    {"s_cmp_ge_i32", compare<i32, kGreaterEqual>},
    {"s_cmp_lt_i32", compare<i32, kLess>},
    {"s_cmp_le_i32", compare<i32, kLessEqual>},
    {"s_cmp_eq_u32", compare<u32, kEqual>},
    {"s_cmp_lg_u32", compare<u32, kUnequal>},
    {"s_cmp_gt_u32", compare<u32, kGreater>},
    {"s_cmp_ge_u32", compare<u32, kGreaterEqual>},
    {"s_cmp_lt_u32", compare<u32, kLess>},
    {"s_cmp_le_u32", compare<u32, kLessEqual>},
    {"s_cmp_eq_u64", compare_u64<kEqual>},
    {"s_cmp_lg_u64", compare_u64<kUnequal>},
    {"s_bitcmp0_b32", bitcmp_b32<false>},
    {"s_bitcmp1_b32", bitcmp_b32<true>},
    {"s_bitcmp0_b64", bitcmp_b64<false>},
    {"s_bitcmp1_b64", bitcmp_b64<true>},
    {"s_cmpk_eq_i32", compare_k_i32<kEqual>},
    {"s_cmpk_lg_i32", compare_k_i32<kUnequal>},
    {"s_cmpk_gt_i32", compare_k_i32<kGreater>},
    {"s_cmpk_ge_i32", compare_k_i32<kGreaterEqual>},
    {"s_cmpk_lt_i32", compare_k_i32<kLess>},
    {"s_cmpk_le_i32", compare_k_i32<kLessEqual>},
    {"s_cmpk_eq_u32", compare_k_u32<kEqual>},
    {"s_cmpk_lg_u32", compare_k_u32<kUnequal>},
    {"s_cmpk_gt_u32", compare_k_u32<kGreater>},
    {"s_cmpk_ge_u32", compare_k_u32<kGreaterEqual>},
    {"s_cmpk_lt_u32", compare_k_u32<kLess>},
    {"s_cmpk_le_u32", compare_k_u32<kLessEqual>},
});

const Registration kFloats({
    {"s_cmp_lt_f32", compare_f32<kLess>},
    {"s_cmp_eq_f32", compare_f32<kEqual>},
    {"s_cmp_le_f32", compare_f32<kLessEqual>},
    {"s_cmp_gt_f32", compare_f32<kGreater>},
    {"s_cmp_lg_f32", compare_f32<kLessGreater>},
    {"s_cmp_ge_f32", compare_f32<kGreaterEqual>},
    {"s_cmp_o_f32", compare_f32<kOrdered>},
    {"s_cmp_u_f32", compare_f32<kNot<kOrdered>>},
    {"s_cmp_nge_f32", compare_f32<kNot<kGreaterEqual>>},
    {"s_cmp_nlg_f32", compare_f32<kNot<kLessGreater>>},
    {"s_cmp_ngt_f32", compare_f32<kNot<kGreater>>},
    {"s_cmp_nle_f32", compare_f32<kNot<kLessEqual>>},
    {"s_cmp_neq_f32", compare_f32<kNot<kEqual>>},
    {"s_cmp_nlt_f32", compare_f32<kNot<kLess>>},
    {"s_cmp_lt_f16", compare_f16<kLess>},
    {"s_cmp_eq_f16", compare_f16<kEqual>},
    {"s_cmp_le_f16", compare_f16<kLessEqual>},
    {"s_cmp_gt_f16", compare_f16<kGreater>},
    {"s_cmp_lg_f16", compare_f16<kLessGreater>},
    {"s_cmp_ge_f16", compare_f16<kGreaterEqual>},
    {"s_cmp_o_f16", compare_f16<kOrdered>},
    {"s_cmp_u_f16", compare_f16<kNot<kOrdered>>},
    {"s_cmp_nge_f16", compare_f16<kNot<kGreaterEqual>>},
    {"s_cmp_nlg_f16", compare_f16<kNot<kLessGreater>>},
    {"s_cmp_ngt_f16", compare_f16<kNot<kGreater>>},
    {"s_cmp_nle_f16", compare_f16<kNot<kLessEqual>>},
    {"s_cmp_neq_f16", compare_f16<kNot<kEqual>>},
    {"s_cmp_nlt_f16", compare_f16<kNot<kLess>>},
});

}  // namespace
}  // namespace rdna
