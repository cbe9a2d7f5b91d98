/* The core as Python sees it (ctypes). Sizes and strides are in bytes where no other unit is named. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const float* signs; /* head_size of them */
  int32_t head_size;  /* 64 to 512, a multiple of 64 */
  int32_t wide;       /* leading dimensions of K with 4-bit codes, a multiple of 64 */
  int32_t k_block;    /* dimensions of a K block, and of a K scale */
  int32_t v_block;    /* dimensions that V's transform takes */
  int32_t v_bits;
  int32_t slot_bytes;
} octave_format;

/* One row of `head_size` elements, or one slot, for each token and head. */
typedef struct {
  void* first;
  int64_t token_stride;
  int64_t head_stride;
} octave_rows;

enum { OCTAVE_FLOAT32 = 0, OCTAVE_FLOAT16 = 1, OCTAVE_BFLOAT16 = 2 };

#define OCTAVE_EXPORT __attribute__((visibility("default")))

/* Writes each slot whole, its padding included. */
OCTAVE_EXPORT void octave_encode(const octave_format* format, int32_t element, octave_rows key, octave_rows value,
                                 octave_rows slots, int64_t num_tokens, int64_t num_heads);

/* Writes rows of fp32; rotated: as they are in the rotated basis. */
OCTAVE_EXPORT void octave_decode(const octave_format* format, int32_t rotated, octave_rows slots, octave_rows key,
                                 octave_rows value, int64_t num_tokens, int64_t num_heads);

#ifdef __cplusplus
}
#endif
