"""A program survives its JSON, and damage is told from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import metaljit as mj
from metaljit.program import Program

EXAMPLES = Path(__file__).parents[1] / "examples"
GRID = """
N = dims("N")

@kernel(grid="ceil_div(N, 32)", threadgroup=32)
def doubled(x: InOut[i32[N]], out: Out[f32x2[N]], by: f32 = 2):
    i = global_index()
    require(N < 1000, "few")
    if i < N:
        assert x[i] >= 0, "negative"
        x[i] = 2 * x[i]
        out[i] = f32x2(by, x[i])
"""


def programs() -> list[Program]:
    edges = mj.load_kernels(EXAMPLES / "edges.mjk").edges
    doubled = mj.kernel_from_text(GRID)
    return [edges.program(mj.spec((None, None), mj.f32), 2), doubled.program(mj.spec((None,), mj.i32))]


def test_a_program_survives_its_text() -> None:
    for program in programs():
        assert Program.loads(program.dumps()) == program


@pytest.mark.parametrize("damage", ['{"format": 1}', "{}", "[]", "3", '{"format": 2}', "nothing"])
def test_other_texts_are_no_programs(damage: str) -> None:
    with pytest.raises(ValueError, match=r"not a program|another format|Expecting value"):
        Program.loads(damage)


def test_a_missing_field_is_damage() -> None:
    data = json.loads(programs()[0].dumps())
    del data["launches"]
    with pytest.raises(ValueError, match="not a program"):
        Program.loads(json.dumps(data))
