// Atomic functions on words of buffers: relaxed order only, as in Metal; safe between the threads of the pool.
#pragma once

#include "cpu_types.h"

namespace metal {

enum memory_order { memory_order_relaxed };

template <class T> struct atomic { T word; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;

template <class T> MJ_INLINE T atomic_load_explicit(const volatile atomic<T> *p, memory_order) {
    T value;
    __atomic_load(&p->word, &value, __ATOMIC_RELAXED);
    return value;
}
template <class T>
MJ_INLINE void atomic_store_explicit(volatile atomic<T> *p, typename detail::same<T>::type value, memory_order) {
    __atomic_store(&p->word, &value, __ATOMIC_RELAXED);
}
template <class T>
MJ_INLINE T atomic_exchange_explicit(volatile atomic<T> *p, typename detail::same<T>::type value, memory_order) {
    T old;
    __atomic_exchange(&p->word, &value, &old, __ATOMIC_RELAXED);
    return old;
}
template <class T>
MJ_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T> *p, T *expected,
                                                     typename detail::same<T>::type desired, memory_order, memory_order) {
    return __atomic_compare_exchange(&p->word, expected, &desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#define MJ_ATOMIC(operation)                                                                                            \
    template <class T>                                                                                                  \
    MJ_INLINE T atomic_fetch_##operation##_explicit(volatile atomic<T> *p, typename detail::same<T>::type value,        \
                                                    memory_order) {                                                     \
        return __atomic_fetch_##operation(&p->word, value, __ATOMIC_RELAXED);                                           \
    }
MJ_ATOMIC(add)
MJ_ATOMIC(sub)
MJ_ATOMIC(and)
MJ_ATOMIC(or)
MJ_ATOMIC(xor)
MJ_ATOMIC(min)
MJ_ATOMIC(max)
#undef MJ_ATOMIC

} // namespace metal
