"""`grad`, `value_and_grad`, `vjp`: derivatives of traced functions, as more nodes of the same graph.

In: a function and which of its arguments. Out: functions of the same arguments. The function is traced with values in the
arguments' places that are known in a scope of their own, so that what it uses from outside is not taken for an argument;
then the arguments take these places.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from itertools import repeat
from typing import Any, NoReturn

import numpy as np

from ..compiler import graph as g
from ..compiler.inline import Inline
from ..frozen import frozen
from . import trees
from .context import current_trace
from .jit import Jitted
from .joins import entered_array
from .reverse import reverse
from .traced import Trace, Traced, fault
from .views import broadcast_to


@frozen
class Pulled:
    """A function's value, and `back`, which gives the derivatives by its arguments' leaves for those of the value's."""

    value: Any
    back: Callable[[Sequence[Any]], list[Traced]]


def pulled(
    trace: Trace, function: Callable[[Sequence[Any]], Any], leaves: Sequence[tuple[str, Any]]
) -> Pulled:
    """The function of these leaves, traced here."""
    actual = [_float_leaf(trace, path, leaf) for path, leaf in leaves]
    scope = trace.graph.scope()
    given = [trace.node(g.Carried(scope, k, a.element, a.extents)) for k, a in enumerate(actual)]
    by = {x.ref: a.ref for x, a in zip(given, actual, strict=True)}
    before = dict(trace.variables)
    value = function(given)
    inline = Inline(trace.graph, dict(by))
    for variable, now in trace.variables.items():
        if variable not in before or now.ref != before[variable].ref:
            trace.variables[variable] = Traced(trace, inline.all([now.ref])[0])
    found, structure = trees.flatten(value)
    results = [v if isinstance(v, Traced) else None for _, v in found]
    refs = inline.all([r.ref for r in results if r is not None])
    known = iter(Traced(trace, r) for r in refs)
    outside = [v if r is None else next(known) for (_, v), r in zip(found, results, strict=True)]

    def back(cotangents: Sequence[Any]) -> list[Traced]:
        starts: dict[g.Ref, Traced] = {}
        for result, cotangent in zip(results, cotangents, strict=True):
            if result is not None and cotangent is not None and result.element.is_float:
                wide = broadcast_to(entered_array(trace, cotangent), result.shape)
                before = starts.get(result.ref)
                starts[result.ref] = wide if before is None else before + wide
        sums = reverse(trace, starts, list(by))
        zeros = [broadcast_to(trace.node(g.Fill(0, a.element)), a.shape) for a in actual]
        wanted = [sums.get(x.ref, z).ref for x, z in zip(given, zeros, strict=True)]
        return [Traced(trace, r) for r in inline.all(wanted)]

    return Pulled(trees.rebuilt(structure, iter(outside)), back)


def _float_leaf(trace: Trace, path: str, leaf: Any) -> Traced:
    if isinstance(leaf, Traced | bool | int | float | np.generic) or hasattr(leaf, "dtype"):
        found = entered_array(trace, leaf)
        if found.element.is_float:
            return found
        what = f"{found.element}"
    else:
        what = type(leaf).__name__
    fault(
        "gradient-argument",
        f"the derivative by {path!r} is asked for, which is {what}, and derivatives are by floats",
        "name the other arguments in `argnums`, or cast it: `x.astype(np.float32)`",
    )


