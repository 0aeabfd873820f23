// Exponentials.
//
// Each function of this and the next headers is one branch-free formula for all floats: range reduction, a polynomial,
// scaling, then a few selections for the special values. The polynomials are our own: least squares on Chebyshev nodes,
// reweighted until the largest relative error is level (Lawson), the coefficients rounded to float one at a time from the
// lowest power on, with the rest fitted anew. "2^-28" beside a polynomial is its largest error relative to the
// function, on a range 0.2 % wider than needed.
#pragma once

#include "cpu_float.h"

MJ_STRICT_BEGIN

namespace metal {
namespace detail {

// Adding this to |n| < 2^21 rounds it to an integer, and leaves n + 254 in the sum's low bits. No conversion to int, which
// would be undefined for NaN and infinity, is needed.
#define MJ_ROUND 0x1.8001fcp23f

// p * 2^n, rounded once, for `rounded` = n + MJ_ROUND with n in [-254, 256]: multiplies by two powers, since one of them
// may lie outside float's range.
MJ_INLINE float scale(float p, float rounded) {
    uint both = bits(rounded), first = both >> 1;
    return p * from_bits(first << 23) * from_bits((both - first) << 23);
}

// 2^n for n in [-126, 127], from the same.
MJ_INLINE float power_of_two(float rounded) { return from_bits((bits(rounded) - 127u) << 23); }

struct reduced {
    float rounded, r;
};

// x = n * ln 2 + r, |r| <= ln 2 / 2. The high part of ln 2 has 15 bits: n times it is exact.
MJ_INLINE reduced reduce_ln2(float x) {
    float rounded = mad(x, M_LOG2E_F, MJ_ROUND), n = rounded - MJ_ROUND;
    return {rounded, mad(n, -0x1.7f7d1cp-20f, mad(n, -0x1.62e4p-1f, x))};
}

// e^r - 1 for |r| <= ln 2 / 2: 2^-26, 2^-28 relative to e^r.
MJ_INLINE float expm1_polynomial(float r) {
    float q = mad(mad(mad(mad(0.00138684351f, r, 0.00836643204f), r, 0.0416674614f), r, 0.16666545f), r, 0.49999997f);
    return mad(r * r, q, r);
}
MJ_INLINE float exp_polynomial(float r) {
    float q = mad(mad(mad(mad(0.00138189388f, r, 0.00836870354f), r, 0.0416682884f), r, 0.166665211f), r, 0.49999994f);
    return mad(r * r, q, r) + 1.0f;
}

// 2^r for |r| <= 1/2: 2^-28.
MJ_INLINE float exp2_polynomial(float r) {
    float q = mad(mad(0.00015329264f, r, 0.00133909693f), r, 0.00961849932f);
    return mad(mad(mad(mad(q, r, 0.0555035956f), r, 0.240226477f), r, 0.693147182f), r, 1.0f);
}

// A comparison with NaN is false: NaN stays.
MJ_INLINE float limit(float x, float low, float high) {
    x = x > high ? high : x;
    return x < low ? low : x;
}

} // namespace detail

namespace precise {

MJ_INLINE float exp(float x) {
    detail::reduced s = detail::reduce_ln2(detail::limit(x, -104.0f, 89.0f));
    return detail::scale(detail::exp_polynomial(s.r), s.rounded);
}

MJ_INLINE float exp2(float x) {
    x = detail::limit(x, -152.0f, 129.0f);
    float rounded = x + MJ_ROUND;
    return detail::scale(detail::exp2_polynomial(x - (rounded - MJ_ROUND)), rounded);
}

MJ_INLINE float exp10(float x) {
    using detail::mad;
    x = detail::limit(x, -46.0f, 39.0f);
    float rounded = mad(x, 0x1.a934fp1f, MJ_ROUND), n = rounded - MJ_ROUND;
    // log10(2) in two parts, the first of 13 bits; then 10^r for |r| <= log10(2) / 2: 2^-28.
    float r = mad(n, -0x1.3509f8p-18f, mad(n, -0x1.344p-2f, x));
    float q = mad(mad(mad(0.20615682f, r, 0.54182744f), r, 1.1712954f), r, 2.03465605f);
    return detail::scale(mad(mad(mad(q, r, 2.65094876f), r, 2.30258512f), r, 1.0f), rounded);
}

MJ_FLOAT1(exp)
MJ_FLOAT1(exp2)
MJ_FLOAT1(exp10)

} // namespace precise
} // namespace metal

MJ_STRICT_END
