// Where a kernel begins: its arguments, from the attributes of its parameters.
//
// `__emu::call<tags...>(kernel)` deduces the parameters' types from the kernel; each tag, named like its attribute,
// says what the parameter is bound to in the running thread.
#pragma once

#include "textures.h"

// Every use of a kernel's name is told of: of those, `check` takes the calls.
#define __EMU_KERNEL __attribute__((diagnose_if(true, "a kernel cannot be called", "warning")))
#define __EMU_ENTRY __attribute__((visibility("default"), used, no_sanitize("thread", "address")))

// What the runtime keeps for a thread is no memory of the kernel's.
#pragma clang attribute push(__attribute__((no_sanitize("thread", "address"))), apply_to = function)

namespace __emu {

template <uint i> struct buffer {};
template <uint i> struct threadgroup_memory {};
template <uint i> struct texture {};
template <uint i> struct sampler_ {};
struct local_threadgroup {};
struct absent {};
struct stage_in {};

__EMU_FN uint count(size3 n) { return n.x * n.y * n.z; }
__EMU_FN uint groups_of(uint n, size3 threads) { return (count(threads) + n - 1) / n; }
__EMU_FN size3 position_in_grid() {
    const thread &t = *__emu_current;
    const group &g = *t.in;
    return {g.threadgroup_position_in_grid.x * g.dispatch_threads_per_threadgroup.x + t.position_in_threadgroup.x,
            g.threadgroup_position_in_grid.y * g.dispatch_threads_per_threadgroup.y + t.position_in_threadgroup.y,
            g.threadgroup_position_in_grid.z * g.dispatch_threads_per_threadgroup.z + t.position_in_threadgroup.z};
}

// Positions and sizes: one number, or two, or three.
#define __EMU_SIZE(name, ...)                                                                                          \
    struct name {                                                                                                      \
        static size3 value() { return __VA_ARGS__; }                                                                   \
    };
__EMU_SIZE(thread_position_in_grid, position_in_grid())
__EMU_SIZE(threads_per_grid, __emu_current->in->threads_per_grid)
__EMU_SIZE(grid_size, __emu_current->in->threads_per_grid)
__EMU_SIZE(grid_origin, {0, 0, 0})
__EMU_SIZE(thread_position_in_threadgroup, __emu_current->position_in_threadgroup)
__EMU_SIZE(threads_per_threadgroup, __emu_current->in->threads_per_threadgroup)
__EMU_SIZE(dispatch_threads_per_threadgroup, __emu_current->in->dispatch_threads_per_threadgroup)
__EMU_SIZE(threadgroup_position_in_grid, __emu_current->in->threadgroup_position_in_grid)
__EMU_SIZE(threadgroups_per_grid, __emu_current->in->threadgroups_per_grid)
#undef __EMU_SIZE

#define __EMU_NUMBER(name, ...)                                                                                        \
    struct name {                                                                                                      \
        static uint value() { return __VA_ARGS__; }                                                                    \
    };
__EMU_NUMBER(thread_index_in_threadgroup, __emu_current->index)
__EMU_NUMBER(thread_index_in_simdgroup, __emu_current->index % 32)
__EMU_NUMBER(threads_per_simdgroup, 32)
__EMU_NUMBER(thread_execution_width, 32)
__EMU_NUMBER(simdgroup_index_in_threadgroup, __emu_current->index / 32)
__EMU_NUMBER(simdgroups_per_threadgroup, groups_of(32, __emu_current->in->threads_per_threadgroup))
__EMU_NUMBER(dispatch_simdgroups_per_threadgroup, groups_of(32, __emu_current->in->dispatch_threads_per_threadgroup))
__EMU_NUMBER(thread_index_in_quadgroup, __emu_current->index % 4)
__EMU_NUMBER(quadgroup_index_in_threadgroup, __emu_current->index / 4)
__EMU_NUMBER(quadgroups_per_threadgroup, groups_of(4, __emu_current->in->threads_per_threadgroup))
__EMU_NUMBER(dispatch_quadgroups_per_threadgroup, groups_of(4, __emu_current->in->dispatch_threads_per_threadgroup))
#undef __EMU_NUMBER

template <class T> inline constexpr bool a_reference = false;
template <class T> inline constexpr bool a_reference<T &> = true;
template <class T> using plain = __remove_cv(__remove_reference_t(T));

// Of `P *` and `P &`: what memory at an address is for the kernel.
template <class P> __EMU_VANISH inline P at(void *memory) {
    if constexpr (a_reference<P>)
        return *static_cast<__remove_reference_t(P) *>(memory);
    else
        return static_cast<P>(memory);
}

template <class Tag, class P, int position> struct argument {
    // Built-in values: a Tag with `value()`.
    static P get() {
        typedef plain<P> T;
        if constexpr (same<decltype(Tag::value()), size3>) {
            static_assert(one_of<T, uint, ushort, uint2, ushort2, uint3, ushort3>,
                          "a position or size in the grid is of type uint, uint2, uint3, ushort, ushort2 or ushort3");
            size3 v = Tag::value();
            if constexpr (count_of<T> == 3)
                return T(v.x, v.y, v.z);
            else if constexpr (count_of<T> == 2)
                return T(v.x, v.y);
            else
                return T(v.x);
        } else {
            static_assert(one_of<T, uint, ushort>, "an index or number of threads is of type uint or ushort");
            return T(Tag::value());
        }
    }
};
// Resources that are declared only, such as acceleration structures, are bound like buffers and passed by value.
template <uint i, class P, int position> struct argument<buffer<i>, P, position> {
    static_assert(i < 31, "the index of a buffer is between 0 and 30");
    static_assert(a_reference<P> || __is_pointer(P) || __is_empty(P),
                  "a buffer is a pointer or a reference to device or constant memory");
    static P get() {
        if constexpr (__is_empty(P))
            return P();
        else
            return at<P>(__emu_current->in->buffers[i]);
    }
};
template <uint i, class P, int position> struct argument<threadgroup_memory<i>, P, position> {
    static_assert(i < 31, "the index of threadgroup memory is between 0 and 30");
    static_assert(a_reference<P> || __is_pointer(P), "threadgroup memory is a pointer or a reference");
    static P get() { return at<P>(__emu_current->in->memory[i]); }
};
// A parameter in threadgroup memory that no attribute binds: one object for each such parameter.
template <class P, int position> struct argument<local_threadgroup, P, position> {
    static_assert(a_reference<P> || __is_pointer(P), "threadgroup memory is a pointer or a reference");
    static P get() {
        static __remove_pointer(__remove_reference_t(P)) object;
        __emu_threadgroup_memory((void *)&object, sizeof(object), "threadgroup argument");
        return at<P>((void *)&object);
    }
};
// Textures and samplers are declared only, and so are vertices and arguments that a function constant leaves out.
template <class P> struct of_nothing {
    static P get() {
        if constexpr (a_reference<P>) {
            static plain<P> object;
            return object;
        } else {
            return P();
        }
    }
};
template <uint i, class P, int position> struct argument<texture<i>, P, position> : of_nothing<P> {};
template <uint i, class P, int position> struct argument<sampler_<i>, P, position> : of_nothing<P> {};
template <class P, int position> struct argument<absent, P, position> : of_nothing<P> {};
template <class P, int position> struct argument<stage_in, P, position> : of_nothing<P> {};

template <class, int... i> struct positions {};
template <class... Tags> struct tags {};

template <class... Tags, class... P, class N, int... i>
inline void call_at(tags<Tags...>, void (*kernel)(P...), positions<N, i...>) {
    kernel(argument<Tags, P, i>::get()...);
}

// Runs `kernel` as the running thread.
template <class... Tags, class... P> inline void call(void (*kernel)(P...)) {
    static_assert(sizeof...(Tags) == sizeof...(P), "each parameter of a kernel has its attribute");
    call_at(tags<Tags...>{}, kernel, __make_integer_seq<positions, int, int(sizeof...(P))>{});
}

}  // namespace __emu

#pragma clang attribute pop
