// Functions that take floats apart or put them together: remainder, exponent, mantissa, neighbour.
#pragma once

#include "cpu_float.h"

MJ_STRICT_BEGIN

namespace metal {
namespace precise {

MJ_INLINE float ldexp(float x, int k) {
    // The scaled value is exact in double, so that a denormal result is rounded once.
    k = k > 300 ? 300 : k < -300 ? -300 : k;
    return float(double(x) * __builtin_bit_cast(double, ulong(k + 1023) << 52));
}

MJ_INLINE int ilogb(float x) {
    uint u = detail::bits(x) & 0x7fffffffu;
    bool tiny = u < 0x00800000u;
    uint scaled = tiny ? detail::bits(detail::from_bits(u) * 0x1p23f) : u;
    int exponent = int(scaled >> 23) - (tiny ? 150 : 127);
    exponent = u == 0x7f800000u ? INT_MAX : exponent;
    return u == 0u ? FP_ILOGB0 : u > 0x7f800000u ? FP_ILOGBNAN : exponent;
}

MJ_INLINE float frexp(float x, int &exponent) {
    uint u = detail::bits(x), magnitude = u & 0x7fffffffu;
    bool tiny = magnitude < 0x00800000u, special = (magnitude == 0u) | (magnitude >= 0x7f800000u);
    u = tiny ? detail::bits(x * 0x1p23f) : u;
    exponent = special ? 0 : int((u >> 23) & 255u) - (tiny ? 149 : 126);
    return special ? x : detail::from_bits((u & 0x807fffffu) | 0x3f000000u);
}

MJ_INLINE float modf(float x, float &whole) {
    whole = __builtin_truncf(x);
    return detail::with_sign(detail::absolute(x) == INFINITY ? 0.0f : x - whole, x);
}

MJ_INLINE float fmod(float x, float y) {
    // Long division in double, a fixed number of quotient bits a step, which covers every ratio of two floats (2^277) and
    // leaves an exact signed remainder each time: q * step is exact in a fused multiply-add, else in 24 + 28 bits.
    double a = detail::absolute(x), b = detail::absolute(y), inverse = 1.0 / b;
#if MJ_HAS_FMA
#define MJ_DIVIDE(k) a = detail::fused(-__builtin_rint(a * (inverse * 0x1p-##k)), b * 0x1p##k, a);
    MJ_DIVIDE(240) MJ_DIVIDE(192) MJ_DIVIDE(144) MJ_DIVIDE(96) MJ_DIVIDE(48) MJ_DIVIDE(0)
#else
#define MJ_DIVIDE(k) a -= __builtin_rint(a * (inverse * 0x1p-##k)) * (b * 0x1p##k);
    MJ_DIVIDE(252) MJ_DIVIDE(224) MJ_DIVIDE(196) MJ_DIVIDE(168) MJ_DIVIDE(140)
    MJ_DIVIDE(112) MJ_DIVIDE(84) MJ_DIVIDE(56) MJ_DIVIDE(28) MJ_DIVIDE(0)
#endif
#undef MJ_DIVIDE
    a = a < 0.0 ? a + b : a;
    float result = detail::with_sign(float(a), x);
    // An infinite divisor leaves x; a zero divisor and an infinite x have no remainder.
    result = detail::absolute(y) == INFINITY ? x : result;
    return detail::is_finite(x) & (y != 0.0f) & !detail::is_nan(y) ? result : NAN;
}

template <class T> MJ_INLINE T nextafter(T x, T y) {
    typedef detail::unsigned_of<T> U;
    U u = __builtin_bit_cast(U, x), sign = U(U(1) << (detail::width<T> - 1));
    bool away = (x < y) == (x > T(0.0f));
    U next = x == T(0.0f) ? U((__builtin_bit_cast(U, y) & sign) | U(1)) : away ? U(u + 1) : U(u - 1);
    T result = x == y ? y : __builtin_bit_cast(T, next);
    return (x != x) | (y != y) ? T(x + y) : result;
}

MJ_FLOAT2(fmod)
MJ_VECTOR2(nextafter)
MJ_INLINE half ldexp(half x, int k) { return half(ldexp(float(x), k)); }
MJ_INLINE int ilogb(half x) { return ilogb(float(x)); }
MJ_INLINE half frexp(half x, int &exponent) { return half(frexp(float(x), exponent)); }
MJ_INLINE half modf(half x, half &whole) {
    float w, fraction = modf(float(x), w);
    whole = half(w);
    return half(fraction);
}

MJ_IF_VECTORS(
template <class T> MJ_INLINE int exponent_of(T x) {
    int exponent;
    frexp(x, exponent);
    return exponent;
}
template <class T> MJ_INLINE T mantissa_of(T x) {
    int exponent;
    return frexp(x, exponent);
}
template <class T> MJ_INLINE T fraction_of(T x) {
    T whole;
    return modf(x, whole);
}
template <class T, int n> MJ_INLINE vec<T, n> ldexp(const vec<T, n> &a, const vec<int, n> &k) {
    return vec<T, n>::map(ldexp, a, k);
}
template <class T, int n> MJ_INLINE vec<int, n> ilogb(const vec<T, n> &a) { return vec<int, n>::map(ilogb, a); }
template <class T, int n> MJ_INLINE vec<T, n> frexp(const vec<T, n> &a, vec<int, n> &exponent) {
    exponent = vec<int, n>::map(exponent_of<T>, a);
    return vec<T, n>::map(mantissa_of<T>, a);
}
template <class T, int n> MJ_INLINE vec<T, n> modf(const vec<T, n> &a, vec<T, n> &whole) {
    whole = trunc(a);
    return vec<T, n>::map(fraction_of<T>, a);
}
)

} // namespace precise
} // namespace metal

MJ_STRICT_END
