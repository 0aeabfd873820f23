// Shifts of scalars as Metal has them: the count modulo the width. The pre-pass writes `a << b` as
// `a << __emu::left << b`, which has the same precedence; sanitized builds keep the plain shift, and clang's own check.
#pragma once

#include "vectors.h"

namespace __emu {

struct leftwards {};
struct rightwards {};
inline constexpr leftwards left;
inline constexpr rightwards right;

// A value that waits for its count, and a count that waits for its value.
template <class A, class D> struct shifting {
    A value;
};
template <class B, class D> struct counting {
    B count;
};

template <class T> constexpr bool is_plain = __is_integral(T) || __is_enum(T);

template <class A, class B> __EMU_FN auto shifted(leftwards, A a, B b) {
    if constexpr (is_plain<A> && is_plain<B>)
        return +a << (+b & decltype(+b)(8 * sizeof(+a) - 1));
    else
        return a << b;
}
template <class A, class B> __EMU_FN auto shifted(rightwards, A a, B b) {
    if constexpr (is_plain<A> && is_plain<B>)
        return +a >> (+b & decltype(+b)(8 * sizeof(+a) - 1));
    else
        return a >> b;
}

template <class A> __EMU_FN shifting<A, leftwards> operator<<(A a, leftwards) { return {a}; }
template <class A> __EMU_FN shifting<A, rightwards> operator>>(A a, rightwards) { return {a}; }
template <class A, class B> __EMU_FN auto operator<<(shifting<A, leftwards> a, B b) {
    return shifted(left, a.value, b);
}
template <class A, class B> __EMU_FN auto operator>>(shifting<A, rightwards> a, B b) {
    return shifted(right, a.value, b);
}
template <class B> __EMU_FN counting<B, leftwards> operator<<(leftwards, B b) { return {b}; }
template <class B> __EMU_FN counting<B, rightwards> operator>>(rightwards, B b) { return {b}; }
template <class A, class B> __EMU_FN A &operator<<=(A &a, counting<B, leftwards> b) {
    return a = A(shifted(left, a, b.count));
}
template <class A, class B> __EMU_FN A &operator>>=(A &a, counting<B, rightwards> b) {
    return a = A(shifted(right, a, b.count));
}

}  // namespace __emu

#ifdef __EMU_SANITIZE
#define __EMU_LEFT
#define __EMU_RIGHT
#else
#define __EMU_LEFT __emu::left <<
#define __EMU_RIGHT __emu::right >>
#endif
