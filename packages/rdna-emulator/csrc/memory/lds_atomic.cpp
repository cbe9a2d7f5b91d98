// DS atomics. A workgroup runs on one thread, so plain reads and writes do.
#include "memory/atomic.hpp"
#include "memory/lds.hpp"

namespace rdna {
namespace {

using namespace atomic;

template <class T, class Operation, bool kReturns, bool kTwoOperands = false>
void modify(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const LdsLanes lanes = locate_lds<sizeof(T), true>(w, i, active, static_cast<const u32*>(w.source(i, 0)), i.imm);
  const u32 row = row_of_data(i, 1);
  if (w.shadow) [[unlikely]] {
    report_lds(w, i, Access::atomic, active, lanes, i.imm, sizeof(T), kReturns ? i.dst : row, false, kReturns);
  }
  T results[kLanes];
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    u8* at = lanes.at(i.imm) + lanes.site->delta[l];
    T old, changed;
    std::memcpy(&old, at, sizeof old);
    if constexpr (kTwoOperands) {
      changed = Operation{}(old, read_lane<T>(w, row, l), read_lane<T>(w, row_of_data(i, 2), l));
    } else {
      changed = Operation{}(old, read_lane<T>(w, row, l));
    }
    w.group->worker->changes += changed != old;
    std::memcpy(at, &changed, sizeof changed);
    results[l] = old;
  }
  if constexpr (kReturns) {
    for (u32 left = active; left; left &= left - 1) {
      const int l = std::countr_zero(left);
      write_lane<T>(w, i.dst, l, results[l]);
    }
  }
}

template <class T, u32 kScale>
void exchange_2addr(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const u32 offsets[2] = {(i.imm & 0xff) * static_cast<u32>(sizeof(T)) * kScale,
                          (i.imm >> 8) * static_cast<u32>(sizeof(T)) * kScale};
  const LdsLanes lanes =
      locate_lds<sizeof(T), true>(w, i, active, static_cast<const u32*>(w.source(i, 0)), offsets[0], offsets[1]);
  constexpr u32 kRows = sizeof(T) / 4;
  if (w.shadow) [[unlikely]] {
    for (u32 k = 0; k < 2; ++k) {
      report_lds(w, i, Access::atomic, active, lanes, offsets[k], sizeof(T), i.dst + k * kRows, false, true);
    }
  }
  ++w.group->worker->changes;
  T results[2][kLanes];
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    for (int k = 0; k < 2; ++k) std::memcpy(&results[k][l], lanes.at(offsets[k]) + lanes.site->delta[l], sizeof(T));
    for (int k = 0; k < 2; ++k) {
      const T data = read_lane<T>(w, row_of_data(i, 1 + k), l);
      std::memcpy(lanes.at(offsets[k]) + lanes.site->delta[l], &data, sizeof(T));
    }
  }
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    for (u32 k = 0; k < 2; ++k) write_lane<T>(w, i.dst + k * kRows, l, results[k][l]);
  }
}

// Each dword whose top bit is set in the data is replaced by the data without that bit.
void conditional_exchange(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const LdsLanes lanes = locate_lds<8, true>(w, i, active, static_cast<const u32*>(w.source(i, 0)), i.imm);
  const u32 row = row_of_data(i, 1);
  if (w.shadow) [[unlikely]] report_lds(w, i, Access::atomic, active, lanes, i.imm, 8, i.dst, false, true);
  ++w.group->worker->changes;
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    u8* at = lanes.at(i.imm) + lanes.site->delta[l];
    u32 old[2], changed[2];
    std::memcpy(old, at, 8);
    for (u32 k = 0; k < 2; ++k) {
      const u32 data = w.v[row + k][l];
      changed[k] = data >> 31 ? data & 0x7fffffffu : old[k];
    }
    std::memcpy(at, changed, 8);
    for (u32 k = 0; k < 2; ++k) w.v[i.dst + k][l] = old[k];
  }
}

// One counter for the wave, changed by the number of its active lanes.
template <bool kAppend>
void count_lanes(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  alignas(128) u32 addresses[kLanes] = {};
  const u32 lane = active & -active;
  addresses[std::countr_zero(lane)] = w.s[kM0] >> 16;
  const LdsLanes lanes = locate_lds<4, true>(w, i, lane, addresses, i.imm);
  if (w.shadow) [[unlikely]] report_lds(w, i, Access::atomic, lane, lanes, i.imm, 4, i.dst, false, true);
  ++w.group->worker->changes;
  u32 old;
  std::memcpy(&old, lanes.at(i.imm), 4);
  const u32 count = static_cast<u32>(std::popcount(active));
  const u32 changed = kAppend ? old + count : old - count;
  std::memcpy(lanes.at(i.imm), &changed, 4);
  for (u32 left = active; left; left &= left - 1) w.v[i.dst][std::countr_zero(left)] = old;
}

