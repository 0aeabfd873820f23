"""Draws the pictures of these pages: `python docs/pictures.py` (needs Pillow).

borders.png: one patch of a photograph, and what each border mode puts around it.
edges.png: a photograph beside what `examples/edges.mjk` draws of it.
fused.svg, stored.svg, softmax.svg, limits.svg: what becomes of four traced functions, as `explain` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

import metaljit as mj

HERE = Path(__file__).parent
MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "antiperiodic")
PATCH, ROOM, GAP, LABEL = 72, 40, 12, 18

KERNEL = """
H, W = dims("H W")

@kernel
def surrounded(u: f32[H, W], room: const[int], mode: const[str]) -> f32[H + 2 * room, W + 2 * room]:
    # the patch with its border, which is drawn paler; grey is zero
    y, x = position()
    inside = room <= y < H + room and room <= x < W + room
    value = border(u, mode)[y - room, x - room]
    return 0.5 + value * (1.0 if inside else 0.7)
"""


def draw_borders() -> Image.Image:
    photo = np.asarray(Image.open(HERE.parent / "examples" / "camera.png").convert("L"), np.float32) / 255
    patch = np.ascontiguousarray(photo[60 : 60 + 3 * PATCH : 3, 170 : 170 + 3 * PATCH : 3]) - np.float32(0.5)
    surrounded = mj.kernel_from_text(KERNEL)
    side = PATCH + 2 * ROOM
    sheet = Image.new("L", (3 * side + 4 * GAP, 2 * (side + LABEL) + 3 * GAP), 255)
    pen = ImageDraw.Draw(sheet)
    for k, mode in enumerate(MODES):
        row, column = divmod(k, 3)
        left, top = GAP + column * (side + GAP), GAP + row * (side + LABEL + GAP)
        shown = np.clip(surrounded(patch, ROOM, mode), 0, 1)
        sheet.paste(Image.fromarray((shown * 255).astype(np.uint8)), (left, top + LABEL))
        box = (left + ROOM - 1, top + LABEL + ROOM - 1, left + ROOM + PATCH, top + LABEL + ROOM + PATCH)
        pen.rectangle(box, outline=255)
        pen.text((left, top), mode, fill=0)
    return sheet


def draw_edges() -> Image.Image:
    photo = Image.open(HERE.parent / "examples" / "chelsea.png").convert("L")
    edges = mj.load_kernels(HERE.parent / "examples" / "edges.mjk").edges
    drawn = edges(np.asarray(photo, np.float32) / 255)
    sheet = Image.new("L", (2 * photo.width + GAP, photo.height), 255)
    sheet.paste(photo, (0, 0))
    sheet.paste(
        Image.fromarray((np.clip(drawn, 0, 1) * 255).round().astype(np.uint8)), (photo.width + GAP, 0)
    )
    return sheet


GRAPHS = """
import numpy as np
import metaljit as mj
from metaljit import ops

def heat_step(u, alpha):
    return np.clip(u + alpha * ops.laplacian(u), 0, 1)

def rough(u):
    bright = np.exp(np.sin(u))
    return ops.laplacian(bright) * 0.5

def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def total(arrays):
    return sum(arrays[1:], arrays[0])
"""


def draw_graphs() -> dict[str, str]:
    """The pictures of traced functions, by the names of their files."""
    functions: dict[str, Any] = {"__name__": "graphs"}
    exec(compile(GRAPHS.lstrip(), "graphs.py", "exec"), functions)
    u, x = np.ones((512, 512), np.float32), np.ones((64, 4096), np.float32)
    drawn = {
        "fused.svg": ("heat_step", u, 0.1),
        "stored.svg": ("rough", u),
        "softmax.svg": ("softmax", x),
        "limits.svg": ("total", [u[:100, 0].copy() for _ in range(28)]),
    }
    return {file: mj.jit(functions[name]).explain(*args).svg() for file, (name, *args) in drawn.items()}


if __name__ == "__main__":
    for name, text in draw_graphs().items():
        (HERE / name).write_text(text, encoding="utf-8")
    draw_borders().save(HERE / "borders.png", optimize=True)
    draw_edges().save(HERE / "edges.png", optimize=True)
