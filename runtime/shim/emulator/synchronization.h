// `metal_compute`: barriers and fences.
#pragma once

#include "atomics.h"
#include "traits.h"

namespace __emu {

// Written around a loop: `for (__emu::turns t; t.once();) while (…) { t.next(); … }`.
struct turns : loop {
    __EMU_OWN turns(unsigned line = __builtin_LINE(), unsigned column = __builtin_COLUMN())
        : loop{__emu_current->loops, line, column, 0}, begun(false) {
        __emu_current->loops = this;
    }
    __EMU_OWN ~turns() { __emu_current->loops = outer; }
    __EMU_OWN bool once() { return begun ? false : (begun = true); }
    __EMU_OWN void next() { ++turn; }

private:
    bool begun;
};

}  // namespace __emu

namespace metal {

enum class mem_flags : uint {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_texture = 4,
    mem_threadgroup_imageblock = 8,
    mem_object_data = 16,
};
__EMU_FN mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
__EMU_FN mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(uint(a) & uint(b)); }
__EMU_FN mem_flags &operator|=(mem_flags &a, mem_flags b) { return a = a | b; }

__EMU_FN void threadgroup_barrier(mem_flags flags, __EMU_HERE) {
    __emu_threadgroup_barrier(uint(flags), __emu_line, __emu_column);
}
__EMU_FN void threadgroup_barrier(mem_flags flags, thread_scope, __EMU_HERE) {
    __emu_threadgroup_barrier(uint(flags), __emu_line, __emu_column);
}
__EMU_FN void simdgroup_barrier(mem_flags flags, __EMU_HERE) {
    __emu_simdgroup_barrier(uint(flags), __emu_line, __emu_column);
}
__EMU_FN void simdgroup_barrier(mem_flags flags, thread_scope, __EMU_HERE) {
    __emu_simdgroup_barrier(uint(flags), __emu_line, __emu_column);
}

// One thread runs at a time, in the order of its text: a fence has nothing to do but to be known to the sanitizer.
__EMU_FN void atomic_thread_fence(mem_flags, memory_order order, thread_scope = thread_scope_device) {
    if (order != memory_order_relaxed) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

}  // namespace metal

// What metaljit writes for `uniform(x)`.
template <class T> __EMU_FN T mj_uniform(T value, __EMU_HERE) {
#ifdef __EMU_SANITIZE
    if constexpr (metal::is_floating_point<T>::value) {
        double held = value == T(0) ? 0.0 : double(value);
        __emu_promise(__builtin_bit_cast(unsigned long, value == value ? held : __builtin_nan("")), 2, __emu_line, __emu_column);
    } else if constexpr (metal::is_integral<T>::value) {
        constexpr unsigned kind = __is_same(T, bool) ? 3 : T(-1) > T(0);
        __emu_promise((unsigned long)value, kind, __emu_line, __emu_column);
    }
#endif
    return value;
}