const Registration kPlain({
    {"ds_add_u32", modify<u32, Add, false>},
    {"ds_sub_u32", modify<u32, Sub, false>},
    {"ds_rsub_u32", modify<u32, ReverseSub, false>},
    {"ds_inc_u32", modify<u32, Increment, false>},
    {"ds_dec_u32", modify<u32, Decrement, false>},
    {"ds_min_i32", modify<u32, MinSigned, false>},
    {"ds_max_i32", modify<u32, MaxSigned, false>},
    {"ds_min_u32", modify<u32, MinUnsigned, false>},
    {"ds_max_u32", modify<u32, MaxUnsigned, false>},
    {"ds_and_b32", modify<u32, And, false>},
    {"ds_or_b32", modify<u32, Or, false>},
    {"ds_xor_b32", modify<u32, Xor, false>},
    {"ds_mskor_b32", modify<u32, MaskedOr, false, true>},
    {"ds_cmpstore_b32", modify<u32, CompareSwap, false, true>},
    {"ds_cmpstore_f32", modify<u32, CompareSwapFloat, false, true>},
    {"ds_min_f32", modify<u32, MinFloat, false>},
    {"ds_max_f32", modify<u32, MaxFloat, false>},
    {"ds_add_f32", modify<u32, AddFloat, false>},
    {"ds_add_u64", modify<u64, Add, false>},
    {"ds_sub_u64", modify<u64, Sub, false>},
    {"ds_rsub_u64", modify<u64, ReverseSub, false>},
    {"ds_inc_u64", modify<u64, Increment, false>},
    {"ds_dec_u64", modify<u64, Decrement, false>},
    {"ds_min_i64", modify<u64, MinSigned, false>},
    {"ds_max_i64", modify<u64, MaxSigned, false>},
    {"ds_min_u64", modify<u64, MinUnsigned, false>},
    {"ds_max_u64", modify<u64, MaxUnsigned, false>},
    {"ds_and_b64", modify<u64, And, false>},
    {"ds_or_b64", modify<u64, Or, false>},
    {"ds_xor_b64", modify<u64, Xor, false>},
    {"ds_mskor_b64", modify<u64, MaskedOr, false, true>},
    {"ds_cmpstore_b64", modify<u64, CompareSwap, false, true>},
    {"ds_cmpstore_f64", modify<u64, CompareSwapFloat, false, true>},
    {"ds_min_f64", modify<u64, MinFloat, false>},
    {"ds_max_f64", modify<u64, MaxFloat, false>},
});

const Registration kReturning({
    {"ds_add_rtn_u32", modify<u32, Add, true>},
    {"ds_sub_rtn_u32", modify<u32, Sub, true>},
    {"ds_rsub_rtn_u32", modify<u32, ReverseSub, true>},
    {"ds_inc_rtn_u32", modify<u32, Increment, true>},
    {"ds_dec_rtn_u32", modify<u32, Decrement, true>},
    {"ds_min_rtn_i32", modify<u32, MinSigned, true>},
    {"ds_max_rtn_i32", modify<u32, MaxSigned, true>},
    {"ds_min_rtn_u32", modify<u32, MinUnsigned, true>},
    {"ds_max_rtn_u32", modify<u32, MaxUnsigned, true>},
    {"ds_and_rtn_b32", modify<u32, And, true>},
    {"ds_or_rtn_b32", modify<u32, Or, true>},
    {"ds_xor_rtn_b32", modify<u32, Xor, true>},
    {"ds_mskor_rtn_b32", modify<u32, MaskedOr, true, true>},
    {"ds_storexchg_rtn_b32", modify<u32, Swap, true>},
    {"ds_storexchg_2addr_rtn_b32", exchange_2addr<u32, 1>},
    {"ds_storexchg_2addr_stride64_rtn_b32", exchange_2addr<u32, 64>},
    {"ds_cmpstore_rtn_b32", modify<u32, CompareSwap, true, true>},
    {"ds_cmpstore_rtn_f32", modify<u32, CompareSwapFloat, true, true>},
    {"ds_min_rtn_f32", modify<u32, MinFloat, true>},
    {"ds_max_rtn_f32", modify<u32, MaxFloat, true>},
    {"ds_wrap_rtn_b32", modify<u32, Wrap, true, true>},
    {"ds_add_rtn_f32", modify<u32, AddFloat, true>},
    {"ds_add_rtn_u64", modify<u64, Add, true>},
    {"ds_sub_rtn_u64", modify<u64, Sub, true>},
    {"ds_rsub_rtn_u64", modify<u64, ReverseSub, true>},
    {"ds_inc_rtn_u64", modify<u64, Increment, true>},
    {"ds_dec_rtn_u64", modify<u64, Decrement, true>},
    {"ds_min_rtn_i64", modify<u64, MinSigned, true>},
    {"ds_max_rtn_i64", modify<u64, MaxSigned, true>},
    {"ds_min_rtn_u64", modify<u64, MinUnsigned, true>},
    {"ds_max_rtn_u64", modify<u64, MaxUnsigned, true>},
    {"ds_and_rtn_b64", modify<u64, And, true>},
    {"ds_or_rtn_b64", modify<u64, Or, true>},
    {"ds_xor_rtn_b64", modify<u64, Xor, true>},
    {"ds_mskor_rtn_b64", modify<u64, MaskedOr, true, true>},
    {"ds_storexchg_rtn_b64", modify<u64, Swap, true>},
    {"ds_storexchg_2addr_rtn_b64", exchange_2addr<u64, 1>},
    {"ds_storexchg_2addr_stride64_rtn_b64", exchange_2addr<u64, 64>},
    {"ds_cmpstore_rtn_b64", modify<u64, CompareSwap, true, true>},
    {"ds_cmpstore_rtn_f64", modify<u64, CompareSwapFloat, true, true>},
    {"ds_min_rtn_f64", modify<u64, MinFloat, true>},
    {"ds_max_rtn_f64", modify<u64, MaxFloat, true>},
    {"ds_condxchg32_rtn_b64", conditional_exchange},
    {"ds_append", count_lanes<true>},
    {"ds_consume", count_lanes<false>},
});

}  // namespace
}  // namespace rdna
