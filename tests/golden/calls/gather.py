"""Gathers and scatters, as TensorFlow has them."""

from __future__ import annotations

from typing import Any

from golden import Case

import metaljit as mj
from calls.common import Call, Results


def policy(case: Case, ignored: str) -> str:
    """What becomes of indices out of range: TensorFlow on the CPU raises, unless it is told to ignore them."""
    return ignored if "IGNORE" in case.record["call"] else "error"


def gather_nd(case: Case) -> Results:
    indices, batch = case.inputs["indices"], case.params.get("batch_dims", 0)
    chosen = policy(case, "zero")

    def gathered(x: Any) -> Any:
        return mj.ops.gather_nd(x, indices, batch_dims=batch, out_of_range=chosen)

    if "gy" not in case.inputs:
        yield "out", gathered(case.inputs["params"])
        return
    out, back = mj.vjp(gathered, case.inputs["params"])
    yield "out", out
    yield "gparams", back(case.inputs["gy"])[0]


def scatter_nd(case: Case) -> Results:
    a = case.inputs
    chosen = policy(case, "skip")
    yield "out", mj.ops.scatter_nd(a["indices"], a["updates"], case.params["shape"], out_of_range=chosen)


def tensor_scatter_nd(case: Case) -> Results:
    a, mode = case.inputs, case.op.rpartition("_")[2]
    yield (
        "out",
        mj.ops.scatter_nd_update(
            a["tensor"],
            a["indices"],
            a["updates"],
            mode="set" if mode == "update" else mode,
            out_of_range=policy(case, "skip"),
        ),
    )


MODES = ("add", "sub", "min", "max", "update")
OPS: dict[tuple[str, str], Call] = {
    ("gather_scatter_nd", "gather_nd"): gather_nd,
    ("gather_scatter_nd", "scatter_nd"): scatter_nd,
    **{("gather_scatter_nd", f"tensor_scatter_nd_{mode}"): tensor_scatter_nd for mode in MODES},
}
