// The factors that a kernel writes for the tessellator.
#pragma once

#include "scalars.h"

struct MTLQuadTessellationFactorsHalf {
    half edgeTessellationFactor[4], insideTessellationFactor[2];
};
struct MTLTriangleTessellationFactorsHalf {
    half edgeTessellationFactor[3], insideTessellationFactor;
};
