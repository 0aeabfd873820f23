// What compiled code calls for each access to memory: clang's address sanitizer puts in the calls for plain ones, its thread
// sanitizer those for atomic ones and copies. Nothing of their own runtimes is used.

#include "runtime_sanitizer.h"

#pragma GCC visibility push(default)

using namespace __emu;

#define CALLER __builtin_return_address(0)

#define PLAIN(n, quick_read, quick_write)                                                            \
    void __asan_load##n##_noabort(void* p) { if (!(quick_read)) touch(p, n, access_read, CALLER); }  \
    void __asan_store##n##_noabort(void* p) { if (!(quick_write)) touch(p, n, access_write, CALLER); }

#define QUICK(n) PLAIN(n, (pass<n, false>(p, CALLER)), (pass<n, true>(p, CALLER)))

#define FETCH(bits, T, name, builtin)                                                                \
    T __tsan_atomic##bits##_##name(T* p, T value, int) {                                             \
        touch(p, bits / 8, access_write | access_both | access_atomic, CALLER);                      \
        return builtin(p, value, __ATOMIC_RELAXED);                                                  \
    }

#define ATOMIC(bits, T)                                                                              \
    T __tsan_atomic##bits##_load(const T* p, int) {                                                  \
        touch(p, bits / 8, access_read | access_atomic, CALLER);                                     \
        return __atomic_load_n(p, __ATOMIC_RELAXED);                                                 \
    }                                                                                                \
    void __tsan_atomic##bits##_store(T* p, T value, int) {                                           \
        touch(p, bits / 8, access_write | access_atomic, CALLER);                                    \
        __atomic_store_n(p, value, __ATOMIC_RELAXED);                                                \
    }                                                                                                \
    T __tsan_atomic##bits##_exchange(T* p, T value, int) {                                           \
        touch(p, bits / 8, access_write | access_both | access_atomic, CALLER);                      \
        return __atomic_exchange_n(p, value, __ATOMIC_RELAXED);                                      \
    }                                                                                                \
    T __tsan_atomic##bits##_compare_exchange_val(T* p, T expected, T value, int, int) {              \
        touch(p, bits / 8, access_write | access_both | access_atomic, CALLER);                      \
        __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return expected;                                                                             \
    }                                                                                                \
    int __tsan_atomic##bits##_compare_exchange_strong(T* p, T* expected, T value, int, int) {        \
        touch(p, bits / 8, access_write | access_both | access_atomic, CALLER);                      \
        return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    }                                                                                                \
    int __tsan_atomic##bits##_compare_exchange_weak(T* p, T* expected, T value, int, int) {          \
        touch(p, bits / 8, access_write | access_both | access_atomic, CALLER);                      \
        return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    }                                                                                                \
    FETCH(bits, T, fetch_add, __atomic_fetch_add)                                                    \
    FETCH(bits, T, fetch_sub, __atomic_fetch_sub)                                                    \
    FETCH(bits, T, fetch_and, __atomic_fetch_and)                                                    \
    FETCH(bits, T, fetch_or, __atomic_fetch_or)                                                      \
    FETCH(bits, T, fetch_xor, __atomic_fetch_xor)                                                    \
    FETCH(bits, T, fetch_nand, __atomic_fetch_nand)

extern "C" {

PLAIN(1, false, false)
PLAIN(2, false, false)
QUICK(4)
QUICK(8)
QUICK(16)
ATOMIC(8, u8)
ATOMIC(16, u16)
ATOMIC(32, u32)
ATOMIC(64, u64)

void __asan_loadN_noabort(void* p, u64 n) { touch(p, n, access_read, CALLER); }
void __asan_storeN_noabort(void* p, u64 n) { touch(p, n, access_write, CALLER); }

void* __tsan_memcpy(void* to, const void* from, u64 n) {
    touch(from, n, access_read, CALLER);
    touch(to, n, access_write, CALLER);
    return memcpy(to, from, n);
}

void* __tsan_memmove(void* to, const void* from, u64 n) {
    touch(from, n, access_read, CALLER);
    touch(to, n, access_write, CALLER);
    return memmove(to, from, n);
}

void* __tsan_memset(void* to, int value, u64 n) {
    touch(to, n, access_write, CALLER);
    return memset(to, value, n);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_atomic_thread_fence(int) { sanitize_fence(); }
void __tsan_atomic_signal_fence(int) {}

}

#pragma GCC visibility pop
