"""Stencils of 3×3 and 5×5 weights and medians of 4096², and Canny on a frame of 3840 × 2160.

OpenCV's Canny does not blur, and takes bytes; it is listed beside scikit-image's, whose work is the same as ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import metaljit as mj
from metaljit import ops

from .timing import Run, Work

SIDE = 4096
FRAME = (2160, 3840)
PHOTOGRAPH = Path(__file__).parents[1] / "examples" / "camera.png"


def stencil(size: int) -> Work:
    rng = np.random.default_rng(0)
    x, w = rng.random((SIDE, SIDE), np.float32), rng.random((size, size), np.float32) / size**2
    peers = {**_scipy_correlate(x, w), **_opencv_filter(x, w), **_torch_conv(x, w), **_jax_conv(x, w)}
    ours = mj.jit(lambda x, w: ops.correlate(x, w, mode="constant"))
    return Work(f"stencil {size}×{size}, {SIDE}² f32", 2 * x.nbytes, lambda: ours(x, w), peers)


def _scipy_correlate(x: NDArray[Any], w: NDArray[Any]) -> Mapping[str, Run]:
    try:
        from scipy import ndimage
    except ImportError:
        return {}
    return {"SciPy": lambda: ndimage.correlate(x, w, mode="constant")}


def _opencv_filter(x: NDArray[Any], w: NDArray[Any]) -> Mapping[str, Run]:
    try:
        import cv2
    except ImportError:
        return {}
    return {"OpenCV": lambda: cv2.filter2D(x, -1, w, borderType=cv2.BORDER_CONSTANT)}


def _torch_conv(x: NDArray[Any], w: NDArray[Any]) -> Mapping[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    image, weights = torch.from_numpy(x)[None, None], torch.from_numpy(w)[None, None]
    return {"torch": lambda: torch.nn.functional.conv2d(image, weights, padding="same")[0, 0].numpy()}


def _jax_conv(x: NDArray[Any], w: NDArray[Any]) -> Mapping[str, Run]:
    try:
        import jax
    except ImportError:
        return {}
    run = jax.jit(lambda x, w: jax.lax.conv(x[None, None], w[None, None], (1, 1), "SAME")[0, 0])
    image, weights = jax.device_put(x), jax.device_put(w)
    return {"JAX": lambda: run(image, weights).block_until_ready()}


def median(size: int) -> Work:
    x = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    peers: dict[str, Run] = {}
    try:
        from scipy import ndimage

        peers["SciPy"] = lambda: ndimage.median_filter(x, size, mode="nearest")
    except ImportError:
        pass
    try:
        import cv2

        peers["OpenCV"] = lambda: cv2.medianBlur(x, size)
    except ImportError:
        pass
    ours = mj.jit(lambda x: ops.median_filter(x, size, mode="edge"))
    return Work(f"median {size}×{size}, {SIDE}² f32", 2 * x.nbytes, lambda: ours(x), peers)


def canny() -> Work:
    x = _photograph(FRAME)
    peers: dict[str, Run] = {}
    try:
        from skimage import feature

        peers["scikit-image"] = lambda: feature.canny(
            x, sigma=1, low_threshold=0.1, high_threshold=0.2, mode="constant"
        )
    except ImportError:
        pass
    try:
        import cv2

        bytes_ = (x * 255).astype(np.uint8)
        peers["OpenCV"] = lambda: cv2.Canny(bytes_, 100, 200, L2gradient=True)
    except ImportError:
        pass
    ours = partial(ops.canny, sigma=1, low=0.1, high=0.2)
    names = frozenset(peers)  # a pixel of a million where two numbers differ by roundings
    return Work("Canny 3840 × 2160 f32", x.nbytes + x.size, lambda: ours(x), peers, names)


def _photograph(shape: tuple[int, int]) -> NDArray[Any]:
    """A photograph beside and below itself."""
    with Image.open(PHOTOGRAPH) as image:
        one = np.asarray(image.convert("L"), np.float32) / np.float32(255)
    times = [-(-n // k) for n, k in zip(shape, one.shape, strict=True)]
    return np.ascontiguousarray(np.tile(one, times)[: shape[0], : shape[1]])


WORKS = {
    "stencil3": partial(stencil, 3),
    "stencil5": partial(stencil, 5),
    "median3": partial(median, 3),
    "median5": partial(median, 5),
    "canny": canny,
}
