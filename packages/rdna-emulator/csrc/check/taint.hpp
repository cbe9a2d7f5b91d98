// Taint as the rules see it: the undefined lanes of each byte of an operand.
#pragma once
#include "check/plan.hpp"
#include "check/shadow.hpp"

namespace rdna {

constexpr int kMaxBytes = 8;

// Undefined lanes of each byte of an operand, low byte first.
struct Bytes {
  u32 lanes[kMaxBytes] = {};
  u32 any() const {
    u32 all = 0;
    for (const u32 byte : lanes) all |= byte;
    return all;
  }
  void merge(const Bytes& other) {
    for (int byte = 0; byte < kMaxBytes; ++byte) lanes[byte] |= other.lanes[byte];
  }
};

void set_scalar(WaveShadow&, u16 reg, u32 taint);
// Taint of an operand's first eight bytes; a high half is moved down.
Bytes fetch(const WaveShadow&, const InstInfo&, const Operand&);
u32 any_of(const WaveShadow&, const InstInfo&, const Operand&);
void store(WaveShadow&, const Operand& dst, const Bytes&, u32 lanes);
// The value that an operand has in every lane, if that is known before running.
bool uniform_value(const Wave&, const Operand&, u32& value);
void undefined(Wave&, const Inst&, int lane, const char* what);

// The result of a vector instruction; kept apart from storing it, for VOPD reads both halves first (vector_taint.cpp).
Bytes evaluate(Wave&, const Inst&, Rule);
void matrix_result(Wave&, const InstInfo&);
void propagate_scalar(Wave&, const Inst&, const InstPlan&);  // scalar_taint.cpp

}  // namespace rdna
