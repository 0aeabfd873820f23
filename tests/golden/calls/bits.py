"""Hamming distances."""

from __future__ import annotations

from golden import Case

import metaljit as mj
from calls.common import Call, Results


def hamming(case: Case) -> Results:
    pairwise = case.op == "hamming_pairwise"
    yield "out", mj.ops.hamming_distance(case.inputs["a"], case.inputs["b"], pairwise=pairwise)


OPS: dict[tuple[str, str], Call] = {
    ("hamming", "hamming_pairwise"): hamming,
    ("hamming", "hamming_rows"): hamming,
}
