// Constants, type traits, textures and samplers.

#pragma once

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT 3.40282347e+38f
#define HUGE_VALF __builtin_inff()
#define HUGE_VALH half(__builtin_inff())
#define MAXHALF half(65504.0f)
#define FLT_MAX 3.40282347e+38f
#define FLT_MIN 1.17549435e-38f
#define FLT_EPSILON 1.1920929e-07f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define HALF_MAX half(65504.0f)
#define HALF_MIN half(6.1035e-05f)
#define HALF_EPSILON half(9.7656e-04f)
#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MIN
#define M_E_F 2.71828183f
#define M_LOG2E_F 1.44269504f
#define M_LOG10E_F 0.434294482f
#define M_LN2_F 0.693147181f
#define M_LN10_F 2.30258509f
#define M_PI_F 3.14159265f
#define M_PI_2_F 1.57079633f
#define M_PI_4_F 0.785398163f
#define M_1_PI_F 0.318309886f
#define M_2_PI_F 0.636619772f
#define M_2_SQRTPI_F 1.12837917f
#define M_SQRT2_F 1.41421356f
#define M_SQRT1_2_F 0.707106781f
#define M_E_H half(M_E_F)
#define M_PI_H half(M_PI_F)
#define METAL_FUNC inline __attribute__((always_inline))

