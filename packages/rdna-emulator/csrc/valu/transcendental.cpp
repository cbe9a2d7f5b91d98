// exp2, log2, rcp, rsq, sqrt, sin and cos in f32 and f16, about 1 ulp. The f32 forms flush denormals whatever MODE says.
// The polynomials interpolate the functions at the Chebyshev nodes of the reduced interval.
#include "valu/float.hpp"

namespace rdna {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

RDNA_INLINE f32x flushed(f32x x) {  // a denormal becomes a zero of its sign
  return absolute(x) < kSmallestNormal ? bits<f32x>(bits<u32x>(x) & 0x80000000u) : x;
}

template <int N>
RDNA_INLINE f32x polynomial(f32x x, const float (&coefficients)[N]) {  // lowest power first
  f32x sum = coefficients[N - 1];
  for (int k = N - 2; k >= 0; --k) sum = fused(sum, x, f32x(coefficients[k]));
  return sum;
}

constexpr float kExp2[] = {0x1.62e430p-1f, 0x1.ebfbe0p-3f, 0x1.c6af6cp-5f, 0x1.3b2a54p-7f, 0x1.5f0890p-10f, 0x1.44138ap-13f};

// 2^x = 2^n (1 + f q(f)), n the nearest integer: exact for integers.
RDNA_INLINE f32x exp2_flushed(f32x x) {
  const f32x bounded = __builtin_elementwise_max(__builtin_elementwise_min(x, f32x(128.0f)), f32x(-127.0f));
  const f32x whole = __builtin_elementwise_roundeven(bounded == bounded ? bounded : f32x(0.0f));
  const f32x rest = bounded - whole;
  const f32x power = fused(rest, polynomial(rest, kExp2), f32x(1.0f));
  f32x result = bits<f32x>(bits<i32x>(power) + (convert<i32x>(whole) << 23));
  result = x >= 128.0f ? f32x(kInfinity) : result;
  result = x < -126.0f ? f32x(0.0f) : result;
  return x == x ? result : x + x;
}

constexpr float kLog2EulerHigh = 0x1.715476p+0f, kLog2EulerLow = 0x1.4ae0c0p-26f;
constexpr float kLog2[] = {-0x1.715476p-1f, 0x1.ec7094p-2f, -0x1.715480p-2f, 0x1.277c3ep-2f, -0x1.ec7732p-3f,
                           0x1.a48380p-3f,  -0x1.6efd84p-3f, 0x1.5d018cp-3f, -0x1.5579e8p-3f, 0x1.900022p-4f};

// x = 2^e (1 + t), 1 + t in [sqrt(1/2), sqrt(2)): log2 x = e + t (log2(euler) + t r(t)), exact for powers of two.
RDNA_INLINE f32x log2_flushed(f32x x) {
  const f32x value = flushed(x);
  constexpr u32 kRootHalf = 0x3f3504f3u;
  const u32x offset = bits<u32x>(value) - kRootHalf;
  const f32x exponent = convert<f32x>(bits<i32x>(offset) >> 23);
  const f32x t = bits<f32x>((offset & 0x7fffffu) + kRootHalf) - 1.0f;
  const f32x low = t * fused(t, polynomial(t, kLog2), f32x(kLog2EulerLow));
  f32x result = exponent + fused(t, f32x(kLog2EulerHigh), low);
  result = value == 0.0f ? f32x(-kInfinity) : result;
  result = value < 0.0f ? f32x(kNotANumber) : result;
  return ((value == kInfinity) | (x != x)) ? x + x : result;
}

constexpr float kTurnHigh = 0x1.921fb6p+2f, kTurnLow = -0x1.777a5cp-23f;
constexpr float kSine[] = {-0x1.4abbcep+5f, 0x1.466bc6p+6f, -0x1.32d214p+6f, 0x1.503704p+5f, -0x1.d04a00p+3f};

// sin(2 pi r) for r in [-1/4, 1/4].
RDNA_INLINE f32x sine_of_quarter(f32x r) {
  const f32x square = r * r;
  return fused(r, f32x(kTurnHigh), r * fused(square, polynomial(square, kSine), f32x(kTurnLow)));
}

// Position in the turn, in [-1/2, 1/2]: exact. Infinities give NaN.
RDNA_INLINE f32x turn(f32x x) { return x - __builtin_elementwise_roundeven(x); }

RDNA_INLINE f32x sine(f32x x) {
  const f32x r = turn(x), size = absolute(r);
  const f32x quarter = size > 0.25f ? 0.5f - size : size;
  const u32x sign = (bits<u32x>(r == 0.0f ? x : r)) & 0x80000000u;
  return bits<f32x>(bits<u32x>(sine_of_quarter(quarter)) ^ sign);
}
RDNA_INLINE f32x cosine(f32x x) { return sine_of_quarter(0.25f - absolute(turn(x))); }

RDNA_INLINE f32x root(f32x x) { return __builtin_elementwise_sqrt(x); }
RDNA_INLINE f32x wide(f16x x) { return convert<f32x>(x); }
RDNA_INLINE f16x narrow(f32x x) { return convert<f16x>(x); }

const Registration registration{
    {"v_exp_f32", operation<[](f32x a) { return exp2_flushed(a); }>},
    {"v_log_f32", operation<[](f32x a) { return log2_flushed(a); }>},
    {"v_rcp_f32", operation<[](f32x a) { return flushed(1.0f / flushed(a)); }>},
    {"v_rcp_iflag_f32", operation<[](f32x a) { return flushed(1.0f / flushed(a)); }>},
    {"v_rsq_f32", operation<[](f32x a) { return 1.0f / root(flushed(a)); }>},
    {"v_sqrt_f32", operation<[](f32x a) { return root(flushed(a)); }>},
    {"v_sin_f32", operation<[](f32x a) { return sine(flushed(a)); }>},
    {"v_cos_f32", operation<[](f32x a) { return cosine(flushed(a)); }>},
    {"v_exp_f16", operation<[](f16x a) { return narrow(exp2_flushed(wide(a))); }>},
    {"v_log_f16", operation<[](f16x a) { return narrow(log2_flushed(wide(a))); }>},
    {"v_rcp_f16", operation<[](f16x a) { return narrow(1.0f / wide(a)); }>},
    {"v_rsq_f16", operation<[](f16x a) { return narrow(1.0f / root(wide(a))); }>},
    {"v_sqrt_f16", operation<[](f16x a) { return narrow(root(wide(a))); }>},
    {"v_sin_f16", operation<[](f16x a) { return narrow(sine(wide(a))); }>},
    {"v_cos_f16", operation<[](f16x a) { return narrow(cosine(wide(a))); }>},
};

}  // namespace
}  // namespace rdna
