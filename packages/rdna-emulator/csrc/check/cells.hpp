// Walks over the shadow cells of a byte range: one granule at a time, or its dwords where it was touched in part.
#pragma once
#include <iterator>

#include "check/shadow.hpp"

namespace rdna {

constexpr u32 kWholeGranule = 0xffff;

// Bytes of `dword` that [address, address + bytes) covers.
inline u32 dword_bytes(u64 address, u32 bytes, u64 dword) {
  const u64 low = address > dword * 4 ? address - dword * 4 : 0;
  const u64 high = address + bytes < dword * 4 + 4 ? address + bytes - dword * 4 : 4;
  return ((1u << (high - low)) - 1) << low;
}

// Calls function(cell, mask of the bytes of the dword, address of the cell).
template <class Function>
RDNA_INLINE void for_lds_cells(WorkgroupShadow& group, u64 address, u32 bytes, Function function) {
  const u64 end = address + bytes;
  while (address < end) {
    const u64 granule = address / kGranuleBytes;
    if (!group.lds_split[granule]) {
      if (address % kGranuleBytes == 0 && end - address >= kGranuleBytes) {
        function(group.lds_granules[granule], 0xfu, address);
        address += kGranuleBytes;
        continue;
      }
      group.lds_split[granule] = 1;
      for (u64 k = 0; k < 4; ++k) group.lds_dwords[4 * granule + k] = group.lds_granules[granule];
    }
    const u64 stop = std::min<u64>(end, (granule + 1) * kGranuleBytes);
    for (u64 dword = address / 4; dword * 4 < stop; ++dword)
      function(group.lds_dwords[dword], dword_bytes(address, static_cast<u32>(stop - address), dword), dword * 4);
    address = stop;
  }
}

// What a granule's cell says of one of its dwords.
inline GlobalCell part_of(GlobalCell cell, u32 dword) {
  for (Stamp* stamp : {&cell.write, &cell.reads[0], &cell.reads[1]}) {
    stamp->bytes = stamp->bytes >> 4 * dword & 0xf;
    if (stamp->bytes == 0) *stamp = {};
  }
  return cell;
}

inline GlobalCell& granule_of(GlobalPage& page, u64 granule) {
  if (u64& used = page.used[granule / 64]; !(used >> granule % 64 & 1)) {
    used |= 1ull << granule % 64;
    page.granules[granule] = {};
  }
  return page.granules[granule];
}

void use_cells(GlobalPage&);  // puts the noted reads into the cells

// The pages of global memory that one instruction touches, each locked while it is the current one.
class GlobalPages {
 public:
  explicit GlobalPages(WaveShadow& shadow) : shadow_(shadow) {}
  ~GlobalPages() {
    if (shard_) shard_->lock.unlock();
  }
  GlobalPages(const GlobalPages&) = delete;
  GlobalPages& operator=(const GlobalPages&) = delete;

  GlobalPage& of(u64 number) {
    if (page_ && number == number_) return *page_;
    if (shard_) shard_->lock.unlock();
    shard_ = &shadow_.launch->global[number % kShards];
    shard_->lock.lock();
    auto& recent = shadow_.recent_pages[number % std::size(shadow_.recent_pages)];
    if (recent.number != number) {
      auto& page = shard_->pages[number];
      if (!page) page = take_page();
      recent = {number, page.get(), 0, 0};
    }
    page_ = recent.page;
    number_ = number;
    return *page_;
  }

  // Where the wave's reads of a page are noted; null where its cells are in use.
  PageReads* reads_of(u64 number) {
    GlobalPage& page = of(number);
    if (page.in_cells) return nullptr;
    auto& recent = shadow_.recent_pages[number % std::size(shadow_.recent_pages)];
    if (recent.clock != shadow_.clock) {
      if (page.reads.size() == GlobalPage::kMostReads) {
        use_cells(page);
        return nullptr;
      }
      recent.clock = shadow_.clock;
      recent.reads = static_cast<u32>(page.reads.size());
      page.reads.push_back({shadow_.id, shadow_.clock, {}});
    }
    return &page.reads[recent.reads];
  }

 private:
  WaveShadow& shadow_;
  GlobalShard* shard_ = nullptr;
  GlobalPage* page_ = nullptr;
  u64 number_ = 0;
};

// Calls function(cell, mask of its bytes, address of the cell). Reading a part of a granule does not split it.
template <class Function>
RDNA_INLINE void for_global_cells(GlobalPages& pages, u64 address, u32 bytes, bool reads, Function function) {
  const u64 end = address + bytes;
  while (address < end) {
    GlobalPage& page = pages.of(address / kPageBytes);
    if (!page.in_cells) use_cells(page);
    const u64 granule = address % kPageBytes / kGranuleBytes;
    const u64 start = address / kGranuleBytes * kGranuleBytes;
    const u64 stop = std::min<u64>(end, start + kGranuleBytes);
    u64& word = page.split[granule / 64];
    const u64 bit = 1ull << (granule % 64);
    GlobalCell& cell = granule_of(page, granule);
    if (!(word & bit)) {
      const u32 mask = ((1u << (stop - address)) - 1) << (address - start);
      if (reads || mask == kWholeGranule) {
        function(cell, mask, start);
        address = stop;
        continue;
      }
      word |= bit;
      if (!page.dwords) page.dwords = std::make_unique<GlobalCell[]>(kPageBytes / 4);
      for (u32 k = 0; k < 4; ++k) page.dwords[4 * granule + k] = part_of(cell, k);
    }
    for (u64 dword = address / 4; dword * 4 < stop; ++dword)
      function(page.dwords[dword % (kPageBytes / 4)], dword_bytes(address, static_cast<u32>(stop - address), dword), dword * 4);
    address = stop;
  }
}

}  // namespace rdna
