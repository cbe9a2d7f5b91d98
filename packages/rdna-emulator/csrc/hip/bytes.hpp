// A view of bytes whose every read is checked against its end.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rdna::hip {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Bytes that are no valid code object.
struct DamagedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Bytes {
 public:
  Bytes() = default;
  Bytes(const u8* data, u64 size) : data_(data), size_(size) {}
  const u8* data() const { return data_; }
  u64 size() const { return size_; }

  Bytes part(u64 offset, u64 size, const char* what) const {
    if (offset > size_ || size > size_ - offset) {
      throw DamagedError("truncated: the " + std::string(what) + " at byte " + std::to_string(offset) +
                         " lies past the end at byte " + std::to_string(size_));
    }
    return {data_ + offset, size};
  }

  template <class T>
  T get(u64 offset, const char* what) const {
    T value;
    std::memcpy(&value, part(offset, sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string text(u64 offset, const char* what) const {  // up to a zero byte
    const Bytes rest = part(offset, size_ - (offset < size_ ? offset : size_), what);
    const void* end = rest.size() ? std::memchr(rest.data(), 0, rest.size()) : nullptr;
    if (!end) throw DamagedError("the " + std::string(what) + " has no end");
    return reinterpret_cast<const char*>(rest.data());
  }

  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const u8* data_ = nullptr;
  u64 size_ = 0;
};

}  // namespace rdna::hip
