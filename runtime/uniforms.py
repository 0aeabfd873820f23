"""The parameter struct: extents and scalars in C's layout, as the text declares them.

In: a program, an environment, and the scalars of a call. Out: bytes. bool is one byte, f16 its two, and
bf16 its 16 bits; an empty struct is one word of padding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from metaljit.dtypes import BF16, DType
from metaljit.extents import Extent, Number, evaluate, show
from metaljit.program import Program, ScalarParam
from metaljit.runtime.arguments import Plain, to_bf16
from metaljit.runtime.shapes import fault
from metaljit.source import SizeError

# Codes of the struct module in native mode, which aligns and pads as C does.
CODES = {"bool": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I",
         "u64": "Q", "f16": "e", "bf16": "H", "f32": "f"}  # fmt: skip


class Uniforms:
    """The layout of a program's struct. `scalars` are the scalar parameters in the order of their values."""

    def __init__(self, program: Program, scalars: Sequence[ScalarParam]) -> None:
        self._program = program
        codes = [CODES[u.dtype.name] for u in program.uniforms] or ["I"]
        widest = max(codes, key=struct.calcsize)
        self._pack = struct.Struct("".join(codes) + f"0{widest}").pack
        index = {p.name: k for k, p in enumerate(scalars)}
        # (field, scalar, lane, whether it is bf16) of what changes with each call
        self._filled = [
            (at, index[u.scalar], u.lane, u.dtype == BF16)
            for at, u in enumerate(program.uniforms)
            if u.value is None
        ]

    def packer(self, env: Mapping[str, Number]) -> Callable[[Sequence[tuple[Plain, ...]]], bytes]:
        """What packs the struct for these extents, given the lanes of each scalar."""
        fixed: list[Plain] = [
            0 if u.value is None else self._fixed(u.value, u.dtype, env) for u in self._program.uniforms
        ] or [0]
        pack, filled = self._pack, self._filled
        if not filled:
            constant = pack(*fixed)
            return lambda numbers: constant

        def packed(numbers: Sequence[tuple[Plain, ...]]) -> bytes:
            values = fixed.copy()
            for at, k, lane, narrow in filled:
                value = numbers[k][lane]
                values[at] = to_bf16(value) if narrow else value
            return pack(*values)

        return packed

    def _fixed(self, extent: Extent, dtype: DType, env: Mapping[str, Number]) -> Plain:
        value = evaluate(extent, env)
        if dtype == BF16:
            return to_bf16(value)
        if dtype.is_integer and not dtype.smallest <= value <= dtype.largest:
            raise fault(
                SizeError,
                "extent-too-large",
                self._program,
                f"{show(extent)} is {value}, and {dtype} holds {dtype.smallest} to {dtype.largest}",
                help="call the kernel on parts of the arrays",
            )
        return value
