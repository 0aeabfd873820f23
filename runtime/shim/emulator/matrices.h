// `metal_matrix`: matrices of C columns and R rows, of float and half, stored by columns.
#pragma once

#include "geometric.h"
#include "traits.h"

namespace __emu::types {

template <class T, int C, int R> struct matrix {
    static_assert(one_of<T, float, half>, "a matrix is of float or half");
    typedef vector<T[R]> column;
    column columns[C];

    matrix() = default;
    // A scalar is the diagonal.
    template <class U>
        requires(scalar<U> && __is_constructible(T, U))
    __EMU_MEMBER explicit matrix(U s) : columns{} {
        // Every element is written, so that a program-scope matrix is a constant.
        for (int i = 0; i < C * R; ++i) columns[i / R].__emu_element[i % R] = i / R == i % R ? to<T>(s) : T(0);
    }
    __EMU_MEMBER matrix(const column &a, const column &b)
        requires(C == 2)
        : columns{a, b} {}
    __EMU_MEMBER matrix(const column &a, const column &b, const column &c)
        requires(C == 3)
        : columns{a, b, c} {}
    __EMU_MEMBER matrix(const column &a, const column &b, const column &c, const column &d)
        requires(C == 4)
        : columns{a, b, c, d} {}
    template <class... U>
        requires(sizeof...(U) == C * R && (scalar<U> && ...))
    __EMU_MEMBER matrix(U... values) {
        const T all[] = {to<T>(values)...};
        for (int i = 0; i < C * R; ++i) columns[i / R].__emu_element[i % R] = all[i];
    }
    template <class U>
    __EMU_MEMBER explicit matrix(const matrix<U, C, R> &m) {
        for (int i = 0; i < C; ++i) columns[i] = column(m.columns[i]);
    }

    __EMU_MEMBER column &operator[](subscript i) { return columns[i.below(C)]; }
    __EMU_MEMBER const column &operator[](subscript i) const { return columns[i.below(C)]; }

#define __EMU_BY_COLUMN(op)                                                                                            \
    __EMU_MEMBER friend matrix operator op(const matrix &a, const matrix &b) {                                         \
        matrix r;                                                                                                      \
        for (int i = 0; i < C; ++i) r.columns[i] = a.columns[i] op b.columns[i];                     \
        return r;                                                                                                      \
    }                                                                                                                  \
    __EMU_MEMBER friend matrix &operator op##=(matrix &a, const matrix &b) { return a = a op b; }
    __EMU_BY_COLUMN(+)
    __EMU_BY_COLUMN(-)
#undef __EMU_BY_COLUMN
    __EMU_MEMBER friend matrix operator-(const matrix &a) { return a * T(-1); }
    template <scalar U> __EMU_MEMBER friend matrix operator*(const matrix &a, U s) {
        matrix r;
        for (int i = 0; i < C; ++i) r.columns[i] = a.columns[i] * to<T>(s);
        return r;
    }
    template <scalar U> __EMU_MEMBER friend matrix operator*(U s, const matrix &a) { return a * s; }
    template <class U> __EMU_MEMBER friend matrix &operator*=(matrix &a, const U &b) { return a = a * b; }
    __EMU_MEMBER friend bool operator==(const matrix &a, const matrix &b) {
        for (int i = 0; i < C; ++i)
            if (!metal::all(a.columns[i] == b.columns[i])) return false;
        return true;
    }

    // A vector on the right is a column, and one on the left is a row.
    __EMU_MEMBER friend column operator*(const matrix &m, const vector<T[C]> &v) {
        column r = m.columns[0] * v.__emu_element[0];
        for (int i = 1; i < C; ++i) r += m.columns[i] * v.__emu_element[i];
        return r;
    }
    __EMU_MEMBER friend vector<T[C]> operator*(const column &v, const matrix &m) {
        vector<T[C]> r(T(0));
        for (int i = 0; i < C; ++i) r.__emu_element[i] = metal::dot(v, m.columns[i]);
        return r;
    }
};
template <class T, int C, int R, int K>
__EMU_FN matrix<T, K, R> operator*(const matrix<T, C, R> &a, const matrix<T, K, C> &b) {
    matrix<T, K, R> r;
    for (int i = 0; i < K; ++i) r.columns[i] = a * b.columns[i];
    return r;
}

}  // namespace __emu::types

#define __EMU_NAMES_OF_ROWS(T, C)                                                                                      \
    typedef __emu::types::matrix<T, C, 2> T##C##x2;                                                                    \
    typedef __emu::types::matrix<T, C, 3> T##C##x3;                                                                    \
    typedef __emu::types::matrix<T, C, 4> T##C##x4;                                                                    \
    typedef T##C##x2 matrix_##T##C##x2, simd_##T##C##x2;                                                               \
    typedef T##C##x3 matrix_##T##C##x3, simd_##T##C##x3;                                                               \
    typedef T##C##x4 matrix_##T##C##x4, simd_##T##C##x4;
#define __EMU_NAMES(T) __EMU_NAMES_OF_ROWS(T, 2) __EMU_NAMES_OF_ROWS(T, 3) __EMU_NAMES_OF_ROWS(T, 4)
__EMU_NAMES(float)
__EMU_NAMES(half)
#undef __EMU_NAMES_OF_ROWS
#define __EMU_NAMES_OF_ROWS(T, C)                                                                                      \
    using ::T##C##x2;                                                                                                  \
    using ::T##C##x3;                                                                                                  \
    using ::T##C##x4;

namespace simd {
__EMU_NAMES(float)
__EMU_NAMES(half)
}
namespace metal {

template <class T, int C, int R = C> using matrix = __emu::types::matrix<T, C, R>;
__EMU_NAMES(float)
__EMU_NAMES(half)
#undef __EMU_NAMES
#undef __EMU_NAMES_OF_ROWS

template <class T, int C, int R> __EMU_FN matrix<T, R, C> transpose(const __emu::types::matrix<T, C, R> &m) {
    matrix<T, R, C> r;
    for (int i = 0; i < C; ++i)
        for (int j = 0; j < R; ++j) r.columns[j].__emu_element[i] = m.columns[i].__emu_element[j];
    return r;
}

// Gauss's elimination in double, with the largest pivot of each column.
template <class T, int N> __EMU_FN T determinant(const __emu::types::matrix<T, N, N> &m) {
    double a[N][N], product = 1.0;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) a[i][j] = double(m.columns[i].__emu_element[j]);
    for (int k = 0; k < N; ++k) {
        int pivot = k;
        for (int i = k + 1; i < N; ++i)
            if (__builtin_fabs(a[i][k]) > __builtin_fabs(a[pivot][k])) pivot = i;
        if (a[pivot][k] == 0.0) return T(0);
        if (pivot != k) product = -product;
        for (int j = 0; j < N; ++j) swap(a[k][j], a[pivot][j]);
        product *= a[k][k];
        for (int i = k + 1; i < N; ++i)
            for (int j = N - 1; j >= k; --j) a[i][j] -= a[i][k] / a[k][k] * a[k][j];
    }
    return __emu::to<T>(product);
}

}  // namespace metal