class Gradient:
    """A function that computes derivatives; see `grad` and `value_and_grad`. A call outside of a trace runs `jitted`."""

    __name__: str

    def __init__(
        self, function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, with_value: bool
    ) -> None:
        inner = function.function if isinstance(function, Jitted) else function
        update_wrapper(self, inner)
        self._function, self._argnums = inner, argnums
        self._has_aux, self._with_value = has_aux, with_value
        self.signature = inspect.signature(inner)
        self._numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        static = sorted(function.static) if isinstance(function, Jitted) else []

        def differentiated(*args: Any, **named: Any) -> Any:
            return self._differentiated(args, named)

        self.jitted = Jitted(update_wrapper(differentiated, inner), static, True)

    def __repr__(self) -> str:
        return f"<gradient of {self.__name__}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        leaves, _ = trees.flatten((args, named))
        if current_trace() is not None or any(isinstance(v, Traced) for _, v in leaves):
            return self._differentiated(args, named)
        return self.jitted(*args, **named)

    def _differentiated(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        values = list(bound.args)
        parts = {
            n: trees.flatten(values[n], f"argument {n}")
            for n in map(self._place, self._numbers, repeat(values))
        }
        leaves = [leaf for found, _ in parts.values() for leaf in found]
        trace = current_trace()
        assert trace is not None

        def run(given: Sequence[Any]) -> Any:
            each = iter(given)
            for n, (_, structure) in parts.items():
                values[n] = trees.rebuilt(structure, each)
            return self._function(*values, **bound.kwargs)

        found = pulled(trace, run, leaves)
        value = found.value[0] if self._has_aux else found.value
        if not isinstance(value, Traced) or value.ndim or not value.element.is_float:
            self._refuse(value)
        count = len(trees.flatten(found.value)[0])
        each = iter(found.back([1.0, *(None,) * (count - 1)]))
        grads = [trees.rebuilt(structure, each) for _, structure in parts.values()]
        given = grads[0] if isinstance(self._argnums, int) else tuple(grads)
        if self._with_value:
            return found.value, given
        return (given, found.value[1]) if self._has_aux else given

    def _place(self, number: int, values: Sequence[Any]) -> int:
        if not -len(values) <= number < len(values):
            raise TypeError(
                f"{self.__name__} takes {len(values)} arguments by position, and argnums names {number}"
            )
        return number % len(values)

    def _refuse(self, value: Any) -> NoReturn:
        what = repr(value) if isinstance(value, Traced) else f"a {type(value).__name__}"
        fault(
            "gradient-scalar",
            f"{self.__name__} returns {what}, and a gradient is that of one float",
            "reduce it: `.sum()` or `.mean()`; or use `mj.vjp`",
        )


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Gradient:
    """The function that gives the derivatives of a scalar function by its arguments `argnums`.

    They have the structure of these arguments (arrays, numbers, dicts, lists, tuples, dataclasses); a tuple if `argnums` is
    one. With `has_aux` the function returns a pair, and what is second in it is returned beside the derivatives.
    Outside of `jit` a call is traced and compiled as with `mj.jit`.

    TypeFault where an argument is no float (`gradient-argument`), where the value is no float scalar
    (`gradient-scalar`), and where something in between has no derivative (`no-derivative`).
    """
    return Gradient(function, argnums, has_aux, with_value=False)


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Gradient:
    """Like `grad`, but gives the pair of the function's value and the derivatives."""
    return Gradient(function, argnums, has_aux, with_value=True)


def vjp(function: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The function's value, and what takes a derivative by each result to those by each argument: J transposed times it.

    Outside of `jit` the function is computed anew with each call of the second.
    """
    leaves, structure = trees.flatten(args)
    trace = current_trace()
    inner = function.function if isinstance(function, Jitted) else function
    if trace is None:
        forward = Jitted(inner, (), True)
        backward = Jitted(lambda cotangent, *args: vjp(inner, *args)[1](cotangent), (), True)
        return forward(*args), lambda cotangent: backward(cotangent, *args)
    named = [(f"argument {path}", v) for path, v in leaves]
    found = pulled(trace, lambda given: inner(*trees.rebuilt(structure, iter(given))), named)

    def back(cotangent: Any) -> tuple[Any, ...]:
        given, like = trees.flatten(cotangent)
        if like != trees.flatten(found.value)[1]:
            fault(
                "gradient-structure",
                "the derivatives do not have the structure of the value",
                "give one for each result",
            )
        return trees.rebuilt(structure, iter(found.back([v for _, v in given])))  # type: ignore[no-any-return]

    return found.value, back


# ---- derivatives by the user's word ----


class Customised:
    """A function whose derivative the user gives; see `custom_vjp`."""

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<custom_vjp {self.__name__}>"

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """`forward(*args)` gives the value and what is kept; `backward(kept, derivative)` a derivative for each argument.

        None stands for no derivative.
        """
        self._forward, self._backward = forward, backward

    def __call__(self, *args: Any) -> Any:
        leaves, _ = trees.flatten(args)
        trace = current_trace()
        if trace is None or self._forward is None or self._backward is None:
            return self._function(*args)
        value, kept = self._forward(*args)
        results, like = trees.flatten(value)
        saved, kept_like = trees.flatten(kept)
        backward = self._backward

        def pull(values: Sequence[Traced], given: Sequence[Traced]) -> list[Any]:
            residuals = trees.rebuilt(kept_like, iter(values))
            found = backward(residuals, trees.rebuilt(like, iter(given)))
            found = found if isinstance(found, tuple) else (found,)
            return _by_leaves(self.__name__, args, found, arguments)

        arguments = [k for k, (_, v) in enumerate(leaves) if isinstance(v, Traced)]
        refs = tuple(leaves[k][1].ref for k in arguments)
        inner = tuple(entered_array(trace, v).ref for _, v in results)
        trace.graph.rules.append(
            g.Rule(refs, tuple(entered_array(trace, v).ref for _, v in saved), inner, pull)
        )
        rule = len(trace.graph.rules) - 1
        nodes = [trace.graph.nodes[r] for r in inner]
        ruled = [
            trace.node(g.Ruled(r, rule, k, n.dtype, n.shape))
            for k, (r, n) in enumerate(zip(inner, nodes, strict=True))
        ]
        return trees.rebuilt(like, iter(ruled))


def _by_leaves(name: str, args: Sequence[Any], found: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
    """What `backward` gave, as one value for each leaf that is traced."""
    if len(found) != len(args):
        fault(
            "gradient-structure",
            f"the backward function of {name} gives {len(found)} derivatives, and there are {len(args)} arguments",
            "give one for each argument, None where there is none",
        )
    leaves: list[Any] = []
    for argument, value in zip(args, found, strict=True):
        parts, structure = trees.flatten(argument)
        if value is None:
            leaves += [None] * len(parts)
            continue
        given, like = trees.flatten(value)
        if like != structure:
            fault(
                "gradient-structure",
                f"a derivative of {name} does not have its argument's structure",
                "give it the same structure",
            )
        leaves += [v for _, v in given]
    return [leaves[k] for k in wanted]


def custom_vjp(function: Callable[..., Any]) -> Customised:
    """A function whose derivative you give, because it has none, or a better one:

    @mj.custom_vjp
    def rounded(x):
        return np.rint(x)

    rounded.defvjp(lambda x: (np.rint(x), ()), lambda kept, g: (g,))
    """
    return Customised(function)


def stop_gradient(value: Any) -> Any:
    """The value, through which no derivative goes."""
    leaves, structure = trees.flatten(value)
    made = []
    for _, leaf in leaves:
        if isinstance(leaf, Traced):
            leaf.trace.graph.rules.append(g.Rule((), (), (leaf.ref,), lambda kept, given: []))
            rule = len(leaf.trace.graph.rules) - 1
            leaf = leaf.trace.node(g.Ruled(leaf.ref, rule, 0, leaf.element, leaf.extents))
        made.append(leaf)
    return trees.rebuilt(structure, iter(made))
