"""mjk.lark → the LALR parser: built from the text (slow), or loaded from tables saved beside it (fast).

Building takes a third of a second, loading a few milliseconds; so the build of the package saves the tables
(`setup.py` runs this file by its path: it imports nothing of ours). Tables that are absent, that belong to
another mjk.lark or that another version of Lark wrote are passed over, and the parser is built instead.
They are a pickle, and are read from this folder only.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import lark

GRAMMAR = Path(__file__).with_name("mjk.lark")
TABLES = Path(__file__).with_name("mjk.tables")
STARTS = ["module", "function", "quoted"]


def build(actions: object = None) -> lark.Lark:
    """The parser made from mjk.lark; `actions` has a method for each rule, called when it is complete."""
    return lark.Lark(
        GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",
        start=STARTS,
        keep_all_tokens=True,
        transformer=actions,
    )


def save(path: Path = TABLES) -> None:
    """Write the tables of mjk.lark to `path`."""
    tables = BytesIO()
    build().save(tables, exclude_options=["transformer"])
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(_stamp() + tables.getvalue())
    unfinished.replace(path)


def load(actions: object) -> lark.Lark:
    """The parser, out of the saved tables where they fit and built otherwise."""
    saved = TABLES.read_bytes() if TABLES.exists() else b""
    stamp = _stamp()
    if not saved.startswith(stamp):
        return build(actions)
    tables: dict[str, Any] = pickle.loads(saved[len(stamp) :])
    # Lark.load takes no actions; this is what it and Lark's stand-alone parsers call.
    parser: lark.Lark = lark.Lark._load_from_dict(  # type: ignore[no-untyped-call]
        tables["data"], tables["memo"], transformer=actions
    )
    return parser


def _stamp() -> bytes:
    """The first line of the file: which Lark and which grammar the tables belong to."""
    digest = hashlib.sha256(GRAMMAR.read_bytes()).hexdigest()
    return f"metaljit tables, lark {lark.__version__}, mjk.lark {digest}\n".encode()
