// The core as Python sees it (ctypes): plain structures, no ownership across the border but for the handles.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_device rdna_device;
typedef struct rdna_module rdna_module;

typedef struct {
  uint64_t address, size;
  uint64_t origin;   // where the allocation that holds it begins
  const char* name;
  uint32_t writable;
  uint32_t counted;  // by 128-byte line
  uint64_t lines;    // out: lines touched
} rdna_span;

typedef struct {
  const char* name;
  uint32_t entry;            // byte offset in the text section
  uint32_t user_sgprs;       // mask in descriptor order: private segment buffer, dispatch pointer, queue pointer, kernarg
                             // pointer, dispatch id, flat scratch init, private segment size
  uint32_t user_sgpr_count;
  uint32_t workgroup_ids;    // 1 x, 2 y, 4 z, 8 workgroup info
  uint32_t workitem_ids;     // 0 x, 1 x and y, 2 all
  uint32_t mode;
  uint32_t vgprs;
  uint32_t lds_bytes;
  uint32_t private_bytes;    // per lane
} rdna_kernel;

enum { RDNA_CLASSES = 15, RDNA_MODEL_PARAMETERS = 11, RDNA_STALLS = 5 };

typedef struct {
  uint64_t critical;  // cycles of the slowest wave, stalls included
  uint64_t busiest;   // issue cycles of the busiest SIMD
} rdna_workgroup_cycles;

typedef struct {
  const rdna_kernel* kernel;
  uint32_t grid[3];          // workgroups
  uint32_t block[3];         // threads
  uint32_t dynamic_lds;
  uint32_t checks;           // mask: CheckBit of check/check.hpp
  uint32_t collect;          // findings do not stop the launch
  uint32_t random;           // one thread, waves interleaved by `seed`
  uint64_t seed;
  uint32_t model[RDNA_MODEL_PARAMETERS + 1];  // ModelParameters of check/check.hpp in their order; the last is unused
  const void* kernarg;
  uint64_t kernarg_bytes;
  rdna_span* spans;
  uint64_t span_count;
  // Out.
  int32_t failed;            // 0, or 1 + fault (see core/machine.hpp)
  uint32_t finding_count;
  const char* message;       // valid until the device's next launch
  const char* const* findings;
  uint64_t wave_instructions;
  uint64_t by_class[RDNA_CLASSES];
  uint64_t bytes_requested;
  uint64_t segments[3];      // of 32, 64 and 128 bytes
  uint64_t unique_lines;
  uint64_t lds_cycles, lds_minimum;
  const rdna_workgroup_cycles* model_workgroups;  // with the model measured; valid like the message
  uint64_t model_workgroup_count;
  uint64_t model_issue;
  uint64_t model_stalls[RDNA_STALLS];
  uint64_t* span_bytes;      // null, or place for `span_count` numbers: bytes requested of each span
} rdna_launch;

rdna_device* rdna_device_create(uint32_t threads);
void rdna_device_destroy(rdna_device*);

// `text` points into the loaded image, which the caller keeps; symbols are byte offsets in the text. Null on failure, with
// the message in `error`.
rdna_module* rdna_module_create(const char* target, const uint8_t* text, uint64_t text_bytes, const uint32_t* symbol_addresses,
                                const char* const* symbol_names, uint64_t symbol_count, const rdna_span* image,
                                uint64_t image_count, char* error, uint64_t error_capacity);
void rdna_module_destroy(rdna_module*);

// Returns `failed`.
int32_t rdna_run(rdna_device*, rdna_module*, rdna_launch*);

const char* rdna_class_name(uint32_t number);  // null past the last

#ifdef __cplusplus
}
#endif
