"""An explanation for Graphviz.

In: the facts. Out: a digraph: a cluster for each kernel with the operations that it computes, arrays in memory as nodes, and
every edge with its reason, dashed where it goes through memory. `dot -Tsvg` draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .explain_text import amount, headline, saving, work

if TYPE_CHECKING:
    from .explain import Array, Facts, Kernel

_COLOURS = {"input": "#dafbe1", "passed": "#fff8c5", "result": "#fbefff"}


def dot(facts: Facts) -> str:
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Facts) -> Iterator[str]:
    yield f"digraph {_quoted(facts.name)} {{"
    yield f"  label={_quoted(f'{headline(facts)}', saving(facts))}; labelloc=t; fontname=monospace;"
    yield '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=monospace, fontsize=10];'
    yield "  edge [fontname=monospace, fontsize=8];"
    arrays = {a.ref: a for a in facts.arrays}
    for a in facts.arrays:
        label = _quoted(f"{a.name}  {a.type}", amount(a.nbytes, "B"))
        yield f'  {_array(a)} [label={label}, fillcolor="{_COLOURS[a.role]}"];'
    for kernel in facts.kernels:
        yield from _cluster(kernel)
    for kernel in facts.kernels:
        computed = {step.ref for step in kernel.steps}
        for step in kernel.steps:
            for name, edge in step.edges:
                if edge.producer in computed:
                    source, style = _operation(kernel.number, edge.producer), ""
                elif edge.producer in arrays:
                    source, style = _array(arrays[edge.producer]), ", style=dashed"
                else:
                    source, style = _number(kernel.number, edge.producer), ""
                    yield f"  {source} [label={_quoted(name)}, shape=plaintext];"
                yield f"  {source} -> {_operation(kernel.number, step.ref)} [label={_quoted(edge.why)}{style}];"
        for a in facts.arrays:
            if a.maker == kernel.number and a.ref in computed:
                yield f"  {_operation(kernel.number, a.ref)} -> {_array(a)} [label={_quoted(a.why)}];"
    yield "}"


def _cluster(kernel: Kernel) -> Iterator[str]:
    title = f"kernel {kernel.number} over ({kernel.domain})"
    yield f"  subgraph cluster_{kernel.number} {{"
    yield f'    label={_quoted(title, kernel.region, kernel.schedule, work(kernel))}; color="#57a0dd"; fontname=monospace;'
    for step in kernel.steps:
        label = _quoted(f"{step.name} = {step.text}", step.where)
        yield f"    {_operation(kernel.number, step.ref)} [label={label}];"
    yield "  }"


def _array(array: Array) -> str:
    return f"{array.role}_{array.ref}"


def _operation(kernel: int, ref: int) -> str:
    return f"k{kernel}_{ref}"


def _number(kernel: int, ref: int) -> str:
    return f"n{kernel}_{ref}"


def _quoted(*lines: str) -> str:
    """A string of Graphviz; its escapes are a backslash's and the quote's."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines if line)
    return '"' + "\\n".join(escaped) + '"'
