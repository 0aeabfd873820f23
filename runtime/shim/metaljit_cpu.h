// The Metal Shading Language for the `cpu` device: what generated Metal text needs so that clang compiles it as C++17.
//
// In: text of our own code generator (names printed as `metal::name`, `metal::precise::name`, `metal::fast::name`, one
// component of a vector at a time, shift amounts and divisors of scalars already made safe). Out: inline functions without
// branches, calls or tables, so that clang vectorises a loop over them. Left to others: Metal written by hand, checks of
// Metal's own rules (the emulator is strict, this header is not), barriers and SIMD-group functions.
//
// Flags that the text's meaning rests on (x86-64 and arm64; nothing is linked, neither libc nor libm):
//   -x c++ -std=c++17 -O3 -nostdinc -nostdinc++ -ffreestanding -w
//   -fsigned-char                             Metal's char is signed; arm64 Linux's is not
//   -fno-operator-names                       `not` is a function in Metal
//   -Xclang -ffloat16-excess-precision=none   each operation on half rounds to half
//   -ffp-contract=off -fno-math-errno -fno-trapping-math
// With -ffast-math the user's arithmetic changes, the functions of these headers do not (but what they make of NaN and
// infinity is then undefined). x86-64 needs SSE4.1, F16C and FMA, as every processor since 2013 has: without them clang
// calls the C library for rounding and fma, and a run-time library of its own for half.
//
// The parts below cost 1 to 4 ms of compile time each. A text whose own identifiers are known needs only the parts whose
// names (after `//`) it mentions: include those in this order, define METALJIT_PARTS, and include this file after them.
#pragma once

#ifndef METALJIT_PARTS
#include "cpu_types.h"
#include "cpu_vectors.h"       // vec bool2 bool3 bool4 char2 char3 char4 uchar2 uchar3 uchar4 short2 short3 short4 ushort2 ushort3 ushort4 int2 int3 int4 uint2 uint3 uint4 long2 long3 long4 ulong2 ulong3 ulong4 half2 half3 half4 float2 float3 float4 dot length length_squared distance distance_squared normalize cross reflect refract faceforward
#include "cpu_choice.h"        // max min clamp max3 min3 median3 abs select any all not fmax fmin fmax3 fmin3 fmedian3 fabs saturate
#include "cpu_integer.h"       // absdiff addsat subsat clz ctz popcount reverse_bits rotate extract_bits insert_bits hadd rhadd mulhi madhi madsat mul24 mad24
#include "cpu_relational.h"    // isfinite isinf isnan isnormal signbit isordered isunordered
#include "cpu_float.h"         // sqrt rsqrt ceil floor rint round trunc fract sign copysign divide fdim step mix smoothstep fma
#include "cpu_fraction.h"      // ldexp ilogb frexp modf fmod nextafter
#include "cpu_exponential.h"   // exp exp2 exp10
#include "cpu_logarithm.h"     // log log2 log10
#include "cpu_power.h"         // pow powr
#include "cpu_hyperbolic.h"    // sinh cosh tanh asinh acosh atanh
#include "cpu_trigonometry.h"  // sin cos tan sincos sinpi cospi tanpi
#include "cpu_arc.h"           // asin acos atan atan2
#include "cpu_geometric.h"     // dot length length_squared distance distance_squared normalize cross reflect refract faceforward
#include "cpu_atomics.h"       // atomic_int atomic_uint atomic_float
#include "cpu_lanes.h"         // mj_lanes_reduce mj_lanes_prefix mj_lanes_ballot mj_tile_fill mj_tile_load mj_tile_store mj_tile_multiply
#endif

// What generated text asks for: this is a CPU, where NaN stays a value, and where offsets have 64 bits, so that clang sees
// consecutive addresses whatever the sizes are.
#define METALJIT_CPU 1
typedef long mj_offset;

// The words of the language that mean nothing here. They become macros last: the headers above use some as names.
#define kernel static
#define device
#define constant const
#define thread
#define threadgroup
// A loop around a call is vectorised only where the call is inlined, however long the function is.
#define inline inline __attribute__((always_inline))
