"""An explanation as text.

In: the facts. Out: lines: each kernel with what it computes, and below each operation how its operands get there.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .explain import Facts, Kernel

_PREFIXES = ("", "k", "M", "G", "T")


def text(facts: Facts) -> str:
    return "\n".join(
        (headline(facts), *(line for k in facts.kernels for line in _kernel(facts, k)), saving(facts))
    )


def headline(facts: Facts) -> str:
    """What is explained, and into how many kernels it came."""
    count = len(facts.kernels)
    return f"{facts.name}: {count} kernel{'' if count == 1 else 's'}"


def saving(facts: Facts) -> str:
    """What fusion saves."""
    return f"{amount(facts.nbytes, 'B')} moved; {amount(facts.alone_nbytes, 'B')} by {facts.alone} kernels without fusion"


def work(kernel: Kernel) -> str:
    """What a kernel moves and computes."""
    operations = amount(kernel.operations)
    return (
        f"{amount(kernel.nbytes, 'B')} moved, {operations} operation{'' if operations == '1' else 's'}, "
        f"{'?' if isnan(kernel.intensity) else f'{kernel.intensity:.2g}'} a byte"
    )


def _kernel(facts: Facts, kernel: Kernel) -> Iterator[str]:
    yield f"kernel {kernel.number} over ({kernel.domain}), {kernel.schedule}: {', '.join(kernel.arrays)}"
    if kernel.region:
        yield f"  in {kernel.region}"
    yield f"  {work(kernel)}"
    for step in kernel.steps:
        yield f"  {step.name} = {step.text}{f' ({step.where})' if step.where else ''}"
        for name, edge in step.edges:
            if edge.way == "number":
                continue
            yield f"    {name}: {'fused, ' if edge.fused else ''}{edge.why}"
    for array in facts.arrays:
        if array.maker == kernel.number:
            yield f"  stores {array.name}: {array.why}"


def amount(value: float, unit: str = "") -> str:
    """A number in three digits: 24.6 k."""
    if isnan(value):
        return f"? {unit}".rstrip()
    power = 0
    while abs(value) >= 999.5 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    digits = f"{value:.3g}" if power else f"{value:.0f}"
    return f"{digits} {_PREFIXES[power]}{unit}".rstrip()
