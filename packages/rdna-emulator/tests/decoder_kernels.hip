// Plain kernels that make clang use many operations; the decoder's tests compile them.
typedef _Float16 half;
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half half8 __attribute__((ext_vector_type(8)));
typedef half half16 __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int int2 __attribute__((ext_vector_type(2)));
typedef int int4 __attribute__((ext_vector_type(4)));
typedef int int8 __attribute__((ext_vector_type(8)));
typedef short short2 __attribute__((ext_vector_type(2)));
typedef short short16 __attribute__((ext_vector_type(16)));

__device__ inline int thread() { return __builtin_amdgcn_workitem_id_x() + __builtin_amdgcn_workgroup_id_x() * 64; }

KERNEL integers(int* o, const int* a, const int* b, unsigned n) {
  const int i = thread();
  if (i >= n) return;
  const int x = a[i], y = b[i];
  o[i] = x * y + (x >> 3) - (y << 5);
  o[i + n] = x / (y | 1) + (unsigned)x % (unsigned)(y | 1);
  o[i + 2 * n] = __builtin_popcount(x) + __builtin_clz(x | 1) + __builtin_ctz(y | 1);
  o[i + 3 * n] = __builtin_bitreverse32(x) ^ __builtin_bswap32(y);
  o[i + 4 * n] = (x < y ? x : y) + __builtin_amdgcn_ubfe(x, 3, 7) + __builtin_amdgcn_sbfe(y, 5, 9);
  o[i + 5 * n] = __builtin_amdgcn_alignbit(x, y, 7) + __builtin_amdgcn_alignbyte(x, y, 1);
  o[i + 6 * n] = __builtin_amdgcn_perm(x, y, 0x05010400) + __builtin_amdgcn_sad_u8(x, y, 3);
}

KERNEL wide_integers(long* o, const long* a, const long* b, unsigned n) {
  const int i = thread();
  const long x = a[i], y = b[i];
  o[i] = x * y + 7;
  o[i + n] = x / (y | 1);
  o[i + 2 * n] = (x >> (y & 63)) + ((unsigned long)x >> (y & 31)) + (x << (y & 63));
  o[i + 3 * n] = x < y ? x & ~y : (long)(double)x;
}

KERNEL singles(float* o, const float* a, const float* b, unsigned n) {
  const int i = thread();
  const float x = a[i], y = b[i];
  o[i] = x / y + __builtin_sqrtf(x);
  o[i + n] = __builtin_amdgcn_rcpf(x) + __builtin_amdgcn_rsqf(y) - __builtin_amdgcn_sinf(x) * __builtin_amdgcn_cosf(y);
  o[i + 2 * n] = __builtin_exp2f(x) * __builtin_log2f(y) + __builtin_fmaf(x, y, -x);
  o[i + 3 * n] = __builtin_fabsf(x) + __builtin_copysignf(x, y) + __builtin_floorf(x) - __builtin_rintf(y);
  o[i + 4 * n] = __builtin_fminf(__builtin_fmaxf(x * y, 0.f), 1.f) + __builtin_amdgcn_fmed3f(x, y, 0.15915494f);
  o[i + 5 * n] = __builtin_amdgcn_ldexpf(x, 3) + __builtin_amdgcn_frexp_mantf(x) + __builtin_amdgcn_frexp_expf(y);
  o[i + 6 * n] = (float)(int)x + (float)(unsigned)y + (__builtin_amdgcn_classf(x, 0x1f8) ? 1.0f : -x);
}

KERNEL doubles(double* o, const double* a, const double* b, unsigned n) {
  const int i = thread();
  const double x = a[i], y = b[i];
  o[i] = x / y + __builtin_sqrt(x);
  o[i + n] = __builtin_fma(x, y, 1.5) + __builtin_floor(x) - __builtin_fmax(x, __builtin_fabs(y));
  o[i + 2 * n] = x < y ? (float)x + 3.25 : (int)y + (unsigned)x * 0.15915494309189532;
}

KERNEL halves(half* o, const half* a, const half* b, unsigned n) {
  const int i = thread();
  const half x = a[i], y = b[i];
  o[i] = x * y + (half)1.5;
  o[i + n] = x / y;
  o[i + 2 * n] = (half)((float)x * (float)y + (float)x);
  o[i + 3 * n] = x < y ? x : -y;
  o[i + 4 * n] = __builtin_fabsf16(x) + __builtin_floorf16(y) + (half)(short)x + (half)(unsigned short)y;
  o[i + 5 * n] = __builtin_fmaxf16(__builtin_fminf16(x, y), (half)0.5) + __builtin_sqrtf16(x);
}

KERNEL pairs(half2* o, const half2* a, const half2* b, short2* c, unsigned n) {
  const int i = thread();
  const half2 x = a[i], y = b[i];
  o[i] = x * y + x;
  o[i + n] = __builtin_elementwise_max(x, y) - x * y.yx;
  o[i + 2 * n] = (half2)((half)3.0) * x.x;
  o[i + 3 * n].x = (half)__builtin_amdgcn_fdot2(x, y, 2.0f, false);
  const short2 p = c[i], q = c[i + n];
  c[i + 2 * n] = p * q + p;
  c[i + 3 * n] = (p << (q & (short)15)) - __builtin_elementwise_min(p, q) + (p >> (q & (short)15));
  unsigned short* u = (unsigned short*)c;
  u[i + 9 * n] = u[i] * u[i + n] + (u[i] >> (u[i + n] & 15)) + (u[i] < u[i + n] ? 3 : 5);
}

