"""Edges; the kernels are in canny.mjk."""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.image import bell
from metaljit.stdlib_ops.operands import FLOATS, Operand, check_array, refuse
from metaljit.stdlib_ops.stencil_windows import MODES

_INTEGERS = (mj.lang.u8, mj.lang.u16)
_TURNS = 4  # growths between two looks whether anything still grows


def canny(
    image: Operand,
    *,
    sigma: float = 1.0,
    low: float | None = None,
    high: float | None = None,
    mode: str = "constant",
    value: Any = 0,
) -> Any:
    """Thin lines where an image is steep (Canny, IEEE PAMI 8:679, 1986).

    The image is blurred; a pixel may be an edge if its steepness, by Sobel's derivatives, is at least `low`, and not
    exceeded one pixel further on or back along the gradient, between pixels by linear interpolation; it is one if its
    steepness is at least `high`, or others that may be edges connect it to such a pixel, each one of its eight neighbours.
    The loop that follows them runs on the device until nothing changes.

    image: array of floats, uint8 or uint16 of shape (…, H, W); the axes before are a batch.
    sigma: standard deviation of the blur in pixels, whose weights reach to 4 sigma; 0 for none.
    low, high: steepnesses, in units of the image's values; a step of 1 is 4 steep. If None, 0.1 and 0.2 of the largest
        value, which is 1 for floats.
    mode, value: what stands outside for the blur, as in `ops.laplacian`. With "constant", blurred values are divided by the
        weight that lies inside.

    Returns bool of the shape of `image`. Pixels at the border of the image are no edges.
    Edges are those of scikit-image but for pixels where two numbers that are compared differ by no more than roundings:
    here all is computed in 32 bits, there partly in 64.
    Raises TypeFault for other dtypes, ShapeError for less than two axes, LaunchFault for other arguments that make no sense.
    Metal's `MPSImageCanny` compares four directions without interpolation, and its thresholds are a quarter of these.

    Compare: scikit-image `feature.canny`; OpenCV `Canny`, which does not blur.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> image = np.zeros((5, 7), np.float32)
    >>> image[:, 3:] = [1, 2, 2, 2]
    >>> ops.canny(image, sigma=0, low=1, high=3).astype(int)
    array([[0, 0, 0, 0, 0, 0, 0],
           [0, 0, 0, 1, 0, 0, 0],
           [0, 0, 0, 1, 0, 0, 0],
           [0, 0, 0, 1, 0, 0, 0],
           [0, 0, 0, 0, 0, 0, 0]])
    """
    check_array("canny", "image", image, (*FLOATS, *_INTEGERS), "floats, uint8 or uint16")
    if len(image.shape) < 2:
        refuse(
            "canny",
            f"`image` has {len(image.shape)} axes, and an image has at least 2",
            "",
            "op-shape",
            mj.ShapeError,
        )
    if mode not in MODES:
        refuse("canny", f"{mode!r} is no border mode", "there are " + ", ".join(map(repr, MODES)))
    if not 0 <= sigma < np.inf:
        refuse("canny", f"`sigma` is a number of pixels, at least 0, not {sigma!r}")
    largest = {"uint8": 255.0, "uint16": 65535.0}.get(image.dtype.name, 1.0)
    low, high = (0.1 * largest if low is None else low), (0.2 * largest if high is None else high)
    if not low <= high:
        refuse("canny", f"`low` is {low}, and `high` is {high}", "`high` is at least `low`")
    weights = np.array(bell(float(sigma), 4.0), np.float32)
    return _edges(image, weights, low / largest, high / largest, 1 / largest, value, mode, len(weights))


@mj.jit(static=["mode", "size"])
def _edges(
    image: Any, weights: Any, low: Any, high: Any, scale: Any, value: Any, mode: str, size: int
) -> Any:
    u = image.astype(np.float32)
    if image.dtype.kind == "u":
        u = u * scale
    kernels = mj.stdlib.canny
    down, across, steep = kernels.gradients(_blurred(u, weights, value, mode, size))
    classes = kernels.thinned(down, across, steep, low, high)
    weak, strong = kernels.packed(classes)
    return kernels.unpacked(connected(weak, strong), classes)


def _blurred(u: Any, weights: Any, value: Any, mode: str, size: int) -> Any:
    if size == 1:
        return u
    value = value if mode == "constant" else 0
    inside = None
    for axis in (u.ndim - 2, u.ndim - 1):
        u = mj.stdlib.image.weighted(u, weights, mode, value, axis, size)
        if mode == "constant":  # the weight that lies inside, along this axis
            n = u.shape[axis]
            ones = np.broadcast_to(np.float32(1), (n,))
            along = mj.stdlib.image.weighted(ones, weights, mode, value, 0, size)
            along = along[:, None] if axis == u.ndim - 2 else along
            inside = along if inside is None else inside * along
    return u if inside is None else u / (inside + np.finfo(np.float32).eps)


def connected(weak: Any, strong: Any) -> Any:
    """The weak bits that strong ones reach, step by step over the eight neighbours."""

    def grows(state: Any) -> Any:
        now, before, turn = state
        return (now != before).any() | (turn == 0)

    def grow(state: Any) -> Any:
        now, _, turn = state
        start = now
        for _ in range(_TURNS):
            now = mj.stdlib.canny.grown(now, weak)
        return now, start, turn + 1

    return mj.while_loop(grows, grow, (strong, strong, 0))[0]
