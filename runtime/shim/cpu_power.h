// Powers; for the polynomials see cpu_exponential.h.
#pragma once

#include "cpu_exponential.h"
#include "cpu_logarithm.h"

MJ_STRICT_BEGIN

namespace metal {
namespace detail {

// log2 of the positive part of pow in double, 2^-33: 128 times it still has float's accuracy after the point.
MJ_INLINE double log2_double(float magnitude) {
    float extra;
    split s = split_exponent(normalised(magnitude, extra));
    double f = s.fraction;
    double q = mad(mad(mad(-0.165812516, f, 0.176079382), f, -0.137550661), f, 0.154326255);
    q = mad(mad(mad(mad(q, f, -0.180796099), f, 0.206454231), f, -0.240434146), f, 0.28852959);
    q = mad(mad(mad(mad(q, f, -0.360673969), f, 0.480898438), f, -0.72134752), f, 1.44269504);
    double result = mad(q, f, double(s.exponent + extra));
    // Any float but 0 times 1e200 is beyond the range of exp2_double. Infinity itself would not pass between functions in a
    // program that is compiled with fast math.
    result = magnitude == INFINITY ? 1e200 : result;
    result = magnitude != magnitude ? double(magnitude) : result;
    return magnitude == 0.0f ? -1e200 : result;
}

// 2^t for any double t.
MJ_INLINE float exp2_double(double t) {
    t = t > 140.0 ? 140.0 : t;
    t = t < -160.0 ? -160.0 : t;
    double n = (t + 0x1.8p52) - 0x1.8p52;
    return scale(exp2_polynomial(float(t - n)), float(n) + MJ_ROUND);
}

} // namespace detail

namespace precise {

MJ_INLINE float pow(float x, float y) {
    float magnitude = detail::absolute(x);
    float result = detail::exp2_double(double(y) * detail::log2_double(magnitude));
    float half_y = 0.5f * y;
    bool integer = __builtin_rintf(y) == y, odd = integer & (__builtin_rintf(half_y) != half_y);
    result = odd ? detail::with_sign(result, x) : result;
    bool negative = detail::bits(x) - 0x80000001u < 0x7f7fffffu; // and finite, not -0
    result = negative & !integer ? NAN : result;
    // x^0 and 1^y are 1 even for NaN, and so is (-1)^(+-infinity).
    bool one = (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (detail::absolute(y) == INFINITY));
    return one ? 1.0f : result;
}

MJ_INLINE float powr(float x, float y) {
    float result = pow(detail::absolute(x), y);
    return x < 0.0f ? NAN : result;
}

MJ_FLOAT2(pow)
MJ_FLOAT2(powr)

} // namespace precise

namespace fast {

MJ_INLINE float pow(float x, float y) { return precise::exp2(y * log2(x)); }
MJ_INLINE float powr(float x, float y) { return precise::exp2(y * log2(x)); }
MJ_FLOAT2(pow)
MJ_FLOAT2(powr)

} // namespace fast
} // namespace metal

MJ_STRICT_END
