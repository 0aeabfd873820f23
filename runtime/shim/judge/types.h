// Scalars, vectors, matrices, atomics and arrays.

#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

struct bfloat {
    bfloat() = default;
    template <typename T>
    constexpr bfloat(T) {}
    constexpr operator float() const { return 0; }
    template <typename T>
    bfloat& operator+=(T);
    template <typename T>
    bfloat& operator-=(T);
    template <typename T>
    bfloat& operator*=(T);
    template <typename T>
    bfloat& operator/=(T);
};

// Where a program-scope constant lies: clang wants it in global memory, its users in constant memory.
template <typename T>
__judge_constant T& __judge_place(const __global T&);
template <typename T, unsigned long N>
__judge_constant T (&__judge_place(const __global T (&)[N]))[N];
// A threadgroup variable.
template <typename T>
__local T& __judge_group();

// Clang's own reading of `{a, b}` as a list wants a pointer without a space, which OpenCL does not have.
template <typename E>
struct initializer_list {
    constexpr initializer_list();
    template <typename... R>
    constexpr initializer_list(E, R...);
    constexpr size_t size() const;
    constexpr __private const E* begin() const;
    constexpr __private const E* end() const;
};

template <typename T, int N>
struct __judge_parts;
template <typename T>
struct __judge_parts<T, 2> {
    __judge_parts() = default;
    constexpr explicit __judge_parts(int) : x(), y() {}
    union { T x, r; };
    union { T y, g; };
};
template <typename T>
struct __judge_parts<T, 3> {
    __judge_parts() = default;
    constexpr explicit __judge_parts(int) : x(), y(), z() {}
    union { T x, r; };
    union { T y, g; };
    union { T z, b; };
};
template <typename T>
struct __judge_parts<T, 4> {
    __judge_parts() = default;
    constexpr explicit __judge_parts(int) : x(), y(), z(), w() {}
    union { T x, r; };
    union { T y, g; };
    union { T z, b; };
    union { T w, a; };
};

template <typename V>
struct packed;
template <typename T, int N>
struct vec;

// An element of an object in threadgroup memory lies there too. For the other spaces clang has no word, or finds the
// call on a value ambiguous: those elements lie anywhere.
#define __judge_elements(T)                              \
    T& operator[](size_t);                       \
    constexpr const T& operator[](size_t) const; \
    __local T& operator[](size_t) __local;       \
    __local const T& operator[](size_t) const __local;

// A bfloat beside a vector of another type is converted twice: to its element, and to the vector.
template <typename S, typename V>
struct __judge_scaled {};
template <typename V>
struct __judge_scaled<bfloat, V> {
    typedef V type;
};

#define __judge_arithmetic(op)    \
    friend V operator op(V, V);   \
    template <typename S>         \
    friend typename __judge_scaled<S, V>::type operator op(V, S); \
    template <typename S>         \
    friend typename __judge_scaled<S, V>::type operator op(S, V); \
    template <typename U>         \
    V operator op##=(U);
#define __judge_comparison(op) friend vec<bool, N> operator op(V, V);

// A swizzle of k letters is read as `.__swizzle_k()`, and may be assigned to.
template <typename T, int N>
struct vec : __judge_parts<T, N> {
    typedef vec V;
    vec() = default;
    constexpr vec(const vec&) = default;
    constexpr vec(T) : __judge_parts<T, N>(0) {}
    template <typename A, typename B, typename... R>
    constexpr vec(A, B, R...) : __judge_parts<T, N>(0) {}
    template <typename U>
    constexpr explicit vec(vec<U, N>) : __judge_parts<T, N>(0) {}
    template <typename U>
    constexpr explicit vec(packed<vec<U, N>>) : __judge_parts<T, N>(0) {}
    vec& operator=(const vec&) = default;
    T& operator[](ulong);
    const T& operator[](ulong) const;
    vec<T, 2> __swizzle_2() const;
    vec<T, 3> __swizzle_3() const;
    vec<T, 4> __swizzle_4() const;
    __judge_arithmetic(+) __judge_arithmetic(-) __judge_arithmetic(*) __judge_arithmetic(/) __judge_arithmetic(%)
    __judge_arithmetic(&) __judge_arithmetic(|) __judge_arithmetic(^) __judge_arithmetic(<<) __judge_arithmetic(>>)
    template <typename U> friend V operator<<(V, vec<U, N>);
    template <typename U> friend V operator>>(V, vec<U, N>);
    __judge_comparison(<) __judge_comparison(>) __judge_comparison(<=) __judge_comparison(>=)
    __judge_comparison(==) __judge_comparison(!=)
    template <typename U>
    friend V operator<<(V, vec<U, N>);
    template <typename U>
    friend V operator>>(V, vec<U, N>);
    friend vec<bool, N> operator&&(V, V);
    friend vec<bool, N> operator||(V, V);
    friend vec<bool, N> operator!(V);
    friend V operator-(V);
    friend V operator+(V);
    friend V operator~(V);
    V& operator++();
    V& operator--();
    V operator++(int);
    V operator--(int);
};

