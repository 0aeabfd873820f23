// Functions that choose among their arguments, of all types, and their float spellings.
#pragma once

#include "cpu_lift.h"

namespace metal {

MJ_STRICT_BEGIN

// Of two floats the one that is not NaN wins.
template <class T> MJ_INLINE T max(T a, T b) {
    T larger = a > b ? a : b;
    return detail::is_float<T> && b != b ? a : larger;
}
template <class T> MJ_INLINE T min(T a, T b) {
    T smaller = a < b ? a : b;
    return detail::is_float<T> && b != b ? a : smaller;
}
template <class T> MJ_INLINE T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <class T> MJ_INLINE T max3(T a, T b, T c) { return max(max(a, b), c); }
template <class T> MJ_INLINE T min3(T a, T b, T c) { return min(min(a, b), c); }
template <class T> MJ_INLINE T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <class T> MJ_INLINE T abs(T a) {
    if constexpr (detail::is_float<T>) {
        return T(__builtin_fabsf(float(a)));
    } else {
        return a < T(0) ? T(-a) : a;
    }
}
template <class T> MJ_INLINE T select(T a, T b, bool c) { return c ? b : a; }
MJ_INLINE bool any(bool a) { return a; }
MJ_INLINE bool all(bool a) { return a; }
MJ_INLINE bool not(bool a) { return !a; }

MJ_VECTOR2(max)
MJ_VECTOR2(min)
MJ_VECTOR3(clamp)
MJ_VECTOR3(max3)
MJ_VECTOR3(min3)
MJ_VECTOR3(median3)
MJ_VECTOR1(abs)
MJ_IF_VECTORS(
template <class T, int n> MJ_INLINE vec<T, n> select(const vec<T, n> &a, const vec<T, n> &b, const vec<bool, n> &c) {
    return vec<T, n>::map(select, a, b, c);
}
template <int n> MJ_INLINE bool any(const vec<bool, n> &a) { return a.fold(detail::compare<'|', bool>); }
template <int n> MJ_INLINE bool all(const vec<bool, n> &a) { return a.fold(detail::compare<'&', bool>); }
template <int n> MJ_INLINE vec<bool, n> not(const vec<bool, n> &a) { return !a; }
)

namespace precise {
using metal::clamp;
using metal::max;
using metal::max3;
using metal::median3;
using metal::min;
using metal::min3;
template <class T> MJ_INLINE T fmax(T x, T y) { return metal::max(x, y); }
template <class T> MJ_INLINE T fmin(T x, T y) { return metal::min(x, y); }
template <class T> MJ_INLINE T fmax3(T x, T y, T z) { return metal::max3(x, y, z); }
template <class T> MJ_INLINE T fmin3(T x, T y, T z) { return metal::min3(x, y, z); }
template <class T> MJ_INLINE T fmedian3(T x, T y, T z) { return metal::median3(x, y, z); }
template <class T> MJ_INLINE T fabs(T x) { return metal::abs(x); }
template <class T> MJ_INLINE T saturate(T x) { return metal::clamp(x, T(0.0f), T(1.0f)); }
} // namespace precise

namespace fast {
using namespace precise;
}
using namespace precise;

MJ_STRICT_END

} // namespace metal
