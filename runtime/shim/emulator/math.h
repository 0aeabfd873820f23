// `metal_math` and `metal_common` on float and half.
//
// Each function computes in double and rounds once, so its result is the correctly rounded one but for a few arguments
// in a million: a second opinion to the `cpu` device, which computes in float. The functions of C that it calls are
// resolved when the kernel is loaded.
#pragma once

#include "constants.h"
#include "lift.h"

namespace __emu::real {

// sin and cos of multiples of pi, with the argument reduced while it is still exact.
__EMU_FN double sinpi(double x) {
    double r = x - 2.0 * __builtin_rint(x * 0.5);
    if (r == __builtin_trunc(r)) return __builtin_copysign(0.0, x) * (x - x == 0.0 ? 1.0 : __builtin_nan(""));
    if (__builtin_fabs(r) > 0.5) r = __builtin_copysign(1.0, r) - r;
    return __builtin_sin(r * 3.141592653589793238);
}
__EMU_FN double cospi(double x) {
    double r = __builtin_fabs(x - 2.0 * __builtin_rint(x * 0.5));
    return r == 0.5 ? 0.0 : __builtin_cos(r * 3.141592653589793238);
}
__EMU_FN double fmin(double x, double y) { return x != x ? y : (y < x ? y : x); }
__EMU_FN double fmax(double x, double y) { return x != x ? y : (x < y ? y : x); }
// The middle one; of two numbers and a NaN the smaller, which is what min and max that drop NaN give.
__EMU_FN double fmedian3(double x, double y, double z) {
    return fmax(fmin(x, y), fmin(fmax(x, y), z));
}
template <class T> __EMU_FN T clamp(T x, T low, T high) { return T(fmin(fmax(double(x), double(low)), double(high))); }
__EMU_FN double sign(double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : (x == 0.0 ? x : 0.0)); }
__EMU_FN double smoothstep(double low, double high, double x) {
    double t = clamp((x - low) / (high - low), 0.0, 1.0);
    return t * t * (3.0 - 2.0 * t);
}
template <class T> inline constexpr double below_one = same<T, half> ? 0x1.ffcp-1 : 0x1.fffffep-1;
template <class T> __EMU_FN T fract(T x) {
    double r = double(x) - __builtin_floor(double(x));
    return to<T>(r > below_one<T> ? below_one<T> : r);
}
template <class T> __EMU_FN T nextafter(T x, T y) {
    typedef unsigned_of<T> U;
    if (x != x || y != y) return T(NAN);
    if (x == y) return y;
    U bits = __builtin_bit_cast(U, x);
    U sign = U(U(1) << (width<U> - 1));
    if (x == T(0)) return __builtin_bit_cast(T, U((y < T(0) ? sign : U(0)) | U(1)));
    return __builtin_bit_cast(T, U((x < y) == (x > T(0)) ? bits + 1 : bits - 1));
}
__EMU_FN int ilogb(double x) {
    if (x != x || x == 0.0) return FP_ILOGB0;
    if (x - x != 0.0) return INT_MAX;
    return int((__builtin_bit_cast(ulong, x) >> 52) & 2047u) - 1023;
}

}  // namespace __emu::real

