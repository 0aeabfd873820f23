// The library as the judge of address spaces reads it: declarations only, in C++ for OpenCL.
//
// What counts here is which memory a pointer or reference points into. Values are taken loosely: clang's reading with
// the whole library decides about overloads and types. device and constant are two parts of OpenCL's global memory
// that do not convert into each other; all four spaces convert to the generic one, which implicit copies use.

#pragma once

#define __judge_device __attribute__((opencl_global_host))
#define __judge_constant const __attribute__((opencl_global_device))
#define __judge_threadgroup __local
#define __judge_thread __private

#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#pragma OPENCL EXTENSION __cl_clang_variadic_functions : enable
#pragma OPENCL EXTENSION __cl_clang_bitfields : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#include "types.h"

#include "functions.h"

#include "resources.h"

#include "raytracing.h"
