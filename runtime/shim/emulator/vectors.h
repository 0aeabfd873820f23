// Vectors of 2, 3 and 4 components, and their packed forms.
//
// `vec<T, n>` names `vector<T[n]>`: the bound of an array is deduced into a parameter of any integer type, so that
// `template <typename T, int n>` and `template <typename T, uint n>` both find it. Vectors live in a namespace of their
// own, without functions: a call of a library function that lacks `metal::` does not find it through its arguments.
//
// Operators name each component. A loop over them would be cheaper to write and is not: clang's loop passes take
// seconds on kernels that unroll it some thousand times.
#pragma once

#include "scalars.h"
#include "swizzles.h"

namespace std {
// `{a, b, c}` becomes an object of this name by the rules of C++, whoever declares it.
template <class E> class initializer_list {
    const E *first;
    size_t count;

public:
    constexpr size_t size() const { return count; }
    constexpr const E *begin() const { return first; }
    constexpr const E *end() const { return first + count; }
};
}  // namespace std

namespace metal {
using std::initializer_list;
}

namespace __emu::types {

template <class A> struct vector;
template <class V> struct packed;

}  // namespace __emu::types

namespace __emu {

template <class T, auto n> using vec = types::vector<T[n]>;

// The vector that an argument is, or may become: void for everything else.
template <class A> struct vector_of { typedef void type; };
template <class T, size_t n> struct vector_of<types::vector<T[n]>> { typedef vec<T, n> type; };
template <class V> struct vector_of<types::packed<V>> { typedef V type; };

template <class A> concept a_vector = !same<typename vector_of<A>::type, void>;

template <class A> inline constexpr int count_of = 1;
template <class T, size_t n> inline constexpr int count_of<types::vector<T[n]>> = n;
template <class V> inline constexpr int count_of<types::packed<V>> = count_of<V>;

template <class A> struct element { typedef A type; };
template <class T, size_t n> struct element<types::vector<T[n]>> { typedef T type; };
template <class V> struct element<types::packed<V>> { typedef typename element<V>::type type; };
template <class A> using element_of = typename element<A>::type;

// A subscript, and where in the user's text it stands.
struct subscript {
    long value;
    uint line, column;
    template <class I>
        requires __is_convertible_to(I, long)
    __EMU_MEMBER subscript(I i, uint line = __builtin_LINE(), uint column = __builtin_COLUMN())
        : value(long(i)), line(line), column(column) {}

    __EMU_MEMBER long below([[maybe_unused]] long length) const {
#ifdef __EMU_SANITIZE
        if (value < 0 || value >= length) {
            __emu_fault(fault_index, value, length, "", line, column);
            return 0;
        }
#endif
        return value;
    }
};

// Say, in a sanitized kernel, what is undefined about a component.
template <integer T> __EMU_FN void expect_quotient([[maybe_unused]] T a, [[maybe_unused]] T b) {
#ifdef __EMU_SANITIZE
    if (b == T(0)) __emu_fault(fault_divisor, long(a), 0, "", 0, 0);
    // Narrower integers are divided as int, where the quotient has room.
    if (is_signed<T> && sizeof(T) >= sizeof(int) && b == T(-1) && a == smallest<T>)
        __emu_fault(fault_quotient, long(a), 0, "", 0, 0);
#endif
}
template <integer T> __EMU_FN void expect_count([[maybe_unused]] T count) {
#ifdef __EMU_SANITIZE
    if (count < T(0) || ulong(count) >= ulong(width<T>)) __emu_fault(fault_count, long(count), width<T>, "", 0, 0);
#endif
}

template <class T> __EMU_FN T quotient(T a, T b) {
    if constexpr (integer<T>) {
        expect_quotient(a, b);
        // A processor may trap; Metal gives some value.
        if (b == T(0)) return T(0);
        if (is_signed<T> && b == T(-1)) return T(0 - unsigned_of<T>(a));
    }
    return T(a / b);
}
template <integer T> __EMU_FN T remainder(T a, T b) {
    expect_quotient(a, b);
    if (b == T(0)) return a;
    return is_signed<T> && b == T(-1) ? T(0) : T(a % b);
}
template <integer T> __EMU_FN T shifted_left(T a, T b) {
    expect_count(b);
    return T(a << (b & T(width<T> - 1)));
}
template <integer T> __EMU_FN T shifted_right(T a, T b) {
    expect_count(b);
    return T(a >> (b & T(width<T> - 1)));
}

}  // namespace __emu

