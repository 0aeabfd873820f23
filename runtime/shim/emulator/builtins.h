// The compiler's own functions under Metal's library, which some texts call to give bfloat its functions.
//
// The last argument of the mathematical ones chooses fast or precise; both are one here.
#pragma once

#include "collectives.h"
#include "geometric.h"

#define __METAL_FAST_MATH__ 1
#define __METAL_PRECISE_MATH__ 0
#define __METAL_MAYBE_FAST_MATH__ 0

#define __EMU_1(name)                                                                                                  \
    template <class T> __EMU_FN auto __metal_##name(T x, int = 0) { return metal::name(x); }
#define __EMU_2(name)                                                                                                  \
    template <class T> __EMU_FN auto __metal_##name(T x, T y, int = 0) { return metal::name(x, y); }
#define __EMU_3(name)                                                                                                  \
    template <class T> __EMU_FN auto __metal_##name(T x, T y, T z, int = 0) { return metal::name(x, y, z); }
#define __EMU_SIMD(name)                                                                                               \
    template <class T>                                                                                                 \
    __EMU_OWN inline T __metal_##name(T x, __EMU_HERE) {                                                               \
        return metal::name(x, __emu_line, __emu_column);                                                               \
    }
// Floats give their bits.
#define __EMU_SIMD_BITS(name)                                                                                          \
    template <class T>                                                                                                 \
    __EMU_OWN inline T __metal_##name(T x, __EMU_HERE) {                                                               \
        if constexpr (__emu::floating<T>)                                                                              \
            return as_type<T>(metal::name(as_type<__emu::unsigned_of<T>>(x), __emu_line, __emu_column));               \
        else                                                                                                           \
            return metal::name(x, __emu_line, __emu_column);                                                           \
    }
#define __EMU_SIMD_MOVE(name)                                                                                          \
    template <class T>                                                                                                 \
    __EMU_OWN inline T __metal_##name(T x, ushort by, __EMU_HERE) {                                                    \
        return metal::name(x, by, __emu_line, __emu_column);                                                           \
    }
#define __EMU_SIMD_FILL(name)                                                                                          \
    template <class T>                                                                                                 \
    __EMU_OWN inline T __metal_##name(T x, T filling, ushort by, ushort modulo, __EMU_HERE) {                          \
        return metal::name(x, filling, by, modulo, __emu_line, __emu_column);                                          \
    }

