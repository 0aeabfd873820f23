"""What the references share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that 16-bit floats and small integers are computed in."""
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype({"u": np.uint32, "i": np.int32}.get(dtype.kind, np.float32))
