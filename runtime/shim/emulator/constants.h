// Named constants and limits: macros, as in Metal, so that the preprocessor and `#ifdef` see them.
#pragma once

#include "scalars.h"

#define METAL_FUNC inline

#define NULL 0
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VALH half(__builtin_inff())
#define HUGE_VALBF bfloat(__builtin_inff())
#define MAXFLOAT FLT_MAX
#define MAXHALF HALF_MAX
#define MAXBFLOAT BFLT_MAX

#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
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
#define LLONG_MAX LONG_MAX
#define LLONG_MIN LONG_MIN
#define ULLONG_MAX ULONG_MAX

#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MIN

#define FLT_RADIX 2
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MANT_DIG 24
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_MAX_10_EXP 38
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f

#define HALF_RADIX 2
#define HALF_DIG 2
#define HALF_DECIMAL_DIG 5
#define HALF_MANT_DIG 11
#define HALF_MAX_EXP 16
#define HALF_MIN_EXP (-13)
#define HALF_MAX_10_EXP 4
#define HALF_MIN_10_EXP (-4)
#define HALF_MAX half(0x1.ffcp15f)
#define HALF_MIN half(0x1p-14f)
#define HALF_EPSILON half(0x1p-10f)

#define BFLT_RADIX 2
#define BFLT_DIG 2
#define BFLT_DECIMAL_DIG 4
#define BFLT_MANT_DIG 8
#define BFLT_MAX_EXP 128
#define BFLT_MIN_EXP (-125)
#define BFLT_MAX_10_EXP 38
#define BFLT_MIN_10_EXP (-37)
#define BFLT_MAX bfloat(0x1.fep127f)
#define BFLT_MIN bfloat(0x1p-126f)
#define BFLT_EPSILON bfloat(0x1p-7f)

#define M_E_F 2.718281828459045235f
#define M_LOG2E_F 1.442695040888963407f
#define M_LOG10E_F 0.4342944819032518277f
#define M_LN2_F 0.6931471805599453094f
#define M_LN10_F 2.302585092994045684f
#define M_PI_F 3.141592653589793238f
#define M_PI_2_F 1.570796326794896619f
#define M_PI_4_F 0.7853981633974483096f
#define M_1_PI_F 0.3183098861837906715f
#define M_2_PI_F 0.6366197723675813431f
#define M_2_SQRTPI_F 1.128379167095512574f
#define M_SQRT2_F 1.414213562373095049f
#define M_SQRT1_2_F 0.7071067811865475244f

#define M_E_H half(2.718281828459045235f)
#define M_LOG2E_H half(1.442695040888963407f)
#define M_LOG10E_H half(0.4342944819032518277f)
#define M_LN2_H half(0.6931471805599453094f)
#define M_LN10_H half(2.302585092994045684f)
#define M_PI_H half(3.141592653589793238f)
#define M_PI_2_H half(1.570796326794896619f)
#define M_PI_4_H half(0.7853981633974483096f)
#define M_1_PI_H half(0.3183098861837906715f)
#define M_2_PI_H half(0.6366197723675813431f)
#define M_2_SQRTPI_H half(1.128379167095512574f)
#define M_SQRT2_H half(1.414213562373095049f)
#define M_SQRT1_2_H half(0.7071067811865475244f)

#define M_E_BF bfloat(2.718281828459045235f)
#define M_LOG2E_BF bfloat(1.442695040888963407f)
#define M_LOG10E_BF bfloat(0.4342944819032518277f)
#define M_LN2_BF bfloat(0.6931471805599453094f)
#define M_LN10_BF bfloat(2.302585092994045684f)
#define M_PI_BF bfloat(3.141592653589793238f)
#define M_PI_2_BF bfloat(1.570796326794896619f)
#define M_PI_4_BF bfloat(0.7853981633974483096f)
#define M_1_PI_BF bfloat(0.3183098861837906715f)
#define M_2_PI_BF bfloat(0.6366197723675813431f)
#define M_2_SQRTPI_BF bfloat(1.128379167095512574f)
#define M_SQRT2_BF bfloat(1.414213562373095049f)
#define M_SQRT1_2_BF bfloat(0.7071067811865475244f)

// Without a suffix they are what a literal without one is: float.
#define M_E M_E_F
#define M_LOG2E M_LOG2E_F
#define M_LOG10E M_LOG10E_F
#define M_LN2 M_LN2_F
#define M_LN10 M_LN10_F
#define M_PI M_PI_F
#define M_PI_2 M_PI_2_F
#define M_PI_4 M_PI_4_F
#define M_1_PI M_1_PI_F
#define M_2_PI M_2_PI_F
#define M_2_SQRTPI M_2_SQRTPI_F
#define M_SQRT2 M_SQRT2_F
#define M_SQRT1_2 M_SQRT1_2_F
