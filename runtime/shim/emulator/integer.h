// `metal_integer`: functions of the eight integer types, and the vector forms of what floats have as well.
#pragma once

#include "math.h"

namespace __emu::whole {

// Wide enough for every product of two 64-bit integers, signed or not.
typedef __int128 wide;

template <integer T> __EMU_FN T saturated(wide x) {
    return x < wide(smallest<T>) ? smallest<T> : x > wide(largest<T>) ? largest<T> : T(x);
}
template <integer T> __EMU_FN T abs(T x) { return is_signed<T> && x < T(0) ? T(0 - unsigned_of<T>(x)) : x; }
template <integer T> __EMU_FN unsigned_of<T> absdiff(T x, T y) {
    return x < y ? unsigned_of<T>(unsigned_of<T>(y) - unsigned_of<T>(x))
                 : unsigned_of<T>(unsigned_of<T>(x) - unsigned_of<T>(y));
}
template <integer T> __EMU_FN T addsat(T x, T y) { return saturated<T>(wide(x) + wide(y)); }
template <integer T> __EMU_FN T subsat(T x, T y) { return saturated<T>(wide(x) - wide(y)); }
template <integer T> __EMU_FN T hadd(T x, T y) { return T((wide(x) + wide(y)) >> 1); }
template <integer T> __EMU_FN T rhadd(T x, T y) { return T((wide(x) + wide(y) + 1) >> 1); }
template <integer T> __EMU_FN T mulhi(T x, T y) {
    if constexpr (same<T, ulong>) return T((unsigned __int128)(x) * y >> 64);
    return T((wide(x) * wide(y)) >> width<T>);
}
template <integer T> __EMU_FN T madhi(T x, T y, T z) { return T(mulhi(x, y) + z); }
template <integer T> __EMU_FN T madsat(T x, T y, T z) {
    // The product of two ulongs may need the 128th bit; its upper half says that the sum is too large.
    if constexpr (same<T, ulong>) return mulhi(x, y) != 0 ? largest<T> : saturated<T>(wide(x * y) + wide(z));
    return saturated<T>(wide(x) * wide(y) + wide(z));
}
template <integer T> __EMU_FN T max(T x, T y) { return x < y ? y : x; }
template <integer T> __EMU_FN T min(T x, T y) { return y < x ? y : x; }
template <integer T> __EMU_FN T max3(T x, T y, T z) { return max(max(x, y), z); }
template <integer T> __EMU_FN T min3(T x, T y, T z) { return min(min(x, y), z); }
template <integer T> __EMU_FN T median3(T x, T y, T z) { return max(min(x, y), min(max(x, y), z)); }
template <integer T> __EMU_FN T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <integer T> __EMU_FN T clz(T x) {
    unsigned_of<T> u = unsigned_of<T>(x);
    return T(u == 0 ? width<T> : __builtin_clzl(u) - (64 - width<T>));
}
template <integer T> __EMU_FN T ctz(T x) {
    unsigned_of<T> u = unsigned_of<T>(x);
    return T(u == 0 ? width<T> : __builtin_ctzl(u));
}
template <integer T> __EMU_FN T popcount(T x) { return T(__builtin_popcountl(unsigned_of<T>(x))); }
template <integer T> __EMU_FN T reverse_bits(T x) {
    return T(__builtin_bitreverse64(ulong(unsigned_of<T>(x))) >> (64 - width<T>));
}
template <integer T> __EMU_FN T rotate(T x, T count) {
    typedef unsigned_of<T> U;
    uint left = uint(count) & uint(width<T> - 1), right = (0u - left) & uint(width<T> - 1);
    return T(U(U(U(x) << left) | U(U(x) >> right)));
}
template <integer T> __EMU_FN T extract_bits(T x, uint offset, uint bits) {
    if (bits == 0 || offset >= uint(width<T>)) return T(0);
    uint above = uint(width<T>) - min(bits, uint(width<T>) - offset);
    return T(T(unsigned_of<T>(x) << (above >= offset ? above - offset : 0u)) >> above);
}
template <integer T> __EMU_FN T insert_bits(T base, T insert, uint offset, uint bits) {
    typedef unsigned_of<T> U;
    if (bits == 0 || offset >= uint(width<T>)) return base;
    U ones = bits >= uint(width<T>) ? U(~U(0)) : U((U(1) << bits) - 1);
    U mask = U(ones << offset);
    return T((U(base) & U(~mask)) | (U(U(insert) << offset) & mask));
}
// Only the low 24 bits count, sign-extended for int.
template <integer T> __EMU_FN T low24(T x) { return T(T(unsigned_of<T>(x) << 8) >> 8); }
template <integer T> __EMU_FN T mul24(T x, T y) { return T(uint(low24(x)) * uint(low24(y))); }
template <integer T> __EMU_FN T mad24(T x, T y, T z) { return T(uint(mul24(x, y)) + uint(z)); }

}  // namespace __emu::whole