namespace metal {

template <bool B, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
    typedef T type;
};
template <bool B, typename T = void>
using enable_if_t = typename enable_if<B, T>::type;
template <bool B, typename T, typename U>
struct conditional {
    typedef T type;
};
template <typename T, typename U>
struct conditional<false, T, U> {
    typedef U type;
};
template <bool B, typename T, typename U>
using conditional_t = typename conditional<B, T, U>::type;
template <typename T, T v>
struct integral_constant {
    static constexpr T value = v;
    typedef T value_type;
    constexpr operator T() const;
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <bool B>
using bool_constant = integral_constant<bool, B>;
template <typename T>
struct remove_const {
    typedef __remove_const(T) type;
};
template <typename T>
struct remove_cv {
    typedef __remove_cv(T) type;
};
template <typename T>
struct remove_reference {
    typedef __remove_reference_t(T) type;
};
template <typename T>
using remove_const_t = typename remove_const<T>::type;
template <typename T>
using remove_cv_t = typename remove_cv<T>::type;
template <typename T>
using remove_reference_t = typename remove_reference<T>::type;
template <typename T>
struct remove_addrspace {
    typedef T type;
};
template <typename T>
using remove_addrspace_t = typename remove_addrspace<T>::type;
template <typename T>
T declval();
template <typename... B>
struct _disjunction : bool_constant<(B::value || ...)> {};
template <typename... B>
struct _conjunction : bool_constant<(B::value && ...)> {};

#define __judge_trait(name, test)                                  \
    template <typename T> struct name : bool_constant<(test)> {};  \
    template <typename T> inline constexpr bool name##_v = (test);
template <typename T>
inline constexpr bool __judge_is_half = __is_same(__remove_cv(T), half);
template <typename T>
inline constexpr bool __judge_is_bfloat = __is_same(__remove_cv(T), bfloat);
__judge_trait(is_integral, __is_integral(T))
__judge_trait(is_floating_point, __is_floating_point(T) || __judge_is_half<T> || __judge_is_bfloat<T>)
__judge_trait(is_arithmetic, __is_arithmetic(T) || __judge_is_half<T> || __judge_is_bfloat<T>)
__judge_trait(is_scalar, __is_scalar(T) || __judge_is_half<T> || __judge_is_bfloat<T>)
__judge_trait(is_signed, __is_signed(T) || __judge_is_half<T> || __judge_is_bfloat<T>)
__judge_trait(is_unsigned, __is_unsigned(T))
__judge_trait(is_class, __is_class(T))
__judge_trait(is_enum, __is_enum(T))
__judge_trait(is_pointer, __is_pointer(T))
__judge_trait(is_void, __is_void(T))
template <typename T, typename U>
struct is_same : bool_constant<__is_same(T, U)> {};
template <typename T, typename U>
inline constexpr bool is_same_v = __is_same(T, U);
template <typename T, typename U>
struct is_convertible : bool_constant<__is_convertible(T, U)> {};
template <typename T, typename U>
inline constexpr bool is_convertible_v = __is_convertible(T, U);
template <typename T>
struct make_signed {
    typedef T type;
};
template <typename T>
struct make_unsigned {
    typedef T type;
};
template <typename T>
using make_signed_t = typename make_signed<T>::type;
template <typename T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <typename T>
struct numeric_limits {
    static constexpr T max();
    static constexpr T min();
    static constexpr T lowest();
    static constexpr T epsilon();
    static constexpr T infinity();
    static constexpr T quiet_NaN();
    static constexpr T denorm_min();
    static constexpr int digits = 24;
    static constexpr bool is_signed = __is_signed(T);
};

// ---- logging ----

struct os_log {
    template <typename... A>
    constexpr os_log(A...) {}
    template <typename... A>
    void log(A...) const;
    template <typename... A>
    void log_debug(A...) const;
    template <typename... A>
    void log_info(A...) const;
    template <typename... A>
    void log_error(A...) const;
    template <typename... A>
    void log_fault(A...) const;
};
constexpr os_log os_log_default;

// ---- textures ----

enum class access { sample, read, write, read_write_ };
enum class coord { normalized, pixel };
enum class filter { nearest, linear };
enum class min_filter { nearest, linear };
enum class mag_filter { nearest, linear };
enum class mip_filter { none, nearest, linear };
enum class address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class s_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class t_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class r_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class border_color { transparent_black, opaque_black, opaque_white };
enum class compare_func { never, less, less_equal, greater, greater_equal, equal, not_equal, always };
enum class component { x, y, z, w };
struct sampler {
    template <typename... A>
    constexpr sampler(A...) {}
};
struct level {
    level(float);
};
struct bias {
    bias(float);
};
struct min_lod_clamp {
    min_lod_clamp(float);
};
struct gradient2d {
    gradient2d(float2, float2);
};
struct gradient3d {
    gradient3d(float3, float3);
};
struct gradientcube {
    gradientcube(float3, float3);
};
enum class memory_coherence { threadgroup, device };

#define __judge_atomic_texel(name) template <typename... B> vec<T, 4> atomic_##name(B...) const;
#define __judge_texture(name, result)                                                                           \
    template <typename T, access A = access::sample, memory_coherence C = memory_coherence::threadgroup>        \
    struct name {                                                                                               \
        template <typename... B> result sample(sampler, B...) const;                                            \
        template <typename... B> T sample_compare(sampler, B...) const;                                         \
        template <typename... B> vec<T, 4> gather(sampler, B...) const;                                         \
        template <typename... B> vec<T, 4> gather_compare(sampler, B...) const;                                 \
        template <typename... B> float calculate_clamped_lod(sampler, B...) const;                              \
        template <typename... B> float calculate_unclamped_lod(sampler, B...) const;                            \
        template <typename... B> result read(B...) const;                                                       \
        template <typename... B> void write(B...) const;                                                        \
        template <typename... B> void fence(B...) const;                                                        \
        uint get_width(uint = 0) const;                                                                         \
        uint get_height(uint = 0) const;                                                                        \
        uint get_depth(uint = 0) const;                                                                         \
        uint get_array_size() const;                                                                            \
        uint get_num_mip_levels() const;                                                                        \
        uint get_num_samples() const;                                                                           \
        __judge_atomic_texel(load) __judge_atomic_texel(exchange) __judge_atomic_texel(fetch_add)               \
        __judge_atomic_texel(fetch_sub) __judge_atomic_texel(fetch_and) __judge_atomic_texel(fetch_or)          \
        __judge_atomic_texel(fetch_xor) __judge_atomic_texel(fetch_min) __judge_atomic_texel(fetch_max)         \
        template <typename... B> bool atomic_compare_exchange_weak(B...) const;                                 \
        template <typename... B> void atomic_store(B...) const;                                                 \
        template <typename... B> void atomic_min(B...) const;                                                   \
        template <typename... B> void atomic_max(B...) const;                                                   \
    };
#define __judge_texel vec<T, 4>
__judge_texture(texture1d, __judge_texel) __judge_texture(texture1d_array, __judge_texel)
__judge_texture(texture2d, __judge_texel) __judge_texture(texture2d_array, __judge_texel)
__judge_texture(texture3d, __judge_texel) __judge_texture(texturecube, __judge_texel)
__judge_texture(texturecube_array, __judge_texel) __judge_texture(texture2d_ms, __judge_texel)
__judge_texture(texture2d_ms_array, __judge_texel) __judge_texture(texture_buffer, __judge_texel)
__judge_texture(depth2d, T) __judge_texture(depth2d_array, T) __judge_texture(depth2d_ms, T)
__judge_texture(depth2d_ms_array, T) __judge_texture(depthcube, T) __judge_texture(depthcube_array, T)
template <typename T>
bool is_null_texture(T);

}  // namespace metal
