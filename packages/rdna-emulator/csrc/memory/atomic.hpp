// The operations of DS, GLOBAL, FLAT and MUBUF atomics: old value and data to the new value.
#pragma once
#include "core/machine.hpp"

namespace rdna::atomic {

template <class T, class U>
constexpr T as(U value) {
  return __builtin_bit_cast(T, value);
}

template <class T>
using Signed = std::conditional_t<sizeof(T) == 8, i64, i32>;
template <class T>
using Floating = std::conditional_t<sizeof(T) == 8, double, float>;

struct Add { template <class T> T operator()(T old, T data) const { return old + data; } };
struct Sub { template <class T> T operator()(T old, T data) const { return old - data; } };
struct ReverseSub { template <class T> T operator()(T old, T data) const { return data - old; } };
struct ClampedSub { template <class T> T operator()(T old, T data) const { return old < data ? 0 : old - data; } };
struct Increment { template <class T> T operator()(T old, T data) const { return old >= data ? 0 : old + 1; } };
struct Decrement { template <class T> T operator()(T old, T data) const { return old == 0 || old > data ? data : old - 1; } };
struct MinUnsigned { template <class T> T operator()(T old, T data) const { return data < old ? data : old; } };
struct MaxUnsigned { template <class T> T operator()(T old, T data) const { return data > old ? data : old; } };
struct MinSigned {
  template <class T> T operator()(T old, T data) const { return as<Signed<T>>(data) < as<Signed<T>>(old) ? data : old; }
};
struct MaxSigned {
  template <class T> T operator()(T old, T data) const { return as<Signed<T>>(data) > as<Signed<T>>(old) ? data : old; }
};
struct And { template <class T> T operator()(T old, T data) const { return old & data; } };
struct Or { template <class T> T operator()(T old, T data) const { return old | data; } };
struct Xor { template <class T> T operator()(T old, T data) const { return old ^ data; } };
struct Swap { template <class T> T operator()(T, T data) const { return data; } };
struct AddFloat {
  template <class T> T operator()(T old, T data) const { return as<T>(as<Floating<T>>(old) + as<Floating<T>>(data)); }
};
struct MinFloat {
  template <class T> T operator()(T old, T data) const { return as<Floating<T>>(data) < as<Floating<T>>(old) ? data : old; }
};
struct MaxFloat {
  template <class T> T operator()(T old, T data) const { return as<Floating<T>>(data) > as<Floating<T>>(old) ? data : old; }
};

// With a second operand. `compare` is the value that the old one must have.
struct CompareSwap { template <class T> T operator()(T old, T data, T compare) const { return old == compare ? data : old; } };
struct CompareSwapFloat {
  template <class T> T operator()(T old, T data, T compare) const {
    return as<Floating<T>>(old) == as<Floating<T>>(compare) ? data : old;
  }
};
struct MaskedOr { template <class T> T operator()(T old, T mask, T data) const { return (old & ~mask) | data; } };
struct Wrap { template <class T> T operator()(T old, T data, T other) const { return old >= data ? old - data : old + other; } };

template <class T>
T read_lane(const Wave& w, u32 row, int lane) {
  if constexpr (sizeof(T) == 8) {
    return w.v[row][lane] | u64{w.v[row + 1][lane]} << 32;
  } else {
    return w.v[row][lane];
  }
}

template <class T>
void write_lane(Wave& w, u32 row, int lane, T value) {
  w.v[row][lane] = static_cast<u32>(value);
  if constexpr (sizeof(T) == 8) w.v[row + 1][lane] = static_cast<u32>(value >> 32);
}

}  // namespace rdna::atomic
