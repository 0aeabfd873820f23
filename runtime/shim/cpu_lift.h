// How a function of scalars gets its other forms: vectors component by component, half by way of float.
#pragma once

#include "cpu_types.h"

// Vector forms exist only where cpu_vectors.h came first: parsing them costs more than all else in a small kernel.
#ifndef MJ_IF_VECTORS
#define MJ_IF_VECTORS(...)
#endif

namespace metal {
namespace detail {

// Half computes in float and rounds once.
template <class T> struct lifted {
    static_assert(is_float<T>, "a function of floats was called with another type");
    MJ_MEMBER static T call(float (*f)(float), T a) { return T(f(a)); }
    MJ_MEMBER static T call(float (*f)(float, float), T a, T b) { return T(f(a, b)); }
    MJ_MEMBER static T call(float (*f)(float, float, float), T a, T b, T c) { return T(f(a, b, c)); }
};

MJ_IF_VECTORS(
template <class T, int n> struct lifted<vec<T, n>> {
    typedef vec<T, n> V;
    typedef vec<float, n> F;
    MJ_MEMBER static V call(float (*f)(float), const V &a) { return V(F::map(f, F(a))); }
    MJ_MEMBER static V call(float (*f)(float, float), const V &a, const V &b) { return V(F::map(f, F(a), F(b))); }
    MJ_MEMBER static V call(float (*f)(float, float, float), const V &a, const V &b, const V &c) {
        return V(F::map(f, F(a), F(b), F(c)));
    }
};
)

} // namespace detail
} // namespace metal

// The half and vector forms of a function of floats. The function itself is no template, so it is preferred.
#define MJ_FLOAT1(name)                                                                                                 \
    template <class T> MJ_INLINE T name(const T &x) { return detail::lifted<T>::call(name, x); }
#define MJ_FLOAT2(name)                                                                                                 \
    template <class T> MJ_INLINE T name(const T &x, const T &y) { return detail::lifted<T>::call(name, x, y); }
#define MJ_FLOAT3(name)                                                                                                 \
    template <class T> MJ_INLINE T name(const T &x, const T &y, const T &z) {                                           \
        return detail::lifted<T>::call(name, x, y, z);                                                                  \
    }

// The vector form of a function that is a template over scalars, and of a test, whose vector form gives a vector of bool.
#define MJ_VECTOR1(name) MJ_IF_VECTORS(                                                                                 \
    template <class T, int n> MJ_INLINE vec<T, n> name(const vec<T, n> &a) { return vec<T, n>::map(name, a); })
#define MJ_VECTOR2(name) MJ_IF_VECTORS(                                                                                 \
    template <class T, int n> MJ_INLINE vec<T, n> name(const vec<T, n> &a, const vec<T, n> &b) {                        \
        return vec<T, n>::map(name, a, b);                                                                              \
    })
#define MJ_VECTOR3(name) MJ_IF_VECTORS(                                                                                 \
    template <class T, int n>                                                                                           \
    MJ_INLINE vec<T, n> name(const vec<T, n> &a, const vec<T, n> &b, const vec<T, n> &c) {                              \
        return vec<T, n>::map(name, a, b, c);                                                                           \
    })
#define MJ_VECTOR_TEST(name) MJ_IF_VECTORS(                                                                             \
    template <class T, int n> MJ_INLINE vec<bool, n> name(const vec<T, n> &a) { return vec<bool, n>::map(name, a); })
