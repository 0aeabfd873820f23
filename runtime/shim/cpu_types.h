// Scalar types, their traits, named constants and bit casts.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef ulong size_t;
typedef long ptrdiff_t;

static_assert(sizeof(long) == 8, "Metal's long has 64 bits: an LP64 target is needed");
static_assert(char(-1) < 0, "Metal's char is signed: compile with -fsigned-char");

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define MAXFLOAT 0x1.fffffep127f
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define HALF_MAX half(65504.0f)
#define MAXHALF half(65504.0f)
#define HALF_MIN half(0x1p-14f)
#define HALF_EPSILON half(0x1p-10f)
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
#define LONG_MIN (-9223372036854775807l - 1l)
#define ULONG_MAX 18446744073709551615ul
#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MIN
#define M_E_F 2.718281828459045f
#define M_LOG2E_F 1.4426950408889634f
#define M_LOG10E_F 0.4342944819032518f
#define M_LN2_F 0.6931471805599453f
#define M_LN10_F 2.302585092994046f
#define M_PI_F 3.141592653589793f
#define M_PI_2_F 1.5707963267948966f
#define M_PI_4_F 0.7853981633974483f
#define M_1_PI_F 0.3183098861837907f
#define M_2_PI_F 0.6366197723675814f
#define M_2_SQRTPI_F 1.1283791670955126f
#define M_SQRT2_F 1.4142135623730951f
#define M_SQRT1_2_F 0.7071067811865476f

// Every function is inlined into the loop that calls it: a call would stop the vectoriser.
#define MJ_INLINE static inline __attribute__((always_inline))
#define MJ_MEMBER __attribute__((always_inline))

// Between these two the text means what it says even in a program that is compiled with -ffast-math: no operation is
// reordered or fused, NaN and infinity exist.
#define MJ_STRICT_BEGIN _Pragma("float_control(precise, on, push)") _Pragma("clang fp contract(off)")
#define MJ_STRICT_END _Pragma("float_control(pop)")

namespace metal {
using ::half;
using ::uchar;
using ::uint;
using ::ulong;
using ::ushort;

namespace detail {

template <unsigned long size> struct word;
template <> struct word<1> { typedef uchar type; typedef ushort wide; };
template <> struct word<2> { typedef ushort type; typedef uint wide; };
template <> struct word<4> { typedef uint type; typedef ulong wide; };
template <> struct word<8> { typedef ulong type; typedef unsigned __int128 wide; };
template <class T> using unsigned_of = typename word<sizeof(T)>::type;

template <bool condition, class A, class B> struct choose { typedef A type; };
template <class A, class B> struct choose<false, A, B> { typedef B type; };
template <class T> struct same { typedef T type; };

template <class T> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;
template <> constexpr bool is_float<half> = true;
template <class T> constexpr bool is_signed = T(-1) < T(0);
template <class T> constexpr uint width = 8 * sizeof(T);

// The integer type twice as wide, signed as T is.
template <class T> struct double_width {
    typedef typename word<sizeof(T)>::wide wide;
    typedef typename choose<sizeof(T) == 1, short, typename choose<sizeof(T) == 2, int,
        typename choose<sizeof(T) == 4, long, __int128>::type>::type>::type signed_wide;
    typedef typename choose<is_signed<T>, signed_wide, wide>::type type;
};
template <class T> using wide_of = typename double_width<T>::type;

template <class T> constexpr T largest = is_signed<T> ? T(unsigned_of<T>(-1) >> 1) : T(-1);
template <class T> constexpr T smallest = is_signed<T> ? T(-largest<T> - T(1)) : T(0);

} // namespace detail
} // namespace metal

// The bits of x as a T of the same size. Vectors are copied by memory, as their copy constructor is not trivial.
template <class T, class U> MJ_INLINE T as_type(const U &x) {
    if constexpr (__is_trivially_copyable(T) && __is_trivially_copyable(U)) {
        return __builtin_bit_cast(T, x);
    } else {
        static_assert(sizeof(T) == sizeof(U), "as_type needs types of one size");
        T result;
        __builtin_memcpy(&result, &x, sizeof(T));
        return result;
    }
}
