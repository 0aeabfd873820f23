// Hyperbolic functions and their inverses; for the polynomials see cpu_exponential.h.
#pragma once

#include "cpu_exponential.h"
#include "cpu_logarithm.h"

MJ_STRICT_BEGIN

namespace metal {
namespace detail {

// log(1 + g) + extra * ln 2 for g >= 0, with the error of the sum 1 + g carried into the fraction.
MJ_INLINE float log1p_positive(float g, float extra) {
    float u = 1.0f + g, carry = g > 1.0f ? 1.0f - (u - g) : g - (u - 1.0f);
    split s = split_exponent(u);
    float result = log_sum(s.exponent + extra, mad(carry, s.scale, s.fraction));
    return g < INFINITY ? result : g;
}

} // namespace detail

namespace precise {

MJ_INLINE float sinh(float x) {
    float a = detail::absolute(x);
    detail::reduced s = detail::reduce_ln2(detail::limit(a, 0.0f, 89.5f));
    // q = (e^a - 1) / 4, which cannot overflow; sinh = 2 q + 2 q / (4 q + 1).
    float power = detail::power_of_two(s.rounded - 2.0f);
    float q = detail::mad(power, detail::expm1_polynomial(s.r), power - 0.25f);
    return detail::with_sign(2.0f * q + q / (2.0f * q + 0.5f), x);
}

MJ_INLINE float cosh(float x) {
    detail::reduced s = detail::reduce_ln2(detail::limit(detail::absolute(x), 0.0f, 89.5f));
    // q = e^a / 4; cosh = 2 q + 1 / (8 q).
    float q = detail::power_of_two(s.rounded - 2.0f) * detail::exp_polynomial(s.r);
    return 2.0f * q + 0.125f / q;
}

MJ_INLINE float tanh(float x) {
    // With e = e^(2 |x|) - 1: e / (e + 2), which is 1 in float from 9.02 on.
    detail::reduced s = detail::reduce_ln2(2.0f * detail::limit(detail::absolute(x), 0.0f, 10.0f));
    float power = detail::power_of_two(s.rounded);
    float e = detail::mad(power, detail::expm1_polynomial(s.r), power - 1.0f);
    return detail::with_sign(e / (e + 2.0f), x);
}

MJ_INLINE float asinh(float x) {
    float a = detail::absolute(x);
    bool big = a > 0x1p30f; // then log(2 a) = log(a / 4) + 3 ln 2, in float's range
    float square = a * a, small = a + square / (1.0f + detail::root(1.0f + square)), g = big ? 0.25f * a : small;
    return detail::with_sign(detail::log1p_positive(g, big ? 3.0f : 0.0f), x);
}

MJ_INLINE float acosh(float x) {
    bool big = x > 0x1p30f; // as in asinh
    float t = x - 1.0f, small = t + detail::root(detail::mad(t, t, 2.0f * t)), g = big ? 0.25f * x : small;
    float result = detail::log1p_positive(g, big ? 3.0f : 0.0f);
    return x < 1.0f ? NAN : result;
}

MJ_INLINE float atanh(float x) {
    float a = detail::absolute(x);
    float result = 0.5f * detail::log1p_positive(2.0f * a / (1.0f - a), 0.0f);
    return a > 1.0f ? NAN : detail::with_sign(result, x);
}

MJ_FLOAT1(sinh)
MJ_FLOAT1(cosh)
MJ_FLOAT1(tanh)
MJ_FLOAT1(asinh)
MJ_FLOAT1(acosh)
MJ_FLOAT1(atanh)

} // namespace precise
} // namespace metal

MJ_STRICT_END