namespace metal {

#define __EMU_1(T, name)                                                                                               \
    __EMU_FN auto name(T x) { return __emu::whole::name(x); }
#define __EMU_2(T, name)                                                                                               \
    __EMU_FN auto name(T x, T y) { return __emu::whole::name(x, y); }
#define __EMU_3(T, name)                                                                                               \
    __EMU_FN auto name(T x, T y, T z) { return __emu::whole::name(x, y, z); }
#define __EMU_INTEGER(name, count)                                                                                     \
    __EMU_EACH_INTEGER(__EMU_##count, name)                                                                            \
    __EMU_LIFT(name, count, integer_vectors)
#define __EMU_NUMBER(name, count)                                                                                      \
    __EMU_EACH_INTEGER(__EMU_##count, name)                                                                            \
    __EMU_LIFT(name, count, number_vectors)

__EMU_NUMBER(abs, 1)
__EMU_NUMBER(max, 2)
__EMU_NUMBER(min, 2)
__EMU_NUMBER(max3, 3)
__EMU_NUMBER(min3, 3)
__EMU_NUMBER(median3, 3)
__EMU_INTEGER(absdiff, 2)
__EMU_INTEGER(addsat, 2)
__EMU_INTEGER(subsat, 2)
__EMU_INTEGER(hadd, 2)
__EMU_INTEGER(rhadd, 2)
__EMU_INTEGER(mulhi, 2)
__EMU_INTEGER(madhi, 3)
__EMU_INTEGER(madsat, 3)
__EMU_INTEGER(clz, 1)
__EMU_INTEGER(ctz, 1)
__EMU_INTEGER(popcount, 1)
__EMU_INTEGER(reverse_bits, 1)
__EMU_INTEGER(rotate, 2)

__EMU_2(int, mul24)
__EMU_2(uint, mul24)
__EMU_LIFT(mul24, 2, integer_vectors)
__EMU_3(int, mad24)
__EMU_3(uint, mad24)
__EMU_LIFT(mad24, 3, integer_vectors)
#undef __EMU_INTEGER
#undef __EMU_NUMBER
#undef __EMU_1
#undef __EMU_2
#undef __EMU_3

// The lower limit above the upper one, and bits beyond the width: the specification leaves them undefined.
#define __EMU_CLAMP(T, function)                                                                                       \
    __EMU_FN T clamp(T x, T low, T high, __EMU_HERE) {                                                                 \
        __emu::expect(!(low > high), "clamp with a lower limit above the upper one", __emu_line, __emu_column);        \
        return function(x, low, high);                                                                                 \
    }
__EMU_EACH_INTEGER(__EMU_CLAMP, __emu::whole::clamp)
__EMU_CLAMP(float, __emu::real::clamp)
__EMU_CLAMP(half, __emu::real::clamp)
#undef __EMU_CLAMP
template <class X, class L, class H>
    requires __emu::number_vectors<X, L, H>
__EMU_FN auto clamp(const X &x, const L &low, const H &high, __EMU_HERE) {
    return __emu::each_of_common(
        [=](auto a, auto b, auto c) { return metal::clamp(a, b, c, __emu_line, __emu_column); }, x, low, high);
}

#define __EMU_BITS(T, ...)                                                                                             \
    __EMU_FN T extract_bits(T x, uint offset, uint bits, __EMU_HERE) {                                                 \
        __emu::expect(ulong(offset) + bits <= __emu::width<T>, "extract_bits beyond the last bit", __emu_line,         \
                      __emu_column);                                                                                   \
        return __emu::whole::extract_bits(x, offset, bits);                                                            \
    }                                                                                                                  \
    __EMU_FN T insert_bits(T base, T insert, uint offset, uint bits, __EMU_HERE) {                                     \
        __emu::expect(ulong(offset) + bits <= __emu::width<T>, "insert_bits beyond the last bit", __emu_line,          \
                      __emu_column);                                                                                   \
        return __emu::whole::insert_bits(base, insert, offset, bits);                                                  \
    }
__EMU_EACH_INTEGER(__EMU_BITS, )
#undef __EMU_BITS
template <class V>
    requires __emu::integer_vectors<V>
__EMU_FN auto extract_bits(const V &x, uint offset, uint bits, __EMU_HERE) {
    return __emu::each_of_common([=](auto a) { return extract_bits(a, offset, bits, __emu_line, __emu_column); }, x);
}
template <class V, class W>
    requires __emu::integer_vectors<V, W>
__EMU_FN auto insert_bits(const V &base, const W &insert, uint offset, uint bits, __EMU_HERE) {
    return __emu::each_of_common(
        [=](auto a, auto b) { return insert_bits(a, b, offset, bits, __emu_line, __emu_column); }, base, insert);
}

}  // namespace metal
