// Trigonometric functions; for the polynomials see cpu_exponential.h.
#pragma once

#include "cpu_float.h"

MJ_STRICT_BEGIN

namespace metal {
namespace detail {

struct angle {
    float r;       // what is left of the angle, within an eighth of a turn
    uint quadrant; // quarter turns, of which the two low bits count
};

// Adding this to a float rounds it to an integer, whose low bits are then the sum's low bits.
#define MJ_QUADRANT 0x1.8p23f

// |x| in quarter turns and radians, exactly enough for every float.
//
// 1 / (2 pi) is cut into five parts of 28 bits and one of 53. A float times a part of 28 bits is exact in double, and so is
// adding what the part before left and taking the whole turns off. A part too small to reach a turn for a given x adds
// its bits, a part whose product is a multiple of a turn vanishes by itself: no case for huge arguments, no table. What
// is left is off by less than 2^-52 turns, and no float comes closer to a multiple of a quarter turn than about 2^-33.
MJ_INLINE angle reduce_angle(float magnitude) {
    double a = magnitude;
    // Two chains side by side, for the sake of latency.
    double high = a * 0x1.45f306cp-3, low = a * 0x1.f47d4dp-88;
#define MJ_PART(turns, part) turns = mad(a, part, turns - __builtin_rint(turns));
    MJ_PART(high, 0x1.c9c882ap-31)
    MJ_PART(low, 0x1.bb81b6cp-115)
    MJ_PART(high, 0x1.4fe13a8p-61)
    MJ_PART(low, 0x1.4acc9e21c821p-145)
#undef MJ_PART
    double turns = (high - __builtin_rint(high)) + low;
    // Rounded to quarters by an addend whose sum has an ulp of 1/4; then the same in float, for the low bits.
    double quarters = (turns + 0x1.8p50) - 0x1.8p50;
    return {float((turns - quarters) * 0x1.921fb54442d18p+2), bits(float(quarters) + 0x1.8p21f)};
}

// sin and cos for |r| <= pi / 4: 2^-27 and 2^-33.
MJ_INLINE float sin_polynomial(float r) {
    float z = r * r;
    return mad(z * r, mad(mad(-0.000195078828f, z, 0.00833210628f), z, -0.166666538f), r);
}
MJ_INLINE float cos_polynomial(float r) {
    float z = r * r;
    return mad(z * z, mad(mad(2.44321091e-05f, z, -0.00138873083f), z, 0.0416666456f), mad(z, -0.5f, 1.0f));
}

// sin(pi r) and cos(pi r) for |r| <= 1/4, the first coefficient of the sine in two parts: 2^-28 and 2^-31.
MJ_INLINE float sinpi_polynomial(float r) {
    float z = r * r;
    float q = mad(mad(mad(-0.589117587f, z, 2.54977131f), z, -5.16770792f), z, -9.75576171e-08f);
    return mad(r, 3.14159274f, r * q);
}
MJ_INLINE float cospi_polynomial(float r) {
    float z = r * r;
    return mad(z, mad(mad(mad(0.228981912f, z, -1.33475792f), z, 4.05869675f), z, -4.93480206f), 1.0f);
}

// Bit 1 of the quadrant as a sign bit.
MJ_INLINE uint half_turn(uint quadrant) { return (quadrant & 2u) << 30; }

MJ_INLINE float choose_sin(uint quadrant, float s, float c, uint sign) {
    return from_bits(bits(quadrant & 1u ? c : s) ^ half_turn(quadrant) ^ sign);
}
MJ_INLINE float choose_cos(uint quadrant, float s, float c) { return choose_sin(quadrant + 1u, s, c, 0u); }
MJ_INLINE float choose_tan(uint quadrant, float s, float c, uint sign) {
    bool odd = quadrant & 1u;
    return from_bits(bits((odd ? c : s) / (odd ? s : c)) ^ (odd ? 0x80000000u : 0u) ^ sign);
}
MJ_INLINE uint sign_of(float x) { return bits(x) & 0x80000000u; }

// |x| as k / 2 + r, exactly, k modulo 4.
MJ_INLINE angle reduce_half_turns(float magnitude) {
    float a = magnitude - 2.0f * __builtin_rintf(0.5f * magnitude);
    float rounded = mad(a, 2.0f, MJ_QUADRANT);
    return {mad(rounded - MJ_QUADRANT, -0.5f, a), bits(rounded)};
}

// x in half turns, less exactly the larger |x| is, but never beyond half a turn.
MJ_INLINE angle reduce_fast(float x) {
    float whole = __builtin_rintf(x * 0.159154937f), a = mad(x, 6.42063824e-09f, mad(x, 0.159154937f, -whole));
    a -= __builtin_rintf(a);
    float rounded = mad(a, 4.0f, MJ_QUADRANT);
    return {2.0f * mad(rounded - MJ_QUADRANT, -0.25f, a), bits(rounded)};
}

} // namespace detail

namespace precise {

MJ_INLINE float sin(float x) {
    detail::angle t = detail::reduce_angle(detail::absolute(x));
    return detail::choose_sin(t.quadrant, detail::sin_polynomial(t.r), detail::cos_polynomial(t.r), detail::sign_of(x));
}
MJ_INLINE float cos(float x) {
    detail::angle t = detail::reduce_angle(detail::absolute(x));
    return detail::choose_cos(t.quadrant, detail::sin_polynomial(t.r), detail::cos_polynomial(t.r));
}
MJ_INLINE float tan(float x) {
    detail::angle t = detail::reduce_angle(detail::absolute(x));
    return detail::choose_tan(t.quadrant, detail::sin_polynomial(t.r), detail::cos_polynomial(t.r), detail::sign_of(x));
}
MJ_INLINE float sincos(float x, float &cosine) {
    detail::angle t = detail::reduce_angle(detail::absolute(x));
    float s = detail::sin_polynomial(t.r), c = detail::cos_polynomial(t.r);
    cosine = detail::choose_cos(t.quadrant, s, c);
    return detail::choose_sin(t.quadrant, s, c, detail::sign_of(x));
}

MJ_INLINE float sinpi(float x) {
    detail::angle t = detail::reduce_half_turns(detail::absolute(x));
    float s = detail::sinpi_polynomial(t.r), c = detail::cospi_polynomial(t.r);
    float result = detail::choose_sin(t.quadrant, s, c, detail::sign_of(x));
    return result == 0.0f ? detail::with_sign(0.0f, x) : result;
}
MJ_INLINE float cospi(float x) {
    detail::angle t = detail::reduce_half_turns(detail::absolute(x));
    float s = detail::sinpi_polynomial(t.r), c = detail::cospi_polynomial(t.r);
    return detail::choose_cos(t.quadrant, s, c) + 0.0f; // no -0
}
MJ_INLINE float tanpi(float x) {
    detail::angle t = detail::reduce_half_turns(detail::absolute(x));
    return detail::choose_tan(t.quadrant, detail::sinpi_polynomial(t.r), detail::cospi_polynomial(t.r), detail::sign_of(x));
}

MJ_FLOAT1(sin)
MJ_FLOAT1(cos)
MJ_FLOAT1(tan)
MJ_FLOAT1(sinpi)
MJ_FLOAT1(cospi)
MJ_FLOAT1(tanpi)
MJ_INLINE half sincos(half x, half &cosine) {
    float c, s = sincos(float(x), c);
    cosine = half(c);
    return half(s);
}
MJ_IF_VECTORS(
template <class T, int n> MJ_INLINE vec<T, n> sincos(const vec<T, n> &a, vec<T, n> &cosine) {
    cosine = cos(a);
    return sin(a);
}
)

} // namespace precise

namespace fast {

MJ_INLINE float sin(float x) {
    detail::angle t = detail::reduce_fast(x);
    return detail::choose_sin(t.quadrant, detail::sinpi_polynomial(t.r), detail::cospi_polynomial(t.r), 0u);
}
MJ_INLINE float cos(float x) {
    detail::angle t = detail::reduce_fast(x);
    return detail::choose_cos(t.quadrant, detail::sinpi_polynomial(t.r), detail::cospi_polynomial(t.r));
}
MJ_INLINE float tan(float x) {
    detail::angle t = detail::reduce_fast(x);
    return detail::choose_tan(t.quadrant, detail::sinpi_polynomial(t.r), detail::cospi_polynomial(t.r), 0u);
}

MJ_FLOAT1(sin)
MJ_FLOAT1(cos)
MJ_FLOAT1(tan)
template <class T> MJ_INLINE T sincos(const T &x, T &cosine) {
    cosine = cos(x);
    return sin(x);
}

} // namespace fast
} // namespace metal

MJ_STRICT_END
