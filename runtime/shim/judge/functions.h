// The functions of the library. The result of a call on several arguments is the widest of them.

#pragma once

namespace metal {

template <typename T, typename... R>
struct __judge_wide {
    typedef T type;
};
template <typename T, int N, typename... R>
struct __judge_wide<vec<T, N>, R...> {
    typedef vec<T, N> type;
};
template <typename T, typename U, int N, typename... R>
struct __judge_wide<T, vec<U, N>, R...> {
    typedef vec<U, N> type;
};
template <typename T, int N, typename U, typename... R>
struct __judge_wide<vec<T, N>, vec<U, N>, R...> {
    typedef vec<T, N> type;
};
template <typename V, typename... R>
struct __judge_wide<packed<V>, R...> {
    typedef V type;
};
template <typename T>
struct __judge_truth {
    typedef bool type;
};
template <typename T, int N>
struct __judge_truth<vec<T, N>> {
    typedef vec<bool, N> type;
};
template <typename T>
struct __judge_element {
    typedef T type;
};
template <typename T, int N>
struct __judge_element<vec<T, N>> {
    typedef T type;
};
template <typename T, int N>
struct __judge_element<packed<vec<T, N>>> {
    typedef T type;
};
template <typename T>
struct __judge_itself {
    typedef T type;
};
template <typename T>
struct __judge_whole {
    typedef int type;
};
template <typename T, int N>
struct __judge_whole<vec<T, N>> {
    typedef vec<int, N> type;
};

#define __judge_value(name) \
    template <typename A, typename... R> \
    constexpr typename __judge_wide<A, R...>::type name(A, R...);
#define __judge_predicate(name) \
    template <typename A, typename... R> \
    constexpr typename __judge_truth<A>::type name(A, R...);
#define __judge_scalar(name) \
    template <typename A, typename... R> \
    constexpr typename __judge_element<A>::type name(A, R...);
#define __judge_bool(name) \
    template <typename... A> \
    constexpr bool name(A...);

#define __judge_mathematics                                                                                     \
    __judge_value(abs) __judge_value(acos) __judge_value(acosh) __judge_value(asin) __judge_value(asinh)        \
    __judge_value(atan) __judge_value(atan2) __judge_value(atanh) __judge_value(ceil) __judge_value(copysign)   \
    __judge_value(cos) __judge_value(cosh) __judge_value(cospi) __judge_value(divide) __judge_value(exp)        \
    __judge_value(exp2) __judge_value(exp10) __judge_value(fabs) __judge_value(fdim) __judge_value(floor)       \
    __judge_value(fma) __judge_value(fmax) __judge_value(fmax3) __judge_value(fmedian3) __judge_value(fmin)     \
    __judge_value(fmin3) __judge_value(fmod) __judge_value(fract) __judge_value(ldexp) __judge_value(log)       \
    __judge_value(log2) __judge_value(log10) __judge_value(max) __judge_value(max3) __judge_value(median3)      \
    __judge_value(min) __judge_value(min3) __judge_value(nextafter) __judge_value(pow) __judge_value(powr)      \
    __judge_value(rint) __judge_value(round) __judge_value(rsqrt) __judge_value(sin) __judge_value(sinh)        \
    __judge_value(sinpi) __judge_value(sqrt) __judge_value(tan) __judge_value(tanh) __judge_value(tanpi)        \
    __judge_value(trunc) __judge_value(clamp) __judge_value(mix) __judge_value(saturate) __judge_value(sign)    \
    __judge_value(smoothstep) __judge_value(step) __judge_value(normalize)                                      \
    __judge_scalar(length) __judge_scalar(distance)                                                             \
    template <typename A> typename __judge_whole<A>::type ilogb(A);                                             \
    template <typename A> A frexp(A, __private typename __judge_whole<A>::type&);                               \
    template <typename A> A modf(A, __private typename __judge_itself<A>::type&);                               \
    template <typename A> A sincos(A, __private typename __judge_itself<A>::type&);

__judge_mathematics
namespace precise { __judge_mathematics }
namespace fast { __judge_mathematics }

__judge_value(absdiff) __judge_value(addsat) __judge_value(subsat) __judge_value(clz) __judge_value(ctz)
__judge_value(extract_bits) __judge_value(insert_bits) __judge_value(hadd) __judge_value(rhadd)
__judge_value(mad24) __judge_value(mul24) __judge_value(madhi) __judge_value(madsat) __judge_value(mulhi)
__judge_value(popcount) __judge_value(reverse_bits) __judge_value(rotate) __judge_value(select)
__judge_value(cross) __judge_value(faceforward) __judge_value(reflect) __judge_value(refract)
__judge_scalar(dot) __judge_scalar(length_squared) __judge_scalar(distance_squared)
__judge_predicate(isfinite) __judge_predicate(isinf) __judge_predicate(isnan) __judge_predicate(isnormal)
__judge_predicate(isordered) __judge_predicate(isunordered) __judge_predicate(signbit)
__judge_bool(all) __judge_bool(any)
template <typename T, int C, int R>
matrix<T, R, C> transpose(matrix<T, C, R>);
template <typename T, int C>
T determinant(matrix<T, C, C>);

#define __judge_unpack(kind, n) float##n unpack_##kind##_to_float(uint); half##n unpack_##kind##_to_half(uint);
#define __judge_pack(kind, n, to) to pack_float_to_##kind(float##n); to pack_half_to_##kind(half##n);
__judge_unpack(unorm4x8, 4) __judge_unpack(snorm4x8, 4) __judge_unpack(unorm4x8_srgb, 4) __judge_unpack(unorm2x16, 2)
__judge_unpack(snorm2x16, 2) __judge_unpack(unorm10a2, 4) __judge_unpack(snorm10a2, 4)
float3 unpack_unorm565_to_float(ushort);
half3 unpack_unorm565_to_half(ushort);
__judge_pack(unorm4x8, 4, uint) __judge_pack(snorm4x8, 4, uint) __judge_pack(srgb_unorm4x8, 4, uint)
__judge_pack(unorm2x16, 2, uint) __judge_pack(snorm2x16, 2, uint) __judge_pack(unorm10a2, 4, uint)
__judge_pack(snorm10a2, 4, uint) __judge_pack(unorm565, 3, ushort)

// ---- groups ----

enum class mem_flags { mem_none, mem_device, mem_threadgroup, mem_texture, mem_threadgroup_imageblock, mem_object_data };
constexpr mem_flags operator|(mem_flags, mem_flags);
enum memory_order { memory_order_relaxed, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };
template <typename... A>
void threadgroup_barrier(mem_flags, A...);
template <typename... A>
void simdgroup_barrier(mem_flags, A...);
template <typename... A>
void atomic_thread_fence(mem_flags, A...);

struct simd_vote {
    typedef ulong vote_t;
    explicit simd_vote(vote_t = 0);
    explicit operator vote_t() const;
    bool all() const;
    bool any() const;
};
typedef simd_vote quad_vote;
#define __judge_group_functions(g)                                                                              \
    __judge_value(g##_broadcast) __judge_value(g##_broadcast_first) __judge_value(g##_shuffle)                  \
    __judge_value(g##_shuffle_up) __judge_value(g##_shuffle_down) __judge_value(g##_shuffle_rotate_up)          \
    __judge_value(g##_shuffle_rotate_down) __judge_value(g##_shuffle_xor) __judge_value(g##_sum)                \
    __judge_value(g##_shuffle_and_fill_up) __judge_value(g##_shuffle_and_fill_down) __judge_value(g##_product)  \
    __judge_value(g##_min) __judge_value(g##_max) __judge_value(g##_and) __judge_value(g##_or)                  \
    __judge_value(g##_xor) __judge_value(g##_prefix_exclusive_sum) __judge_value(g##_prefix_inclusive_sum)      \
    __judge_value(g##_prefix_exclusive_product) __judge_value(g##_prefix_inclusive_product)                     \
    __judge_bool(g##_all) __judge_bool(g##_any) __judge_bool(g##_is_first) __judge_bool(g##_is_helper_thread)   \
    g##_vote g##_ballot(bool);                                                                                  \
    g##_vote g##_active_threads_mask();
__judge_group_functions(simd) __judge_group_functions(quad)

template <typename T, int C, int R>
struct simdgroup_matrix {
    simdgroup_matrix() = default;
    explicit simdgroup_matrix(T);
    vec<T, 2>& thread_elements();
    friend simdgroup_matrix operator*(simdgroup_matrix, simdgroup_matrix);
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
template <typename T, int C, int R = C>
simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T);
template <typename M, typename S, typename... A>
void simdgroup_load(__private M&, const __judge_device S*, A...);
template <typename M, typename S, typename... A>
void simdgroup_load(__private M&, const __local S*, A...);
template <typename M, typename S, typename... A>
void simdgroup_store(M, __judge_device S*, A...);
template <typename M, typename S, typename... A>
void simdgroup_store(M, __local S*, A...);
template <typename M, typename A, typename B>
void simdgroup_multiply(__private M&, A, B);
template <typename M, typename A, typename B, typename C>
void simdgroup_multiply_accumulate(__private M&, A, B, C);

// ---- atomics: in device and threadgroup memory only ----

#define __judge_atomic(space)                                                                                   \
    template <typename T> T atomic_load_explicit(const volatile space atomic<T>*, memory_order);                \
    template <typename T, typename U> void atomic_store_explicit(volatile space atomic<T>*, U, memory_order);   \
    template <typename T, typename U>                                                                           \
    bool atomic_compare_exchange_weak_explicit(                                                                 \
        volatile space atomic<T>*, __private T*, U, memory_order, memory_order);                                \
    template <typename T, typename U> T atomic_exchange_explicit(volatile space atomic<T>*, U, memory_order);   \
    template <typename T, typename U> T atomic_fetch_add_explicit(volatile space atomic<T>*, U, memory_order);  \
    template <typename T, typename U> T atomic_fetch_sub_explicit(volatile space atomic<T>*, U, memory_order);  \
    template <typename T, typename U> T atomic_fetch_and_explicit(volatile space atomic<T>*, U, memory_order);  \
    template <typename T, typename U> T atomic_fetch_or_explicit(volatile space atomic<T>*, U, memory_order);   \
    template <typename T, typename U> T atomic_fetch_xor_explicit(volatile space atomic<T>*, U, memory_order);  \
    template <typename T, typename U> T atomic_fetch_min_explicit(volatile space atomic<T>*, U, memory_order);  \
    template <typename T, typename U> T atomic_fetch_max_explicit(volatile space atomic<T>*, U, memory_order);  \
    template <typename T, typename U> void atomic_min_explicit(volatile space atomic<T>*, U, memory_order);     \
    template <typename T, typename U> void atomic_max_explicit(volatile space atomic<T>*, U, memory_order);
__judge_atomic(__judge_device) __judge_atomic(__local)

}  // namespace metal

// What metaljit writes for `uniform(x)`.
template <typename T> T mj_uniform(T);