namespace __emu::types {

// Component i of an argument list read from left to right; scalars count as one.
template <int i, class A, class... Rest> __EMU_FN decltype(auto) nth(const A &a, const Rest &...rest) {
    constexpr int n = count_of<A>;
    if constexpr (i >= n) {
        return nth<i - n>(rest...);
    } else if constexpr (!a_vector<A>) {
        return (a);
    } else if constexpr (i == 0) {
        return (a.x);
    } else if constexpr (i == 1) {
        return (a.y);
    } else if constexpr (i == 2) {
        return (a.z);
    } else {
        return (a.w);
    }
}

enum raw_t { raw };
enum splat_t { splat };
enum mix_t { mix };

#define __EMU_SUBSCRIPT(n)                                                                                             \
    __EMU_MEMBER T &operator[](subscript i) { return __emu_element[i.below(n)]; }                                      \
    __EMU_MEMBER const T &operator[](subscript i) const { return __emu_element[i.below(n)]; }

template <class T, int n> struct components;
template <class T> struct components<T, 2> {
    union {
        struct { T x, y; };
        struct { T r, g; };
        T __emu_element[2];
    };
    components() = default;
    __EMU_MEMBER components(raw_t, T x, T y) : x(x), y(y) {}
    __EMU_MEMBER components(splat_t, T s) : x(s), y(s) {}
    template <class... A>
    __EMU_MEMBER components(mix_t, const A &...v) : x(to<T>(nth<0>(v...))), y(to<T>(nth<1>(v...))) {}
    __EMU_SUBSCRIPT(2)
    __EMU_SWIZZLES_2
};
template <class T> struct components<T, 3> {
    union {
        struct { T x, y, z; };
        struct { T r, g, b; };
        T __emu_element[3];
    };
    components() = default;
    __EMU_MEMBER components(raw_t, T x, T y, T z) : x(x), y(y), z(z) {}
    __EMU_MEMBER components(splat_t, T s) : x(s), y(s), z(s) {}
    template <class... A>
    __EMU_MEMBER components(mix_t, const A &...v)
        : x(to<T>(nth<0>(v...))), y(to<T>(nth<1>(v...))), z(to<T>(nth<2>(v...))) {}
    __EMU_SUBSCRIPT(3)
    __EMU_SWIZZLES_3
};
template <class T> struct components<T, 4> {
    union {
        struct { T x, y, z, w; };
        struct { T r, g, b, a; };
        T __emu_element[4];
    };
    components() = default;
    __EMU_MEMBER components(raw_t, T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
    __EMU_MEMBER components(splat_t, T s) : x(s), y(s), z(s), w(s) {}
    template <class... A>
    __EMU_MEMBER components(mix_t, const A &...v)
        : x(to<T>(nth<0>(v...))), y(to<T>(nth<1>(v...))), z(to<T>(nth<2>(v...))), w(to<T>(nth<3>(v...))) {}
    __EMU_SUBSCRIPT(4)
    __EMU_SWIZZLES_4
};
#undef __EMU_SUBSCRIPT

template <class T, class... A>
concept fills = ((a_vector<A> ? scalar<element_of<A>> : __is_constructible(T, A)) && ...);

// The constructors that a vector and its packed form share. A list in braces that is too short is filled with zeros.
#define __EMU_CONSTRUCTORS(Self)                                                                                       \
    Self() = default;                                                                                                  \
    template <class... A> __EMU_MEMBER Self(raw_t, const A &...v) : components<T, n>(types::raw, T(v)...) {}           \
    template <class U>                                                                                                 \
        requires(!a_vector<U> && __is_constructible(T, U))                                                             \
    __EMU_MEMBER explicit(!__is_convertible_to(U, T)) Self(const U &u) : components<T, n>(splat, to<T>(u)) {}          \
    template <class A, class... B>                                                                                     \
        requires(sizeof...(B) > 0 && count_of<A> + (count_of<B> + ... + 0) == n && fills<T, A, B...>)                  \
    __EMU_MEMBER Self(const A &v, const B &...rest) : components<T, n>(types::mix, v, rest...) {}                      \
    __EMU_MEMBER Self(std::initializer_list<T> list) : components<T, n>(splat, T(0)) {                                 \
        const size_t given = list.size();                                                                              \
        if (given > 0) this->x = list.begin()[0];                                                                      \
        if (given > 1) this->y = list.begin()[1];                                                                      \
        if constexpr (n > 2)                                                                                           \
            if (given > 2) this->z = list.begin()[2];                                                                  \
        if constexpr (n > 3)                                                                                           \
            if (given > 3) this->w = list.begin()[3];                                                                  \
    }

// Results keep the type of the component: there is no promotion in vectors, and char4 + char4 wraps.
#define __EMU_EACH(Result, f)                                                                                          \
    if constexpr (n == 2)                                                                                              \
        return Result(types::raw, f(x), f(y));                                                                         \
    else if constexpr (n == 3)                                                                                         \
        return Result(types::raw, f(x), f(y), f(z));                                                                   \
    else                                                                                                               \
        return Result(types::raw, f(x), f(y), f(z), f(w));
#define __EMU_BINARY(op, allowed, f)                                                                                   \
    __EMU_MEMBER friend vector operator op(const vector &a, const vector &b)                                           \
        requires(allowed)                                                                                              \
    {                                                                                                                  \
        __EMU_EACH(vector, f)                                                                                          \
    }                                                                                                                  \
    __EMU_MEMBER friend vector &operator op##=(vector &a, const vector &b)                                             \
        requires(allowed)                                                                                              \
    {                                                                                                                  \
        return a = a op b;                                                                                             \
    }
#define __EMU_COMPARISON(op, allowed)                                                                                  \
    __EMU_MEMBER friend vector<bool[n]> operator op(const vector &a, const vector &b)                                  \
        requires(allowed)                                                                                              \
    {                                                                                                                  \
        __EMU_EACH(vector<bool[n]>, __EMU_F)                                                                           \
    }

template <class T, size_t count> struct alignas((count == 3 ? 4 : count) * sizeof(T)) vector<T[count]>
    : components<T, int(count)> {
    static constexpr int n = int(count);

    __EMU_CONSTRUCTORS(vector)
    // From a vector of other components, only where it is asked for.
    template <class V>
        requires(a_vector<V> && count_of<V> == n && !same<element_of<V>, T>)
    __EMU_MEMBER explicit vector(const V &v) : components<T, n>(types::mix, v) {}

    static constexpr bool numeric = !same<T, bool>;
    static constexpr bool bits = integer<T> || same<T, bool>;

#define __EMU_F(i) T(a.i + b.i)
    __EMU_BINARY(+, numeric, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) T(a.i - b.i)
    __EMU_BINARY(-, numeric, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) T(a.i *b.i)
    __EMU_BINARY(*, numeric, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) quotient(a.i, b.i)
    __EMU_BINARY(/, numeric, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) remainder(a.i, b.i)
    __EMU_BINARY(%, integer<T>, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) T(a.i & b.i)
    __EMU_BINARY(&, bits, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) T(a.i | b.i)
    __EMU_BINARY(|, bits, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) T(a.i ^ b.i)
    __EMU_BINARY(^, bits, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) shifted_left(a.i, b.i)
    __EMU_BINARY(<<, integer<T>, __EMU_F)
#undef __EMU_F
#define __EMU_F(i) shifted_right(a.i, b.i)
    __EMU_BINARY(>>, integer<T>, __EMU_F)
#undef __EMU_F
    // The counts may have a type of their own; modulo the width, their lowest bits are what counts.
#define __EMU_SHIFT_BY(op)                                                                                             \
    template <class V>                                                                                                 \
        requires(integer<T> && count_of<V> == n && integer<element_of<V>> && !same<element_of<V>, T>)                  \
    __EMU_MEMBER friend vector operator op(const vector &a, const V &b) {                                              \
        return a op vector(b);                                                                                         \
    }                                                                                                                  \
    template <class V>                                                                                                 \
        requires(integer<T> && count_of<V> == n && integer<element_of<V>> && !same<element_of<V>, T>)                  \
    __EMU_MEMBER friend vector &operator op##=(vector &a, const V &b) {                                                \
        return a = a op vector(b);                                                                                     \
    }
    __EMU_SHIFT_BY(<<)
    __EMU_SHIFT_BY(>>)
#undef __EMU_SHIFT_BY
#define __EMU_F(i) a.i == b.i
    __EMU_COMPARISON(==, true)
#undef __EMU_F
#define __EMU_F(i) a.i != b.i
    __EMU_COMPARISON(!=, true)
#undef __EMU_F
#define __EMU_F(i) a.i < b.i
    __EMU_COMPARISON(<, numeric)
#undef __EMU_F
#define __EMU_F(i) a.i > b.i
    __EMU_COMPARISON(>, numeric)
#undef __EMU_F
#define __EMU_F(i) a.i <= b.i
    __EMU_COMPARISON(<=, numeric)
#undef __EMU_F
#define __EMU_F(i) a.i >= b.i
    __EMU_COMPARISON(>=, numeric)
#undef __EMU_F
    // Both sides have been evaluated, as in Metal.
#define __EMU_F(i) bool(a.i) & bool(b.i)
    __EMU_COMPARISON(&&, bits)
#undef __EMU_F
#define __EMU_F(i) bool(a.i) | bool(b.i)
    __EMU_COMPARISON(||, bits)
#undef __EMU_F

    __EMU_MEMBER friend vector operator+(const vector &a) { return a; }
#define __EMU_F(i) T(-a.i)
    __EMU_MEMBER friend vector operator-(const vector &a)
        requires(numeric)
    {
        __EMU_EACH(vector, __EMU_F)
    }
#undef __EMU_F
#define __EMU_F(i) T(~a.i)
    __EMU_MEMBER friend vector operator~(const vector &a)
        requires(integer<T>)
    {
        __EMU_EACH(vector, __EMU_F)
    }
#undef __EMU_F
#define __EMU_F(i) !a.i
    __EMU_MEMBER friend vector<bool[n]> operator!(const vector &a) { __EMU_EACH(vector<bool[n]>, __EMU_F) }
#undef __EMU_F

    __EMU_MEMBER vector &operator++()
        requires(integer<T>)
    {
        return *this = *this + vector(splat, T(1));
    }
    __EMU_MEMBER vector &operator--()
        requires(integer<T>)
    {
        return *this = *this - vector(splat, T(1));
    }
    __EMU_MEMBER vector operator++(int)
        requires(integer<T>)
    {
        vector before = *this;
        ++*this;
        return before;
    }
    __EMU_MEMBER vector operator--(int)
        requires(integer<T>)
    {
        vector before = *this;
        --*this;
        return before;
    }
    __EMU_MEMBER vector(splat_t, T s) : components<T, n>(types::splat, s) {}
    template <class V> __EMU_MEMBER vector(mix_t, const V &v) : components<T, n>(types::mix, v) {}
};
#undef __EMU_COMPARISON
#undef __EMU_BINARY
#undef __EMU_EACH

// A packed vector is as large as its components and aligned like one of them. It computes as the vector that it
// becomes: the operators are found through the template argument.
template <class T, size_t count> struct packed<vector<T[count]>> : components<T, int(count)> {
    static constexpr int n = int(count);
    typedef vector<T[count]> whole;

    __EMU_CONSTRUCTORS(packed)
    __EMU_MEMBER packed(const whole &v) : components<T, n>(types::mix, v) {}
    template <class V>
        requires(a_vector<V> && count_of<V> == n && !same<element_of<V>, T>)
    __EMU_MEMBER explicit packed(const V &v) : components<T, n>(types::mix, v) {}
    __EMU_MEMBER operator whole() const { return whole(types::mix, *this); }

#define __EMU_ASSIGN(op)                                                                                               \
    template <class U> __EMU_MEMBER packed &operator op##=(const U &b) { return *this = whole(*this) op b; }
    __EMU_ASSIGN(+)
    __EMU_ASSIGN(-)
    __EMU_ASSIGN(*)
    __EMU_ASSIGN(/)
    __EMU_ASSIGN(%)
    __EMU_ASSIGN(&)
    __EMU_ASSIGN(|)
    __EMU_ASSIGN(^)
    __EMU_ASSIGN(<<)
    __EMU_ASSIGN(>>)
#undef __EMU_ASSIGN
};
#undef __EMU_CONSTRUCTORS

}  // namespace __emu::types
