#include "valu/matrix_links.hpp"

#include <algorithm>
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

bool branches_anywhere(const OpInfo& op) { return op.cls == OpClass::branch && !op.has(kBranches); }

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

// The instructions from a branch's target to that branch, into which a wave comes by its entries alone, or begins there.
struct Loop {
  i32 first, last;
  std::vector<i32> entries;
  Registers written;
  bool holds(i32 index) const { return first <= index && index <= last; }
};

// False: what the loop writes is not known.
bool add_written(const Program& program, Loop& loop) {
  for (i32 index = loop.first; index <= loop.last; ++index) {
    const InstInfo& info = program.infos[index];
    if (!info.op || !add_written(info, loop.written)) return false;
  }
  return true;
}

// The inner ones first.
std::vector<Loop> find_loops(const Program& program) {
  std::vector<Loop> loops;
  std::vector<i32> branches;
  for (i32 index = 0; index < static_cast<i32>(program.insts.size()); ++index) {
    const OpInfo* op = program.infos[index].op;
    if (op && branches_anywhere(*op)) return {};
    if (!op || !op->has(kBranches)) continue;
    branches.push_back(index);
    const i32 target = program.insts[index].target;
    if (target > 0 && target <= index) loops.push_back({target, index, {}, {}});
  }
  for (Loop& loop : loops) {
    loop.entries.push_back(loop.first - 1);
    for (const i32 branch : branches)
      if (!loop.holds(branch) && loop.holds(program.insts[branch].target)) loop.entries.push_back(branch);
  }
  const auto is_useless = [&](Loop& loop) { return loop.entries.size() > 2 || !add_written(program, loop); };
  loops.erase(std::remove_if(loops.begin(), loops.end(), is_useless), loops.end());
  std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.last - a.first < b.last - b.first; });
  return loops;
}

}  // namespace

std::vector<MatrixLink> link_matrices(const Program& program) {
  std::vector<MatrixLink> links(program.insts.size());
  const std::vector<Loop> loops = find_loops(program);
  for (const i32 index : program.index_of_word) {
    if (index < 0 || !remembers(program.infos[index])) continue;
    MatrixLink& link = links[index] = link_of(program, index);
    const auto loop = std::find_if(loops.begin(), loops.end(), [&](const Loop& around) {
      return around.holds(index) && !overwritten(program.infos[index].src[1], around.written);
    });
    if (loop != loops.end()) link.entries[0] = loop->entries.front(), link.entries[1] = loop->entries.back();
  }
  return links;
}

}  // namespace rdna
