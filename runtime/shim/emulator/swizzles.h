// Swizzles: every `v.xy`, `v.bgr`, `v.wwww` is a property of clang's, a call that looks like a member.
//
// A read gives a vector, so that deduction, overloads and `auto` see one. A write calls a function that exists only
// where no letter repeats. Single letters are true members and not here.
//
// The macros nest four levels, one a letter; a macro does not expand inside itself, so each level has its own copies.
#pragma once

#define __EMU_2_1(M, ...) M(__VA_ARGS__, x, r) M(__VA_ARGS__, y, g)
#define __EMU_3_1(M, ...) __EMU_2_1(M, __VA_ARGS__) M(__VA_ARGS__, z, b)
#define __EMU_4_1(M, ...) __EMU_3_1(M, __VA_ARGS__) M(__VA_ARGS__, w, a)
#define __EMU_2_2(M, ...) M(__VA_ARGS__, x, r) M(__VA_ARGS__, y, g)
#define __EMU_3_2(M, ...) __EMU_2_2(M, __VA_ARGS__) M(__VA_ARGS__, z, b)
#define __EMU_4_2(M, ...) __EMU_3_2(M, __VA_ARGS__) M(__VA_ARGS__, w, a)
#define __EMU_2_3(M, ...) M(__VA_ARGS__, x, r) M(__VA_ARGS__, y, g)
#define __EMU_3_3(M, ...) __EMU_2_3(M, __VA_ARGS__) M(__VA_ARGS__, z, b)
#define __EMU_4_3(M, ...) __EMU_3_3(M, __VA_ARGS__) M(__VA_ARGS__, w, a)
#define __EMU_2_4(M, ...) M(__VA_ARGS__, x, r) M(__VA_ARGS__, y, g)
#define __EMU_3_4(M, ...) __EMU_2_4(M, __VA_ARGS__) M(__VA_ARGS__, z, b)
#define __EMU_4_4(M, ...) __EMU_3_4(M, __VA_ARGS__) M(__VA_ARGS__, w, a)

// c1..c4 are letters of xyzw, k1..k4 the same of rgba.
#define __EMU_PROPERTY(V, name, colours, ...)                                                                          \
    __EMU_MEMBER V __emu_get_##name() const { return V(__VA_ARGS__); }                                                 \
    __declspec(property(get = __emu_get_##name, put = __emu_put_##name)) V name;                                       \
    __declspec(property(get = __emu_get_##name, put = __emu_put_##name)) V colours;
#define __EMU_FROM_1(n, c1, k1) __EMU_##n##_2(__EMU_FROM_2, n, c1, k1)
#define __EMU_FROM_2(n, c1, k1, c2, k2)                                                                                \
    __EMU_PROPERTY(vector<T[2]>, c1##c2, k1##k2, c1, c2)                                                               \
    __EMU_##n##_3(__EMU_FROM_3, n, c1, k1, c2, k2)
#define __EMU_FROM_3(n, c1, k1, c2, k2, c3, k3)                                                                        \
    __EMU_PROPERTY(vector<T[3]>, c1##c2##c3, k1##k2##k3, c1, c2, c3)                                                   \
    __EMU_##n##_4(__EMU_FROM_4, n, c1, k1, c2, k2, c3, k3)
#define __EMU_FROM_4(n, c1, k1, c2, k2, c3, k3, c4, k4)                                                                \
    __EMU_PROPERTY(vector<T[4]>, c1##c2##c3##c4, k1##k2##k3##k4, c1, c2, c3, c4)

#define __EMU_PUT_2(c1, c2)                                                                                            \
    __EMU_MEMBER void __emu_put_##c1##c2(const vector<T[2]> &v) { c1 = v.x, c2 = v.y; }
#define __EMU_PUT_3(c1, c2, c3)                                                                                        \
    __EMU_MEMBER void __emu_put_##c1##c2##c3(const vector<T[3]> &v) { c1 = v.x, c2 = v.y, c3 = v.z; }
#define __EMU_PUT_4(c1, c2, c3, c4)                                                                                    \
    __EMU_MEMBER void __emu_put_##c1##c2##c3##c4(const vector<T[4]> &v) { c1 = v.x, c2 = v.y, c3 = v.z, c4 = v.w; }
// All writable swizzles that begin with two letters; the others are what is left.
#define __EMU_PUTS_OF_2(c1, c2) __EMU_PUT_2(c1, c2)
#define __EMU_PUTS_OF_3(c1, c2, c3) __EMU_PUT_2(c1, c2) __EMU_PUT_3(c1, c2, c3)
#define __EMU_PUTS_OF_4(c1, c2, c3, c4)                                                                                \
    __EMU_PUT_2(c1, c2)                                                                                                \
    __EMU_PUT_3(c1, c2, c3) __EMU_PUT_3(c1, c2, c4) __EMU_PUT_4(c1, c2, c3, c4) __EMU_PUT_4(c1, c2, c4, c3)

#define __EMU_SWIZZLES_2 __EMU_2_1(__EMU_FROM_1, 2) __EMU_PUTS_OF_2(x, y) __EMU_PUTS_OF_2(y, x)
#define __EMU_SWIZZLES_3                                                                                               \
    __EMU_3_1(__EMU_FROM_1, 3)                                                                                         \
    __EMU_PUTS_OF_3(x, y, z) __EMU_PUTS_OF_3(x, z, y) __EMU_PUTS_OF_3(y, x, z)                                         \
    __EMU_PUTS_OF_3(y, z, x) __EMU_PUTS_OF_3(z, x, y) __EMU_PUTS_OF_3(z, y, x)
#define __EMU_SWIZZLES_4                                                                                               \
    __EMU_4_1(__EMU_FROM_1, 4)                                                                                         \
    __EMU_PUTS_OF_4(x, y, z, w) __EMU_PUTS_OF_4(x, z, y, w) __EMU_PUTS_OF_4(x, w, y, z)                                \
    __EMU_PUTS_OF_4(y, x, z, w) __EMU_PUTS_OF_4(y, z, x, w) __EMU_PUTS_OF_4(y, w, x, z)                                \
    __EMU_PUTS_OF_4(z, x, y, w) __EMU_PUTS_OF_4(z, y, x, w) __EMU_PUTS_OF_4(z, w, x, y)                                \
    __EMU_PUTS_OF_4(w, x, y, z) __EMU_PUTS_OF_4(w, y, x, z) __EMU_PUTS_OF_4(w, z, x, y)
