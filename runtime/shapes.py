"""The extents of a call: from the shapes of the arguments to the value of every symbol.

Plain names bind first, then `a*X + b` with one unknown is solved, and what is left is checked. In: the
program's array parameters with the shapes they got. Out: an environment for `extents.evaluate`, or a
`ShapeError` that names both arguments and their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from metaljit.extents import Extent, Lit, Number, Op, Sym, evaluate, show, symbols
from metaljit.frozen import frozen
from metaljit.program import INDEX_MAX, ArrayParam, Plan, Program, ScalarParam
from metaljit.source import Diagnostic, MetaljitError, ShapeError, SizeError

Shape: TypeAlias = tuple[int, ...]


def fault(
    kind: type[MetaljitError],
    slug: str,
    program: Program | Plan,
    message: str,
    help: str = "",
    param: ArrayParam | ScalarParam | None = None,
) -> MetaljitError:
    """An error about a call of `program`, placed where the parameter, or the kernel, is declared."""
    place = param.place if param is not None and param.place.where else program.place
    return kind(
        Diagnostic(slug, f"{program.name}: {message}", where=place.where, excerpt=place.excerpt, help=help)
    )


@frozen
class _Claim:
    """What one axis of an argument says: that `extent` is `value`."""

    param: ArrayParam
    axis: int
    extent: Extent
    value: int

    def __str__(self) -> str:
        return f"axis {self.axis} of `{self.param.name}` is {self.value}"


def bind(
    program: Program | Plan, shapes: Iterable[tuple[ArrayParam, Shape]], scalars: Mapping[str, Number]
) -> dict[str, Number]:
    """The value of every symbol of the call. The shapes are NumPy's, with the axis of lanes."""
    claims = [claim for param, shape in shapes for claim in _claims(program, param, shape)]
    env: dict[str, Number] = dict(scalars)
    owners: dict[str, _Claim] = {}
    later: list[_Claim] = []
    for claim in claims:
        match claim.extent:
            case Sym(name) if name not in env:
                env[name] = claim.value
                owners[name] = claim
            case _:
                later.append(claim)
    unsolved = True
    while unsolved:
        unsolved = False
        for claim in later:
            unknown = [s for s in symbols(claim.extent) if s not in env]
            if len(unknown) == 1:
                env[unknown[0]] = _solve(program, claim, unknown[0], env)
                owners[unknown[0]] = claim
                unsolved = True
    for claim in later:
        _check(program, claim, env, owners)
    return env


def _claims(program: Program | Plan, param: ArrayParam, shape: Shape) -> list[_Claim]:
    declared = written(param)
    rank = len(param.shape) + (param.lanes > 1)
    if len(shape) != rank:
        lanes = f", with an axis of {param.lanes} lanes" if param.lanes > 1 else ""
        raise fault(
            ShapeError,
            "wrong-rank",
            program,
            f"`{param.name}` is declared as {declared}{lanes}, and got an array of {_axes(len(shape))}, "
            f"shape {shape}",
            help=f"pass an array of {_axes(rank)}",
            param=param,
        )
    if param.lanes > 1 and shape[-1] != param.lanes:
        raise fault(
            ShapeError,
            "wrong-lanes",
            program,
            f"`{param.name}` is declared as {declared}, whose last axis holds the {param.lanes} lanes, "
            f"and got shape {shape}",
            help=f"pass an array of shape (…, {param.lanes})",
            param=param,
        )
    check_size(program, param.name, shape)
    return [_Claim(param, axis, extent, shape[axis]) for axis, extent in enumerate(param.shape)]


def _axes(count: int) -> str:
    return "1 axis" if count == 1 else f"{count} axes"


def written(param: ArrayParam) -> str:
    """The parameter's type as the user wrote it: `f32[H, W]`."""
    lanes = f"x{param.lanes}" if param.lanes > 1 else ""
    return f"{param.dtype}{lanes}[{', '.join(show(e) for e in param.shape)}]"


