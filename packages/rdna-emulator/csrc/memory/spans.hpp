// What a launch may access: byte spans of host memory, and which of their 128-byte lines it has touched.
#pragma once
#include <string>
#include <vector>

#include "core/machine.hpp"

namespace rdna {

constexpr u64 kSharedBase = u64{1} << 48;   // the FLAT aperture of LDS; host addresses lie below 2^47
constexpr u64 kPrivateBase = u64{2} << 48;  // and of scratch
constexpr u64 kApertureMask = ~u64{0xffffffff};

// An array of the caller, the kernel's arguments or a part of the code object.
struct NamedSpan {
  u64 begin = 0, end = 0;
  u64 origin = 0;        // segments and lines are counted from here, as if a device allocation began here
  bool writable = false;
  bool counted = false;  // by line
  std::string name;
  u64 lines = 0;         // result: lines touched
  u64 requested = 0;     // result: bytes that instructions asked for
};

// Named spans that overlap are one span to the emulator.
struct Span {
  u64 begin = 0, end = 0;
  u64 origin = 0;
  bool writable = false;
  u64* lines = nullptr;  // one bit a line from `origin` on; null where lines are not counted
  u32 first_name = 0, last_name = 0;  // members: named_[first_name] to named_[last_name]
  u32 first_piece = 0;                // of those that make it up, in pieces_
};

// A part of a span that has the same names all over: the whole of it where one name does.
struct Piece {
  u64 begin = 0, end = 0;
};

struct TouchedWord {
  u32 span;
  u64 word;
};

// A large zeroed mapping: untouched pages cost nothing.
class SparseBits {
 public:
  ~SparseBits();
  u64* reserve(u64 words);  // at least so many words; all zero at the first call and kept zero by the caller

 private:
  u64* words_ = nullptr;
  u64 count_ = 0;
};

class AddressSpace {
 public:
  void reset(std::vector<NamedSpan> named, SparseBits& bits);
  const Span* find(u64 address) const;  // null: nowhere
  const Span& operator[](u32 k) const { return spans_[k]; }
  u32 number(const Span& span) const { return static_cast<u32>(&span - spans_.data()); }
  u32 piece_of(const Span& span, u64 address) const {  // an address in the span
    u32 k = span.first_piece;
    while (address >= pieces_[k].end) ++k;
    return k;
  }
  const std::vector<Piece>& pieces() const { return pieces_; }
  // Counts the lines of each named span, clears the bits, and returns the lines of all counted spans together.
  u64 count_lines(const std::vector<TouchedWord>& touched);
  // Gives each named span the bytes that were asked of its pieces.
  void count_requested(const std::vector<u64>& of_pieces);
  const std::vector<NamedSpan>& named() const { return named_; }
  // Where an access that is allowed nowhere lies, for a message.
  std::string describe(u64 address, u32 bytes, bool write) const;

 private:
  void make_pieces();

  std::vector<NamedSpan> named_;  // by address
  std::vector<Span> spans_;       // disjoint, by address
  std::vector<Piece> pieces_;     // of all spans, by address
};

}  // namespace rdna
