// `metal_relational`.
#pragma once

#include "integer.h"

namespace metal {

// bool and its vectors only: a template, because every number would convert to a bool parameter.
template <class B>
    requires __emu::same<B, bool>
__EMU_FN bool all(B x) {
    return x;
}
template <class B>
    requires __emu::same<B, bool>
__EMU_FN bool any(B x) {
    return x;
}
template <class V>
    requires __emu::bool_vectors<V>
__EMU_FN bool all(const V &v) {
    bool r = v.x & v.y;
    if constexpr (__emu::count_of<V> > 2) r = r & v.z;
    if constexpr (__emu::count_of<V> > 3) r = r & v.w;
    return r;
}
template <class V>
    requires __emu::bool_vectors<V>
__EMU_FN bool any(const V &v) {
    bool r = v.x | v.y;
    if constexpr (__emu::count_of<V> > 2) r = r | v.z;
    if constexpr (__emu::count_of<V> > 3) r = r | v.w;
    return r;
}

// The form for bfloat is a template: texts may define their own, which then comes first.
#define __EMU_TELLS(name, ...)                                                                                         \
    __EMU_FN bool name(float x) { return __VA_ARGS__; }                                                                \
    __EMU_FN bool name(half __emu_x) { float x = float(__emu_x); return __VA_ARGS__; }                                 \
    template <class T>                                                                                                 \
        requires __emu::same<T, bfloat>                                                                                \
    __EMU_FN bool name(T __emu_x) {                                                                                    \
        float x = float(__emu_x);                                                                                      \
        return __VA_ARGS__;                                                                                            \
    }                                                                                                                  \
    __EMU_LIFT(name, 1, floating_vectors)
__EMU_TELLS(isfinite, x - x == 0.0f)
__EMU_TELLS(isinf, x - x != 0.0f && x == x)
__EMU_TELLS(isnan, x != x)
__EMU_TELLS(signbit, bool(as_type<uint>(x) >> 31))
#undef __EMU_TELLS
// What is normal depends on the type: the smallest normal half is a large float.
__EMU_FN bool isnormal(float x) { return x - x == 0.0f && __builtin_fabsf(x) >= FLT_MIN; }
__EMU_FN bool isnormal(half x) { return float(x) - float(x) == 0.0f && __builtin_fabsf(float(x)) >= float(HALF_MIN); }
template <class T>
    requires __emu::same<T, bfloat>
__EMU_FN bool isnormal(T x) {
    return isnormal(float(x));
}
__EMU_LIFT(isnormal, 1, floating_vectors)

__EMU_FN bool isordered(float x, float y) { return x == x && y == y; }
__EMU_FN bool isordered(half x, half y) { return x == x && y == y; }
__EMU_LIFT(isordered, 2, floating_vectors)
__EMU_FN bool isunordered(float x, float y) { return x != x || y != y; }
__EMU_FN bool isunordered(half x, half y) { return x != x || y != y; }
__EMU_LIFT(isunordered, 2, floating_vectors)

// The third argument of scalars is a bool or becomes one; that of vectors has as many as they have components.
#define __EMU_SELECT(T, ...)                                                                                           \
    __EMU_FN T select(T a, T b, bool c) { return c ? b : a; }
__EMU_EACH_INTEGER(__EMU_SELECT, )
__EMU_SELECT(bool)
__EMU_SELECT(float)
__EMU_SELECT(half)
__EMU_SELECT(bfloat)
#undef __EMU_SELECT
template <class V, class W, class B>
    requires(__emu::vectors<V, W> && __emu::bool_vectors<B> &&
             __emu::count_of<B> == __emu::count_of<__emu::common_of<V, W>>)
__EMU_FN auto select(const V &a, const W &b, const B &c) {
    typedef __emu::common_of<V, W> R;
    return __emu::each([](auto x, auto y, bool z) { return z ? y : x; }, R(a), R(b), c);
}

}  // namespace metal

// `not` is a word of C++: the text's calls of the function arrive as the operator, which does the same.
