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

// The logarithms of 2^e * (1 + f); those of 1 + f to base 2 and 10 have their first coefficient in two parts: 2^-27.
MJ_INLINE float log_sum(float e, float f) {
    float low = mad(e, 0x1.7f7d1cp-20f, log1p_tail(f));
    return mad(e, 0x1.62e4p-1f, f + low);
}
MJ_INLINE float log2_sum(float e, float f) {
    float q = mad(mad(mad(mad(-0.188195914f, f, 0.202783108f), f, -0.175115749f), f, 0.201805577f), f, -0.240720302f);
    q = mad(mad(mad(mad(q, f, 0.288710415f), f, -0.360667616f), f, 0.480895996f), f, -0.72134757f);
    return mad(f, 1.44269502f, f * mad(q, f, 2.49439562e-08f)) + e;
}
MJ_INLINE float log10_sum(float e, float f) {
    float q = mad(mad(mad(mad(-0.0563715994f, f, 0.061141558f), f, -0.0528091006f), f, 0.0607265346f), f, -0.0724527314f);
    q = mad(mad(mad(mad(q, f, 0.0869121999f), f, -0.108572342f), f, 0.144764081f), f, -0.217147246f);
    float low = mad(e, 0x1.3509f8p-18f, f * mad(q, f, -8.39189696e-09f));
    return mad(e, 0x1.344p-2f, mad(f, 0.434294492f, low));
}

// Denormals are scaled by 2^23 before the exponent is split off.
MJ_INLINE float normalised(float x, float &exponent) {
    bool tiny = x < 0x1p-126f;
    exponent = tiny ? -23.0f : 0.0f;
    return tiny ? x * 0x1p23f : x;
}

// One of the sums for any x.
MJ_INLINE float any_log(float (*sum)(float, float), float x) {
    float extra;
    split s = split_exponent(normalised(x, extra));
    float result = sum(s.exponent + extra, s.fraction);
    result = x < INFINITY ? result : x;
    return x > 0.0f ? result : x == 0.0f ? -INFINITY : NAN;
}

// For x that is normal and finite, or 0.
MJ_INLINE float quick_log(float (*sum)(float, float), float x) {
    split s = split_exponent(x);
    float result = sum(s.exponent, s.fraction);
    return x > 0.0f ? result : -INFINITY;
}

} // namespace detail

namespace precise {
MJ_INLINE float log(float x) { return detail::any_log(detail::log_sum, x); }
MJ_INLINE float log2(float x) { return detail::any_log(detail::log2_sum, x); }
MJ_INLINE float log10(float x) { return detail::any_log(detail::log10_sum, x); }
MJ_FLOAT1(log)
MJ_FLOAT1(log2)
MJ_FLOAT1(log10)
} // namespace precise

namespace fast {
MJ_INLINE float log(float x) { return detail::quick_log(detail::log_sum, x); }
MJ_INLINE float log2(float x) { return detail::quick_log(detail::log2_sum, x); }
MJ_INLINE float log10(float x) { return detail::quick_log(detail::log10_sum, x); }
MJ_FLOAT1(log)
MJ_FLOAT1(log2)
MJ_FLOAT1(log10)
} // namespace fast

} // namespace metal

MJ_STRICT_END
