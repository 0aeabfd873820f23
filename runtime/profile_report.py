"""What a profile shows: a table for the terminal, and a trace in the Trace Event Format.

In: records. Out: text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from metaljit.runtime.profile import Record

HEAD = ("kernel", "device", "calls", "total ms", "share", "median µs", "MB", "GB/s")


def table(records: Sequence[Record], limit: bool = False) -> str:
    """One line for each kernel and device; MB are those of a call, GB/s of all calls together."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for r in records:
        if r.kind == "kernel":
            groups.setdefault((r.name, r.device), []).append(r)
    spent = {key: sum(r.duration for r in group) for key, group in groups.items()}
    whole = sum(spent.values()) or 1.0
    rows = [HEAD + ("of a copy",) * limit]
    for key in sorted(groups, key=lambda key: -spent[key]):
        group, time = groups[key], spent[key] or 1e-9
        nbytes = sum(r.nbytes for r in group)
        middle = median(r.duration for r in group)
        row = (
            *key, str(len(group)), f"{time * 1e3:.3f}", f"{time / whole:.0%}", f"{middle * 1e6:.1f}",
            f"{nbytes / len(group) / 1e6:.3f}", f"{nbytes / time / 1e9:.2f}",
        )  # fmt: skip
        rows.append((*row, _share(key[1], nbytes / time)) if limit else row)
    return "\n".join([*_aligned(rows), *_other(records)])


def _share(device: str, bandwidth: float) -> str:
    from metaljit.runtime.bandwidth import of_copy

    return f"{bandwidth / of_copy(device):.0%}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _other(records: Sequence[Record]) -> list[str]:
    lines = []
    for kind, word in (("trace", "traced"), ("compile", "compiled")):
        found = [r.duration for r in records if r.kind == kind]
        if found:
            lines.append(f"{word} {len(found)} in {sum(found) * 1e3:.1f} ms")
    return lines


def trace(records: Sequence[Record]) -> str:
    """The Trace Event Format: complete events ("X") in microseconds, and names of tracks ("M")."""
    tracks = {queue: k for k, queue in enumerate(dict.fromkeys(r.queue for r in records), 1)}
    events: list[dict[str, Any]] = [_named("process_name", 0, "metaljit")]
    events += [_named("thread_name", k, queue) for queue, k in tracks.items()]
    for r in records:
        args: dict[str, Any] = {"device": r.device}
        if r.kind == "kernel":
            args |= {"bytes": r.nbytes, "operations": r.operations, "GB/s": round(r.bandwidth / 1e9, 3)}
        events.append(
            {
                "ph": "X",
                "name": r.name if r.kind == "kernel" else f"{r.kind} {r.name}",
                "cat": r.kind,
                "pid": 1,
                "tid": tracks[r.queue],
                "ts": r.start * 1e6,
                "dur": r.duration * 1e6,
                "args": args,
            }
        )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1)


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 1, "tid": track, "args": {"name": name}}
