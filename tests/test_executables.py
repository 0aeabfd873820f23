"""Executables: compiled ahead of time, run for any size, and loaded from a file without the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops

F32 = np.float32


def a(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype(F32)


def model(params: Any, x: Any, k: Any) -> Any:
    return {"y": ops.laplacian(np.exp(np.sin(x))) * params["w"] + k, "sums": [x.sum(axis=1)], "name": "model"}


def compiled() -> mj.Executable:
    return mj.jit(model).compile({"w": mj.spec((None,), F32)}, mj.spec((None, None), F32), 2.0)


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(found["y"], wanted["y"])
    np.testing.assert_allclose(
        found["sums"][0], wanted["sums"][0], rtol=1e-6
    )  # open extents have the long schedule
    assert found["name"] == "model"


def test_one_executable_serves_all_sizes(device: str) -> None:
    with mj.use_device(device):
        made = compiled()
        for shape in ((6, 7), (3, 90)):
            args = ({"w": a(shape[1])}, a(*shape), 3.0)
            same(made.run(*args), mj.jit(model)(*args))
    assert "kernel void" in made.msl
    assert made.explain().startswith("model: ")


def test_a_file_is_loaded_and_run(tmp_path: Path, device: str) -> None:
    path = tmp_path / "model.mjx"
    args = ({"w": a(7)}, a(6, 7), 3.0)
    with mj.use_device(device):
        made = compiled()
        made.save(path)
        loaded = mj.load_executable(path)
        same(loaded.run(*args), made.run(*args))
    assert loaded.device == device
    assert loaded.msl == made.msl
    assert loaded.explain() == made.explain()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.mjx"]


LOADS = """
import sys, numpy as np, metaljit as mj
from metaljit.runtime import toolchain
def refuse(*args): raise AssertionError("compiled")
toolchain.Toolchain.compile = refuse
x = np.load(sys.argv[2])
made = mj.load_executable(sys.argv[1]).run({"w": x[0]}, x, 3.0)
np.save(sys.argv[3], made["y"])
loaded = [m for m in sys.modules if m.startswith(("metaljit.compiler", "metaljit.grammar", "lark"))]
assert not loaded, loaded
"""


def test_another_process_neither_parses_nor_compiles(tmp_path: Path) -> None:
    path, x = tmp_path / "model.mjx", a(6, 7)
    compiled().save(path)
    np.save(tmp_path / "x.npy", x)
    env = {**os.environ, "METALJIT_CACHE_DIR": str(tmp_path / "cache")}
    files = [str(path), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    subprocess.run([sys.executable, "-c", LOADS, *files], check=True, env=env)
    np.testing.assert_array_equal(np.load(files[2]), mj.jit(model)({"w": x[0]}, x, 3.0)["y"])


def test_a_file_of_another_device_compiles_its_source(tmp_path: Path) -> None:
    compiled().save(tmp_path / "model.mjx")
    args = ({"w": a(7)}, a(6, 7), 3.0)
    loaded = mj.load_executable(tmp_path / "model.mjx", device="emulator")
    np.testing.assert_allclose(loaded.run(*args)["y"], mj.jit(model)(*args)["y"], rtol=1e-5, atol=1e-5)


def test_loops_choices_and_captured_arrays_are_kept(tmp_path: Path) -> None:
    table = a(5)

    @mj.jit
    def f(x: Any, n: Any) -> Any:
        y = mj.for_loop(n, lambda i, v: np.roll(v, 1) + table, x)
        return mj.cond(y.sum() > 50, lambda: np.flip(y), lambda: np.roll(y, 2))

    made = f.compile(mj.spec((5,), F32), 1)
    made.save(tmp_path / "f.mjx")
    loaded = mj.load_executable(tmp_path / "f.mjx")
    for n in (0, 3, 40):
        np.testing.assert_array_equal(loaded.run(a(5), n), f(a(5), n))


def test_variables_are_kept_with_their_values(tmp_path: Path) -> None:
    total = mj.Variable(F32(1), "total")

    @mj.jit
    def add(x: Any) -> Any:
        return total.assign(total.value + x.sum())

    made = add.compile(mj.spec((None,), F32))
    made.run(np.ones(2, F32))
    made.save(tmp_path / "add.mjx")
    loaded = mj.load_executable(tmp_path / "add.mjx")
    (own,) = loaded.variables
    assert own.name == "total"
    assert loaded.run(np.ones(3, F32)) == 6
    assert np.asarray(own.value) == 6
    assert np.asarray(total.value) == 3


def test_shapes_can_be_fixed() -> None:
    made = mj.jit(lambda x: x.sum() if x.shape[0] > 3 else -x).compile(a(6, 7), specialize="shapes")
    assert made.run(a(6, 7)) == pytest.approx(a(6, 7).sum(), rel=1e-5)
    assert made.cost().nbytes == 6 * 7 * 4 + 4
    with pytest.raises(mj.ShapeError):
        made.run(a(5, 7))


def test_what_a_run_costs() -> None:
    made = mj.jit(lambda x: np.exp(x) * 2).compile(mj.spec((None, 8), F32))
    cost = made.cost(mj.spec((4, 8), F32))
    assert (cost.kernels, cost.nbytes, cost.temporaries) == (1, 2 * 4 * 8 * 4, 0)
    assert cost.operations >= 2 * 32
    looped = mj.jit(lambda x: mj.for_loop(10, lambda i, v: np.roll(v, 1), x)).compile(mj.spec((8,), F32))
    assert looped.cost().kernels == 10
    assert looped.cost().nbytes == 10 * 2 * 8 * 4
    with pytest.raises(mj.LaunchFault, match="left open"):
        made.cost()


def test_runs_in_a_queue() -> None:
    made = mj.jit(lambda x: x * 2).compile(mj.spec((None,), F32))
    before, after = mj.Event("before"), mj.Event("after")
    with mj.Queue() as queue:
        found = made.run_async(a(5), queue=queue, wait=[(before, 1)], signal=[(after, 7)])
        assert not found.done()
        before.signal(1)
        after.wait(7)
        np.testing.assert_array_equal(found.result(), a(5) * 2)


def test_mistakes(tmp_path: Path) -> None:
    made = compiled()
    wrong: list[tuple[str, Callable[[], Any]]] = [
        ("executable-arguments", lambda: made.run(a(3))),
        ("executable-file", lambda: mj.load_executable(tmp_path / "missing.mjx")),
        ("executable-file", lambda: mj.load_executable(broken(tmp_path, b"no zip"))),
        ("executable-unkept", lambda: returning_itself().save(tmp_path / "x.mjx")),
        (
            "traced-extent",
            lambda: mj.jit(lambda x: x if x.shape[0] > 3 else -x).compile(mj.spec((None,), F32)),
        ),
        ("traced-extent", lambda: mj.jit(lambda x: -x).compile(mj.spec((None,), F32), specialize="shapes")),
    ]
    for slug, run in wrong:
        with pytest.raises(mj.MetaljitError) as caught:
            run()
        assert caught.value.slug == slug
    assert not (tmp_path / "x.mjx").exists()


def broken(folder: Path, data: bytes) -> Path:
    path = folder / "broken.mjx"
    path.write_bytes(data)
    return path


def returning_itself() -> mj.Executable:
    return mj.jit(lambda x: (x * 2, object)).compile(mj.spec((None,), F32))


def test_a_damaged_file_is_no_executable(tmp_path: Path) -> None:
    compiled().save(tmp_path / "model.mjx")
    data = (tmp_path / "model.mjx").read_bytes()
    for cut in (100, len(data) // 2, len(data) - 30):
        with pytest.raises(mj.LaunchFault, match="executable"):
            mj.load_executable(broken(tmp_path, data[:cut]))
