"""For each topic of the golden cases, the public calls that compute a case's outputs."""

from __future__ import annotations

from calls import bits, gather, philox, pooling, shape, stencil
from calls.common import Call

OPS: dict[tuple[str, str], Call] = {}
for family in (bits, gather, philox, pooling, shape, stencil):
    OPS |= family.OPS
