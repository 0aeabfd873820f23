"""ops.relu … ops.erf against NumPy in float64: values, derivatives, dtypes, layouts, extreme arguments, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import BF16, Array, arrays, assert_same, sample, shapes

import metaljit as mj
from metaljit.stdlib_ops.reference.activations import FUNCTIONS

F = np.float32
OPS: dict[str, Callable[..., Any]] = {
    **{n: getattr(mj.ops, n) for n in FUNCTIONS if n != "gelu_tanh"},
    "gelu_tanh": partial(mj.ops.gelu, approximate="tanh"),
}
EPS = {np.dtype(F): 2.0**-23, np.dtype(np.float16): 2.0**-10, BF16: 2.0**-7}


def near(got: Any, want: Array, x: Array) -> None:
    """Within a few roundings of the larger of result and 1, and of the argument, where the exponent is rounded."""
    found, eps = np.asarray(got), EPS[np.dtype(np.asarray(got).dtype)]
    assert found.shape == want.shape
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.float64) - want)
        bound = 4 * eps * (np.abs(want) + 2.0**-23 / eps)
        # 16-bit floats overflow where float64 does not.
        fine = (error <= bound) | (np.isnan(want) & np.isnan(found)) | (found.astype(np.float64) == want)
        fine |= np.isinf(found.astype(F)) & (np.abs(want) > 65504)
    assert fine.all(), f"at {x[~fine][0]}: got {found[~fine][0]}, want {want[~fine][0]}"


@pytest.mark.parametrize("name", OPS)
@given(data=st.data())
def test_values(device: str, name: str, data: st.DataObject) -> None:
    x = data.draw(arrays(F, data.draw(shapes(2))))
    with np.errstate(all="ignore"):
        near(OPS[name](x), FUNCTIONS[name][0](x.astype(np.float64)), x)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_16_bit_floats_are_rounded_once(name: str, dtype: Any) -> None:
    x = sample(dtype, (50,), 1, True)
    with np.errstate(all="ignore"):
        near(OPS[name](x), FUNCTIONS[name][0](x.astype(np.float64)), x)


@pytest.mark.parametrize("name", OPS)
def test_derivatives_do_not_overflow(device: str, name: str) -> None:
    steps = np.array([0, -0.0, 1e4, -1e4, 90, -90, 20, -20, 3e38, -3e38, np.nan])
    finite = slice(0, 8) if name == "gelu_tanh" else slice(0, 10)
    x = np.concatenate([np.linspace(-9, 9, 40), steps[finite], steps[10:]]).astype(F)
    g = np.linspace(-2, 2, len(x)).astype(F)

    @mj.jit
    def slope(x: Any, g: Any) -> Any:
        return mj.vjp(OPS[name], x)[1](g)[0]

    with np.errstate(all="ignore"):
        want = g * FUNCTIONS[name][1](x.astype(np.float64))
    if name == "relu":
        want[-1] = g[-1]  # NaN is not below 0
    near(slope(x, g), want, x)


def test_worked_examples(device: str) -> None:
    ends = np.array([-np.inf, -1e4, 0, 1e4, np.inf, np.nan], F)
    assert_same(mj.ops.sigmoid(ends), np.array([0, 0, 0.5, 1, 1, np.nan], F))
    assert_same(mj.ops.softplus(ends), np.array([0, 0, np.log(F(2)), 1e4, np.inf, np.nan], F))
    assert_same(mj.ops.relu(ends), np.array([0, 0, 0, 1e4, np.inf, np.nan], F))
    assert_same(mj.ops.relu(np.array([-128, 0, 127], np.int8)), np.array([0, 0, 127], np.int8))
    assert mj.ops.sigmoid(np.array(-60, F)) == pytest.approx(np.exp(-60), rel=1e-5)
    assert mj.ops.gelu(np.array(-8, F)) == pytest.approx(-8 * 6.220960574e-16, rel=1e-5)
    assert mj.ops.softplus(np.array(0.5, F), beta=4) == pytest.approx(np.log1p(np.exp(2)) / 4, rel=1e-6)


def test_arrays_on_the_device_stay_there(device: str) -> None:
    got = mj.ops.silu(mj.asarray(np.ones((2, 3), F)))
    assert isinstance(got, mj.Array)
    assert got.device.name == device


def test_an_activation_fuses_with_its_neighbours() -> None:
    x = sample(F, (5, 7), 1, False)
    f = mj.jit(lambda x: mj.ops.gelu(2 * x + 1) * mj.ops.sigmoid(x))
    assert "1 kernel\n" in str(f.explain(x))
    np.testing.assert_allclose(f(x), mj.ops.gelu(2 * x + 1) * mj.ops.sigmoid(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "x", "options", "slug", "words"),
    [
        *((n, np.zeros(3), {}, "no-f64", "float64") for n in ("relu", "gelu", "erf")),
        ("sigmoid", np.zeros(3, np.int32), {}, "op-dtype", "int32"),
        ("relu", np.zeros(3, np.bool_), {}, "op-dtype", "bool"),
        ("tanh", [1.0], {}, "op-dtype", "list"),
        ("gelu", np.zeros(3, F), {"approximate": "erf"}, "op-argument", "'erf'"),
        ("softplus", np.zeros(3, F), {"beta": 0}, "op-argument", "`beta`"),
        ("softplus", np.zeros(3, F), {"beta": "x"}, "op-argument", "'x'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    name: str, x: Any, options: dict[str, Any], slug: str, words: str
) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        getattr(mj.ops, name)(x, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("relu", "v <= N(0)", "v < N(-1)"),
        ("sigmoid", "e if x < 0 else 1.0", "1.0"),
        ("sigmoid", "exp(x if x < 0 else -x)", "exp(-x)"),
        ("softplus", "log1p", "log"),
        ("gelu", "erfc(v *", "erf(v *"),
        ("gelu_tanh", "0.0356", "0.0357"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, name: str, old: str, new: str) -> None:
    mutate("activations", old, new)
    x = np.array([-100, -3, -1, -0.5, 0.5, 1, 3, 4], F)
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        near(OPS[name](x), FUNCTIONS[name][0](x.astype(np.float64)), x)
