// What the functions of floats are made of, and the exactly rounded ones: no approximation here.
//
// `precise` holds the float forms as plain inline functions; `metal` has the same ones, and `fast` too where it has none
// of its own: a qualified name is looked up in the namespace itself before the namespaces that it uses.
#pragma once

#include "cpu_choice.h"

MJ_STRICT_BEGIN

namespace metal {
namespace detail {

MJ_INLINE uint bits(float x) { return __builtin_bit_cast(uint, x); }
MJ_INLINE float from_bits(uint u) { return __builtin_bit_cast(float, u); }
MJ_INLINE float absolute(float x) { return __builtin_fabsf(x); }
MJ_INLINE float with_sign(float magnitude, float sign) { return __builtin_copysignf(magnitude, sign); }
MJ_INLINE bool is_nan(float x) { return (bits(x) & 0x7fffffffu) > 0x7f800000u; }
MJ_INLINE bool is_finite(float x) { return (bits(x) & 0x7fffffffu) < 0x7f800000u; }

// Between the strict pragmas newer clangs take the classic builtins for calls that set errno. These never do.
#if __has_builtin(__builtin_elementwise_sqrt)
MJ_INLINE float root(float x) { return __builtin_elementwise_sqrt(x); }
MJ_INLINE double root(double x) { return __builtin_elementwise_sqrt(x); }
MJ_INLINE float fused(float a, float b, float c) { return __builtin_elementwise_fma(a, b, c); }
MJ_INLINE double fused(double a, double b, double c) { return __builtin_elementwise_fma(a, b, c); }
#else
MJ_INLINE float root(float x) { return __builtin_sqrtf(x); }
MJ_INLINE double root(double x) { return __builtin_sqrt(x); }
MJ_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MJ_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif

// a * b + c in one instruction where the target has one, rounded once or twice: for approximations only.
#if defined(__FMA__) || defined(__aarch64__)
#define MJ_HAS_FMA 1
MJ_INLINE float mad(float a, float b, float c) { return fused(a, b, c); }
MJ_INLINE double mad(double a, double b, double c) { return fused(a, b, c); }
#else
#define MJ_HAS_FMA 0
MJ_INLINE float mad(float a, float b, float c) { return a * b + c; }
MJ_INLINE double mad(double a, double b, double c) { return a * b + c; }
#endif

} // namespace detail

namespace precise {

MJ_INLINE float sqrt(float x) { return detail::root(x); }
MJ_INLINE float ceil(float x) { return __builtin_ceilf(x); }
MJ_INLINE float floor(float x) { return __builtin_floorf(x); }
MJ_INLINE float rint(float x) { return __builtin_rintf(x); }
MJ_INLINE float round(float x) { return __builtin_roundf(x); }
MJ_INLINE float trunc(float x) { return __builtin_truncf(x); }
MJ_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
MJ_INLINE float divide(float x, float y) { return x / y; }
MJ_INLINE float fdim(float x, float y) { return x <= y ? 0.0f : x - y; }
MJ_INLINE float fma(float x, float y, float z) { return detail::fused(x, y, z); }
MJ_INLINE float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? x : 0.0f; }
MJ_INLINE float mix(float x, float y, float a) { return x + (y - x) * a; }
MJ_INLINE float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
MJ_INLINE float smoothstep(float low, float high, float x) {
    float t = clamp((x - low) / (high - low), 0.0f, 1.0f);
    return t * t * (3.0f - 2.0f * t);
}
// Correctly rounded for every float (each mantissa of two binades was tried).
MJ_INLINE float rsqrt(float x) {
#if MJ_HAS_FMA
    // One step of higher order: e = 1 - x y^2 is exact but for its own rounding; NaN where y is 0 or infinite.
    float y = 1.0f / detail::root(x), t = x * y;
    float e = detail::fused(-detail::fused(x, y, -t), y, detail::fused(-t, y, 1.0f));
    float better = detail::fused(y, detail::fused(0.375f * e, e, 0.5f * e), y);
    return better != better ? y : better;
#else
    return float(1.0 / detail::root(double(x)));
#endif
}

MJ_FLOAT1(sqrt)
MJ_FLOAT1(rsqrt)
MJ_FLOAT1(ceil)
MJ_FLOAT1(floor)
MJ_FLOAT1(rint)
MJ_FLOAT1(round)
MJ_FLOAT1(trunc)
MJ_FLOAT1(sign)
MJ_FLOAT2(copysign)
MJ_FLOAT2(divide)
MJ_FLOAT2(fdim)
MJ_FLOAT2(step)
MJ_FLOAT3(mix)
MJ_FLOAT3(smoothstep)

// x - floor(x) rounds to 1 for a tiny negative x; in half the difference must be rounded before it is looked at.
template <class T> MJ_INLINE T fract(T x) {
    T f = T(float(x) - __builtin_floorf(float(x)));
    return f >= T(1.0f) ? T(sizeof(T) == 2 ? 0x1.ffcp-1f : 0x1.fffffep-1f) : f;
}
MJ_VECTOR1(fract)

MJ_INLINE half fma(half x, half y, half z) {
    // The product is exact in float. The sum is rounded to odd there (its last bit set where something was lost), which
    // makes the second rounding, to half, the right one.
    float product = float(x) * float(y), c = z, sum = product + c;
    float back = sum - product, lost = (product - (sum - back)) + (c - back);
    uint u = detail::bits(sum);
    uint odd = (lost > 0.0f) == (sum > 0.0f) ? u | 1u : u - 1u;
    bool inexact = (lost != 0.0f) & ((u & 1u) == 0u) & detail::is_finite(sum);
    return half(detail::from_bits(inexact ? odd : u));
}
MJ_VECTOR3(fma)

} // namespace precise

namespace fast {
MJ_INLINE float rsqrt(float x) { return 1.0f / detail::root(x); }
MJ_FLOAT1(rsqrt)
} // namespace fast

} // namespace metal

MJ_STRICT_END
