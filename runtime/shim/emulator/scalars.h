// Scalar types and their conversions.
//
// Metal's `half` is clang's `_Float16`; `bfloat` is a class, because clang's own type refuses conversions from `half`
// and rounds through float where Metal rounds once.
#pragma once

#include "abi.h"

// Library functions vanish into the kernel, lines and all: what they do has the place of the call in the user's text.
// Without the sanitizer clang decides which, from the inside out: all of them first, and a kernel of a thousand vector
// operations takes half a minute to take apart.
#ifdef __EMU_SANITIZE
#define __EMU_VANISH __attribute__((always_inline, nodebug))
#else
#define __EMU_VANISH __attribute__((nodebug))
#endif
#define __EMU_FN __EMU_VANISH inline constexpr
#define __EMU_MEMBER __EMU_VANISH constexpr
// What stays a call of its own has no lines either, and its own memory is no business of the sanitizer's.
#define __EMU_OWN __attribute__((nodebug, no_sanitize("thread", "address")))
// Where a call stands in the user's text: the last parameters of functions that may report a fault.
#define __EMU_HERE uint __emu_line = __builtin_LINE(), uint __emu_column = __builtin_COLUMN()

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef ulong size_t;
typedef long ptrdiff_t;

static_assert(sizeof(long) == 8, "Metal's long has 64 bits: an LP64 target is needed");
static_assert(char(-1) < 0, "Metal's char is signed: compile with -fsigned-char");

namespace __emu::types {
struct bfloat;
}

