"""For each topic of the golden cases, the public calls that compute a case's outputs."""

from __future__ import annotations

from calls import bits, philox, pooling, rnn, spatial, stencil
from calls.common import Call

OPS: dict[tuple[str, str], Call] = {}
for family in (bits, philox, pooling, rnn, spatial, stencil):
    OPS |= family.OPS
