// Moves, selection and exchange between lanes.
#include <string>

#include "valu/lanes.hpp"

namespace rdna {
namespace {

void cndmask_b32(Wave& w, const Inst& i) {
  const u32x no = w.vector_source<u32x>(i, 0), yes = w.vector_source<u32x>(i, 1);
  w.write(i.dst, lane_mask(w.s[i.smask]) ? yes : no);
}

void cndmask_b16(Wave& w, const Inst& i) {
  const u32x no = w.vector_source<u32x>(i, 0), yes = w.vector_source<u32x>(i, 1);
  w.write16(i, convert<u16x>(lane_mask(w.s[i.smask]) ? yes : no));
}

RDNA_INLINE const u32* lanes_of_source(const Wave& w, const Inst& i) { return w.v[i.info->src[0].reg]; }

void readfirstlane(Wave& w, const Inst& i) {
  const Operand& from = i.info->src[0];
  if (from.kind != OperandKind::vgpr) {
    w.s[i.dst] = scalar_operand(w, from);
    return;
  }
  const u32 active = w.exec();
  w.s[i.dst] = lanes_of_source(w, i)[active ? __builtin_ctz(active) : 0];
}

void readlane(Wave& w, const Inst& i) {
  w.s[i.dst] = lanes_of_source(w, i)[scalar_operand(w, i.info->src[1]) & 31u];
}

void writelane(Wave& w, const Inst& i) {
  w.v[i.dst][scalar_operand(w, i.info->src[1]) & 31u] = scalar_operand(w, i.info->src[0]);
}

// Selectors, four bits a lane, with which each lane of a row reads its own place: the lower and the upper eight.
constexpr u32 kInOrder = 0x76543210u, kEights = 0x88888888u;

// op_sel bit 0 reads inactive lanes as well; without it they give 0 where bit 1 (bound_ctrl) is set, else the
// destination keeps its value.
template <u32 other_row>
void permlane(Wave& w, const Inst& i) {
  const InstInfo& info = *i.info;
  const u32 low = scalar_operand(w, info.src[1]), high = scalar_operand(w, info.src[2]);
  if (low == kInOrder && high == kInOrder + kEights && w.exec() == ~0u) {
    const u32x value = *reinterpret_cast<const u32x*>(w.v[info.src[0].reg]);
    u32x& target = w.row(i.dst);
    target.lo = other_row ? value.hi : value.lo;
    target.hi = other_row ? value.lo : value.hi;
    return;
  }
  const u32x selectors = (kLaneIndex & 8u) != 0u ? u32x(high) : u32x(low);
  const u32x source =
      ((selectors >> ((kLaneIndex & 7u) * 4u)) & 15u) | ((kLaneIndex & 16u) ^ other_row);
  u32x value = permute(*reinterpret_cast<const u32x*>(w.v[info.src[0].reg]), source);
  const u32 exec = w.exec();
  u32 lanes = exec;
  if (exec != ~0u && !(info.op_sel & 1)) {
    const u32 valid = lane_bits((u32x(exec) >> source) & 1u);
    if (info.op_sel & 2) {
      value = lane_mask(valid) ? value : u32x(0u);
    } else {
      lanes &= valid;
    }
  }
  u32x& target = w.row(i.dst);
  target = lane_mask(lanes) ? value : target;
}

void swap_b32(Wave& w, const Inst& i) {
  const u16 other = i.info->src[0].reg;
  const u32x from = w.row(other), to = w.row(i.dst);
  w.write(i.dst, from);
  w.write(other, to);
}

RDNA_INLINE u32x half_of(u32x row, bool high) { return high ? row >> 16 : row & 0xffffu; }
RDNA_INLINE u32x with_half(u32x row, bool high, u32x half) {
  return high ? (row & 0xffffu) | half << 16 : (row & 0xffff0000u) | half;
}

void swap_b16(Wave& w, const Inst& i) {
  const Operand& other = i.info->src[0];
  const bool high = i.flags & kDestinationHigh;
  const u32x from = half_of(w.row(other.reg), other.high), to = half_of(w.row(i.dst), high);
  w.write(i.dst, with_half(w.row(i.dst), high, from));
  w.write(other.reg, with_half(w.row(other.reg), other.high, to));
}

// A register number moved by M0.
u16 relative(Wave& w, const Inst& i, u32 base, u32 distance) {
  const u32 number = base + distance;
  if (number > 255) trap(w, i, Fault::unsupported, -1, "M0 selects v" + std::to_string(number) + ", past v255");
  return static_cast<u16>(number);
}

void movreld(Wave& w, const Inst& i) {
  w.write(relative(w, i, i.dst, w.s[kM0]), w.vector_source<u32x>(i, 0));
}
void movrels(Wave& w, const Inst& i) {
  w.write(i.dst, w.row(relative(w, i, i.info->src[0].reg, w.s[kM0])));
}
void movrelsd(Wave& w, const Inst& i) {
  const u16 from = relative(w, i, i.info->src[0].reg, w.s[kM0]);
  w.write(relative(w, i, i.dst, w.s[kM0]), w.row(from));
}
void movrelsd_2(Wave& w, const Inst& i) {
  const u16 from = relative(w, i, i.info->src[0].reg, w.s[kM0] & 0x3ffu);
  w.write(relative(w, i, i.dst, w.s[kM0] >> 16 & 0x3ffu), w.row(from));
}
void swaprel(Wave& w, const Inst& i) {
  const u16 from = relative(w, i, i.info->src[0].reg, w.s[kM0] & 0x3ffu);
  const u16 to = relative(w, i, i.dst, w.s[kM0] >> 16 & 0x3ffu);
  const u32x first = w.row(from), second = w.row(to);
  w.write(to, first);
  w.write(from, second);
}

void nothing(Wave&, const Inst&) {}

const Registration registration{
    {"v_nop", nothing},
    {"v_pipeflush", nothing},
    {"v_permlane64_b32", nothing},  // of use in wave64 only
    {"v_mov_b32", operation<[](u32x a) { return a; }>},
    {"v_mov_b16", operation<[](u16x a) { return a; }>},
    {"v_cndmask_b32", cndmask_b32},
    {"v_cndmask_b16", cndmask_b16},
    {"v_readfirstlane_b32", readfirstlane},
    {"v_readlane_b32", readlane},
    {"v_writelane_b32", writelane},
    {"v_permlane16_b32", permlane<0>},
    {"v_permlanex16_b32", permlane<16>},
    {"v_swap_b32", swap_b32},
    {"v_swap_b16", swap_b16},
    {"v_movreld_b32", movreld},
    {"v_movrels_b32", movrels},
    {"v_movrelsd_b32", movrelsd},
    {"v_movrelsd_2_b32", movrelsd_2},
    {"v_swaprel_b32", swaprel},
};

}  // namespace
}  // namespace rdna
