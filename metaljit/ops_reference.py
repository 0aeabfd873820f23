"""The ops' docstrings, read: what the reference pages and `metaljit ops` show.

In: the name of an op. Out: an `Entry`, the parts of its docstring. A docstring has a first paragraph; what is given
(`name: text`, a line each, indented where it goes on); paragraphs; a line `Compare:` with other libraries' names; and
after `Example:` a session of the interpreter.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from . import ops
from .frozen import frozen

LIBRARIES = ("MPSGraph", "PyTorch", "TensorFlow", "NumPy", "SciPy", "scikit-image", "OpenCV")
_PARAMETER = re.compile(r"(\*?\*?\w+(?:, \*?\*?\w+)*): (.*)", re.DOTALL)


@frozen
class Entry:
    """`signature` is without types; `compare` has other libraries' names; `example` is a session (`>>> …`)."""

    name: str
    family: str
    signature: str
    summary: str
    parameters: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    compare: tuple[tuple[str, str], ...]
    example: str

    @property
    def compared(self) -> str:
        """Other libraries' names on one line; "" where there are none."""
        listed = "; ".join(f"{library} {names}" for library, names in self.compare)
        return f"Compare: {listed}." if listed else ""

    @property
    def first_sentence(self) -> str:
        return re.split(r"(?<=[.:])\s", self.summary, maxsplit=1)[0].rstrip(":.") + "."


def families() -> dict[str, tuple[str, ...]]:
    """The ops of each family, as they are called."""
    found = dict(ops.FAMILIES)
    for module, names in ops.MODULES.items():
        found[module] = (*found.pop(module, ()), *(f"{module}.{n}" for n in names))
    return found


def entries(family: str) -> Iterator[Entry]:
    for name in families()[family]:
        yield entry(name)


def entry(name: str) -> Entry:
    """KeyError for what is no op."""
    family = next((f for f, names in families().items() if name in names), None)
    if family is None:
        raise KeyError(name)
    function: Any = ops
    for part in name.split("."):
        function = getattr(function, part)
    text, _, example = (inspect.getdoc(function) or "").partition("\nExample:\n")
    summary, *blocks = _blocks(text)
    parameters: list[tuple[str, str]] = []
    notes: list[str] = []
    compare: list[tuple[str, str]] = []
    for block in blocks:
        if block.startswith("Compare:"):
            compare += _compared(block)
        elif found := _PARAMETER.fullmatch(block):
            parameters.append((found[1], found[2]))
        else:
            notes.append(block)
    return Entry(
        name,
        family,
        f"ops.{name}{_signature(function)}",
        summary,
        tuple(parameters),
        tuple(notes),
        tuple(compare),
        inspect.cleandoc(example),
    )


def _blocks(text: str) -> list[str]:
    """Paragraphs, and the lines of parameters with what continues them, each on one line."""
    found: list[str] = []
    begins = True
    for line in text.splitlines():
        if not line.strip():
            begins = True
        elif begins or (not line.startswith(" ") and _starts(line)):
            found.append(line.strip())
            begins = False
        else:
            found[-1] += " " + line.strip()
    return found


def _starts(line: str) -> bool:
    return bool(_PARAMETER.fullmatch(line)) or line.startswith(("Returns ", "Raises ", "Source", "Compare"))


def _compared(block: str) -> list[tuple[str, str]]:
    """The names in "Compare: MPSGraph `a`; NumPy `b`."."""
    found = []
    for part in block.removeprefix("Compare:").strip().rstrip(".").split("; "):
        library, _, names = part.strip().partition(" ")
        found.append((library, names))
    return found


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r"<class 'numpy\.(\w+)'>", r"np.\1", text)


# ---- pages ----


def page(family: str) -> str:
    """The reference page of a family, as Markdown."""
    module = importlib.import_module(f"metaljit.stdlib_ops.{family}")
    title = (inspect.getdoc(module) or family).partition(";")[0].partition("\n")[0].rstrip(".")
    made = list(entries(family))
    lines = [f"# {title}", "", "Printed from the docstrings by `python docs/reference.py`.", ""]
    lines += [f"- [`{e.name}`](#{_anchor(e.name)}): {e.first_sentence}" for e in made]
    for e in made:
        lines += ["", *_section(e)]
    return "\n".join(lines) + "\n"


def _section(e: Entry) -> list[str]:
    lines = [f"## {e.name}", "", "```text", e.signature, "```", "", e.summary]
    if e.parameters:
        lines += ["", *(f"- `{name}`: {text}" for name, text in e.parameters)]
    for note in e.notes:
        lines += ["", note]
    if e.compared:
        lines += ["", e.compared]
    if e.example:
        lines += ["", "```pycon", e.example, "```"]
    return lines


def _anchor(heading: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def index() -> str:
    """The page that lists all ops, with the names that other libraries have for them."""
    lines = [
        "# The standard ops",
        "",
        INTRODUCTION,
        "",
        *_row(["op", *LIBRARIES]),
        "| --- " * (1 + len(LIBRARIES)) + "|",
    ]
    for family in families():
        for e in entries(family):
            names = dict(e.compare)
            link = f"[`{e.name}`]({family}.md#{_anchor(e.name)})"
            lines += _row([link, *(names.get(library, "") for library in LIBRARIES)])
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"]


INTRODUCTION = """\
`metaljit.ops` is the library of operations on arrays that is written in metaljit's own language. Each takes NumPy arrays,
which gives NumPy arrays, device arrays, which gives device arrays, and the arrays of a traced function, where it is fused
with what stands around it and has its derivative. `metaljit ops` lists them, `metaljit ops NAME` prints the entry of one.

64-bit floats are refused: Apple's GPUs have none."""
