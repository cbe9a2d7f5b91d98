#include "valu/matrix_links.hpp"

#include <bitset>
#include <string_view>

#include "isa/op.hpp"
#include "valu/matrix_memory.hpp"

namespace rdna {
namespace {

constexpr std::size_t kFarthest = 255;  // instructions back that are looked at
constexpr u8 kMostLinks = 15;

using Registers = std::bitset<kSourceRows>;

bool remembers(const InstInfo& info) {
  return info.op && info.op->cls == OpClass::wmma && std::string_view(info.op->name).starts_with("v_wmma_f32_");
}

// Whether the instruction after it, and no other, is always the next.
bool goes_on(const OpInfo& op) { return op.cls != OpClass::branch && !op.has(kBranches) && !op.has(kEnds) && !op.has(kUnserved); }

// False: which registers it writes is not known.
bool add_written(const InstInfo& info, Registers& written) {
  if (info.pair) return add_written(info.pair->x_info, written) && add_written(info.pair->y_info, written);
  if (info.op->has(kReadsM0) && info.op->cls == OpClass::valu) return false;  // a register that M0 chooses
  for (const Operand& operand : info.dst)
    if (operand.kind == OperandKind::vgpr)
      for (u32 n = 0; n < operand.dwords; ++n) written.set(operand.reg + n);
  return true;
}

bool overwritten(const Operand& factor, const Registers& written) {
  for (u32 n = 0; n < kDepth / 2; ++n)
    if (written.test(factor.reg + n)) return true;
  return false;
}

MatrixLink link_of(const Program& program, std::size_t k) {
  const InstInfo& info = program.infos[k];
  MatrixLink link;
  Registers written;
  u8 links = 0;
  for (std::size_t back = 1; back <= k && back <= kFarthest && links < kMostLinks; ++back) {
    const InstInfo& before = program.infos[k - back];
    if (!before.op || !goes_on(*before.op) || !add_written(before, written)) break;
    if (!remembers(before)) continue;
    ++links;
    const auto same = [&](int factor) {
      return before.op == info.op && before.src[factor].reg == info.src[factor].reg &&
             sign_mask(before, factor) == sign_mask(info, factor) && !overwritten(info.src[factor], written);
    };
    if (links == 1) link.back = static_cast<u8>(back), link.same_a = same(0);
    if (same(1)) {
      link.same_b = links;
      break;
    }
  }
  return link;
}

}  // namespace

std::vector<MatrixLink> link_matrices(const Program& program) {
  std::vector<MatrixLink> links(program.insts.size());
  for (std::size_t k = 0; k < program.index_of_word.size(); ++k) {
    const i32 index = program.index_of_word[k];
    if (index >= 0 && remembers(program.infos[index])) links[index] = link_of(program, index);
  }
  return links;
}

}  // namespace rdna
