// `metal_tensor`, `metal_imageblocks`, `metal_command_buffer`: names only, so that texts that mention them compile.
#pragma once

#include "textures.h"

namespace metal {

inline constexpr size_t dynamic_extent = ~size_t(0);
template <class I, size_t... sizes> struct extents {
    typedef I index_type;
    static constexpr size_t rank() { return sizeof...(sizes); }
    __EMU_MEMBER I extent(size_t) const { return __emu::unsupported<I>("a tensor"); }
};
namespace __emu_extents {
template <class I, size_t rank, size_t... sizes> struct dynamic : dynamic<I, rank - 1, dynamic_extent, sizes...> {};
template <class I, size_t... sizes> struct dynamic<I, 0, sizes...> { typedef extents<I, sizes...> type; };
}  // namespace __emu_extents
template <class I, size_t rank> using dextents = typename __emu_extents::dynamic<I, rank>::type;

struct tensor_handle {};
struct tensor_offset {};
struct tensor_inline {};
template <class T, class Extents, class Handle = tensor_handle, class... Tags> struct tensor {
    tensor() = default;
    template <class... A> explicit tensor(A...) {}
    template <class... A> __EMU_MEMBER tensor slice(A...) const { return __emu::unsupported<tensor>("a tensor"); }
    template <class... A> __EMU_MEMBER T get(A...) const { return __emu::unsupported<T>("a tensor"); }
    template <class... A> __EMU_MEMBER void set(A...) const { __emu::unsupported<void>("a tensor"); }
    __EMU_MEMBER typename Extents::index_type get_extent(size_t) const {
        return __emu::unsupported<typename Extents::index_type>("a tensor");
    }
    template <class... I> __EMU_MEMBER T operator[](I...) const { return __emu::unsupported<T>("a tensor"); }
};
struct execution_thread {};
struct execution_simdgroup {};
struct execution_simdgroups {};
struct execution_threadgroup {};

struct imageblock_layout_implicit {};
struct imageblock_layout_explicit {};
template <class T, class Layout = imageblock_layout_implicit> struct imageblock {
    __EMU_MEMBER T *data(ushort2) const { return __emu::unsupported<T *>("an imageblock"); }
    __EMU_MEMBER T read(ushort2) const { return __emu::unsupported<T>("an imageblock"); }
    __EMU_MEMBER void write(const T &, ushort2) const { __emu::unsupported<void>("an imageblock"); }
    __EMU_MEMBER ushort get_width() const { return __emu::unsupported<ushort>("an imageblock"); }
    __EMU_MEMBER ushort get_height() const { return __emu::unsupported<ushort>("an imageblock"); }
};

struct command_buffer {};
struct compute_pipeline_state {};
struct render_pipeline_state {};
struct compute_command {
    compute_command(command_buffer, uint) {}
    void set_compute_pipeline_state(compute_pipeline_state) {}
    template <class T> void set_kernel_buffer(T *, uint) {}
    void set_threadgroup_memory_length(uint, uint) {}
    void set_barrier() {}
    void clear_barrier() {}
    __EMU_MEMBER void concurrent_dispatch_threadgroups(uint3, uint3) {
        __emu::unsupported<void>("an indirect command");
    }
    __EMU_MEMBER void concurrent_dispatch_threads(uint3, uint3) { __emu::unsupported<void>("an indirect command"); }
    void reset() {}
};

// A fragment function's way out; a text may have both kinds of functions.
__EMU_FN void discard_fragment() {}
template <class T> __EMU_FN T dfdx(T x) { return x - x; }
template <class T> __EMU_FN T dfdy(T x) { return x - x; }
template <class T> __EMU_FN T fwidth(T x) { return x - x; }

}  // namespace metal
