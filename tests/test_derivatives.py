"""Every rule of the derivatives against central differences of the operation's own meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from metaljit.derivatives import DERIVATIVES, evaluate
from metaljit.operations import OPERATIONS, ROWS

STEP = 0.004
# Where an operation is smooth and its meaning is rounded to f32: far from corners and from poles.
DOMAINS: dict[str, Sequence[tuple[float, float]]] = {
    "power": ((0.3, 2), (-2, 2)),
    "arcsin": ((-0.8, 0.8),),
    "arccos": ((-0.8, 0.8),),
    "arctanh": ((-0.8, 0.8),),
    "erfinv": ((-0.8, 0.8),),
    "arccosh": ((1.3, 4),),
    "tan": ((-1, 1),),
    "clip": ((-2, 2), (-1, -0.5), (0.5, 1)),
    "smoothstep": ((-0.5, 0), (1, 1.5), (0.1, 0.9)),
    "lgamma": ((0.2, 3),),
    "gamma": ((0.4, 3),),
    "sqrt": ((0.2, 3),),
    **{
        name: ((0.2, 3),)
        for name in ("log", "log2", "log10", "log1p", "rsqrt", "cbrt", "reciprocal", "absolute")
    },
    **{name: ((0.2, 3), (0.4, 3)) for name in ("divide", "hypot", "arctan2")},
}
FLOATS = [r for r in ROWS if r.name in DERIVATIVES and r.rule not in ("bitwise", "integer", "shift")]


def apply(name: str, values: Sequence[Any]) -> Any:
    given = [np.asarray(v, np.float64) if isinstance(v, float | int) else v for v in values]
    return OPERATIONS[name].meaning(*np.broadcast_arrays(*given))


def operands(name: str, arity: int) -> list[Any]:
    rng = np.random.default_rng(len(name))
    bounds = DOMAINS.get(name, ((-2, 2),) * arity)
    return [rng.uniform(low, high, 40) for low, high in bounds]


@pytest.mark.parametrize("row", FLOATS, ids=lambda r: r.name)
def test_a_rule_is_the_slope(row: Any) -> None:
    args = operands(row.name, row.arity)
    if row.name == "where":
        args[0] = args[0] > 0
    if row.name == "ldexp":
        args[1] = np.arange(40) % 5 - 2
    rule = DERIVATIVES[row.name]
    assert len(rule) == row.arity
    result = row.meaning(*args)
    given = dict(zip("xyz", args, strict=False)) | {"r": result, "g": np.full(40, 1.0)}
    for k, term in enumerate(rule):
        if args[k].dtype != np.float64:
            assert term is None
            continue
        low, high = ([*args[:k], args[k] + d, *args[k + 1 :]] for d in (-STEP, STEP))
        slope = (row.meaning(*high) - row.meaning(*low)) / (2 * STEP)
        if term is None:
            steady = np.abs(slope) < 1  # a step between the two is seen as a steep slope
            np.testing.assert_array_equal(slope[steady], 0)
            continue
        found = evaluate(term, given, apply)
        smooth = (
            np.abs(found - slope) < 0.2 * (1 + np.abs(slope))
            if row.name in ("remainder", "fmod", "fract")
            else ...
        )
        np.testing.assert_allclose(found[smooth], slope[smooth], rtol=4e-3, atol=4e-3)
        assert np.mean(np.abs(found - slope) < 0.02 * (1 + np.abs(slope))) > 0.9


def test_all_float_operations_have_a_rule_or_are_steps() -> None:
    steps = {"gcd", "lcm", "mulhi"}
    missing = {
        r.name
        for r in ROWS
        if r.name not in DERIVATIVES
        and r.rule in ("arithmetic", "numeric", "number", "floating", "scale", "select")
    }
    assert missing <= steps


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("maximum", (1.0, 1.0), (0.5, 0.5)),
        ("minimum", (1.0, 1.0), (0.5, 0.5)),
        ("absolute", (0.0,), (0.0,)),
        ("hypot", (0.0, 0.0), (0.0, 0.0)),
        ("power", (0.0, 0.0), (0.0, 0.0)),
        ("power", (0.0, 2.0), (0.0, 0.0)),
        ("power", (0.0, 1.0), (1.0, 0.0)),
        ("power", (-2.0, 2.0), (-4.0, np.nan)),
        ("sqrt", (0.0,), (np.inf,)),
        ("clip", (1.0, -1.0, 1.0), (1.0, 0.0, 0.0)),
        ("clip", (2.0, -1.0, 1.0), (0.0, 0.0, 1.0)),
        ("fmax", (1.0, np.nan), (1.0, 0.0)),
        ("sinc", (0.0,), (0.0,)),
        ("where", (True, np.inf, 1.0), (None, 1.0, 0.0)),
        ("nan_to_num", (np.nan,), (0.0,)),
    ],
)
def test_corners(name: str, args: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    row = OPERATIONS[name]
    values = [np.asarray(a) for a in args]
    with np.errstate(all="ignore"):
        given = dict(zip("xyz", values, strict=False)) | {"r": row.meaning(*values), "g": np.asarray(1.0)}
        found = [None if t is None else evaluate(t, given, apply) for t in DERIVATIVES[name]]
    for got, want in zip(found, wanted, strict=True):
        assert (got is None) == (want is None)
        if got is not None:
            assert np.allclose(got, want, equal_nan=True)
