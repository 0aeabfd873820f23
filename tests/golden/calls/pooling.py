"""Pooling, as PyTorch and TensorFlow have it."""

from __future__ import annotations

from golden import Case

import metaljit as mj
from calls.common import Call, Results


def torch_max_pool(case: Case) -> Results:
    p = case.params
    yield from zip(
        ("y", "idx"),
        mj.ops.max_pool(
            case.inputs["x"],
            p["kernel_size"],
            stride=p["stride"],
            padding=p["padding"],
            dilation=p["dilation"],
            ceil_mode=p["ceil_mode"],
            return_indices=True,
        ),
        strict=True,
    )


def tensorflow_max_pool(case: Case) -> Results:
    p = case.params
    yield from zip(
        ("y", "argmax"),
        mj.ops.max_pool(
            case.inputs["x"],
            p["ksize"],
            stride=p["strides"],
            padding=p["padding"].lower(),
            layout="NHWC",
            return_indices=True,
            indices="global_4d" if p["include_batch_in_index"] else "global_3d",
            nan="compare",
        ),
        strict=True,
    )


OPS: dict[tuple[str, str], Call] = {
    ("pooling_tf", "max_pool_with_argmax"): tensorflow_max_pool,
    **{("pooling_torch", f"max_pool{n}d"): torch_max_pool for n in (1, 2, 3)},
}
