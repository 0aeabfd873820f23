"""The parameter struct against the C compiler's own idea of it (ctypes) and ml_dtypes."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import programs as p
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaljit.dtypes import BF16, DTYPES, F16, I32, U64, DType
from metaljit.extents import Lit, Sym, op
from metaljit.program import ScalarParam, Uniform
from metaljit.runtime.uniforms import Uniforms
from metaljit.source import SizeError

C: dict[str, Any] = {
    "bool": ctypes.c_bool, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
    "i64": ctypes.c_int64, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64, "f16": ctypes.c_uint16, "bf16": ctypes.c_uint16, "f32": ctypes.c_float,
}  # fmt: skip


def bits(dtype: DType, value: Any) -> Any:
    if dtype == F16:
        return int(np.array(value, np.float16).view(np.uint16))
    if dtype == BF16:
        return int(np.array(value, np.float32).astype(ml_dtypes.bfloat16).view(np.uint16))
    return value


@given(
    st.lists(
        st.tuples(st.sampled_from(list(DTYPES.values())), st.integers(0, 100), st.booleans()), max_size=9
    )
)
def test_layout(fields: list[tuple[DType, int, bool]]) -> None:
    uniforms, scalars, numbers = [], [], []
    for i, (dtype, number, fixed) in enumerate(fields):
        value: Any = bool(number % 2) if dtype.name == "bool" else number
        numbers.append((value,))
        scalars.append(ScalarParam(f"s{i}", dtype, 1))
        uniforms.append(
            Uniform(f"u{i}", dtype, Lit(value)) if fixed else Uniform(f"u{i}", dtype, scalar=f"s{i}")
        )
    program = p.elementwise("laid", tuple(scalars), (p.array("out", role="out"),), "", extents=())
    laid = Uniforms(replace(program, uniforms=tuple(uniforms)), scalars)
    found = laid.packer({})(numbers)
    if not fields:
        assert found == bytes(4)
        return
    struct: Any = type("S", (ctypes.Structure,), {"_fields_": [(u.name, C[u.dtype.name]) for u in uniforms]})
    assert len(found) == ctypes.sizeof(struct)
    read = struct.from_buffer_copy(found)
    for uniform, (dtype, _, _), (value,) in zip(uniforms, fields, numbers, strict=True):
        assert getattr(read, uniform.name) == bits(dtype, value)


def test_extents_that_a_field_cannot_hold() -> None:
    program = p.elementwise("wide", (p.array("a", p.N),), (p.array("out", role="out"),), "")
    wide = op("*", Sym("N"), Lit(2))
    for dtype, n, fits in ((I32, 2**30 - 1, True), (I32, 2**30, False), (U64, 2**31, True), (U64, -1, False)):
        laid = Uniforms(replace(program, uniforms=(Uniform("u", dtype, wide),)), ())
        if fits:
            assert int.from_bytes(laid.packer({"N": n})(()), "little") == 2 * n
        else:
            with pytest.raises(SizeError, match=r"N \* 2 is"):
                laid.packer({"N": n})


def test_lanes() -> None:
    program = p.elementwise("v", (ScalarParam("c", I32, 2),), (p.array("out", role="out"),), "")
    fields = (Uniform("c_y", I32, scalar="c", lane=1), Uniform("c_x", I32, scalar="c", lane=0))
    laid = Uniforms(replace(program, uniforms=fields), (ScalarParam("c", I32, 2),))
    assert np.frombuffer(laid.packer({})([(3, 4)]), np.int32).tolist() == [4, 3]
