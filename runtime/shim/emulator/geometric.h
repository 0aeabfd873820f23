// `metal_geometric`: vectors of float and half. Sums are taken in double and rounded once.
#pragma once

#include "relational.h"

namespace __emu::real {

template <class V> __EMU_FN double dot(const V &a, const V &b) {
    double sum = double(a.x) * double(b.x) + double(a.y) * double(b.y);
    if constexpr (count_of<V> > 2) sum += double(a.z) * double(b.z);
    if constexpr (count_of<V> > 3) sum += double(a.w) * double(b.w);
    return sum;
}

}  // namespace __emu::real

namespace metal {

template <class A, class B>
    requires __emu::float_vectors<A, B>
__EMU_FN auto dot(const A &a, const B &b) {
    typedef __emu::common_of<A, B> V;
    return __emu::to<__emu::element_of<V>>(__emu::real::dot(V(a), V(b)));
}
template <class A>
    requires __emu::float_vectors<A>
__EMU_FN auto length_squared(const A &a) {
    return dot(a, a);
}
template <class A>
    requires __emu::float_vectors<A>
__EMU_FN auto length(const A &a) {
    typedef __emu::common_of<A> V;
    return __emu::to<__emu::element_of<V>>(__builtin_sqrt(__emu::real::dot(V(a), V(a))));
}
template <class A, class B>
    requires __emu::float_vectors<A, B>
__EMU_FN auto distance_squared(const A &a, const B &b) {
    return length_squared(__emu::common_of<A, B>(a) - __emu::common_of<A, B>(b));
}
template <class A, class B>
    requires __emu::float_vectors<A, B>
__EMU_FN auto distance(const A &a, const B &b) {
    return length(__emu::common_of<A, B>(a) - __emu::common_of<A, B>(b));
}
template <class A>
    requires __emu::float_vectors<A>
__EMU_FN auto normalize(const A &a) {
    typedef __emu::common_of<A> V;
    double norm = __builtin_sqrt(__emu::real::dot(V(a), V(a)));
    return __emu::each([=](auto x) { return __emu::to<__emu::element_of<V>>(double(x) / norm); }, V(a));
}
template <class A, class B>
    requires(__emu::float_vectors<A, B> && __emu::count_of<__emu::common_of<A, B>> == 3)
__EMU_FN auto cross(const A &p, const B &q) {
    typedef __emu::common_of<A, B> V;
    V a(p), b(q);
    auto minor = [](auto s, auto t, auto u, auto v) {
        return __emu::to<__emu::element_of<V>>(double(s) * double(t) - double(u) * double(v));
    };
    return V(minor(a.y, b.z, a.z, b.y), minor(a.z, b.x, a.x, b.z), minor(a.x, b.y, a.y, b.x));
}
template <class N, class I, class R>
    requires __emu::float_vectors<N, I, R>
__EMU_FN auto faceforward(const N &normal, const I &incident, const R &reference) {
    typedef __emu::common_of<N, I, R> V;
    return __emu::real::dot(V(reference), V(incident)) < 0.0 ? V(normal) : -V(normal);
}
template <class I, class N>
    requires __emu::float_vectors<I, N>
__EMU_FN auto reflect(const I &incident, const N &normal) {
    typedef __emu::common_of<I, N> V;
    V i(incident), n(normal);
    double twice = 2.0 * __emu::real::dot(n, i);
    return __emu::each([=](auto a, auto b) {
        return __emu::to<__emu::element_of<V>>(double(a) - twice * double(b));
    }, i, n);
}
// Snell's law; nothing comes through where the reflection is total.
template <class I, class N>
    requires __emu::float_vectors<I, N>
__EMU_FN auto refract(const I &incident, const N &normal, __emu::element_of<__emu::common_of<I, N>> eta) {
    typedef __emu::common_of<I, N> V;
    V i(incident), n(normal);
    double cosine = __emu::real::dot(n, i), ratio = double(eta);
    double k = 1.0 - ratio * ratio * (1.0 - cosine * cosine);
    double along = ratio * cosine + __builtin_sqrt(k < 0.0 ? 0.0 : k);
    return k < 0.0 ? V(0) : __emu::each([=](auto a, auto b) {
        return __emu::to<__emu::element_of<V>>(ratio * double(a) - along * double(b));
    }, i, n);
}

}  // namespace metal
