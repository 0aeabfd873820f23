"""Where results go: fresh arrays, storage given as `out`, and what an error leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import programs as p
import pytest

from metaljit.extents import Lit
from metaljit.runtime.cpu import Cpu
from metaljit.runtime.device import Device, find
from metaljit.runtime.launch import Launcher
from metaljit.runtime.results import overlap
from metaljit.source import KernelAssertion, LaunchFault, ShapeError

F = np.float32
I = np.int32  # noqa: E741 - a dtype, as F is


@pytest.fixture(params=["cpu", "metal"])
def place(request: pytest.FixtureRequest, emulated: Any) -> Device:
    return find(request.param)


@pytest.fixture
def added(place: Device) -> Launcher:
    return Launcher(place, p.added())


def test_one_result_comes_alone_and_several_as_a_tuple(place: Device, added: Launcher) -> None:
    a = np.ones((2, 2), F)
    assert type(added([a, a])) is np.ndarray
    results = Launcher(place, p.counted())([np.zeros(3, I)])
    assert type(results) is tuple
    assert [r.dtype for r in results] == [I, I]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_is_dispatched_for_no_elements(cpu: Cpu, emulated: Any, shape: tuple[int, int]) -> None:
    for device in (cpu, find("metal")):
        launcher = Launcher(device, p.added())
        result = launcher([np.ones(shape, F), np.ones(shape, F)])
        assert result.shape == shape
        assert result.dtype == F
        assert launcher._pipeline is None
    assert emulated.compiled == []


def test_an_empty_argument_with_a_result_is_dispatched(place: Device) -> None:
    program = p.elementwise("length", (p.array("a", p.N),), (p.array("out", role="out"),), "    out[0] = 7;")
    assert Launcher(place, program)([np.ones(0, F)]) == 7


def test_an_inout_argument_is_read_and_never_changed(place: Device) -> None:
    bins = np.arange(5, dtype=I)
    bins.flags.writeable = False
    result, marks = Launcher(place, p.counted())([bins])
    np.testing.assert_array_equal(bins, np.arange(5))
    np.testing.assert_array_equal(result, np.arange(5) + 1)
    np.testing.assert_array_equal(marks, [42, 0, 42, 0, 42])


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.full((2, 3), 7, F),
        lambda: np.full((2, 3), 7, F, order="F"),
        lambda: np.full((4, 9), 7, F)[::2, ::-3],
        lambda: np.frombuffer(bytearray(25), np.uint8)[1:].view(F).reshape(2, 3),
    ],
)
def test_out_is_written_in_any_layout(added: Launcher, make: Any) -> None:
    a = np.arange(6, dtype=F).reshape(2, 3)
    out = make()
    assert added([a, a], out) is out
    np.testing.assert_array_equal(out, 2 * a)


def test_around_out_nothing_is_written(added: Launcher) -> None:
    wide = np.zeros((6, 8), F)
    a = np.ones((2, 3), F)
    added([a, a], wide[2:4, 3:6])
    assert wide.sum() == 12
    np.testing.assert_array_equal(wide[2:4, 3:6], 2)


def test_several_outs(place: Device) -> None:
    launcher = Launcher(place, p.counted())
    bins = np.arange(4, dtype=I)
    out = np.full(4, 9, I), np.full(4, 9, I)
    assert launcher([bins], out) is out
    np.testing.assert_array_equal(out[0], [1, 2, 3, 4])
    np.testing.assert_array_equal(out[1], [42, 0, 42, 0])
    np.testing.assert_array_equal(bins, np.arange(4))


def test_an_inout_argument_may_be_its_own_storage(place: Device) -> None:
    bins, marks = np.arange(4, dtype=I), np.empty(4, I)
    Launcher(place, p.counted())([bins], (bins, marks))
    np.testing.assert_array_equal(bins, [1, 2, 3, 4])
    strided = np.arange(8, dtype=I)
    Launcher(place, p.counted())([strided[::2]], (strided[::2], marks))
    np.testing.assert_array_equal(strided, [1, 1, 3, 3, 5, 5, 7, 7])


def read_only() -> Any:
    a = np.ones((2, 3), F)
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    ("out", "kind", "words"),
    [
        (np.ones((2, 4), F), ShapeError, "shape (2, 3), and has (2, 4)"),
        (np.ones((2, 3)), LaunchFault, "must hold f32, and holds float64"),
        (np.ones((2, 3), ">f4"), LaunchFault, "other byte order"),
        (read_only(), LaunchFault, "read-only"),
        ([[0.0] * 3] * 2, LaunchFault, "not a list"),
        ((np.ones((2, 3), F),), LaunchFault, "one array, and got a tuple of 1"),
        (7, LaunchFault, "not a int"),
    ],
)
def test_out_that_does_not_fit(added: Launcher, out: Any, kind: Any, words: str) -> None:
    a = np.ones((2, 3), F)
    before = np.array(out, copy=True)
    with pytest.raises(kind) as caught:
        added([a, a], out)
    assert words in str(caught.value)
    assert p.WHERE in str(caught.value)
    np.testing.assert_array_equal(np.array(out), before)


def test_the_wrong_number_of_outs(place: Device) -> None:
    launcher = Launcher(place, p.counted())
    for out in (np.ones(3, I), (np.ones(3, I),), (np.ones(3, I),) * 3):
        with pytest.raises(LaunchFault, match="a tuple of 2 arrays"):
            launcher([np.ones(3, I)], out)


def test_overlaps_are_refused(place: Device, added: Launcher) -> None:
    line = np.ones(40, F)
    a, b = line[:12].reshape(3, 4), np.ones((3, 4), F)
    for out in (a, line[4:16].reshape(3, 4), line[:24:2].reshape(3, 4)):
        before = line.copy()
        with pytest.raises(LaunchFault, match="shares memory with the argument `a`") as caught:
            added([a, b], out)
        assert caught.value.slug == "out-overlaps"
        np.testing.assert_array_equal(line, before)
    added([a, b], line[12:24].reshape(3, 4))
    added([line[:24:2].reshape(3, 4), b], line[1:25:2].reshape(3, 4))
    counted = Launcher(place, p.counted())
    bins = np.ones(9, I)
    for outs in ((bins[:8], bins[1:]), (bins[1:], np.ones(8, I)), (np.ones(8, I), bins[:8])):
        with pytest.raises(LaunchFault, match="share"):
            counted([bins[:8]], outs)
    np.testing.assert_array_equal(bins, 1)


def test_doubt_about_an_overlap_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    base = np.zeros(10, F)
    assert not overlap(base[::2], base[1::2])

    def give_up(*_: Any, **__: Any) -> bool:
        raise np.exceptions.TooHardError

    monkeypatch.setattr(np, "shares_memory", give_up)
    assert overlap(base[::2], base[1::2])
    assert not overlap(base[:5], base[5:])


def test_a_failed_assert_names_message_line_and_position(place: Device) -> None:
    a = np.ones((2, 3), F)
    a[1, 2] = -1
    before = a.copy()
    launcher = Launcher(place, p.positive())
    for out in (None, np.zeros((2, 3), F), a):
        with pytest.raises(KernelAssertion) as caught:
            launcher([a], out)
        text = str(caught.value)
        assert "user/kernels.py:9:5: error: positive: the assertion at position (1, 2) failed" in text
        assert "only positive numbers" in text
        assert "    9 |     assert a[y, x] > 0" in text
        np.testing.assert_array_equal(a, before)
    np.testing.assert_array_equal(launcher([np.ones((2, 3), F)]), 2)


def test_no_array_at_all(place: Device) -> None:
    program = p.elementwise("filled", (), (p.array("out", Lit(3), role="out"),), "    out[i] = float(i);")
    np.testing.assert_array_equal(Launcher(place, program)([]), [0, 1, 2])
