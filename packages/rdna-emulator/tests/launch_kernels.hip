// Plain kernels, as anyone might write them.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float float4 __attribute__((ext_vector_type(4)));

#define LAUNCH(threads) extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(1, threads))) void
#define THREAD __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define SYNC()                                              \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"),   \
   __builtin_amdgcn_s_barrier(),                            \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))

extern __shared__ float dynamic_lds[];

LAUNCH(256) saxpy(float a, const float* x, float* y, int n) {
  int i = GROUP * 256 + THREAD;
  if (i < n) y[i] = a * x[i] + y[i];
}

LAUNCH(256) reduce(const float* x, float* out, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = GROUP * 256 + THREAD; i < n; i += 256 * 8) sum += x[i];
  part[THREAD] = sum;
  SYNC();
  for (int step = 128; step; step /= 2) {
    if (THREAD < step) part[THREAD] += part[THREAD + step];
    SYNC();
  }
  if (THREAD == 0) out[GROUP] = part[0];
}

LAUNCH(256) histogram(const u32* x, u32* bins, int n) {
  __shared__ u32 local[64];
  if (THREAD < 64) local[THREAD] = 0;
  SYNC();
  for (int i = GROUP * 256 + THREAD; i < n; i += 256 * 8) {
    __hip_atomic_fetch_add(&local[x[i] & 63], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
  SYNC();
  if (THREAD < 64) __hip_atomic_fetch_add(&bins[THREAD], local[THREAD], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

LAUNCH(256) scan(const int* x, int* y) {
  __shared__ int sums[2][256];
  int from = 0;
  sums[0][THREAD] = x[GROUP * 256 + THREAD];
  SYNC();
  for (int distance = 1; distance < 256; distance *= 2) {
    sums[1 - from][THREAD] = sums[from][THREAD] + (THREAD >= distance ? sums[from][THREAD - distance] : 0);
    from = 1 - from;
    SYNC();
  }
  y[GROUP * 256 + THREAD] = sums[from][THREAD];
}

LAUNCH(256) matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  int x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y();
  int row = __builtin_amdgcn_workgroup_id_y() * 16 + y, column = GROUP * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile_a[y][x] = a[row * n + k + x];
    tile_b[y][x] = b[(k + y) * n + column];
    SYNC();
    for (int j = 0; j < 16; ++j) sum += tile_a[y][j] * tile_b[j][x];
    SYNC();
  }
  c[row * n + column] = sum;
}

LAUNCH(256) reverse_in_dynamic_lds(const float* x, float* y, int n) {
  dynamic_lds[THREAD] = x[THREAD];
  SYNC();
  y[THREAD] = dynamic_lds[n - 1 - THREAD];
}

struct Scaling {
  const float* x;
  float* y;
  long long stride;
  int n;
  float factor;
};

LAUNCH(256) scale(Scaling s) {
  int i = GROUP * 256 + THREAD;
  if (i < s.n) s.y[i * s.stride] = s.x[i] * s.factor;
}

LAUNCH(64) global_atomics(float* sum, u64* wide, int* largest, float* old) {
  int i = GROUP * 64 + THREAD;
  old[i] = __hip_atomic_fetch_add(sum, 1.0f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_max(largest, i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(wide, (u64)THREAD << 32, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  u64 expected = __hip_atomic_load(wide + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (!__hip_atomic_compare_exchange_strong(wide + 1, &expected, expected + 3, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT)) {
  }
}

__device__ int fibonacci_table[8] = {1, 1, 2, 3, 5, 8, 13, 21};
__device__ __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

LAUNCH(64) calls(int* out) {
  int local[8];
  for (int k = 0; k < 8; ++k) local[k] = fibonacci_table[(k + THREAD) & 7];
  volatile int* table = local;
  out[THREAD] = fibonacci(THREAD & 7) + table[THREAD & 7];
}

__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ int (*const operations[2])(int) = {twice, square};

LAUNCH(64) indirect_calls(const int* x, int* out, int which) { out[THREAD] = operations[which](x[THREAD]); }

LAUNCH(64) divide(const int* a, const int* b, int* quotient, int* remainder, u64* wide) {
  int i = THREAD;
  quotient[i] = a[i] / b[i];
  remainder[i] = a[i] % b[i];
  wide[i] = (u64)(u32)a[i] * 1000003ull / (u32)(b[i] | 1);
}

LAUNCH(64) uniform_divide(int a, int b, int* out) {
  out[0] = a / b;
  out[1] = a % b;
}

LAUNCH(64) narrow(const unsigned char* a, unsigned char* b, const short* c, short* d, const _Float16* e, _Float16* f) {
  int i = THREAD;
  b[i] = a[i] + 1;
  d[i] = c[i] * 3;
  f[i] = e[i] * (_Float16)2 + (_Float16)1;
}

LAUNCH(64) wide(const float4* a, float4* b) {
  __shared__ float4 lds[64];
  lds[THREAD] = a[THREAD];
  SYNC();
  b[THREAD] = lds[63 - THREAD];
}

// A volatile pointer of unknown address space: FLAT accesses through the apertures.
LAUNCH(64) apertures(int* out, int choice) {
  __shared__ int shared[64];
  int own[4] = {1, 2, 3, 4};
  shared[THREAD] = 100 + THREAD;
  SYNC();
  volatile int* pointer = choice == 0 ? (volatile int*)&shared[63 - THREAD] : choice == 1 ? (volatile int*)&own[THREAD & 3] : &out[64 + THREAD];
  *pointer = *pointer + 1000;
  out[THREAD] = *pointer;
}

LAUNCH(1024) ids(u32* out) {
  u32 x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
  const unsigned short* hidden = (const unsigned short*)__builtin_amdgcn_implicitarg_ptr();
  const u32* counts = (const u32*)hidden;
  u32 thread = x + hidden[6] * (y + hidden[7] * z);
  u32 group = GROUP + counts[0] * (__builtin_amdgcn_workgroup_id_y() + counts[1] * __builtin_amdgcn_workgroup_id_z());
  u32 item = group * hidden[6] * hidden[7] * hidden[8] + thread;
  out[item] = x | y << 8 | z << 16 | group << 24;
}

// 64-bit offsets into an array that nobody can fill.
LAUNCH(64) touch_far(float* x, long long stride) { x[THREAD * stride] = THREAD + 1; }

// What split kernels do: the last workgroup to arrive adds up what the others have left.
LAUNCH(64) last_arriver(const float* x, float* partial, int* counter, float* out, int groups) {
  __shared__ int arrived;
  partial[GROUP * 64 + THREAD] = x[GROUP * 64 + THREAD] * 2;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  __builtin_amdgcn_s_barrier();
  if (THREAD == 0) arrived = __hip_atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  SYNC();
  if (arrived != groups - 1) return;
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  float sum = 0;
  for (int g = 0; g < groups; ++g) sum += partial[g * 64 + THREAD];
  out[THREAD] = sum;
  if (THREAD == 0) *counter = 0;
}

// All workgroups meet: works where all of them are in flight at once.
LAUNCH(64) grid_barrier(int* counter, int* out, int groups) {
  if (THREAD == 0) {
    __hip_atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(counter, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < groups) __builtin_amdgcn_s_sleep(1);
  }
  SYNC();
  out[GROUP * 64 + THREAD] = __hip_atomic_load(counter, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// The second wave waits in LDS for the first one's flag.
LAUNCH(64) flag_in_lds(int* out, int publish) {
  __shared__ volatile int flag;
  if (THREAD == 0) flag = 0;
  SYNC();
  if (THREAD < 32) {
    while (flag == 0) {
    }
    out[THREAD] = 7;
  } else {
    for (int k = 0; k < 100; ++k) out[THREAD] = k;
    if (publish) flag = 1;
  }
}

LAUNCH(64) bounded_spin(int* flag, int* out, int limit) {
  int k = 0;
  while (k < limit && __hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) ++k;
  out[THREAD] = k;
}

// A count-down whose only memory is a counter: long, but it ends.
LAUNCH(64) long_loop(const int* x, int* out, int count) {
  int sum = 0;
  for (int k = 0; k < count; ++k) sum = sum * 3 + __hip_atomic_load(x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  out[THREAD] = sum;
}

// Waves leave before others wait at a barrier.
LAUNCH(256) early_exit(int* out, int waves) {
  __shared__ int seen[256];
  if (THREAD >= waves * 32) return;
  seen[THREAD] = THREAD;
  SYNC();
  out[THREAD] = seen[waves * 32 - 1 - THREAD];
}

LAUNCH(64) generator(unsigned* out, int steps) {
  unsigned state = THREAD;
  for (int step = 0; step < steps; ++step) state = (state ^ state >> 13) * 1664525u + step;
  out[THREAD] = state;
}

LAUNCH(64) stop(int* out) {
  out[THREAD] = 1;
  if (out[0]) __builtin_trap();
}

// The order in which waves come here depends on the schedule.
LAUNCH(64) order(int* counter, int* out) {
  int place = 0;
  for (int k = 0; k < 8; ++k) {
    if ((THREAD & 31) == 0) place = __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    place = __builtin_amdgcn_readfirstlane(place);
    out[(GROUP * 2 + THREAD / 32) * 8 + k] = place;
  }
}
