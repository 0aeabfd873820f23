// Textures, samplers and their enumerations: declared, so that texts with them compile; to use one is a fault.
#pragma once

#include "arrays.h"
#include "collectives.h"

namespace __emu {

// What a function that is only declared gives.
template <class R> __EMU_FN R unsupported(const char *what) {
    __emu_fault(fault_unsupported, 0, 0, what, 0, 0);
    if constexpr (!same<R, void>) return R{};
}

}  // namespace __emu

namespace metal {

enum class access { sample, read, write, read_write };
enum class component { x, y, z, w };
enum class memory_coherence { threadgroup, device };

enum class coord { normalized, pixel };
enum class address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class s_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class t_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class r_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class border_color { transparent_black, opaque_black, opaque_white };
enum class filter { nearest, linear, bicubic };
enum class mag_filter { nearest, linear, bicubic };
enum class min_filter { nearest, linear, bicubic };
enum class mip_filter { none, nearest, linear };
enum class reduction { weighted_average, minimum, maximum };
enum class compare_func { none, less, less_equal, greater, greater_equal, equal, not_equal, always, never };

struct max_anisotropy {
    constexpr explicit max_anisotropy(int) {}
};
struct lod_clamp {
    constexpr lod_clamp(float, float) {}
};
struct sampler {
    sampler() = default;
    template <class... A> constexpr sampler(A...) {}
};

struct bias {
    explicit bias(float) {}
};
struct level {
    explicit level(float) {}
};
struct min_lod_clamp {
    explicit min_lod_clamp(float) {}
};
struct gradient2d {
    gradient2d(float2, float2) {}
};
struct gradient3d {
    gradient3d(float3, float3) {}
};
struct gradientcube {
    gradientcube(float3, float3) {}
};

}  // namespace metal

namespace __emu {

// `Texel` is what one read gives: a vector of four, or a single depth.
template <class T, class Texel> struct texture_functions {
#define __EMU_DECLARED(R, name, what)                                                                                  \
    template <class... A> __EMU_MEMBER R name(A...) const { return unsupported<R>(what); }
#define __EMU_SAMPLE(R, name) __EMU_DECLARED(R, name, "sampling a texture")
#define __EMU_TEXEL(R, name) __EMU_DECLARED(R, name, "reading or writing a texture")
#define __EMU_ATOMIC(R, name) __EMU_DECLARED(R, name, "an atomic function of a texture")
#define __EMU_SIZE(name) __EMU_DECLARED(uint, name, "the size of a texture")
    typedef vec<T, 4> four;
    __EMU_SAMPLE(Texel, sample)
    __EMU_SAMPLE(T, sample_compare)
    __EMU_SAMPLE(four, gather)
    __EMU_SAMPLE(four, gather_compare)
    __EMU_SAMPLE(float, calculate_clamped_lod)
    __EMU_SAMPLE(float, calculate_unclamped_lod)
    __EMU_TEXEL(Texel, read)
    __EMU_TEXEL(void, write)
    __EMU_SIZE(get_width)
    __EMU_SIZE(get_height)
    __EMU_SIZE(get_depth)
    __EMU_SIZE(get_array_size)
    __EMU_SIZE(get_num_mip_levels)
    __EMU_SIZE(get_num_samples)
    __EMU_ATOMIC(Texel, atomic_load)
    __EMU_ATOMIC(Texel, atomic_exchange)
    __EMU_ATOMIC(Texel, atomic_fetch_add)
    __EMU_ATOMIC(Texel, atomic_fetch_sub)
    __EMU_ATOMIC(Texel, atomic_fetch_and)
    __EMU_ATOMIC(Texel, atomic_fetch_or)
    __EMU_ATOMIC(Texel, atomic_fetch_xor)
    __EMU_ATOMIC(Texel, atomic_fetch_min)
    __EMU_ATOMIC(Texel, atomic_fetch_max)
    __EMU_ATOMIC(bool, atomic_compare_exchange_weak)
    __EMU_ATOMIC(void, atomic_store)
    __EMU_ATOMIC(void, atomic_min)
    __EMU_ATOMIC(void, atomic_max)
#undef __EMU_SAMPLE
#undef __EMU_TEXEL
#undef __EMU_ATOMIC
#undef __EMU_SIZE
#undef __EMU_DECLARED
    __EMU_MEMBER void fence() const {}
};

}  // namespace __emu

namespace metal {

#define __EMU_TEXTURE(name)                                                                                            \
    template <class T, access a = access::sample, memory_coherence c = memory_coherence::threadgroup>                  \
    struct name : __emu::texture_functions<T, vec<T, 4>> {};
#define __EMU_DEPTH(name)                                                                                              \
    template <class T, access a = access::sample, memory_coherence c = memory_coherence::threadgroup>                  \
    struct name : __emu::texture_functions<T, T> {};
__EMU_TEXTURE(texture1d)
__EMU_TEXTURE(texture1d_array)
__EMU_TEXTURE(texture2d)
__EMU_TEXTURE(texture2d_array)
__EMU_TEXTURE(texture2d_ms)
__EMU_TEXTURE(texture2d_ms_array)
__EMU_TEXTURE(texture3d)
__EMU_TEXTURE(texturecube)
__EMU_TEXTURE(texturecube_array)
__EMU_TEXTURE(texture_buffer)
__EMU_DEPTH(depth2d)
__EMU_DEPTH(depth2d_array)
__EMU_DEPTH(depth2d_ms)
__EMU_DEPTH(depth2d_ms_array)
__EMU_DEPTH(depthcube)
__EMU_DEPTH(depthcube_array)
#undef __EMU_TEXTURE
#undef __EMU_DEPTH

template <class T> __EMU_FN bool is_null_texture(const T &) { return true; }

}  // namespace metal
