"""Pooling, as PyTorch and TensorFlow have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from golden import Case

import metaljit as mj
from calls.common import Call, Results


def with_gradient(case: Case, run: Callable[[Any], Any], x: Any, name: str) -> Results:
    """The gradient of `run` by `x`, where the case has one."""
    if name in case.outputs:
        _, back = mj.vjp(run, x)
        yield name, back(case.inputs["gy"])[0]


def torch_max_pool(case: Case) -> Results:
    p, x = case.params, case.inputs["x"]
    options = {name: p[name] for name in ("stride", "padding", "dilation", "ceil_mode")}
    values, indices = mj.ops.max_pool(x, p["kernel_size"], return_indices=True, **options)
    yield from (("y", values), ("idx", indices))
    yield from with_gradient(case, lambda x: mj.ops.max_pool(x, p["kernel_size"], **options), x, "gx")


def torch_max_unpool(case: Case) -> Results:
    p, x = case.params, case.inputs["x"]
    options = {name: p[name] for name in ("stride", "padding")}
    values, indices = mj.ops.max_pool(x, p["kernel_size"], return_indices=True, **options)
    yield from (("y", values), ("idx", indices))

    def run(values: Any) -> Any:
        return mj.ops.max_unpool(values, indices, p["kernel_size"], output_size=p["output_size"], **options)

    yield "out", run(values)
    yield from with_gradient(case, run, values, "gpooled")


def torch_avg_pool(case: Case) -> Results:
    p, x = dict(case.params), case.inputs["x"]
    size = p.pop("kernel_size")
    yield "y", mj.ops.avg_pool(x, size, **p)
    yield from with_gradient(case, lambda x: mj.ops.avg_pool(x, size, **p), x, "gx")


def tensorflow_max_pool(case: Case) -> Results:
    p, x = case.params, case.inputs["x"]
    options = {"stride": p["strides"], "padding": p["padding"].lower(), "layout": "NHWC"}
    mode = "global_4d" if p["include_batch_in_index"] else "global_3d"
    values, indices = mj.ops.max_pool(
        x, p["ksize"], return_indices=True, indices=mode, nan="compare", **options
    )
    yield from (("y", values), ("argmax", indices))
    if "gx" in case.outputs:
        yield (
            "gx",
            mj.ops.max_pool_grad(case.inputs["gy"], indices, x.shape, p["ksize"], mode=mode, **options),
        )


OPS: dict[tuple[str, str], Call] = {
    ("pooling_tf", "max_pool_with_argmax"): tensorflow_max_pool,
    **{("pooling_torch", f"max_pool{n}d"): torch_max_pool for n in (1, 2, 3)},
    **{("pooling_torch", f"max_unpool{n}d"): torch_max_unpool for n in (1, 2, 3)},
    **{("pooling_torch", f"avg_pool{n}d"): torch_avg_pool for n in (1, 2, 3)},
}
