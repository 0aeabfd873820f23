// `metal_atomic`: clang's atomic built-ins on device and threadgroup memory, which the sanitizer knows for atomic.
#pragma once

#include "traits.h"

namespace __emu {

template <class T> concept atomic_value = one_of<T, int, uint, bool, float, long, ulong>;
template <class T> using word_of = unsigned_of<T>;
// In a parameter's type it keeps the argument out of deduction: `1` adds to an atomic_uint.
template <class T> struct exactly { typedef T type; };
template <class T> using given = typename exactly<T>::type;

// By exchanges: clang's sanitizer does not see its own minimum and maximum.
template <class T> __EMU_FN T fetch_min(volatile T *object, T operand, int) {
    T old = __atomic_load_n(object, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(object, &old, operand < old ? operand : old, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}
template <class T> __EMU_FN T fetch_max(volatile T *object, T operand, int) {
    T old = __atomic_load_n(object, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(object, &old, old < operand ? operand : old, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

}  // namespace __emu

namespace metal {

enum memory_order {
    memory_order_relaxed = 0,
    memory_order_acquire = 2,
    memory_order_release = 3,
    memory_order_acq_rel = 4,
    memory_order_seq_cst = 5,
};
enum thread_scope {
    thread_scope_thread = 0,
    thread_scope_threadgroup = 1,
    thread_scope_device = 2,
    thread_scope_simdgroup = 4,
};

// Only the atomic functions read and write it. The bits are kept as an integer: compare-exchange compares bytes.
template <class T> struct _atomic {
    static_assert(__emu::atomic_value<T>, "an atomic is of int, uint, bool, float or ulong");
    typedef T value_type;
    __emu::word_of<T> __emu_word;

    _atomic() = default;
    _atomic(const _atomic &) = delete;
    _atomic &operator=(const _atomic &) = delete;
};
template <class T> using atomic = _atomic<T>;
typedef _atomic<int> atomic_int;
typedef _atomic<uint> atomic_uint;
typedef _atomic<bool> atomic_bool;
typedef _atomic<float> atomic_float;
typedef _atomic<ulong> atomic_ulong;

#define __EMU_RELAXED(order)                                                                                           \
    __attribute__((                                                                                                    \
        diagnose_if((order) != memory_order_relaxed, "an atomic function takes memory_order_relaxed only", "error")))

template <class T>
__EMU_FN T atomic_load_explicit(const volatile _atomic<T> *object, memory_order order) __EMU_RELAXED(order) {
    __emu_yield();
    return __builtin_bit_cast(T, __atomic_load_n(&object->__emu_word, __ATOMIC_RELAXED));
}
template <class T>
__EMU_FN void atomic_store_explicit(volatile _atomic<T> *object, __emu::given<T> desired, memory_order order)
    __EMU_RELAXED(order) {
    __atomic_store_n(&object->__emu_word, __builtin_bit_cast(__emu::word_of<T>, desired), __ATOMIC_RELAXED);
}
template <class T>
__EMU_FN T atomic_exchange_explicit(volatile _atomic<T> *object, __emu::given<T> desired, memory_order order)
    __EMU_RELAXED(order) {
    auto word = __builtin_bit_cast(__emu::word_of<T>, desired);
    return __builtin_bit_cast(T, __atomic_exchange_n(&object->__emu_word, word, __ATOMIC_RELAXED));
}
template <class T>
__EMU_FN bool atomic_compare_exchange_weak_explicit(volatile _atomic<T> *object, __emu::given<T> *expected,
                                                    __emu::given<T> desired, memory_order success, memory_order failure)
    __EMU_RELAXED(success) __EMU_RELAXED(failure) {
    typedef __emu::word_of<T> word;
    word old = __builtin_bit_cast(word, *expected);
    if (__atomic_compare_exchange_n(&object->__emu_word, &old, __builtin_bit_cast(word, desired), false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return true;
    *expected = __builtin_bit_cast(T, old);
    __emu_yield();
    return false;
}

// All give the old value. Integers wrap.
#define __EMU_FETCH(name, builtin)                                                                                     \
    template <class T>                                                                                                 \
        requires __emu::one_of<T, int, uint>                                                                           \
    __EMU_FN T atomic_fetch_##name##_explicit(volatile _atomic<T> *object, __emu::given<T> operand, memory_order order)\
        __EMU_RELAXED(order) {                                                                                         \
        return builtin((volatile T *)&object->__emu_word, operand, __ATOMIC_RELAXED);                                  \
    }
__EMU_FETCH(add, __atomic_fetch_add)
__EMU_FETCH(sub, __atomic_fetch_sub)
__EMU_FETCH(and, __atomic_fetch_and)
__EMU_FETCH(or, __atomic_fetch_or)
__EMU_FETCH(xor, __atomic_fetch_xor)
__EMU_FETCH(min, __emu::fetch_min)
__EMU_FETCH(max, __emu::fetch_max)
#undef __EMU_FETCH

template <class T>
    requires __emu::same<T, float>
__EMU_FN T atomic_fetch_add_explicit(volatile _atomic<T> *object, __emu::given<T> operand, memory_order order)
    __EMU_RELAXED(order) {
    uint old = __atomic_load_n(&object->__emu_word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&object->__emu_word, &old, as_type<uint>(as_type<float>(old) + operand), false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return as_type<float>(old);
}
template <class T>
    requires __emu::same<T, float>
__EMU_FN T atomic_fetch_sub_explicit(volatile _atomic<T> *object, __emu::given<T> operand, memory_order order)
    __EMU_RELAXED(order) {
    return atomic_fetch_add_explicit(object, -operand, order);
}

// The two functions of 64-bit atomics; they give nothing back.
__EMU_FN void atomic_min_explicit(volatile atomic_ulong *object, ulong operand, memory_order order)
    __EMU_RELAXED(order) {
    __emu::fetch_min(&object->__emu_word, operand, __ATOMIC_RELAXED);
}
__EMU_FN void atomic_max_explicit(volatile atomic_ulong *object, ulong operand, memory_order order)
    __EMU_RELAXED(order) {
    __emu::fetch_max(&object->__emu_word, operand, __ATOMIC_RELAXED);
}
#undef __EMU_RELAXED

}  // namespace metal
