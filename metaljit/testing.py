"""Tests of kernels: strategies for Hypothesis, and `check_against`, which compares a kernel with its NumPy meaning.

    from metaljit.testing import check_against

    def test_laplacian():
        check_against(laplacian, reference)

`check_against` draws arguments from the kernel's own signature, runs it on every device that is found and in
interpret mode, and shrinks a difference to a small example. `docs/testing.md` explains all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

try:
    import hypothesis
except ImportError as e:
    raise ImportError("metaljit.testing needs Hypothesis: pip install 'metaljit[test]'") from e

import metaljit

from .kernels import Kernel
from .source import KernelAssertion, LaunchFault, MetaljitError
from .testing_arguments import Call, Wanted, calls
from .testing_compare import EXACT, TOLERANCES, Tolerance, difference
from .testing_values import LAYOUTS, Layout, arrays, dtypes, layouts, nasty, shapes, values

__all__ = [
    "EXACT", "LAYOUTS", "TOLERANCES", "Layout", "Mismatch", "Tolerance", "arrays", "check_against", "difference",
    "dtypes", "layouts", "nasty", "shapes", "values",
]  # fmt: skip
INTERPRET = "interpret"


class Mismatch(AssertionError):
    """A kernel gives something else than its reference, or changes an argument."""


def check_against(
    kernel: Kernel,
    reference: Callable[..., Any],
    *,
    arguments: Mapping[str, Any] | None = None,
    elements: Mapping[str, Any] | None = None,
    extents: Mapping[str, Any] | None = None,
    where: Callable[..., bool] | None = None,
    devices: Sequence[str] | None = None,
    interpret: bool = True,
    layouts: bool = True,
    tolerance: Tolerance | None = None,
    signed_zeros: bool = False,
    max_examples: int | None = None,
) -> None:
    """Compares a kernel with a function of NumPy on arguments drawn from the kernel's signature.

    `reference` takes the arguments as the kernel does, and gives its result, or a tuple of them; float64 and
    Python's integers are welcome as results. The arguments: `arguments` names whole ones (values, or strategies),
    `elements` strategies for the numbers of an array or a scalar, `extents` those for a dim such as "N" (0 to 6
    otherwise), `where` takes the arguments and says whether they are to be tried. Calls that the kernel refuses on
    every runner (a `require`, an `assert`, shapes that cannot be) are not counted.

    It runs on `devices` (every one found if None) and, unless `interpret` is False, in interpret mode. Floats may
    differ by the element type's `TOLERANCES`, or by `tolerance`; `signed_zeros` tells 0.0 from −0.0. The arguments
    must be what they were afterwards. `max_examples` replaces Hypothesis's own setting.

    Raises Mismatch with the smallest example found: the arguments, the runner, the first difference.
    """
    wanted = Wanted(arguments or {}, elements or {}, extents or {}, layouts)
    runners = _runners(kernel, devices, interpret)

    def compare(call: Call) -> None:
        values = list(call.arguments.values())
        hypothesis.assume(where is None or where(*values))
        outcomes = {name: _outcome(name, run, call) for name, run in runners.items()}
        _check_refusals(kernel, outcomes, call)
        with np.errstate(all="ignore"):
            expected = reference(*(v.copy() if isinstance(v, np.ndarray) else v for v in values))
        for name, actual in outcomes.items():
            found = difference(actual, expected, tolerance=tolerance, signed_zeros=signed_zeros)
            if found is not None:
                raise Mismatch(f"kernel {kernel.__name__!r} on {name}: {found}; called with{call}")

    # Hypothesis keeps failures by the test's name.
    compare.__name__ = compare.__qualname__ = f"check_{kernel.__name__}"
    settings = hypothesis.settings(
        max_examples=max_examples or hypothesis.settings().max_examples,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    settings(hypothesis.given(calls(kernel, wanted))(compare))()


def _runners(kernel: Kernel, devices: Sequence[str] | None, interpret: bool) -> dict[str, Callable[..., Any]]:
    names = metaljit.available_devices() if devices is None else devices
    found: dict[str, Callable[..., Any]] = {INTERPRET: kernel.interpret} if interpret else {}
    found |= {name: kernel.on(name) for name in names}
    if not found:
        raise ValueError("no device was found and interpret=False: there is nothing to compare")
    return found


def _outcome(name: str, run: Callable[..., Any], call: Call) -> Any:
    """What the call gives, or the exception by which it is refused; the arguments must stay what they are."""
    arrays = {n: v for n, v in call.arguments.items() if isinstance(v, np.ndarray)}
    before = {n: _whole(v).tobytes() for n, v in arrays.items()}
    outcome: Any
    try:
        outcome = run(**call.arguments)
    except (LaunchFault, KernelAssertion) as e:
        outcome = e
    for n, v in arrays.items():
        if _whole(v).tobytes() != before[n]:
            raise Mismatch(f"the kernel on {name} changed the argument {n!r}; called with{call}")
    return outcome


def _whole(array: Any) -> Any:
    """The array with all that lies around it in memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _check_refusals(kernel: Kernel, outcomes: Mapping[str, Any], call: Call) -> None:
    """A call is refused everywhere, by the same fault, or nowhere."""
    refused = {n: o for n, o in outcomes.items() if isinstance(o, MetaljitError)}
    slugs = {o.slug for o in refused.values()}
    if len(refused) == len(outcomes) and len(slugs) == 1:
        hypothesis.reject()
    if refused:
        shown = "; ".join(f"{n}: {o.slug if n in refused else 'runs'}" for n, o in outcomes.items())
        raise Mismatch(
            f"kernel {kernel.__name__!r} is refused by some only: {shown}; called with{call}"
        ) from next(iter(refused.values()))
