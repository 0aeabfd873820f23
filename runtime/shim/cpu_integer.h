// The integer library: functions on all integer types, char to ulong, and their vectors.
#pragma once

#include "cpu_lift.h"

namespace metal {

template <class T> MJ_INLINE detail::unsigned_of<T> absdiff(T a, T b) {
    typedef detail::unsigned_of<T> U;
    return a < b ? U(U(b) - U(a)) : U(U(a) - U(b));
}

template <class T> MJ_INLINE T addsat(T a, T b) {
    typedef detail::unsigned_of<T> U;
    T sum = T(U(a) + U(b));
    if constexpr (detail::is_signed<T>) {
        // Overflow when both operands differ from the sum in sign; the limit has the sign of a.
        T limit = T(T(a >> (detail::width<T> - 1)) ^ detail::largest<T>);
        return T((a ^ sum) & (b ^ sum)) < T(0) ? limit : sum;
    } else {
        return sum < a ? detail::largest<T> : sum;
    }
}
template <class T> MJ_INLINE T subsat(T a, T b) {
    typedef detail::unsigned_of<T> U;
    T difference = T(U(a) - U(b));
    if constexpr (detail::is_signed<T>) {
        T limit = T(T(a >> (detail::width<T> - 1)) ^ detail::largest<T>);
        return T((a ^ b) & (a ^ difference)) < T(0) ? limit : difference;
    } else {
        return a < b ? T(0) : difference;
    }
}

template <class T> MJ_INLINE T clz(T a) {
    detail::unsigned_of<T> u = a;
    if constexpr (sizeof(T) == 8) {
        return u ? T(__builtin_clzl(u)) : T(64);
    } else {
        return u ? T(__builtin_clz(u) - (32 - int(detail::width<T>))) : T(detail::width<T>);
    }
}
template <class T> MJ_INLINE T ctz(T a) {
    detail::unsigned_of<T> u = a;
    if constexpr (sizeof(T) == 8) {
        return u ? T(__builtin_ctzl(u)) : T(64);
    } else {
        return u ? T(__builtin_ctz(u)) : T(detail::width<T>);
    }
}
template <class T> MJ_INLINE T popcount(T a) {
    detail::unsigned_of<T> u = a;
    if constexpr (sizeof(T) == 8) {
        return T(__builtin_popcountl(u));
    } else {
        return T(__builtin_popcount(u));
    }
}
template <class T> MJ_INLINE T reverse_bits(T a) {
    detail::unsigned_of<T> u = a;
    if constexpr (sizeof(T) == 8) {
        return T(__builtin_bitreverse64(u));
    } else if constexpr (sizeof(T) == 4) {
        return T(__builtin_bitreverse32(u));
    } else if constexpr (sizeof(T) == 2) {
        return T(__builtin_bitreverse16(u));
    } else {
        return T(__builtin_bitreverse8(u));
    }
}
template <class T> MJ_INLINE T rotate(T a, T count) {
    typedef detail::unsigned_of<T> U;
    constexpr uint mask = detail::width<T> - 1;
    uint left = uint(count) & mask;
    return T(U(U(a) << left) | U(U(a) >> ((0u - left) & mask)));
}

template <class T> MJ_INLINE T extract_bits(T a, uint offset, uint bits) {
    typedef detail::unsigned_of<T> U;
    constexpr uint width = detail::width<T>;
    // Left-justify the field, then shift it down with T's own sign.
    uint up = (width - bits - offset) & (width - 1);
    uint down = (width - bits) & (width - 1);
    T field = T(T(U(a) << up) >> down);
    return bits == 0u ? T(0) : field;
}
template <class T> MJ_INLINE T insert_bits(T base, T insert, uint offset, uint bits) {
    typedef detail::unsigned_of<T> U;
    constexpr uint width = detail::width<T>;
    U ones = U(U(-1) >> ((width - bits) & (width - 1)));
    U mask = bits == 0u ? U(0) : U(ones << (offset & (width - 1)));
    U moved = U(U(insert) << (offset & (width - 1)));
    return T((U(base) & U(~mask)) | (moved & mask));
}

// Averages without the carry: the common bits plus half of the different ones.
template <class T> MJ_INLINE T hadd(T a, T b) { return T((a & b) + T(T(a ^ b) >> 1)); }
template <class T> MJ_INLINE T rhadd(T a, T b) { return T((a | b) - T(T(a ^ b) >> 1)); }

template <class T> MJ_INLINE T mulhi(T a, T b) {
    typedef detail::wide_of<T> W;
    return T(W(W(a) * W(b)) >> detail::width<T>);
}
template <class T> MJ_INLINE T madhi(T a, T b, T c) { return T(detail::unsigned_of<T>(mulhi(a, b)) + detail::unsigned_of<T>(c)); }
template <class T> MJ_INLINE T madsat(T a, T b, T c) {
    typedef detail::wide_of<T> W;
    W sum = W(W(W(a) * W(b)) + W(c));
    W low = W(detail::smallest<T>), high = W(detail::largest<T>);
    return T(sum < low ? low : sum > high ? high : sum);
}
template <class T> MJ_INLINE T mul24(T a, T b) {
    // The low 24 bits of each factor, with T's own sign.
    return T((T(detail::unsigned_of<T>(a) << 8) >> 8) * (T(detail::unsigned_of<T>(b) << 8) >> 8));
}
template <class T> MJ_INLINE T mad24(T a, T b, T c) { return T(mul24(a, b) + c); }

MJ_VECTOR2(addsat)
MJ_VECTOR2(subsat)
MJ_VECTOR1(clz)
MJ_VECTOR1(ctz)
MJ_VECTOR1(popcount)
MJ_VECTOR1(reverse_bits)
MJ_VECTOR2(rotate)
MJ_VECTOR2(hadd)
MJ_VECTOR2(rhadd)
MJ_VECTOR2(mulhi)
MJ_VECTOR3(madhi)
MJ_VECTOR3(madsat)
MJ_VECTOR2(mul24)
MJ_VECTOR3(mad24)
MJ_IF_VECTORS(
template <class T, int n>
MJ_INLINE vec<detail::unsigned_of<T>, n> absdiff(const vec<T, n> &a, const vec<T, n> &b) {
    return vec<detail::unsigned_of<T>, n>::map(absdiff, a, b);
}
template <class T, int n> MJ_INLINE vec<T, n> extract_bits(const vec<T, n> &a, uint offset, uint bits) {
    return vec<T, n>::map(extract_bits, a, vec<uint, n>(offset), vec<uint, n>(bits));
}
template <class T, int n>
MJ_INLINE vec<T, n> insert_bits(const vec<T, n> &base, const vec<T, n> &insert, uint offset, uint bits) {
    return vec<T, n>::map(insert_bits, base, insert, vec<uint, n>(offset), vec<uint, n>(bits));
}
)

} // namespace metal
