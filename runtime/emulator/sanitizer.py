"""Whether runs on the emulator check every access.

`METALJIT_SANITIZE=1` turns it on for a process, `sanitize()` for a block. A kernel is compiled anew for it, with every
load and store reported to the runtime.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from metaljit.runtime.setting import Setting


class _Chosen(Setting):
    """What `sanitize` chose."""

    value: bool | None = None


chosen = _Chosen()


def sanitizing() -> bool:
    """What `sanitize` chose, or else `METALJIT_SANITIZE`."""
    value = chosen.value
    return value if value is not None else os.environ.get("METALJIT_SANITIZE", "") not in ("", "0")


@contextmanager
def sanitize(on: bool = True) -> Iterator[None]:
    """Has every run on the emulator checked, or not, until the block ends."""
    bring_back = chosen.choose(on)
    try:
        yield
    finally:
        bring_back()
