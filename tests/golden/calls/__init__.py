"""For each topic of the golden cases, the public calls that compute a case's outputs."""

from __future__ import annotations

from calls import bits, image, philox, pooling, stencil
from calls.common import Call

OPS: dict[tuple[str, str], Call] = {}
for family in (bits, image, philox, pooling, stencil):
    OPS |= family.OPS
