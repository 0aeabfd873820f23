"""Changed parts of arrays, as NumPy and as traced arrays write them."""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj


def changed(x: Any, key: Any, value: Any) -> Any:
    if isinstance(x, mj.Traced):
        return x.at[key].set(value)
    x = x.copy()
    x[key] = value
    return x


def added(x: Any, key: Any, value: Any) -> Any:
    if isinstance(x, mj.Traced):
        return x.at[key].add(value)
    x = x.copy()
    np.add.at(x, key, value)
    return x
