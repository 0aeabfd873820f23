// `metal_type_traits` and `metal_limits`: what Metal has of them and no more, because texts define the rest themselves,
// in namespace metal.
#pragma once

#include "constants.h"
#include "names.h"

namespace metal {

template <class T, T v> struct integral_constant {
    static constexpr T value = v;
    typedef T value_type;
    typedef integral_constant type;
    constexpr operator T() const { return v; }
    constexpr T operator()() const { return v; }
};
template <bool v> using bool_constant = integral_constant<bool, v>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool condition, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool condition, class T = void> using enable_if_t = typename enable_if<condition, T>::type;

template <bool condition, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool condition, class A, class B> using conditional_t = typename conditional<condition, A, B>::type;

// Classes, their `_t` and `_v` forms.
#define __EMU_CHANGES(name, ...)                                                                                       \
    template <class T> struct name { typedef __VA_ARGS__ type; };                                                      \
    template <class T> using name##_t = typename name<T>::type;
#define __EMU_TELLS(name, ...)                                                                                         \
    template <class T> struct name : bool_constant<(__VA_ARGS__)> {};                                                  \
    template <class T> inline constexpr bool name##_v = name<T>::value;
#define __EMU_TELLS_OF_TWO(name, ...)                                                                                  \
    template <class T, class U> struct name : bool_constant<(__VA_ARGS__)> {};                                         \
    template <class T, class U> inline constexpr bool name##_v = name<T, U>::value;

__EMU_CHANGES(remove_const, __remove_const(T))
__EMU_CHANGES(remove_volatile, __remove_volatile(T))
__EMU_CHANGES(remove_cv, __remove_cv(T))
__EMU_CHANGES(remove_reference, __remove_reference_t(T))
__EMU_CHANGES(remove_pointer, __remove_pointer(T))
__EMU_CHANGES(remove_extent, __remove_extent(T))
__EMU_CHANGES(decay, __decay(T))
__EMU_CHANGES(add_const, const T)
__EMU_CHANGES(add_pointer, __add_pointer(T))
__EMU_CHANGES(add_lvalue_reference, __add_lvalue_reference(T))
__EMU_CHANGES(add_rvalue_reference, __add_rvalue_reference(T))
__EMU_CHANGES(make_signed, __make_signed(T))
__EMU_CHANGES(make_unsigned, __make_unsigned(T))
__EMU_CHANGES(underlying_type, __underlying_type(T))
// Address spaces are erased before the text comes here.
__EMU_CHANGES(remove_addrspace, T)

__EMU_TELLS_OF_TWO(is_same, __is_same(T, U))
__EMU_TELLS_OF_TWO(is_convertible, __is_convertible_to(T, U))
__EMU_TELLS_OF_TWO(is_base_of, __is_base_of(T, U))
__EMU_TELLS_OF_TWO(is_assignable, __is_assignable(T, U))
__EMU_TELLS(is_void, __is_void(T))
__EMU_TELLS(is_integral, __emu::integer<__remove_cv(T)> || __is_same(__remove_cv(T), bool))
__EMU_TELLS(is_floating_point, __emu::floating<__remove_cv(T)>)
__EMU_TELLS(is_arithmetic, is_integral<T>::value || is_floating_point<T>::value)
__EMU_TELLS(is_fundamental, is_arithmetic<T>::value || __is_void(T))
__EMU_TELLS(is_scalar, is_arithmetic<T>::value || __is_enum(T) || __is_pointer(T))
__EMU_TELLS(is_vector, !__is_void(typename __emu::vector_of<__remove_cv(T)>::type))
__EMU_TELLS(is_signed, __is_signed(T) || is_floating_point<T>::value)
__EMU_TELLS(is_unsigned, __is_unsigned(T))
__EMU_TELLS(is_const, __is_const(T))
__EMU_TELLS(is_array, __is_array(T))
__EMU_TELLS(is_pointer, __is_pointer(T))
__EMU_TELLS(is_reference, __is_reference(T))
__EMU_TELLS(is_lvalue_reference, __is_lvalue_reference(T))
__EMU_TELLS(is_rvalue_reference, __is_rvalue_reference(T))
__EMU_TELLS(is_enum, __is_enum(T))
__EMU_TELLS(is_union, __is_union(T))
__EMU_TELLS(is_class, __is_class(T))
__EMU_TELLS(is_function, __is_function(T))
__EMU_TELLS(is_trivial, __is_trivial(T))
__EMU_TELLS(is_trivially_copyable, __is_trivially_copyable(T))
__EMU_TELLS(is_standard_layout, __is_standard_layout(T))
#undef __EMU_CHANGES
#undef __EMU_TELLS
#undef __EMU_TELLS_OF_TWO

template <class T, class... A> struct is_constructible : bool_constant<__is_constructible(T, A...)> {};
template <class T, class... A> inline constexpr bool is_constructible_v = is_constructible<T, A...>::value;

template <class... B> struct _disjunction : bool_constant<(bool(B::value) || ...)> {};
template <class... B> struct _conjunction : bool_constant<(bool(B::value) && ...)> {};

template <class T> __add_rvalue_reference(T) declval();
template <class T> __EMU_FN __remove_reference_t(T) &&move(T &&x) {
    return static_cast<__remove_reference_t(T) &&>(x);
}
template <class T> __EMU_FN T &&forward(__remove_reference_t(T) & x) { return static_cast<T &&>(x); }
template <class T> __EMU_FN void swap(T &a, T &b) {
    T c = a;
    a = b;
    b = c;
}

template <class T> struct numeric_limits {
    static constexpr bool is_specialized = false;
};

#define __EMU_LIMITS(T, P, tiniest)                                                                                    \
    template <> struct numeric_limits<T> {                                                                             \
        static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;           \
        static constexpr bool has_infinity = true, has_quiet_NaN = true, is_iec559 = true, is_bounded = true;          \
        static constexpr int radix = 2, digits = P##_MANT_DIG, digits10 = P##_DIG, max_digits10 = P##_DECIMAL_DIG;     \
        static constexpr int min_exponent = P##_MIN_EXP, max_exponent = P##_MAX_EXP;                                   \
        static constexpr int min_exponent10 = P##_MIN_10_EXP, max_exponent10 = P##_MAX_10_EXP;                         \
        static constexpr T min() { return P##_MIN; }                                                                   \
        static constexpr T max() { return P##_MAX; }                                                                   \
        static constexpr T lowest() { return -P##_MAX; }                                                               \
        static constexpr T epsilon() { return P##_EPSILON; }                                                           \
        static constexpr T round_error() { return T(0.5f); }                                                           \
        static constexpr T infinity() { return T(INFINITY); }                                                          \
        static constexpr T quiet_NaN() { return T(NAN); }                                                              \
        static constexpr T signaling_NaN() { return T(NAN); }                                                          \
        static constexpr T denorm_min() { return T(tiniest); }                                                         \
    };
__EMU_LIMITS(float, FLT, 0x1p-149f)
__EMU_LIMITS(half, HALF, 0x1p-24f)
__EMU_LIMITS(bfloat, BFLT, 0x1p-133f)
#undef __EMU_LIMITS

template <__emu::integer T> struct numeric_limits<T> {
    static constexpr bool is_specialized = true, is_signed = __emu::is_signed<T>, is_integer = true, is_exact = true;
    static constexpr bool has_infinity = false, has_quiet_NaN = false, is_iec559 = false, is_bounded = true;
    static constexpr int radix = 2, digits = __emu::width<T> - (is_signed ? 1 : 0), digits10 = digits * 301 / 1000;
    static constexpr T min() { return __emu::smallest<T>; }
    static constexpr T max() { return __emu::largest<T>; }
    static constexpr T lowest() { return __emu::smallest<T>; }
    static constexpr T epsilon() { return T(0); }
    static constexpr T infinity() { return T(0); }
    static constexpr T quiet_NaN() { return T(0); }
};
template <> struct numeric_limits<bool> {
    static constexpr bool is_specialized = true, is_signed = false, is_integer = true, is_exact = true;
    static constexpr int radix = 2, digits = 1, digits10 = 0;
    static constexpr bool min() { return false; }
    static constexpr bool max() { return true; }
    static constexpr bool lowest() { return false; }
};

}  // namespace metal
