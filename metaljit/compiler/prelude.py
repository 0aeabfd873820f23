"""The helper functions of generated text: which of `prelude.metal` a text uses.

In: MSL text. Out: the definitions of the `mj_` names in it, and of the names in those, in the order of the
file. The file is read at the first question. What calls the helpers is the operation table and the printer.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ..frozen import frozen

_NAME = re.compile(r"\bmj_\w+")
_DEFINED = re.compile(r"\b(mj_\w+)(?:\(| \{)")


@frozen
class Chunk:
    """Definitions that belong together (a type and its cases, the overloads of a name), with their comment."""

    text: str
    defines: frozenset[str]
    uses: frozenset[str]


@cache
def chunks() -> tuple[Chunk, ...]:
    """The chunks of the file in order: parts between blank lines, without the remarks that define nothing."""
    text = Path(__file__).with_name("prelude.metal").read_text("utf-8")
    found = []
    for part in text.strip().split("\n\n"):
        code = "\n".join(line for line in part.splitlines() if not line.startswith("//"))
        heads = [line for line in code.splitlines() if line[:1] not in (" ", "}", "")]
        names = frozenset(m[1] for head in heads if (m := _DEFINED.search(head)))
        if names:
            found.append(Chunk(part, names, frozenset(_NAME.findall(code)) - names))
    return tuple(found)


def needed(text: str) -> str:
    """The definitions that a text uses, directly or through one another, each once; "" if none.

    Every `mj_` name that is called must be one of the prelude's or of the text itself.
    """
    wanted = set(_NAME.findall(text))
    kept = []
    for chunk in reversed(chunks()):  # a definition only uses earlier ones
        if chunk.defines & wanted:
            kept.append(chunk.text)
            wanted |= chunk.uses
    return "".join(part + "\n\n" for part in reversed(kept))
