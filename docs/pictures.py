"""Draws the pictures of these pages: `python docs/pictures.py` (needs Pillow).

borders.png: one patch of a photograph, and what each border mode puts around it.
edges.png: a photograph beside what `examples/edges.mjk` draws of it.
"""

from __future__ import annotations

from pathlib import Path

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


if __name__ == "__main__":
    draw_borders().save(HERE / "borders.png", optimize=True)
    draw_edges().save(HERE / "edges.png", optimize=True)
