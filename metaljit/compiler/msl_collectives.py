"""What threads compute together, as Metal text.

In: a collective of IR. Out: the text of its value. Metal's functions of a simdgroup know neither bool nor 64-bit numbers,
and pass over NaN: these, and whole groups, go through the prelude's functions.
"""

from __future__ import annotations

from math import prod

from ..dtypes import BOOL, DType
from ..frozen import mutable
from ..operation_rules import COMMA
from . import ir
from .msl_expressions import Expressions
from .spelling import literal
from .uniformity import SIMD_WIDTH, flat_thread
from .usage import expressions, walk, walk_expressions


@mutable
class Collectives(Expressions):
    """The names of one kernel, and what its threads' common work looks like with them."""

    @property
    def barrier(self) -> str:
        """A call. A group of one simdgroup waits for that alone: Metal's group has a second one, which is idle."""
        flags = "metal::mem_flags::mem_threadgroup"
        if _exchanges_device_memory(self.kernel):
            flags = f"metal::mem_flags::mem_device | {flags}"
        whose = "simdgroup" if prod(self.kernel.threads) == SIMD_WIDTH else "threadgroup"
        return f"metal::{whose}_barrier({flags})"

    def collective(self, s: ir.Collective) -> str:
        type = s.value.type.scalar
        text = self.expr(s.value, COMMA + 1)
        op = s.op
        if op == "simd_ballot":
            return f"mj_simd_ballot({text})"
        if s.by is not None:
            op = "simd_shuffle" if op == "simd_broadcast" and not isinstance(s.by, ir.Const) else op
            return f"{'metal::' if _is_plain(op, type) else 'mj_'}{op}({text}, ushort({self.expr(s.by)}))"
        index = f"uint({self.expr(flat_thread(self.kernel))})"
        if op.startswith("simd_"):
            return f"metal::{op}({text})" if _is_plain(op, type) else f"mj_{op}({text}, {index})"
        more = [self.buffers[s.scratch.name], index]
        if not op.endswith("prefix_inclusive_sum") and not op.endswith("prefix_exclusive_sum"):
            more.append(f"{prod(self.kernel.threads) // SIMD_WIDTH}u")
        if op.endswith(("min", "max")):
            more.append(literal(type.largest if op.endswith("min") else type.smallest, type))
        return f"mj_{op}({text}, {', '.join(more)})"


def scratches(kernel: ir.Kernel) -> list[ir.Buffer]:
    """The threadgroup arrays that a kernel's group collectives need, each once."""
    found = {
        s.scratch.name: s.scratch for s in walk(kernel.body) if isinstance(s, ir.Collective) and s.of_group
    }
    return [b for _, b in sorted(found.items())]


def _is_plain(op: str, type: DType) -> bool:
    """Whether Metal's own function of this name does it."""
    skips_nan = type.is_float and op.endswith(("min", "max"))
    return type != BOOL and type.bits <= 32 and not skips_nan


def _exchanges_device_memory(kernel: ir.Kernel) -> bool:
    """Whether threads read device arrays that threads write."""
    bodies = (kernel.body, *(f.body for f in kernel.functions))
    found = (e for b in bodies for s in walk(b) for top in expressions(s) for e in walk_expressions(top))
    return any(isinstance(e, ir.Load) and e.buffer.writable and e.buffer.size is None for e in found)
