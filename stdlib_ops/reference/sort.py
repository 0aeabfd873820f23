"""Sorting."""

from __future__ import annotations

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def argsort(x: Array, axis: int, descending: bool) -> Array:
    """By Python's stable sort; NaN is larger than all numbers."""

    def ordered(row: Array) -> Array:
        keys = [(bool(v != v), 0 if v != v else v) for v in row.tolist()]
        places = sorted(range(len(keys)), key=keys.__getitem__)
        if descending:  # stable: equal keys keep their order
            places = sorted(range(len(keys)), key=lambda k: (keys[k][0], keys[k][1]), reverse=True)
        return np.array(places, np.int32)

    if not x.size:
        return np.zeros(x.shape, np.int32)
    wide = x.astype(np.float32) if x.dtype.kind == "V" or x.dtype.name == "bfloat16" else x
    return np.apply_along_axis(ordered, axis, wide).astype(np.int32)
