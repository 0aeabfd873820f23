"""Which trace runs in this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .traced import Trace

_traces = threading.local()


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Within, the trace is the one that runs in this thread."""
    before = current_trace()
    _traces.current = trace
    try:
        yield
    finally:
        _traces.current = before


def current_trace() -> Trace | None:
    return getattr(_traces, "current", None)
