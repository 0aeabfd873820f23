// Logarithms; for the polynomials see cpu_exponential.h.
#pragma once

#include "cpu_float.h"

MJ_STRICT_BEGIN

namespace metal {
namespace detail {

struct split {
    float exponent, fraction, scale;
};

// y = 2^exponent * (1 + fraction) with 1 + fraction in [2/3, 4/3), scale = 2^-exponent, for normal y > 0.
MJ_INLINE split split_exponent(float y) {
    uint u = bits(y), e = (u - 0x3f2aaaabu) & 0xff800000u;
    return {float(int(e) >> 23), from_bits(u - e) - 1.0f, from_bits(0x3f800000u - e)};
}

// log(1 + f) - f for f in [-1/3, 1/3]: 2^-27.
MJ_INLINE float log1p_tail(float f) {
    float q = mad(mad(mad(-0.12874496f, f, 0.139867067f), f, -0.12188343f), f, 0.140053406f);
    q = mad(mad(mad(mad(q, f, -0.16680181f), f, 0.200104445f), f, -0.249998048f), f, 0.333332151f);
    float square = f * f;
    return mad(square * f, q, -0.5f * square);
}

MJ_INLINE float log_sum(float exponent, float fraction) {
    float low = mad(exponent, 0x1.7f7d1cp-20f, log1p_tail(fraction));
    return mad(exponent, 0x1.62e4p-1f, fraction + low);
}

// Denormals are scaled by 2^23 before the exponent is split off.
MJ_INLINE float normalised(float x, float &exponent) {
    bool tiny = x < 0x1p-126f;
    exponent = tiny ? -23.0f : 0.0f;
    return tiny ? x * 0x1p23f : x;
}

// The logarithm's values at and beyond the ends of its range.
MJ_INLINE float log_special(float result, float x) {
    result = x < INFINITY ? result : x;
    return x > 0.0f ? result : x == 0.0f ? -INFINITY : NAN;
}

} // namespace detail

namespace precise {

MJ_INLINE float log(float x) {
    float extra;
    detail::split s = detail::split_exponent(detail::normalised(x, extra));
    return detail::log_special(detail::log_sum(s.exponent + extra, s.fraction), x);
}

MJ_INLINE float log2(float x) {
    using detail::mad;
    float extra;
    detail::split s = detail::split_exponent(detail::normalised(x, extra));
    float f = s.fraction;
    // log2(1 + f), the first coefficient in two parts: 2^-27.
    float q = mad(mad(mad(mad(-0.188195914f, f, 0.202783108f), f, -0.175115749f), f, 0.201805577f), f, -0.240720302f);
    q = mad(mad(mad(mad(q, f, 0.288710415f), f, -0.360667616f), f, 0.480895996f), f, -0.72134757f);
    float result = mad(f, 1.44269502f, f * mad(q, f, 2.49439562e-08f)) + (s.exponent + extra);
    return detail::log_special(result, x);
}

MJ_INLINE float log10(float x) {
    using detail::mad;
    float extra;
    detail::split s = detail::split_exponent(detail::normalised(x, extra));
    float f = s.fraction, e = s.exponent + extra;
    // log10(1 + f), the first coefficient in two parts: 2^-27.
    float q = mad(mad(mad(mad(-0.0563715994f, f, 0.061141558f), f, -0.0528091006f), f, 0.0607265346f), f, -0.0724527314f);
    q = mad(mad(mad(mad(q, f, 0.0869121999f), f, -0.108572342f), f, 0.144764081f), f, -0.217147246f);
    float low = mad(e, 0x1.3509f8p-18f, f * mad(q, f, -8.39189696e-09f));
    return detail::log_special(mad(e, 0x1.344p-2f, mad(f, 0.434294492f, low)), x);
}

MJ_FLOAT1(log)
MJ_FLOAT1(log2)
MJ_FLOAT1(log10)

} // namespace precise
} // namespace metal

MJ_STRICT_END