namespace metal {

#define __EMU_1(name, ...)                                                                                             \
    __EMU_FN float name(float __emu_x) {                                                                               \
        double x = double(__emu_x);                                                                                    \
        return float(__VA_ARGS__);                                                                                     \
    }                                                                                                                  \
    __EMU_FN half name(half __emu_x) {                                                                                 \
        double x = double(__emu_x);                                                                                    \
        return __emu::to<half>(double(__VA_ARGS__));                                                                   \
    }                                                                                                                  \
    __EMU_LIFT(name, 1, float_vectors)
#define __EMU_2(name, ...)                                                                                             \
    __EMU_FN float name(float __emu_x, float __emu_y) {                                                                \
        double x = double(__emu_x), y = double(__emu_y);                                                               \
        return float(__VA_ARGS__);                                                                                     \
    }                                                                                                                  \
    __EMU_FN half name(half __emu_x, half __emu_y) {                                                                   \
        double x = double(__emu_x), y = double(__emu_y);                                                               \
        return __emu::to<half>(double(__VA_ARGS__));                                                                   \
    }                                                                                                                  \
    __EMU_LIFT(name, 2, float_vectors)
#define __EMU_3_SCALARS(name, ...)                                                                                     \
    __EMU_FN float name(float __emu_x, float __emu_y, float __emu_z) {                                                 \
        double x = double(__emu_x), y = double(__emu_y), z = double(__emu_z);                                          \
        return float(__VA_ARGS__);                                                                                     \
    }                                                                                                                  \
    __EMU_FN half name(half __emu_x, half __emu_y, half __emu_z) {                                                     \
        double x = double(__emu_x), y = double(__emu_y), z = double(__emu_z);                                          \
        return __emu::to<half>(double(__VA_ARGS__));                                                                   \
    }
#define __EMU_3(name, ...)                                                                                             \
    __EMU_3_SCALARS(name, __VA_ARGS__)                                                                                 \
    __EMU_LIFT(name, 3, float_vectors)

__EMU_1(acos, __builtin_acos(x))
__EMU_1(acosh, __builtin_acosh(x))
__EMU_1(asin, __builtin_asin(x))
__EMU_1(asinh, __builtin_asinh(x))
__EMU_1(atan, __builtin_atan(x))
__EMU_1(atanh, __builtin_atanh(x))
__EMU_1(ceil, __builtin_ceil(x))
__EMU_1(cos, __builtin_cos(x))
__EMU_1(cosh, __builtin_cosh(x))
__EMU_1(cospi, __emu::real::cospi(x))
__EMU_1(exp, __builtin_exp(x))
__EMU_1(exp2, __builtin_exp2(x))
__EMU_1(exp10, __builtin_pow(10.0, x))
__EMU_1(fabs, __builtin_fabs(x))
__EMU_1(floor, __builtin_floor(x))
__EMU_1(log, __builtin_log(x))
__EMU_1(log2, __builtin_log2(x))
__EMU_1(log10, __builtin_log10(x))
__EMU_1(rint, __builtin_rint(x))
__EMU_1(round, __builtin_round(x))
__EMU_1(rsqrt, 1.0 / __builtin_sqrt(x))
__EMU_1(sign, __emu::real::sign(x))
__EMU_1(sin, __builtin_sin(x))
__EMU_1(sinh, __builtin_sinh(x))
__EMU_1(sinpi, __emu::real::sinpi(x))
__EMU_1(sqrt, __builtin_sqrt(x))
__EMU_1(tan, __builtin_tan(x))
__EMU_1(tanh, __builtin_tanh(x))
__EMU_1(tanpi, __emu::real::sinpi(x) / __emu::real::cospi(x))
__EMU_1(trunc, __builtin_trunc(x))
// NaN -> 0
__EMU_1(saturate, __emu::real::clamp(x, 0.0, 1.0))

__EMU_2(atan2, __builtin_atan2(x, y))
__EMU_2(copysign, __builtin_copysign(x, y))
__EMU_2(divide, x / y)
__EMU_2(fdim, x > y ? x - y : (x <= y ? 0.0 : x + y))
__EMU_2(fmax, __emu::real::fmax(x, y))
__EMU_2(fmin, __emu::real::fmin(x, y))
__EMU_2(fmod, __builtin_fmod(x, y))
__EMU_2(pow, __builtin_pow(x, y))
__EMU_2(powr, x < 0.0 ? __builtin_nan("") : __builtin_pow(x, y))
__EMU_2(step, y < x ? 0.0 : 1.0)

__EMU_3(fmax3, __emu::real::fmax(__emu::real::fmax(x, y), z))
__EMU_3(fmin3, __emu::real::fmin(__emu::real::fmin(x, y), z))
__EMU_3(fmedian3, __emu::real::fmedian3(x, y, z))
__EMU_3(mix, x + (y - x) * z)
__EMU_3(smoothstep, __emu::real::smoothstep(x, y, z))

// These have integer forms too; integer.h has them, and the vectors of both.
__EMU_FN float abs(float x) { return __builtin_fabsf(x); }
__EMU_FN half abs(half x) { return fabs(x); }
__EMU_FN float max(float x, float y) { return fmax(x, y); }
__EMU_FN half max(half x, half y) { return fmax(x, y); }
__EMU_FN float min(float x, float y) { return fmin(x, y); }
__EMU_FN half min(half x, half y) { return fmin(x, y); }
__EMU_3_SCALARS(max3, __emu::real::fmax(__emu::real::fmax(x, y), z))
__EMU_3_SCALARS(min3, __emu::real::fmin(__emu::real::fmin(x, y), z))
__EMU_3_SCALARS(median3, __emu::real::fmedian3(x, y, z))

#undef __EMU_1
#undef __EMU_2
#undef __EMU_3
#undef __EMU_3_SCALARS

// The product of two floats is exact in double and its sum is not: C's function rounds once. Halves have room enough.
__EMU_FN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__EMU_FN half fma(half x, half y, half z) { return __emu::to<half>(double(x) * double(y) + double(z)); }
__EMU_LIFT(fma, 3, float_vectors)

__EMU_FN float fract(float x) { return __emu::real::fract(x); }
__EMU_FN half fract(half x) { return __emu::real::fract(x); }
__EMU_LIFT(fract, 1, float_vectors)
__EMU_FN float nextafter(float x, float y) { return __emu::real::nextafter(x, y); }
__EMU_FN half nextafter(half x, half y) { return __emu::real::nextafter(x, y); }
__EMU_LIFT(nextafter, 2, float_vectors)
__EMU_FN int ilogb(float x) { return __emu::real::ilogb(double(x)); }
__EMU_FN int ilogb(half x) { return __emu::real::ilogb(double(x)); }
__EMU_LIFT(ilogb, 1, float_vectors)

__EMU_FN float ldexp(float x, int k) { return float(__builtin_ldexp(double(x), k)); }
__EMU_FN half ldexp(half x, int k) { return __emu::to<half>(__builtin_ldexp(double(x), k)); }
template <class V, class K>
    requires(__emu::float_vectors<V> && __emu::becomes<K, __emu::vec<int, __emu::count_of<V>>>)
__EMU_FN auto ldexp(const V &x, const K &k) {
    return __emu::each([](auto a, int b) { return metal::ldexp(a, b); }, x, __emu::vec<int, __emu::count_of<V>>(k));
}

// The second result goes through a reference, of the components' vector or of an integer one.
#define __EMU_WITH_REFERENCE(name, Second, ...)                                                                        \
    template <class T>                                                                                                 \
        requires __emu::narrow_float<T>                                                                                \
    __EMU_FN T name(T __emu_x, Second<T> &second) {                                                                    \
        double x = double(__emu_x);                                                                                    \
        return __emu::to<T>(double(__VA_ARGS__));                                                                      \
    }                                                                                                                  \
    template <class T, size_t n>                                                                                       \
        requires __emu::narrow_float<T>                                                                                \
    __EMU_FN __emu::vec<T, n> name(const __emu::types::vector<T[n]> &x, __emu::vec<Second<T>, n> &second) {            \
        __emu::vec<T, n> first;                                                                                        \
        first.x = name(x.x, second.x);                                                                                 \
        first.y = name(x.y, second.y);                                                                                 \
        if constexpr (n > 2) first.z = name(x.z, second.z);                                                            \
        if constexpr (n > 3) first.w = name(x.w, second.w);                                                            \
        return first;                                                                                                  \
    }
}  // namespace metal
namespace __emu::real {
template <class T> using itself = T;
template <class T> using int_for = int;
__EMU_FN double frexp(double x, int &exponent) {
    exponent = 0;
    return x - x == 0.0 ? __builtin_frexp(x, &exponent) : x;
}
template <class T> __EMU_FN double modf(double x, T &whole) {
    double down = __builtin_trunc(x);
    whole = to<T>(down);
    return __builtin_copysign(x - x == 0.0 || x != x ? x - down : 0.0, x);
}
template <class T> __EMU_FN double sincos(double x, T &cosine) {
    cosine = to<T>(__builtin_cos(x));
    return __builtin_sin(x);
}
}  // namespace __emu::real
namespace metal {
__EMU_WITH_REFERENCE(frexp, __emu::real::int_for, __emu::real::frexp(x, second))
__EMU_WITH_REFERENCE(modf, __emu::real::itself, __emu::real::modf(x, second))
__EMU_WITH_REFERENCE(sincos, __emu::real::itself, __emu::real::sincos(x, second))
#undef __EMU_WITH_REFERENCE

}  // namespace metal
