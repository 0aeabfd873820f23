// Inverse trigonometric functions; for the polynomials see cpu_exponential.h.
#pragma once

#include "cpu_float.h"

MJ_STRICT_BEGIN

namespace metal {
namespace detail {

// atan for |t| <= 1: 2^-25; asin for |s| <= 1/2, s * s = z: 2^-27.
MJ_INLINE float atan_polynomial(float t) {
    float z = t * t;
    float q = mad(mad(mad(0.00291976007f, z, -0.0163642447f), z, 0.0432059765f), z, -0.0755172893f);
    q = mad(mad(mad(mad(q, z, 0.106657863f), z, -0.142110035f), z, 0.199937671f), z, -0.333331525f);
    return mad(t * z, q, t);
}
MJ_INLINE float asin_polynomial(float s, float z) {
    float q = mad(mad(mad(mad(0.042157013f, z, 0.0241855029f), z, 0.0454690196f), z, 0.0749531016f), z, 0.166667521f);
    return mad(s * z, q, s);
}

// pi / 2 - a and pi - a, with the constant in two parts.
MJ_INLINE float from_quarter_turn(float a) { return 1.57079637f - (a + 4.37113883e-08f); }
MJ_INLINE float from_half_turn(float a) { return 3.14159274f - (a + 8.74227766e-08f); }

// asin(|x|) = asin(s) or pi / 2 - 2 asin(s) with |s| <= 1/2.
struct half_angle {
    bool steep;
    float value;
};
MJ_INLINE half_angle reduce_arc(float x) {
    float a = absolute(x);
    bool steep = a > 0.5f;
    float z = steep ? mad(-0.5f, a, 0.5f) : a * a;
    float s = steep ? root(z) : a;
    return {steep, asin_polynomial(s, z)};
}

} // namespace detail

namespace precise {

MJ_INLINE float asin(float x) {
    detail::half_angle t = detail::reduce_arc(x);
    return detail::with_sign(t.steep ? detail::from_quarter_turn(2.0f * t.value) : t.value, x);
}
MJ_INLINE float acos(float x) {
    detail::half_angle t = detail::reduce_arc(x);
    float twice = 2.0f * t.value;
    float steep = x < 0.0f ? detail::from_half_turn(twice) : twice;
    return t.steep ? steep : detail::from_quarter_turn(detail::with_sign(t.value, x));
}

MJ_INLINE float atan(float x) {
    float a = detail::absolute(x);
    bool steep = a > 1.0f;
    float value = detail::atan_polynomial(steep ? 1.0f / a : a);
    return detail::with_sign(steep ? detail::from_quarter_turn(value) : value, x);
}
MJ_INLINE float atan2(float y, float x) {
    float a = detail::absolute(x), b = detail::absolute(y);
    bool steep = b > a;
    float low = steep ? a : b, high = steep ? b : a, t = low / high;
    t = high == 0.0f ? 0.0f : low == INFINITY ? 1.0f : t;
    float value = detail::atan_polynomial(t);
    value = steep ? detail::from_quarter_turn(value) : value;
    value = detail::bits(x) >> 31 ? detail::from_half_turn(value) : value;
    return (x != x) | (y != y) ? x + y : detail::with_sign(value, y);
}

MJ_FLOAT1(asin)
MJ_FLOAT1(acos)
MJ_FLOAT1(atan)
MJ_FLOAT2(atan2)

} // namespace precise
} // namespace metal

MJ_STRICT_END
