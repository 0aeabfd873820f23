// Metal's standard library for the emulator: the one header that kernels are compiled with, precompiled.
//
// The text arrives as C++ with its address spaces erased. Names of the implementation are in `__emu` or begin with
// `__emu_` or `__EMU_`, which no user's name can.
#pragma once

#include "arrays.h"
#include "builtins.h"
#include "collectives.h"
#include "entry.h"
#include "logging.h"
#include "matrices.h"
#include "pack.h"
#include "precision.h"
#include "raytracing.h"
#include "shifts.h"
#include "simdgroup_matrix.h"
#include "tensors.h"
#include "tessellation.h"
#include "traits.h"
