"""Hash grids."""

from __future__ import annotations

from golden import Case

import metaljit as mj
from calls.common import Call, Results


def encoded(case: Case) -> Results:
    x, table, levels = case.inputs["x"], case.inputs["table"], case.params["resolutions"]
    yield "y", mj.ops.hash_grid_encode(x, table, levels)
    yield from zip(("idx", "wts"), mj.ops.hash_grid_corners(x, table.shape[1], levels), strict=True)
    _, pull = mj.vjp(lambda x, table: mj.ops.hash_grid_encode(x, table, levels), x, table)
    yield from zip(("gx", "gtable"), pull(case.inputs["gy"]), strict=True)


def index(case: Case) -> Results:
    yield "out", mj.ops.hash_grid_index(case.inputs["cells"], case.params["N"], case.params["T"])


OPS: dict[tuple[str, str], Call] = {
    ("hash_grid", "hash_grid_encode"): encoded,
    ("hash_grid", "hash_grid_index"): index,
}