template <typename T, int N>
struct packed<vec<T, N>> : __judge_parts<T, N> {
    packed() = default;
    constexpr packed(T) : __judge_parts<T, N>(0) {}
    constexpr packed(vec<T, N>) : __judge_parts<T, N>(0) {}
    template <typename U>
    constexpr explicit packed(vec<U, N>) : __judge_parts<T, N>(0) {}
    template <typename A, typename B, typename... R>
    constexpr packed(A, B, R...) : __judge_parts<T, N>(0) {}
    template <typename U>
    constexpr explicit packed(packed<vec<U, N>>) : __judge_parts<T, N>(0) {}
    constexpr operator vec<T, N>() const;
    T& operator[](ulong);
    const T& operator[](ulong) const;
    vec<T, 2> __swizzle_2() const;
    vec<T, 3> __swizzle_3() const;
    vec<T, 4> __swizzle_4() const;
    template <typename U>
    packed& operator+=(U);
    template <typename U>
    packed& operator-=(U);
    template <typename U>
    packed& operator*=(U);
    template <typename U>
    packed& operator/=(U);
};

#define __judge_vectors(T)               \
    typedef vec<T, 2> T##2;              \
    typedef vec<T, 3> T##3;              \
    typedef vec<T, 4> T##4;              \
    typedef packed<vec<T, 2>> packed_##T##2; \
    typedef packed<vec<T, 3>> packed_##T##3; \
    typedef packed<vec<T, 4>> packed_##T##4;
__judge_vectors(bool) __judge_vectors(char) __judge_vectors(uchar) __judge_vectors(short) __judge_vectors(ushort)
__judge_vectors(int) __judge_vectors(uint) __judge_vectors(long) __judge_vectors(ulong) __judge_vectors(half)
__judge_vectors(bfloat) __judge_vectors(float)

template <typename T, int C, int R = C>
struct matrix {
    typedef matrix M;
    matrix() = default;
    template <typename A>
    constexpr explicit matrix(A);
    template <typename A, typename B, typename... Rest>
    constexpr matrix(A, B, Rest...);
    typedef vec<T, R> column;
    __judge_elements(column)
    friend M operator+(M, M);
    friend M operator-(M, M);
    friend M operator-(M);
    friend M operator*(M, T);
    friend M operator*(T, M);
    friend vec<T, R> operator*(M, vec<T, C>);
    friend vec<T, C> operator*(vec<T, R>, M);
    friend bool operator==(M, M);
    template <typename U>
    M& operator+=(U);
    template <typename U>
    M& operator-=(U);
    template <typename U>
    M& operator*=(U);
    vec<T, R> columns[C];
};
template <typename T, int C, int R, int K>
matrix<T, K, R> operator*(matrix<T, C, R>, matrix<T, K, C>);

#define __judge_matrices(T)                                                                             \
    typedef matrix<T, 2, 2> T##2x2; typedef matrix<T, 2, 3> T##2x3; typedef matrix<T, 2, 4> T##2x4;     \
    typedef matrix<T, 3, 2> T##3x2; typedef matrix<T, 3, 3> T##3x3; typedef matrix<T, 3, 4> T##3x4;     \
    typedef matrix<T, 4, 2> T##4x2; typedef matrix<T, 4, 3> T##4x3; typedef matrix<T, 4, 4> T##4x4;
__judge_matrices(float) __judge_matrices(half)

// What the library's own built-in functions give.
struct __judge_anything {
    template <typename T>
    operator T() const;
};
template <typename... A>
__judge_anything __judge_builtin(A...);

template <typename To, typename From>
To as_type(From);
template <typename T>
bool is_function_constant_defined(T);

namespace metal {
using ::bfloat;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::ptrdiff_t;
using ::size_t;
using ::uchar;
using ::uint;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::ulong;
using ::ushort;
using ::as_type;
using ::matrix;
using ::packed;
using ::vec;
using ::initializer_list;
#define __judge_export(T)                             \
    using ::T##2; using ::T##3; using ::T##4;         \
    using ::packed_##T##2; using ::packed_##T##3; using ::packed_##T##4;
__judge_export(bool) __judge_export(char) __judge_export(uchar) __judge_export(short) __judge_export(ushort)
__judge_export(int) __judge_export(uint) __judge_export(long) __judge_export(ulong) __judge_export(half)
__judge_export(bfloat) __judge_export(float)
#define __judge_export_matrices(T)                    \
    using ::T##2x2; using ::T##2x3; using ::T##2x4; using ::T##3x2; using ::T##3x3; using ::T##3x4;     \
    using ::T##4x2; using ::T##4x3; using ::T##4x4;
__judge_export_matrices(float) __judge_export_matrices(half)

template <typename T, size_t N>
struct array {
    T elements[N];
    constexpr size_t size() const;
    __judge_elements(T)
};

template <typename T>
struct uniform {
    constexpr operator T() const;
};
template <typename T>
uniform<T> make_uniform(T);

template <typename T>
struct atomic {
    typedef T value_type;
    T value;
};
}  // namespace metal

typedef metal::atomic<int> __judge_atomic_int;
typedef metal::atomic<uint> __judge_atomic_uint;
typedef metal::atomic<bool> __judge_atomic_bool;
typedef metal::atomic<ulong> __judge_atomic_ulong;
typedef metal::atomic<float> __judge_atomic_float;
namespace metal {
using ::__judge_atomic_bool;
using ::__judge_atomic_float;
using ::__judge_atomic_int;
using ::__judge_atomic_uint;
using ::__judge_atomic_ulong;
}  // namespace metal