namespace __emu {

using types::bfloat;

template <class A, class B> inline constexpr bool same = false;
template <class A> inline constexpr bool same<A, A> = true;
template <class A, class... B> concept one_of = (same<A, B> || ...);

// bool is no integer: the integer functions of the library refuse it.
template <class T>
concept integer =
    one_of<T, char, signed char, uchar, short, ushort, int, uint, long, ulong, long long, unsigned long long>;
template <class T> concept narrow_float = one_of<T, float, half>;
template <class T> concept floating = one_of<T, float, half, bfloat>;
template <class T> concept scalar = integer<T> || floating<T> || same<T, bool> || same<T, double>;

template <integer T> inline constexpr bool is_signed = T(-1) < T(0);
template <integer T> inline constexpr int width = 8 * int(sizeof(T));
template <integer T> inline constexpr T largest = is_signed<T> ? T(~(1ull << (width<T> - 1))) : T(~0ull);
template <integer T> inline constexpr T smallest = T(~largest<T>);

template <int nbytes> struct unsigned_bits;
template <> struct unsigned_bits<1> { typedef uchar type; };
template <> struct unsigned_bits<2> { typedef ushort type; };
template <> struct unsigned_bits<4> { typedef uint type; };
template <> struct unsigned_bits<8> { typedef ulong type; };
template <class T> using unsigned_of = typename unsigned_bits<sizeof(T)>::type;

// A double as a float that is rounded to odd: exact, or the neighbour whose last bit is set. Another rounding to fewer
// bits then sees that something was lost, and gives what one rounding would.
__EMU_FN float rounded_to_odd(double x) {
    float narrow = float(x);
    uint bits = __builtin_bit_cast(uint, narrow);
    if (double(narrow) == x || x != x || (bits & 0x7fffffffu) == 0x7f800000u) return narrow;
    bool away = narrow < 0 ? double(narrow) < x : double(narrow) > x;
    return __builtin_bit_cast(float, (bits - (away ? 1u : 0u)) | 1u);
}
// The bits of the bfloat nearest to `x`, ties to even.
__EMU_FN ushort bfloat_bits(double x) {
    uint bits = __builtin_bit_cast(uint, rounded_to_odd(x));
    if (x != x) return ushort((bits >> 16) | 0x40u);
    return ushort((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace __emu

namespace __emu::types {

// Implicit are bfloat -> float, integer -> bfloat and back; a bfloat does not meet a half without a cast. To int it
// needs one as well, or `c ? b : 0` would have two meanings.
struct bfloat {
    ushort __emu_bits;

    bfloat() = default;
    template <class U>
        requires(integer<U> || one_of<U, bool, float, half, double>)
    __EMU_MEMBER explicit(one_of<U, float, half, double>) bfloat(U x) : __emu_bits(bfloat_bits(double(x))) {}

    __EMU_MEMBER float __emu_float() const { return __builtin_bit_cast(float, uint(__emu_bits) << 16); }
    template <class U>
        requires(one_of<U, float, half, double, bool> || integer<U>)
    __EMU_MEMBER explicit(one_of<U, half, double, bool, int>) operator U() const {
        return U(__emu_float());
    }

    __EMU_MEMBER bfloat operator+() const { return *this; }
    __EMU_MEMBER bfloat operator-() const { return __builtin_bit_cast(bfloat, ushort(__emu_bits ^ 0x8000u)); }
    __EMU_MEMBER bool operator!() const { return __emu_float() == 0.0f; }
    __EMU_MEMBER bfloat &operator++() { return *this = bfloat(__emu_float() + 1.0f); }
    __EMU_MEMBER bfloat &operator--() { return *this = bfloat(__emu_float() - 1.0f); }

    // Two bfloats have 16 bits of significand at most: the sum in double rounds where the exact one does.
#define __EMU_OPERATOR(op)                                                                                             \
    __EMU_MEMBER friend bfloat operator op(bfloat a, bfloat b) {                                                       \
        return bfloat(double(a.__emu_float()) op double(b.__emu_float()));                                             \
    }                                                                                                                  \
    template <integer U> __EMU_MEMBER friend bfloat operator op(bfloat a, U b) { return a op bfloat(b); }              \
    template <integer U> __EMU_MEMBER friend bfloat operator op(U a, bfloat b) { return bfloat(a) op b; }              \
    __EMU_MEMBER friend float operator op(bfloat a, float b) { return a.__emu_float() op b; }                          \
    __EMU_MEMBER friend float operator op(float a, bfloat b) { return a op b.__emu_float(); }                          \
    friend void operator op(bfloat, half) = delete;                                                                    \
    friend void operator op(half, bfloat) = delete;                                                                    \
    template <class U> __EMU_MEMBER friend bfloat &operator op##=(bfloat &a, U b) { return a = bfloat(a op b); }
    __EMU_OPERATOR(+)
    __EMU_OPERATOR(-)
    __EMU_OPERATOR(*)
    __EMU_OPERATOR(/)
#undef __EMU_OPERATOR
    // What assigns to something else than a bfloat keeps its type.
#define __EMU_OPERATOR(op)                                                                                             \
    template <class U>                                                                                                 \
        requires one_of<U, float, half>                                                                                \
    __EMU_MEMBER friend U &operator op##=(U &a, bfloat b) {                                                            \
        return a = U(float(a) op b.__emu_float());                                                                     \
    }
    __EMU_OPERATOR(+)
    __EMU_OPERATOR(-)
    __EMU_OPERATOR(*)
    __EMU_OPERATOR(/)
#undef __EMU_OPERATOR
#define __EMU_COMPARISON(op)                                                                                           \
    __EMU_MEMBER friend bool operator op(bfloat a, bfloat b) { return a.__emu_float() op b.__emu_float(); }            \
    template <integer U> __EMU_MEMBER friend bool operator op(bfloat a, U b) { return a op bfloat(b); }                \
    template <integer U> __EMU_MEMBER friend bool operator op(U a, bfloat b) { return bfloat(a) op b; }                \
    __EMU_MEMBER friend bool operator op(bfloat a, float b) { return a.__emu_float() op b; }                           \
    __EMU_MEMBER friend bool operator op(float a, bfloat b) { return a op b.__emu_float(); }                           \
    friend void operator op(bfloat, half) = delete;                                                                    \
    friend void operator op(half, bfloat) = delete;
    __EMU_COMPARISON(==)
    __EMU_COMPARISON(!=)
    __EMU_COMPARISON(<)
    __EMU_COMPARISON(>)
    __EMU_COMPARISON(<=)
    __EMU_COMPARISON(>=)
#undef __EMU_COMPARISON
};

}  // namespace __emu::types

typedef __emu::types::bfloat bfloat;

namespace __emu {

// The explicit conversion between scalars. A float outside of the integer type gives its nearest end and NaN gives 0,
// as on Apple's GPUs: C++ leaves that undefined, and -fno-strict-float-cast-overflow defines it. Integers go to half
// through double, which holds all that half can tell apart, so that they round once; from double to half there is no
// instruction.
template <class T, class U> __EMU_FN T to(const U &x) {
    if constexpr (same<T, U>) {
        return x;
    } else if constexpr (same<U, bfloat> && !same<T, float>) {
        return to<T>(x.__emu_float());
    } else if constexpr (same<T, bool> && (floating<U> || integer<U>)) {
        return x != U(0);
    } else if constexpr (same<T, half> && (integer<U> || same<U, double>)) {
        return half(rounded_to_odd(double(x)));
    } else {
        return T(x);
    }
}

}  // namespace __emu

// A bit cast between types of one size; no conversion comes before it.
template <class T, class U> __EMU_FN T as_type(const U &x) {
    static_assert(!__is_pointer(T) && !__is_pointer(U), "as_type casts no pointers");
    static_assert(sizeof(T) == sizeof(U), "as_type casts between types of the same size");
    return __builtin_bit_cast(T, x);
}