__EMU_1(acos)
__EMU_1(acosh)
__EMU_1(asin)
__EMU_1(asinh)
__EMU_1(atan)
__EMU_1(atanh)
__EMU_1(ceil)
__EMU_1(cos)
__EMU_1(cosh)
__EMU_1(cospi)
__EMU_1(exp)
__EMU_1(exp2)
__EMU_1(exp10)
__EMU_1(fabs)
__EMU_1(floor)
__EMU_1(fract)
__EMU_1(ilogb)
__EMU_1(isfinite)
__EMU_1(isinf)
__EMU_1(isnan)
__EMU_1(isnormal)
__EMU_1(log)
__EMU_1(log2)
__EMU_1(log10)
__EMU_1(rint)
__EMU_1(round)
__EMU_1(rsqrt)
__EMU_1(saturate)
__EMU_1(sign)
__EMU_1(signbit)
__EMU_1(sin)
__EMU_1(sinh)
__EMU_1(sinpi)
__EMU_1(sqrt)
__EMU_1(tan)
__EMU_1(tanh)
__EMU_1(tanpi)
__EMU_1(trunc)
__EMU_1(popcount)
__EMU_1(clz)
__EMU_1(ctz)
__EMU_1(reverse_bits)
__EMU_2(atan2)
__EMU_2(copysign)
__EMU_2(divide)
__EMU_2(fdim)
__EMU_2(fmax)
__EMU_2(fmin)
__EMU_2(fmod)
__EMU_2(max)
__EMU_2(min)
__EMU_2(mulhi)
__EMU_2(nextafter)
__EMU_2(pow)
__EMU_2(powr)
__EMU_2(step)
__EMU_3(clamp)
__EMU_3(fma)
__EMU_3(fmax3)
__EMU_3(fmin3)
__EMU_3(fmedian3)
__EMU_3(max3)
__EMU_3(min3)
__EMU_3(median3)
__EMU_3(mix)
__EMU_3(smoothstep)
__EMU_SIMD(simd_broadcast_first)
__EMU_SIMD(simd_max)
__EMU_SIMD(simd_min)
__EMU_SIMD(simd_product)
__EMU_SIMD(simd_sum)
__EMU_SIMD_BITS(simd_and)
__EMU_SIMD_BITS(simd_or)
__EMU_SIMD_BITS(simd_xor)
__EMU_SIMD(simd_prefix_exclusive_product)
__EMU_SIMD(simd_prefix_exclusive_sum)
__EMU_SIMD(simd_prefix_inclusive_product)
__EMU_SIMD(simd_prefix_inclusive_sum)
__EMU_SIMD_MOVE(simd_broadcast)
__EMU_SIMD_MOVE(simd_shuffle)
__EMU_SIMD_MOVE(simd_shuffle_down)
__EMU_SIMD_MOVE(simd_shuffle_rotate_down)
__EMU_SIMD_MOVE(simd_shuffle_rotate_up)
__EMU_SIMD_MOVE(simd_shuffle_up)
__EMU_SIMD_MOVE(simd_shuffle_xor)
__EMU_SIMD_FILL(simd_shuffle_and_fill_down)
__EMU_SIMD_FILL(simd_shuffle_and_fill_up)
__EMU_SIMD(quad_broadcast_first)
__EMU_SIMD(quad_max)
__EMU_SIMD(quad_min)
__EMU_SIMD(quad_product)
__EMU_SIMD(quad_sum)
__EMU_SIMD_BITS(quad_and)
__EMU_SIMD_BITS(quad_or)
__EMU_SIMD_BITS(quad_xor)
__EMU_SIMD(quad_prefix_exclusive_product)
__EMU_SIMD(quad_prefix_exclusive_sum)
__EMU_SIMD(quad_prefix_inclusive_product)
__EMU_SIMD(quad_prefix_inclusive_sum)
__EMU_SIMD_MOVE(quad_broadcast)
__EMU_SIMD_MOVE(quad_shuffle)
__EMU_SIMD_MOVE(quad_shuffle_down)
__EMU_SIMD_MOVE(quad_shuffle_rotate_down)
__EMU_SIMD_MOVE(quad_shuffle_rotate_up)
__EMU_SIMD_MOVE(quad_shuffle_up)
__EMU_SIMD_MOVE(quad_shuffle_xor)
__EMU_SIMD_FILL(quad_shuffle_and_fill_down)
__EMU_SIMD_FILL(quad_shuffle_and_fill_up)
#undef __EMU_1
#undef __EMU_2
#undef __EMU_3
#undef __EMU_SIMD
#undef __EMU_SIMD_BITS
#undef __EMU_SIMD_MOVE
#undef __EMU_SIMD_FILL

template <class T> __EMU_FN T __metal_ldexp(T x, int k, int = 0) { return metal::ldexp(x, k); }
template <class T> __EMU_FN T __metal_frexp(T x, int *exponent) { return metal::frexp(x, *exponent); }
template <class T> __EMU_FN T __metal_modf(T x, T *whole) { return metal::modf(x, *whole); }
template <class T> __EMU_FN T __metal_sincos(T x, T *cosine, int = 0) { return metal::sincos(x, *cosine); }
template <class T> __EMU_FN T __metal_get_thread_index_in_simdgroup(T) { return T(__emu_current->index % 32); }
template <class T> __EMU_FN T __metal_get_simdgroup_size(T) { return T(32); }
