// `metal_array`: array, array_ref, and `uniform`, which promises that all threads hold one value.
#pragma once

#include "traits.h"

namespace metal {

template <class T, size_t N> struct array {
    T __emu_element[N];

    constexpr size_t size() const { return N; }
    constexpr bool empty() const { return N == 0; }
    __EMU_MEMBER T &operator[](__emu::subscript i) { return __emu_element[i.below(N)]; }
    __EMU_MEMBER const T &operator[](__emu::subscript i) const { return __emu_element[i.below(N)]; }
    constexpr T *data() { return __emu_element; }
    constexpr const T *data() const { return __emu_element; }
    constexpr T *begin() { return __emu_element; }
    constexpr const T *begin() const { return __emu_element; }
    constexpr T *end() { return __emu_element + N; }
    constexpr const T *end() const { return __emu_element + N; }
    constexpr T &front() { return __emu_element[0]; }
    constexpr T &back() { return __emu_element[N - 1]; }
    constexpr void fill(const T &value) {
        for (size_t i = 0; i < N; ++i) __emu_element[i] = value;
    }
};

template <class T> class array_ref {
    const T *first;
    size_t count;

public:
    constexpr array_ref() : first(nullptr), count(0) {}
    constexpr array_ref(const T *first, size_t count) : first(first), count(count) {}
    template <size_t N> constexpr array_ref(const array<T, N> &a) : first(a.data()), count(N) {}
    template <size_t N> constexpr array_ref(const T (&a)[N]) : first(a), count(N) {}
    constexpr size_t size() const { return count; }
    constexpr bool empty() const { return count == 0; }
    constexpr const T *data() const { return first; }
    constexpr const T *begin() const { return first; }
    constexpr const T *end() const { return first + count; }
    __EMU_MEMBER const T &operator[](__emu::subscript i) const { return first[i.below(long(count))]; }
};

template <class T> struct uniform {
    T __emu_value;
    uniform() = default;
    __EMU_MEMBER uniform(const T &value) : __emu_value(value) {}
    __EMU_MEMBER operator T() const { return __emu_value; }
};
template <class T> __EMU_FN uniform<T> make_uniform(T value) { return value; }
template <class T> struct is_uniform : false_type {};
template <class T> struct is_uniform<uniform<T>> : true_type {};

}  // namespace metal
