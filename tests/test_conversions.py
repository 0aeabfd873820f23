"""Casts: their meaning on hard values, and which of them are refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from metaljit.conversions import (
    bitcast,
    check_bitcast,
    check_saturate,
    convert,
    saturate,
    spell_bitcast,
    spell_cast,
    spell_saturate,
)
from metaljit.dtypes import BF16, BOOL, DTYPES, F16, F32, I8, I16, I32, I64, U8, U16, U32, U64, DType
from metaljit.operation_rules import Refusal

ALL = tuple(DTYPES.values())
INTEGERS = tuple(d for d in ALL if d.is_integer)


@pytest.mark.parametrize(
    ("value", "source", "target", "answer"),
    [
        (300, I32, U8, 44), (-1, I8, U64, 2**64 - 1), (2**63, U64, I64, -(2**63)), (-129, I16, I8, 127),
        (200, U8, I8, -56),
        (2.9, F32, I32, 2), (-2.9, F32, I32, -2), (128.0, F32, I8, 127), (-129.0, F32, I8, -128),
        (300.0, F32, I8, 127),
        (np.nan, F32, I8, 0), (-0.9, F32, U8, 0), (-1.0, F32, U8, 0), (255.9, F32, U8, 255),
        (np.inf, F32, U64, 2**64 - 1),
        (-np.inf, F32, I64, -(2**63)), (2.0**31, F32, I32, 2**31 - 1), (-(2.0**31), F32, I32, -(2**31)),
        (2.0**32, F32, U32, 2**32 - 1), (2.0**63, F32, I64, 2**63 - 1), (np.inf, F16, I16, 32767),
        (3e38, BF16, I32, 2**31 - 1),
        (200, U8, F32, 200.0), (16777217, I32, F32, 16777216.0), (2147483647, I32, F32, 2147483648.0),
        (65519, I32, F16, 65504.0),
        (65520, I32, F16, np.inf), (True, BOOL, F16, 1.0), (2, I32, BOOL, True), (-0.0, F32, BOOL, False),
        (np.nan, F32, BOOL, True),
        (1.00390625, F32, BF16, 1.0), (1.005859375, F32, BF16, 1.0078125), (1.01171875, F32, BF16, 1.015625),
        (65519.0, F32, F16, 65504.0), (2049.0, F32, F16, 2048.0), (2051.0, F32, F16, 2052.0),
        (6e-8, F32, F16, 2.0**-24),
        (16777217, I32, I32, 16777217), (16777217, I32, I64, 16777217),
    ],
)  # fmt: skip
def test_casts(value: Any, source: DType, target: DType, answer: Any) -> None:
    given = source.numpy.type(value)
    found = convert(given, source, target)
    assert type(found) is target.numpy.type
    assert found == target.numpy.type(answer)
    array = convert(np.array([given, given]), source, target)
    assert array.dtype == target.numpy
    assert list(array) == [found, found]


def test_every_pair_of_types_has_a_cast() -> None:
    for source, target in itertools.product(ALL, repeat=2):
        assert convert(np.ones(3, source.numpy), source, target).tolist() == [1, 1, 1]
        assert spell_cast(source, target).text.count("{0}") == 1
        assert spell_cast(source, target).rounds == (target == BF16 and source != BF16)


@pytest.mark.parametrize(
    ("value", "source", "target", "answer"),
    [
        (300, I32, U8, 255), (-5, I32, U8, 0), (200, U8, I8, 127), (-129, I16, I8, -128),
        (2**64 - 1, U64, I64, 2**63 - 1),
        (-1, I64, U64, 0), (2**64 - 1, U64, I8, 127), (-(2**63), I64, I32, -(2**31)), (7, I8, U64, 7),
        (True, BOOL, U8, 1),
        (300.7, F32, U8, 255), (np.nan, F16, I32, 0), (-128, I8, I64, -128),
    ],
)  # fmt: skip
def test_saturate(value: Any, source: DType, target: DType, answer: int) -> None:
    found = saturate(source.numpy.type(value), source, target)
    assert found == answer
    assert type(found) is target.numpy.type


@pytest.mark.parametrize(
    ("value", "source", "target", "answer"),
    [
        (1.0, F32, U32, 0x3F800000), (-1, I32, U32, 2**32 - 1), (0x3F80, U16, BF16, 1.0),
        (1.0, BF16, U16, 0x3F80),
        (61440.0, F16, U16, 0x7B80), (0x8000, U16, I16, -32768), (-1, I64, U64, 2**64 - 1),
        (1.0, F16, BF16, 0.0078125),
    ],
)  # fmt: skip
def test_bitcast(value: Any, source: DType, target: DType, answer: Any) -> None:
    check_bitcast(source, target)
    found = bitcast(source.numpy.type(value), source, target)
    assert found == target.numpy.type(answer)
    assert type(found) is target.numpy.type


def test_what_is_refused() -> None:
    with pytest.raises(Refusal, match="saturate gives an integer type, found f16") as caught:
        check_saturate(F32, F16)
    assert caught.value.slug == "saturate-target"
    with pytest.raises(Refusal, match="bitcast keeps the bits: f32 has 32, u8 has 8") as caught:
        check_bitcast(F32, U8)
    assert caught.value.slug == "bitcast-width"
    with pytest.raises(Refusal, match="found bool") as caught:
        check_bitcast(BOOL, U8)
    assert caught.value.slug == "bitcast-type"
    for target in INTEGERS:
        check_saturate(F32, target)


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        (F32, I32, "mj_to_int<int>({0})"), (F16, U8, "mj_to_int<uchar>(float({0}))"),
        (BF16, U8, "mj_to_int<uchar>({0})"),
        (U8, F32, "float({0})"), (I64, F16, "half(float({0}))"), (F32, F16, "half({0})"),
        (BF16, F16, "half({0})"),
        (BF16, F32, "{0}"), (F16, BF16, "float({0})"), (F32, BF16, "{0}"), (I32, BOOL, "{0} != 0"),
        (I32, I32, "{0}"),
        (F16, BOOL, "mj_to_bool(float({0}))"), (BOOL, U8, "uchar({0})"),
    ],
)  # fmt: skip
def test_printed_casts(source: DType, target: DType, text: str) -> None:
    assert spell_cast(source, target).text == text


def test_printed_bit_casts() -> None:
    assert spell_bitcast(F32, U32).text == "as_type<uint>({0})"
    assert spell_bitcast(BF16, U16).text == "mj_bf16_bits({0})"
    assert spell_bitcast(BF16, F16).text == "as_type<half>(mj_bf16_bits({0}))"
    assert spell_bitcast(I16, BF16).text == "mj_bf16_value(as_type<ushort>({0}))"
    assert spell_saturate(I32, U8).text == "mj_saturate<uchar>({0})"
    assert spell_saturate(F32, U8).text == "mj_to_int<uchar>({0})"
