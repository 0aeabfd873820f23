"""Runs every case of a golden folder through the public API, on the device of METALJIT_DEVICE.

    python tests/golden/run.py FOLDER

In: a folder in the format of `golden.py`. Out: a line for each case that fails, then `N passed, N failed`; the exit code is 1
if any failed. A case whose op is not there fails. Where the library refused, a refusal passes; where float64 is involved, only
the documented refusal of it does.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
from calls import OPS
from golden import Case, cases

import metaljit as mj

Outcome = Literal["passed", "failed"]

# ---- judging ----


def judge(case: Case) -> tuple[Outcome, str]:
    """What became of a case, and why."""
    run = OPS.get((case.topic, case.op)) or OPS.get((case.topic, ""))  # "": all ops of a topic
    if run is None:
        return "failed", f"there is no op for {case.op}"
    must_refuse_f64 = _has_f64(case)
    done = set()
    try:
        for name, got in run(case):
            complaint = case.check(name, got)
            if complaint:
                return "failed", complaint
            done.add(name)
    except (mj.LaunchFault, mj.TypeFault) as e:
        said = str(e).splitlines()[0]
        expected = e.slug == "no-f64" if must_refuse_f64 else case.error
        return ("passed" if expected else "failed"), f"refused: {said}"
    except Exception as e:
        return "failed", f"{type(e).__name__}: {str(e).partition(chr(10))[0]}"
    missing = set(case.outputs) - done
    if case.error or must_refuse_f64 or missing:
        return (
            "failed",
            "the call was not refused" if not missing else f"nothing was computed for {sorted(missing)}",
        )
    return "passed", ""


def _has_f64(case: Case) -> bool:
    arrays = [*case.inputs.values(), *case.outputs.values()]
    return any(a.dtype == np.float64 for a in arrays)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not (Path(arguments[0]) / "manifest.json").is_file():
        print("usage: python tests/golden/run.py FOLDER   (a folder with a manifest.json)", file=sys.stderr)
        return 2
    counts: Counter[Outcome] = Counter()
    for case in cases(Path(arguments[0])):
        outcome, why = judge(case)
        counts[outcome] += 1
        if outcome == "failed":
            print(f"FAILED {case.topic}/{case.id}: {why}")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
