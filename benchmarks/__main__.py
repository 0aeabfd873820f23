"""`python -m benchmarks [--rounds N] [name …]`: prints the tables; without names, all of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from statistics import median

import metaljit as mj

from . import (
    cooperative,
    gathers,
    graphs,
    hamming,
    images,
    laplacian,
    matmul,
    max_pool,
    nn,
    normals,
    overhead,
    philox,
    recurrent,
    reductions,
    windows,
)
from .timing import Measured, Work, measure

WORKS: dict[str, Callable[[], Work]] = {
    "laplacian": laplacian.work,
    "hamming": hamming.work,
    "philox": philox.work,
    **normals.WORKS,
    "max_pool": max_pool.work,
    **windows.WORKS,
    "matmul": cooperative.matmul,
    "sums": cooperative.sums,
    "histogram": cooperative.histogram,
    **graphs.WORKS,
    **images.WORKS,
    **gathers.WORKS,
    **nn.WORKS,
    **recurrent.WORKS,
    **reductions.WORKS,
    **matmul.WORKS,
}
COSTS: dict[str, Callable[[int], list[overhead.Line]]] = {
    "overhead": overhead.lines,
    "graph_overhead": graphs.lines,
}
NAMES = (*WORKS, *COSTS)
LEAST_ROUNDS = 9
# Read when each library starts, which is after the arguments are.
THREADS = ("METALJIT_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Ratios from one run; above 1, metaljit is quicker."
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"which tables: {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=15, help=f"interleaved pairs, at least {LEAST_ROUNDS}")
    parser.add_argument(
        "--threads", type=int, help="of metaljit, numba, numexpr and PyTorch; otherwise what each takes"
    )
    arguments = parser.parse_args()
    if arguments.threads:
        os.environ.update(dict.fromkeys(THREADS, str(arguments.threads)))
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no benchmark {sorted(unknown)[0]!r}; there are {', '.join(NAMES)}")
    rounds = max(arguments.rounds, LEAST_ROUNDS)
    chosen = arguments.names or NAMES
    works = [name for name in chosen if name in WORKS]
    if works:
        print_device()
        print_rows([HEADER, *(speed_row(measure(WORKS[name](), rounds)) for name in works)])
    for name in (name for name in chosen if name in COSTS):
        print()
        print_rows([OVERHEAD_HEADER, *(overhead_row(line) for line in COSTS[name](LEAST_ROUNDS))])


def print_device() -> None:
    device = os.environ.get("METALJIT_DEVICE") or mj.available_devices()[0]
    print(f"device {device}: {mj.device(device).describe()}")
    print("ratio = best peer's time / ours, the median of interleaved pairs (least – most)\n")


HEADER = ("work", "ours", "GB/s", "best peer", "ratio", "memcpy", "all peers")


def speed_row(m: Measured) -> tuple[str, ...]:
    others = ", ".join(f"{name} {1e3 * t:.2f}" for name, t in sorted(m.peers.items(), key=lambda p: p[1]))
    return (
        m.work.name,
        f"{1e3 * m.ours:.2f} ms",
        f"{m.work.nbytes / m.ours / 1e9:.1f}",
        m.best,
        spread(m.ratios),
        f"{1e3 * m.memcpy:.2f} ms",
        f"{others} ms",
    )


def spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} – {max(values):.2f})"


OVERHEAD_HEADER = ("cost", "median", "least – most", "of CPU time", "wanted")


def overhead_row(line: overhead.Line) -> tuple[str, ...]:
    def shown(value: float) -> str:
        return f"{value:.4g} {line.unit}".strip()

    if len(line.values) == 1:
        return line.what, shown(line.wall), "", "", f"≤ {shown(line.wanted)}"
    walls = [v.wall for v in line.values]
    return (
        line.what,
        shown(line.wall),
        f"{min(walls):.4g} – {max(walls):.4g}",
        shown(line.cpu),
        f"≤ {shown(line.wanted)}",
    )


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


if __name__ == "__main__":
    main()
