"""Reader of golden folders: numbers that other libraries computed, with the call that made them.

In: a folder with `manifest.json` and `.npz` files. Out: `Case`s. Each case of the manifest has its topic, op,
parameters, the call as text, and its arrays: role, shape, dtype, tolerance. Arrays of bfloat16 lie there as their bits;
inputs are given as bfloat16, which is all that needs more than NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BF16_BITS = "uint16 bit patterns"


@dataclass(frozen=True)
class Case:
    """One call. `error` is what the library refused, if it did; `record` is the manifest's entry."""

    id: str
    topic: str
    op: str
    params: Mapping[str, Any]
    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]
    error: Any
    record: Mapping[str, Any]

    def check(self, name: str, got: Any) -> str | None:
        """None where `got` agrees with the golden output, else a sentence."""
        want, info = self.outputs[name], self.record["arrays"][name]
        tolerance, found = info["tolerance"], np.asarray(got)
        if info.get("stored_as") == BF16_BITS and found.dtype.name == "bfloat16":
            found = found.view(np.uint16)
        if found.shape != want.shape:
            return f"{name}: shape {found.shape}, want {want.shape}"
        if info.get("stored_as") == BF16_BITS and tolerance["kind"] != "exact":
            found, want = _from_bf16(found), _from_bf16(want)
        if tolerance["kind"] == "exact":
            bad = ~((found == want) | ((found != found) & (want != want)))
        else:
            rtol, atol = tolerance["rtol"], tolerance["atol"]
            bad = ~np.isclose(found.astype(np.float64), want.astype(np.float64), rtol, atol, equal_nan=True)
        if not bad.any():
            return None
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        first = f"{found[at]}, want {want[at]} ({tolerance})"
        return f"{name}: {int(bad.sum())} of {bad.size} differ, the first at {at}: {first}"


def _from_bf16(bits: NDArray[Any]) -> NDArray[Any]:
    if bits.dtype != np.uint16:
        return bits
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def cases(folder: Path) -> Iterator[Case]:
    """The cases of a folder, in the manifest's order; one whose file is missing has no arrays."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    files: dict[str, Mapping[str, NDArray[Any]]] = {}
    for record in manifest["cases"]:
        name = record["file"]
        if name not in files:
            files[name] = dict(np.load(folder / name)) if (folder / name).exists() else {}
        arrays: dict[str, dict[str, NDArray[Any]]] = {"input": {}, "output": {}}
        for array, info in record["arrays"].items():
            if info["key"] in files[name]:
                arrays[info["role"]][array] = _as_input(files[name][info["key"]], info)
        yield Case(
            record["id"],
            record["topic"],
            record["op"],
            _numbers(record["params"]),
            arrays["input"],
            arrays["output"],
            record.get("error"),
            record,
        )


def _as_input(stored: NDArray[Any], info: Mapping[str, Any]) -> NDArray[Any]:
    if info["role"] != "input" or info.get("stored_as") != BF16_BITS:
        return stored
    import ml_dtypes

    return stored.view(ml_dtypes.bfloat16)


def _numbers(params: Any) -> Any:
    """Parameters with {"float": "inf"} as the number, which JSON has not."""
    match params:
        case {"float": text}:
            return float(text)
        case dict():
            return {name: _numbers(value) for name, value in params.items()}
        case list():
            return [_numbers(value) for value in params]
    return params
