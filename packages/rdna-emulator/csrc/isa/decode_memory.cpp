// DS, FLAT, GLOBAL, SCRATCH, MUBUF, and the sizes of the encodings that nothing executes.
#include "isa/decoding.hpp"

namespace rdna {
namespace {

void set_vector(Decoding& d, int k, OperandType type, u32 number) {
  if (type == OperandType::none) return;
  d.info.src[k] = d.vgpr(type, number);
  d.inst.src[k] = d.vector_offset(d.info.src[k]);
}

void set_result(Decoding& d, u32 number) {
  const OperandType type = d.info.op->dst[0];
  if (type == OperandType::none) return;
  d.info.dst[0] = d.vgpr(type, number);
  d.inst.dst = static_cast<u16>(number);
  if (d.info.dst[0].high) d.inst.flags |= kDestinationHigh;
}

void trap_instead(Decoding& d) { d.inst.fn = d.inst.body = trap_unserved; }

}  // namespace

void decode_ds(Decoding& d) {
  if (!d.begin(Format::ds, d.field(0, 18, 8), 2)) return;
  const OpInfo& op = *d.info.op;
  d.info.offset0 = static_cast<u8>(d.field(0, 0, 8));
  d.info.offset1 = static_cast<u8>(d.field(0, 8, 8));
  d.info.offset = static_cast<i32>(d.field(0, 0, 16));
  d.inst.imm = d.field(0, 0, 16);
  d.info.gds = d.field(0, 17, 1);
  set_vector(d, 0, op.src[0], d.field(1, 0, 8));
  set_vector(d, 1, op.src[1], d.field(1, 8, 8));
  set_vector(d, 2, op.src[2], d.field(1, 16, 8));
  set_result(d, d.field(1, 24, 8));
  if (d.info.gds) trap_instead(d);
}

void decode_flat(Decoding& d) {
  const u32 segment = d.field(0, 16, 2);
  if (segment > 2) {
    d.valid = false;
    return;
  }
  const Format format = segment == 0 ? Format::flat : segment == 1 ? Format::scratch : Format::global;
  if (!d.begin(format, d.field(0, 18, 7), 2)) return;
  const OpInfo& op = *d.info.op;
  d.info.dlc = d.field(0, 13, 1);
  d.info.glc = d.field(0, 14, 1);
  d.info.slc = d.field(0, 15, 1);
  d.info.offset = format == Format::flat ? static_cast<i32>(d.field(0, 0, 12)) : sign_extend(d.field(0, 0, 13), 13);
  d.inst.imm = static_cast<u32>(d.info.offset);

  const u32 saddr = d.field(1, 16, 7);
  const bool has_saddr = format != Format::flat && saddr != kNull;
  const bool has_vaddr = format != Format::scratch || d.field(1, 23, 1);
  if (has_saddr) {
    d.info.src[2] = d.scalar(format == Format::global ? OperandType::b64 : OperandType::b32, saddr);
    d.inst.src[2] = d.scalar_offset(d.info.src[2]);
  }
  if (has_vaddr && op.src[0] != OperandType::none) {
    const bool offset_only = format == Format::global && has_saddr;
    set_vector(d, 0, offset_only ? OperandType::b32 : op.src[0], d.field(1, 0, 8));
  }
  set_vector(d, 1, op.src[1], d.field(1, 8, 8));
  if (!op.has(kAtomic) || d.info.glc) set_result(d, d.field(1, 24, 8));
}

void decode_mubuf(Decoding& d) {
  if (!d.begin(Format::mubuf, d.field(0, 18, 8), 2)) return;
  const OpInfo& op = *d.info.op;
  d.info.slc = d.field(0, 12, 1);
  d.info.dlc = d.field(0, 13, 1);
  d.info.glc = d.field(0, 14, 1);
  if (op.src[0] == OperandType::none) return;
  d.info.offset = static_cast<i32>(d.field(0, 0, 12));
  d.inst.imm = d.field(0, 0, 12);
  d.info.tfe = d.field(1, 21, 1);
  d.info.offen = d.field(1, 22, 1);
  d.info.idxen = d.field(1, 23, 1);
  if (d.info.offen || d.info.idxen) {
    const bool both = d.info.offen && d.info.idxen;
    set_vector(d, 0, both ? OperandType::b64 : OperandType::b32, d.field(1, 0, 8));
  }
  const u32 data = d.field(1, 8, 8);
  set_vector(d, 1, op.src[1], data);
  if (!op.has(kAtomic) || d.info.glc) set_result(d, data);
  d.info.src[2] = d.scalar(OperandType::b128, d.field(1, 16, 5) * 4);
  d.inst.src[2] = d.scalar_offset(d.info.src[2]);
  const u32 scalar_offset = d.field(1, 24, 8);
  if (scalar_offset == kCodeLiteral) d.valid = false;
  if (d.valid) d.info.src[3] = d.source(OperandType::b32, scalar_offset);
  if (d.info.tfe) trap_instead(d);
}

void decode_unserved(Decoding& d, Format format) {
  switch (format) {
    case Format::mtbuf: d.begin(format, d.field(0, 15, 4), 2); break;
    case Format::mimg: d.begin(format, d.field(0, 18, 8), 2 + d.field(0, 0, 1)); break;  // bit 0: more addresses follow
    case Format::exp: d.begin(format, 0, 2); break;
    case Format::ldsdir: d.begin(format, d.field(0, 20, 2), 1); break;
    case Format::vinterp: d.begin(format, d.field(0, 16, 7), 2); break;
    default: d.valid = false;
  }
}

}  // namespace rdna
