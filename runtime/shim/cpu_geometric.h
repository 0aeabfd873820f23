// The geometric library: functions of whole vectors of float or half. Half computes in float and rounds once.
#pragma once

#include "cpu_vectors.h"

#include "cpu_choice.h"

namespace metal {
namespace precise {

template <int n> MJ_INLINE float dot(const vec<float, n> &a, const vec<float, n> &b) {
    return (a * b).fold(detail::arithmetic<'+', float>);
}
template <int n> MJ_INLINE float length_squared(const vec<float, n> &a) { return dot(a, a); }
template <int n> MJ_INLINE float length(const vec<float, n> &a) { return __builtin_sqrtf(dot(a, a)); }
template <int n> MJ_INLINE float distance_squared(const vec<float, n> &a, const vec<float, n> &b) {
    return length_squared(a - b);
}
template <int n> MJ_INLINE float distance(const vec<float, n> &a, const vec<float, n> &b) { return length(a - b); }
template <int n> MJ_INLINE vec<float, n> normalize(const vec<float, n> &a) { return a / vec<float, n>(length(a)); }
template <class T> MJ_INLINE vec<T, 3> cross(const vec<T, 3> &a, const vec<T, 3> &b) {
    return vec<T, 3>(T(a.y * b.z - a.z * b.y), T(a.z * b.x - a.x * b.z), T(a.x * b.y - a.y * b.x));
}
template <int n> MJ_INLINE vec<float, n> reflect(const vec<float, n> &i, const vec<float, n> &normal) {
    return i - normal * (2.0f * dot(normal, i));
}
template <int n> MJ_INLINE vec<float, n> refract(const vec<float, n> &i, const vec<float, n> &normal, float eta) {
    float cosine = dot(normal, i);
    float k = 1.0f - eta * eta * (1.0f - cosine * cosine);
    // Total reflection, k < 0, gives zero.
    vec<float, n> bent = i * eta - normal * (eta * cosine + __builtin_sqrtf(k < 0.0f ? 0.0f : k));
    return k < 0.0f ? vec<float, n>(0.0f) : bent;
}
template <int n>
MJ_INLINE vec<float, n> faceforward(const vec<float, n> &normal, const vec<float, n> &i, const vec<float, n> &reference) {
    return dot(reference, i) < 0.0f ? normal : -normal;
}

#define MJ_HALF_SCALAR(name)                                                                                            \
    template <int n> MJ_INLINE half name(const vec<half, n> &a) { return half(name(vec<float, n>(a))); }
#define MJ_HALF_SCALAR2(name)                                                                                           \
    template <int n> MJ_INLINE half name(const vec<half, n> &a, const vec<half, n> &b) {                                \
        return half(name(vec<float, n>(a), vec<float, n>(b)));                                                          \
    }
MJ_HALF_SCALAR2(dot)
MJ_HALF_SCALAR(length_squared)
MJ_HALF_SCALAR(length)
MJ_HALF_SCALAR2(distance_squared)
MJ_HALF_SCALAR2(distance)
#undef MJ_HALF_SCALAR
#undef MJ_HALF_SCALAR2
template <int n> MJ_INLINE vec<half, n> normalize(const vec<half, n> &a) {
    return vec<half, n>(normalize(vec<float, n>(a)));
}
template <int n> MJ_INLINE vec<half, n> reflect(const vec<half, n> &i, const vec<half, n> &normal) {
    return vec<half, n>(reflect(vec<float, n>(i), vec<float, n>(normal)));
}
template <int n> MJ_INLINE vec<half, n> refract(const vec<half, n> &i, const vec<half, n> &normal, half eta) {
    return vec<half, n>(refract(vec<float, n>(i), vec<float, n>(normal), float(eta)));
}
template <int n>
MJ_INLINE vec<half, n> faceforward(const vec<half, n> &normal, const vec<half, n> &i, const vec<half, n> &reference) {
    return dot(vec<float, n>(reference), vec<float, n>(i)) < 0.0f ? normal : -normal;
}

} // namespace precise

} // namespace metal