KERNEL matrices(float8* o, const half16* a, const short16* c, int8* p) {
  const int i = thread();
  float8 r = {0};
  r = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a[i], a[i + 32], r);
  o[i] = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(c[i], c[i + 32], r);
  ((half16*)p)[i] = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a[i], a[i + 32], a[i + 64], false);
  int8 s = {0};
  s = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, ((int4*)a)[i], true, ((int4*)a)[i + 9], s, false);
  p[i + 64] = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(true, ((int2*)a)[i], false, ((int2*)a)[i + 9], s, true);
  int* d = (int*)p;
  d[i] = __builtin_amdgcn_sudot4(true, d[i], false, d[i + 64], 5, true) + __builtin_amdgcn_sudot8(true, d[i], true, d[i + 64], d[i], false);
}

KERNEL lanes(int* o, const int* a, unsigned n) {
  const int i = thread();
  const int x = a[i];
  o[i] = __builtin_amdgcn_readfirstlane(x) + __builtin_amdgcn_readlane(x, 5) + __builtin_amdgcn_ds_bpermute(x * 4, x);
  o[i + n] = __builtin_amdgcn_ds_swizzle(x, 0x401f) + __builtin_amdgcn_permlane64(x);
  o[i + 2 * n] = __builtin_amdgcn_permlane16(x, x, 0x76543210, 0xfedcba98, false, false) + __builtin_amdgcn_permlanex16(x, x, 1, 2, true, true);
  o[i + 3 * n] = __builtin_amdgcn_update_dpp(0, x, 0x111, 0xf, 0xf, true) + __builtin_amdgcn_update_dpp(x, x, 0xb1, 0xf, 0xf, false);
  o[i + 4 * n] = __builtin_amdgcn_mov_dpp8(x, 0x123456) + __builtin_amdgcn_update_dpp(1, x, 0x161, 0xf, 0xf, false);
  o[i + 5 * n] = __builtin_amdgcn_mbcnt_hi(-1, __builtin_amdgcn_mbcnt_lo(-1, 0)) + __builtin_popcount(__builtin_amdgcn_ballot_w32(x > 3));
}

KERNEL shared(int* o, const int* a, unsigned n) {
  __shared__ int s[512];
  __shared__ char c[256];
  __shared__ short t[256];
  const int i = thread(), j = i & 63;
  s[j] = a[i], c[j] = a[i], t[j] = a[i], s[j + 64] = a[i + 64];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  o[i] = s[63 - j] + s[(j * 4) & 511] + c[63 - j] + t[63 - j] + ((unsigned char*)c)[j ^ 1];
  const int4 v = ((int4*)s)[j & 15];
  o[i + n] = v.x + v.y * v.z + v.w;
  o[i + 2 * n] = __hip_atomic_fetch_max(&s[j & 3], j, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __hip_atomic_fetch_add((float*)&s[9], 1.5f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}

KERNEL memory(char* o, const char* a, short* s, const half* t, unsigned n) {
  const int i = thread();
  o[i] = a[i], s[i] = a[i + 1], ((unsigned char*)o)[i + n] = a[i + n];
  ((int4*)o)[i + n] = ((const int4*)a)[i + n], ((int2*)o)[i + 2 * n] = ((const int2*)a)[i - 5];
  half8 x = ((const half8*)t)[i];
  x.s3 = t[i * 3 + 1], x.s4 = t[i * 5];
  ((half8*)s)[i] = x;
  const int r = __hip_atomic_fetch_or((int*)s + 2, i, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add((float*)s + 3, 2.f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  int e = i;
  __hip_atomic_compare_exchange_strong((int*)s + 5, &e, r, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  ((long*)o)[i] = e;
  while (__hip_atomic_load((int*)s + 7, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < 3) __builtin_amdgcn_s_sleep(1);
}

KERNEL locals(int* o, const int* a, unsigned n) {
  const int i = thread();
  volatile int p[32];
  for (int k = 0; k < 32; k++) p[k] = a[i + k];
  int s = 0;
  for (int k = 0; k < n; k++) s += p[(k * 7) & 31];
  int* volatile g = (int*)p;
  g[3] = s;
  o[i] = p[3];
  __shared__ int sh[64];
  int* volatile f = sh;
  f[i & 63] = s;
  o[i + n] = *(f + ((i + 1) & 63));
}

KERNEL uniform(float* o, const float* a, int n, int m, float f, float g) {
  float x = f * g + 1.0f;
  for (int k = 0; k < n; k++) x = x * f + a[k], x -= x < g ? 1.0f : 0.0f;
  o[thread()] = x + (float)(n / m) + (float)((unsigned)n / (unsigned)m) + __builtin_truncf(f) + __builtin_floorf(g);
  ((long*)o)[5] = (long)n * (long)m << (n & 31);
}

KERNEL buffers(int* o, const int* a, unsigned n) {
  const __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc((void*)a, 0, n, 0x31027000);
  const __amdgpu_buffer_rsrc_t w = __builtin_amdgcn_make_buffer_rsrc((void*)o, 0, n, 0x31027000);
  const int i = thread() * 4;
  const int4 v = __builtin_amdgcn_raw_buffer_load_b128(r, i * 4, 16, 1);
  __builtin_amdgcn_raw_buffer_store_b128(v, w, i * 4, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b32(__builtin_amdgcn_raw_buffer_load_b32(r, i, 0, 0), w, i, 64, 0);
  __builtin_amdgcn_raw_buffer_store_b16((short)v.x, w, i, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b8((char)v.y, w, 0, n, 0);
}
