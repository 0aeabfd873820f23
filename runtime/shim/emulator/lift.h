// From functions of scalars to functions of vectors.
//
// A scalar function is one overload for each exact type, so that C++'s own rules find `max(i, 1u)` and `clamp(f, 0, 1)`
// ambiguous, as Metal does. On vectors there is one template. It asks that all vectors among its arguments are of one
// type, and lets a scalar become that vector: `max(v, 0.0f)` and `mix(v, w, 0.5f)` are right in Metal too, where the
// scalar is splatted by an implicit conversion. Two vectors of different components are not converted.
#pragma once

#include "names.h"

namespace __emu {

// The first vector among the arguments.
template <class... A> struct common { typedef void type; };
template <class A, class... B> struct common<A, B...> {
    template <class V, class> struct first { typedef V type; };
    template <class Rest> struct first<void, Rest> { typedef typename Rest::type type; };
    typedef typename first<typename vector_of<A>::type, common<B...>>::type type;
};
template <class... A> using common_of = typename common<A...>::type;
template <class A, class V>
concept becomes = same<typename vector_of<A>::type, V> || __is_convertible_to(A, element_of<V>);

template <class... A>
concept vectors = !same<common_of<A...>, void> && (becomes<A, common_of<A...>> && ...);
template <class... A> concept float_vectors = vectors<A...> && narrow_float<element_of<common_of<A...>>>;
template <class... A> concept integer_vectors = vectors<A...> && integer<element_of<common_of<A...>>>;
template <class... A> concept number_vectors = float_vectors<A...> || integer_vectors<A...>;
template <class... A> concept bool_vectors = vectors<A...> && same<element_of<common_of<A...>>, bool>;
template <class... A> concept floating_vectors = vectors<A...> && floating<element_of<common_of<A...>>>;

// Says, in a sanitized kernel, that an argument is outside of what the specification defines.
__EMU_FN void expect([[maybe_unused]] bool defined, [[maybe_unused]] const char *text, [[maybe_unused]] uint line,
                     [[maybe_unused]] uint column) {
#ifdef __EMU_SANITIZE
    if (!defined) __emu_fault(fault_value, 0, 0, text, line, column);
#endif
}

// f on each component of vectors of one length; the components of the result are what f gives.
template <class F, class V, class... W> __EMU_FN auto each(F f, const V &v, const W &...w) {
    typedef decltype(f(v.x, w.x...)) R;
    constexpr int n = count_of<V>;
    if constexpr (n == 2)
        return vec<R, 2>(types::raw, f(v.x, w.x...), f(v.y, w.y...));
    else if constexpr (n == 3)
        return vec<R, 3>(types::raw, f(v.x, w.x...), f(v.y, w.y...), f(v.z, w.z...));
    else
        return vec<R, 4>(types::raw, f(v.x, w.x...), f(v.y, w.y...), f(v.z, w.z...), f(v.w, w.w...));
}
template <class F, class... A> __EMU_FN auto each_of_common(F f, const A &...a) {
    return each(f, common_of<A...>(a)...);
}

}  // namespace __emu

// A function of scalars, chosen by their types, as a value.
#define __EMU_OVERLOADS(name) [](auto... x) __EMU_VANISH { return name(x...); }

// The overload of `name`, already there for scalars, on vectors.
#define __EMU_LIFT(name, count, kind)                                                                                  \
    template <class... __emu_A>                                                                                        \
        requires(sizeof...(__emu_A) == count && __emu::kind<__emu_A...>)                                               \
    __EMU_FN auto name(const __emu_A &...__emu_a) {                                                                    \
        return __emu::each_of_common(__EMU_OVERLOADS(metal::name), __emu_a...);                                        \
    }

#define __EMU_EACH_INTEGER(M, ...)                                                                                     \
    M(char, __VA_ARGS__)                                                                                               \
    M(uchar, __VA_ARGS__)                                                                                              \
    M(short, __VA_ARGS__)                                                                                              \
    M(ushort, __VA_ARGS__)                                                                                             \
    M(int, __VA_ARGS__)                                                                                                \
    M(uint, __VA_ARGS__)                                                                                               \
    M(long, __VA_ARGS__)                                                                                               \
    M(ulong, __VA_ARGS__)
