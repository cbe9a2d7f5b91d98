// Slots to vectors.
#include "abi.h"
#include "codebook.hpp"
#include "packing.hpp"
#include "rotation.hpp"

namespace octave {
namespace {

template <int bits>
void scale_levels(const std::uint8_t* codes, int n, float factor, float* y) {
  for (int i = 0; i < n; i += kLanes) store(y + i, levels_of<bits>(load<Bytes>(codes + i)) * factor);
}

void unrotate(float* y, const float* signs, int n, int block) {
  transform(y, n, block);
  for (int i = 0; i < n; i += kLanes) store(y + i, load<Floats>(y + i) * load<Floats>(signs + i));
}

void decode_row(const octave_format& format, bool rotated, const std::uint8_t* slot, float* key, float* value) {
  alignas(64) std::uint8_t codes[kMaxHeadSize];
  alignas(64) std::uint8_t v_codes[kMaxHeadSize];
  const int n = format.head_size;
  const std::uint8_t* end = unpack(slot, format.wide, 4, codes);
  end = unpack(end, n - format.wide, 3, codes + format.wide);
  end = unpack(end, n, format.v_bits, v_codes);
  const auto next_factor = [&end] {
    const float scale = load<_Float16>(end);
    end += sizeof(_Float16);
    return scale / 64;
  };

  for (int at = 0; at < n; at += format.k_block) {
    const auto levels = at < format.wide ? scale_levels<4> : scale_levels<3>;
    levels(codes + at, format.k_block, next_factor(), key + at);
  }
  const auto levels = format.v_bits == 4 ? scale_levels<4> : scale_levels<3>;
  levels(v_codes, n, next_factor(), value);
  if (rotated) return;
  unrotate(key, format.signs, n, format.k_block);
  unrotate(value, format.signs, n, format.v_block);
}

}  // namespace
}  // namespace octave

extern "C" void octave_decode(const octave_format* format, std::int32_t rotated, octave_rows slots, octave_rows key,
                              octave_rows value, std::int64_t num_tokens, std::int64_t num_heads) {
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      const auto at = [=](octave_rows rows) {
        return static_cast<std::uint8_t*>(rows.first) + token * rows.token_stride + head * rows.head_stride;
      };
      octave::decode_row(*format, rotated, at(slots), reinterpret_cast<float*>(at(key)), reinterpret_cast<float*>(at(value)));
    }
  }
}
