// Vectors to slots.
#include "abi.h"
#include "codebook.hpp"
#include "packing.hpp"
#include "rotation.hpp"
#include "sums.hpp"

namespace octave {
namespace {

struct Float32 {
  using Stored = Floats;
  OCTAVE_INLINE static Floats widen(Stored x) { return x; }
};

struct Float16 {
  using Stored = Lanes<_Float16>;
  OCTAVE_INLINE static Floats widen(Stored x) { return convert<Floats>(x); }
};

struct BFloat16 {
  using Stored = Lanes<std::uint16_t>;
  OCTAVE_INLINE static Floats widen(Stored x) {
    return __builtin_bit_cast(Floats, convert<Lanes<std::uint32_t>>(x) << 16);
  }
};

template <class Element>
void rotate(const std::uint8_t* row, const float* signs, int n, int block, float* y) {
  for (int i = 0; i < n; i += kLanes) {
    const auto x = load<typename Element::Stored>(row + i * sizeof(typename Element::Stored) / kLanes);
    store(y + i, Element::widen(x) * load<Floats>(signs + i));
  }
  transform(y, n, block);
}

// Codes of one group of `n` rotated coordinates; gives its scale, 0 where the group is not finite.
template <int bits>
_Float16 quantize(const float* y, int n, std::uint8_t* codes) {
  const float energy = sum(n, [&](int i) { return load<Floats>(y + i) * load<Floats>(y + i); });
  const float root = __builtin_sqrtf(energy / static_cast<float>(n));
  const float rms = root > 1e-12f ? root : 1e-12f;
  for (int i = 0; i < n; i += kLanes) {
    store(codes + i, nearest<bits>(load<Floats>(y + i) / rms * Codebook<bits>::multiplier));
  }
  const float dot = sum(n, [&](int i) { return load<Floats>(y + i) * levels_of<bits>(load<Bytes>(codes + i)); });
  // An Inf in a block's first dimension gives it to all coordinates with one sign, and so to dot.
  if (!(dot > 0 && dot < __builtin_inff())) return 0;
  const float scale = 64 * energy / dot;
  return static_cast<_Float16>(scale < 65504 ? scale : 65504);
}

template <class Element>
void encode_row(const octave_format& format, const std::uint8_t* key, const std::uint8_t* value, std::uint8_t* slot) {
  alignas(64) float y[kMaxHeadSize];
  alignas(64) std::uint8_t codes[kMaxHeadSize];
  _Float16 scales[kMaxHeadSize / 64 + 1];
  _Float16* scale = scales;
  const int n = format.head_size;

  rotate<Element>(key, format.signs, n, format.k_block, y);
  for (int at = 0; at < n; at += format.k_block) {
    *scale++ = at < format.wide ? quantize<4>(y + at, format.k_block, codes + at)
                                : quantize<3>(y + at, format.k_block, codes + at);
  }
  std::uint8_t* end = pack(codes, format.wide, 4, slot);
  end = pack(codes + format.wide, n - format.wide, 3, end);

  rotate<Element>(value, format.signs, n, format.v_block, y);
  *scale++ = format.v_bits == 4 ? quantize<4>(y, n, codes) : quantize<3>(y, n, codes);
  end = pack(codes, n, format.v_bits, end);

  for (const _Float16* from = scales; from < scale; ++from, end += sizeof *from) store(end, *from);
  while (end < slot + format.slot_bytes) *end++ = 0;
}

template <class Element>
void encode(const octave_format& format, octave_rows key, octave_rows value, octave_rows slots, std::int64_t num_tokens,
            std::int64_t num_heads) {
  const auto at = [](octave_rows rows, std::int64_t token, std::int64_t head) {
    return static_cast<std::uint8_t*>(rows.first) + token * rows.token_stride + head * rows.head_stride;
  };
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      encode_row<Element>(format, at(key, token, head), at(value, token, head), at(slots, token, head));
    }
  }
}

}  // namespace
}  // namespace octave

extern "C" void octave_encode(const octave_format* format, std::int32_t element, octave_rows key, octave_rows value,
                              octave_rows slots, std::int64_t num_tokens, std::int64_t num_heads) {
  using namespace octave;
  const auto run = element == OCTAVE_FLOAT32 ? encode<Float32> : element == OCTAVE_FLOAT16 ? encode<Float16> : encode<BFloat16>;
  run(*format, key, value, slots, num_tokens, num_heads);
}
