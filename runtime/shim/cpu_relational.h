// Tests of floats, on their bits, so that they hold in a program that is compiled with -ffast-math.
#pragma once

#include "cpu_lift.h"

namespace metal {
namespace detail {

template <class T> constexpr uint magnitude_mask = 0x7fffffffu;
template <class T> constexpr uint infinity_bits = 0x7f800000u;
template <class T> constexpr uint smallest_normal_bits = 0x00800000u;
template <> constexpr uint magnitude_mask<half> = 0x7fffu;
template <> constexpr uint infinity_bits<half> = 0x7c00u;
template <> constexpr uint smallest_normal_bits<half> = 0x0400u;
template <class T> MJ_INLINE uint magnitude_bits(T x) {
    return __builtin_bit_cast(unsigned_of<T>, x) & magnitude_mask<T>;
}

} // namespace detail

template <class T> MJ_INLINE bool isfinite(T x) { return detail::magnitude_bits(x) < detail::infinity_bits<T>; }
template <class T> MJ_INLINE bool isinf(T x) { return detail::magnitude_bits(x) == detail::infinity_bits<T>; }
template <class T> MJ_INLINE bool isnan(T x) { return detail::magnitude_bits(x) > detail::infinity_bits<T>; }
template <class T> MJ_INLINE bool isnormal(T x) {
    return isfinite(x) & (detail::magnitude_bits(x) >= detail::smallest_normal_bits<T>);
}
template <class T> MJ_INLINE bool signbit(T x) {
    return __builtin_bit_cast(detail::unsigned_of<T>, x) > detail::magnitude_mask<T>;
}
template <class T> MJ_INLINE bool isunordered(T x, T y) { return isnan(x) | isnan(y); }
template <class T> MJ_INLINE bool isordered(T x, T y) { return !isunordered(x, y); }
MJ_VECTOR_TEST(isfinite)
MJ_VECTOR_TEST(isinf)
MJ_VECTOR_TEST(isnan)
MJ_VECTOR_TEST(isnormal)
MJ_VECTOR_TEST(signbit)
MJ_IF_VECTORS(
template <class T, int n> MJ_INLINE vec<bool, n> isunordered(const vec<T, n> &a, const vec<T, n> &b) {
    return isnan(a) || isnan(b);
}
template <class T, int n> MJ_INLINE vec<bool, n> isordered(const vec<T, n> &a, const vec<T, n> &b) {
    return !isunordered(a, b);
}
)

} // namespace metal