def check_size(program: Program | Plan, name: str, shape: Shape) -> None:
    """SizeError where an array has more elements, or a longer axis, than an i32 counts."""
    total = 1
    for extent in shape:
        total *= extent
    if total > INDEX_MAX or any(extent > INDEX_MAX for extent in shape):
        raise fault(
            SizeError,
            "array-too-large",
            program,
            f"`{name}` has shape {shape}, {total} elements, and an array has at most {INDEX_MAX}",
            help="call the kernel on parts of the array",
        )


def _solve(program: Program | Plan, claim: _Claim, name: str, env: Mapping[str, Number]) -> int:
    form = _linear(claim.extent, name, env)
    if form is None or form[0] == 0:
        raise fault(
            ShapeError,
            "extent-unknown",
            program,
            f"{name} cannot be found from {claim}, which is declared as {show(claim.extent)}",
            help=f"declare an argument with {name} itself as an extent",
            param=claim.param,
        )
    factor, rest = form
    value, remainder = divmod(claim.value - rest, factor)
    if remainder or value < 0:
        raise fault(
            ShapeError,
            "extent-unfit",
            program,
            f"{claim}, and no {name} makes {show(claim.extent)} that",
            help=f"pass a length that {show(claim.extent)} can have",
            param=claim.param,
        )
    return int(value)


def _linear(extent: Extent, name: str, env: Mapping[str, Number]) -> tuple[Number, Number] | None:
    """(a, b) where the extent is a*name + b, else None."""
    match extent:
        case Sym(n) if n == name:
            return 1, 0
        case Lit() | Sym():
            return 0, evaluate(extent, env)
        case Op(op, args):
            forms = [_linear(a, name, env) for a in args]
            match op, forms:
                case "+", [(a, b), (c, d)]:
                    return a + c, b + d
                case "-", [(a, b), (c, d)]:
                    return a - c, b - d
                case "*", [(0, b), (c, d)] | [(c, d), (0, b)]:
                    return b * c, b * d
                case "neg", [(a, b)]:
                    return -a, -b
                case _ if all(form is not None and form[0] == 0 for form in forms):
                    return 0, evaluate(extent, env)
    return None


def _check(
    program: Program | Plan, claim: _Claim, env: Mapping[str, Number], owners: Mapping[str, _Claim]
) -> None:
    missing = [s for s in symbols(claim.extent) if s not in env]
    if missing:
        raise fault(
            ShapeError,
            "extent-unknown",
            program,
            f"{' and '.join(sorted(missing))} cannot be found from {claim}, declared as {show(claim.extent)}",
            help=f"declare an argument with {missing[0]} itself as an extent",
            param=claim.param,
        )
    expected = evaluate(claim.extent, env)
    if expected == claim.value:
        return
    sources = [owners[s] for s in sorted(symbols(claim.extent)) if s in owners and owners[s] is not claim]
    because = " and ".join(dict.fromkeys(str(source) for source in sources))
    raise fault(
        ShapeError,
        "extent-mismatch",
        program,
        f"{show(claim.extent)} is {expected}, because {because}, but {claim}"
        if because
        else f"{claim}, and {show(claim.extent)} must be {expected}",
        help=f"make {claim.param.name}.shape[{claim.axis}] {expected}",
        param=claim.param,
    )


def shape_of(program: Program | Plan, param: ArrayParam, env: Mapping[str, Number]) -> Shape:
    """The NumPy shape of a result, checked."""
    extents = []
    for axis, extent in enumerate(param.shape):
        value = whole(extent, env)
        if value is None or value < 0:
            known = ", ".join(f"{s} = {env[s]}" for s in sorted(symbols(extent)))
            found = "not a whole number" if value is None else str(value)
            raise fault(
                ShapeError,
                "extent-negative",
                program,
                f"axis {axis} of `{param.name}` is {show(extent)}, which is {found} where {known}",
                help="pass arrays that are large enough",
            )
        extents.append(value)
    shape = (*extents, param.lanes) if param.lanes > 1 else tuple(extents)
    check_size(program, param.name, shape)
    return shape


def whole(extent: Extent, env: Mapping[str, Number]) -> int | None:
    """The extent's value, or None where it is no integer or has no value."""
    try:
        value = evaluate(extent, env)
        return int(value) if value == int(value) else None
    except (ArithmeticError, ValueError, TypeError):
        return None
