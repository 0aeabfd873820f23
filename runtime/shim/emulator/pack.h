// `metal_pack`: several small normalised numbers in one integer, the first in the low bits.
#pragma once

#include "relational.h"

namespace __emu::packing {

// n bits for [0, 1] or, with a sign, for [-1, 1]; the nearest, ties to even. NaN gives 0.
template <int bits> __EMU_FN uint unorm(double x) {
    return uint(__builtin_rint(real::clamp(x, 0.0, 1.0) * double((1u << bits) - 1u)));
}
template <int bits> __EMU_FN uint snorm(double x) {
    double bounded = x != x ? 0.0 : real::clamp(x, -1.0, 1.0);
    return uint(int(__builtin_rint(bounded * double((1u << (bits - 1)) - 1u)))) & ((1u << bits) - 1u);
}
template <int bits> __EMU_FN double from_unorm(uint x) {
    return double(x & ((1u << bits) - 1u)) / double((1u << bits) - 1u);
}
template <int bits> __EMU_FN double from_snorm(uint x) {
    double value = double(int(x << (32 - bits)) >> (32 - bits)) / double((1u << (bits - 1)) - 1u);
    return value < -1.0 ? -1.0 : value;
}
// The curve of IEC 61966-2-1.
__EMU_FN double to_srgb(double x) {
    double c = real::clamp(x, 0.0, 1.0);
    return c <= 0.0031308 ? 12.92 * c : 1.055 * __builtin_pow(c, 1.0 / 2.4) - 0.055;
}
__EMU_FN double from_srgb(double c) {
    return c <= 0.04045 ? c / 12.92 : __builtin_pow((c + 0.055) / 1.055, 2.4);
}

}  // namespace __emu::packing

namespace metal {

#define __EMU_UNPACK(name, n, Bits, x, y, z, w)                                                                        \
    __EMU_FN float##n name##_to_float(Bits p) { __EMU_UNPACKED_##n(float, x, y, z, w) }                                \
    __EMU_FN half##n name##_to_half(Bits p) { __EMU_UNPACKED_##n(half, x, y, z, w) }
#define __EMU_UNPACKED_2(T, x, y, z, w) return T##2(__emu::to<T>(x), __emu::to<T>(y));
#define __EMU_UNPACKED_3(T, x, y, z, w) return T##3(__emu::to<T>(x), __emu::to<T>(y), __emu::to<T>(z));
#define __EMU_UNPACKED_4(T, x, y, z, w) return T##4(__emu::to<T>(x), __emu::to<T>(y), __emu::to<T>(z), __emu::to<T>(w));
#define __EMU_PACK(name, n, Bits, ...)                                                                                 \
    __EMU_FN Bits pack_float_to_##name(float##n v) { return Bits(__VA_ARGS__); }                                       \
    __EMU_FN Bits pack_half_to_##name(half##n h) {                                                                     \
        float##n v(h);                                                                                                 \
        return Bits(__VA_ARGS__);                                                                                      \
    }
#define __EMU_FROM(kind, bits, shift) __emu::packing::from_##kind<bits>(uint(p) >> shift)
#define __EMU_TO(kind, bits, component, shift) (__emu::packing::kind<bits>(double(v.component)) << shift)

__EMU_UNPACK(unpack_unorm4x8, 4, uint, __EMU_FROM(unorm, 8, 0), __EMU_FROM(unorm, 8, 8), __EMU_FROM(unorm, 8, 16),
             __EMU_FROM(unorm, 8, 24))
__EMU_UNPACK(unpack_snorm4x8, 4, uint, __EMU_FROM(snorm, 8, 0), __EMU_FROM(snorm, 8, 8), __EMU_FROM(snorm, 8, 16),
             __EMU_FROM(snorm, 8, 24))
__EMU_UNPACK(unpack_unorm4x8_srgb, 4, uint, __emu::packing::from_srgb(__EMU_FROM(unorm, 8, 0)),
             __emu::packing::from_srgb(__EMU_FROM(unorm, 8, 8)), __emu::packing::from_srgb(__EMU_FROM(unorm, 8, 16)),
             __EMU_FROM(unorm, 8, 24))
__EMU_UNPACK(unpack_unorm2x16, 2, uint, __EMU_FROM(unorm, 16, 0), __EMU_FROM(unorm, 16, 16), , )
__EMU_UNPACK(unpack_snorm2x16, 2, uint, __EMU_FROM(snorm, 16, 0), __EMU_FROM(snorm, 16, 16), , )
__EMU_UNPACK(unpack_unorm10a2, 4, uint, __EMU_FROM(unorm, 10, 0), __EMU_FROM(unorm, 10, 10), __EMU_FROM(unorm, 10, 20),
             __EMU_FROM(unorm, 2, 30))
__EMU_UNPACK(unpack_snorm10a2, 4, uint, __EMU_FROM(snorm, 10, 0), __EMU_FROM(snorm, 10, 10), __EMU_FROM(snorm, 10, 20),
             __EMU_FROM(snorm, 2, 30))
// Red is in the high bits here.
__EMU_UNPACK(unpack_unorm565, 3, ushort, __EMU_FROM(unorm, 5, 11), __EMU_FROM(unorm, 6, 5), __EMU_FROM(unorm, 5, 0), )

__EMU_PACK(unorm4x8, 4, uint, __EMU_TO(unorm, 8, x, 0) | __EMU_TO(unorm, 8, y, 8) | __EMU_TO(unorm, 8, z, 16) |
           __EMU_TO(unorm, 8, w, 24))
__EMU_PACK(snorm4x8, 4, uint, __EMU_TO(snorm, 8, x, 0) | __EMU_TO(snorm, 8, y, 8) | __EMU_TO(snorm, 8, z, 16) |
           __EMU_TO(snorm, 8, w, 24))
#define __EMU_SRGB(component, shift)                                                                                   \
    (__emu::packing::unorm<8>(__emu::packing::to_srgb(double(v.component))) << shift)
__EMU_PACK(srgb_unorm4x8, 4, uint, __EMU_SRGB(x, 0) | __EMU_SRGB(y, 8) | __EMU_SRGB(z, 16) | __EMU_TO(unorm, 8, w, 24))
#undef __EMU_SRGB
__EMU_PACK(unorm2x16, 2, uint, __EMU_TO(unorm, 16, x, 0) | __EMU_TO(unorm, 16, y, 16))
__EMU_PACK(snorm2x16, 2, uint, __EMU_TO(snorm, 16, x, 0) | __EMU_TO(snorm, 16, y, 16))
__EMU_PACK(unorm10a2, 4, uint, __EMU_TO(unorm, 10, x, 0) | __EMU_TO(unorm, 10, y, 10) | __EMU_TO(unorm, 10, z, 20) |
           __EMU_TO(unorm, 2, w, 30))
__EMU_PACK(snorm10a2, 4, uint, __EMU_TO(snorm, 10, x, 0) | __EMU_TO(snorm, 10, y, 10) | __EMU_TO(snorm, 10, z, 20) |
           __EMU_TO(snorm, 2, w, 30))
__EMU_PACK(unorm565, 3, ushort, __EMU_TO(unorm, 5, x, 11) | __EMU_TO(unorm, 6, y, 5) | __EMU_TO(unorm, 5, z, 0))
#undef __EMU_TO
#undef __EMU_FROM
#undef __EMU_PACK
#undef __EMU_UNPACK
#undef __EMU_UNPACKED_2
#undef __EMU_UNPACKED_3
#undef __EMU_UNPACKED_4

}  // namespace metal
