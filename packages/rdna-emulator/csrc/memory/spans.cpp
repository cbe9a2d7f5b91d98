#include "memory/spans.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>

namespace rdna {

SparseBits::~SparseBits() {
  if (words_) munmap(words_, count_ * 8);
}

u64* SparseBits::reserve(u64 words) {
  if (words > count_) {
    if (words_) munmap(words_, count_ * 8);
    words_ = nullptr;
    count_ = std::max<u64>(std::bit_ceil(words), 1 << 16);
    void* memory = mmap(nullptr, count_ * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      count_ = 0;
      throw std::bad_alloc();
    }
    words_ = static_cast<u64*>(memory);
  }
  return words_;
}

namespace {

u64 words_of(const Span& span) { return (span.end - span.origin + 127) / 128 / 64 + 2; }

}  // namespace

void AddressSpace::reset(std::vector<NamedSpan> named, SparseBits& bits) {
  named_ = std::move(named);
  std::erase_if(named_, [](const NamedSpan& span) { return span.begin == span.end; });
  std::sort(named_.begin(), named_.end(), [](const NamedSpan& a, const NamedSpan& b) { return a.begin < b.begin; });
  spans_.clear();
  u64 words = 0;
  for (u32 k = 0; k < named_.size(); ++k) {
    const NamedSpan& next = named_[k];
    if (!spans_.empty() && next.begin < spans_.back().end) {
      Span& last = spans_.back();
      last.end = std::max(last.end, next.end);
      last.writable |= next.writable;
      last.last_name = k;
    } else {
      spans_.push_back({next.begin, next.end, next.origin, next.writable, nullptr, k, k, 0});
    }
  }
  make_pieces();
  const auto counted = [&](const Span& span) { return named_[span.first_name].counted; };
  for (const Span& span : spans_) words += counted(span) ? words_of(span) : 0;
  u64* next = bits.reserve(words);
  for (Span& span : spans_) {
    if (!counted(span)) continue;
    span.lines = next;
    next += words_of(span);
  }
}

void AddressSpace::make_pieces() {
  pieces_.clear();
  std::vector<u64> ends;
  for (Span& span : spans_) {
    span.first_piece = static_cast<u32>(pieces_.size());
    if (span.first_name == span.last_name) {
      pieces_.push_back({span.begin, span.end});
      continue;
    }
    ends.clear();
    for (u32 k = span.first_name; k <= span.last_name; ++k) ends.insert(ends.end(), {named_[k].begin, named_[k].end});
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    for (std::size_t k = 1; k < ends.size(); ++k) pieces_.push_back({ends[k - 1], ends[k]});
  }
}

const Span* AddressSpace::find(u64 address) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), address,
                                      [](u64 value, const Span& span) { return value < span.begin; });
  if (after == spans_.begin()) return nullptr;
  const Span& span = *(after - 1);
  return address < span.end ? &span : nullptr;
}

u64 AddressSpace::count_lines(const std::vector<TouchedWord>& touched) {
  u64 total = 0;
  for (const auto& [number, word] : touched) {
    const Span& span = spans_[number];
    const u64 bits = span.lines[word];
    span.lines[word] = 0;
    total += static_cast<u64>(std::popcount(bits));
    if (span.first_name == span.last_name) {
      named_[span.first_name].lines += static_cast<u64>(std::popcount(bits));
      continue;
    }
    const u64 first_line = word * 64;
    for (u32 k = span.first_name; k <= span.last_name; ++k) {
      const u64 begin = (named_[k].begin - span.origin) / 128, end = (named_[k].end - 1 - span.origin) / 128 + 1;
      if (end <= first_line || begin >= first_line + 64) continue;
      u64 own = bits;
      if (begin > first_line) own &= ~u64{0} << (begin - first_line);
      if (end < first_line + 64) own &= ~u64{0} >> (first_line + 64 - end);
      named_[k].lines += static_cast<u64>(std::popcount(own));
    }
  }
  return total;
}

void AddressSpace::count_requested(const std::vector<u64>& of_pieces) {
  for (const Span& span : spans_) {
    for (u32 piece = span.first_piece; piece < pieces_.size() && pieces_[piece].begin < span.end; ++piece) {
      if (!of_pieces[piece]) continue;
      for (u32 k = span.first_name; k <= span.last_name; ++k) {
        const bool named = named_[k].begin <= pieces_[piece].begin && pieces_[piece].end <= named_[k].end;
        if (named) named_[k].requested += of_pieces[piece];
      }
    }
  }
}

std::string AddressSpace::describe(u64 address, u32 bytes, bool write) const {
  char text[400];
  const Span* inside = find(address);
  const char* what = write ? "store" : "load";
  const auto name = [&](const Span& span) { return named_[span.first_name].name.c_str(); };
  if (inside && write && !inside->writable) {
    std::snprintf(text, sizeof text, "store of %u bytes to 0x%llx in %s, which is read-only", bytes,
                  static_cast<unsigned long long>(address), name(*inside));
    return text;
  }
  if (spans_.empty()) {
    std::snprintf(text, sizeof text, "%s of %u bytes at 0x%llx; no memory is registered", what, bytes,
                  static_cast<unsigned long long>(address));
    return text;
  }
  const auto distance = [&](const Span& span) {
    if (address >= span.end) return address - span.end;
    return address < span.begin ? span.begin - address : 0;
  };
  const Span& nearest = *std::min_element(
      spans_.begin(), spans_.end(), [&](const Span& a, const Span& b) { return distance(a) < distance(b); });
  const u64 size = nearest.end - nearest.begin;
  const auto offset = static_cast<long long>(address - nearest.begin);
  std::snprintf(text, sizeof text,
                "%s of %u bytes at 0x%llx is in no registered memory; the nearest is %s (0x%llx, %llu bytes), at byte %lld of it",
                what, bytes, static_cast<unsigned long long>(address), name(nearest),
                static_cast<unsigned long long>(nearest.begin), static_cast<unsigned long long>(size), offset);
  return text;
}

}  // namespace rdna
