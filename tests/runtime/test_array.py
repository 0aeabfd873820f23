"""Arrays in device memory: in, out, views, and no mixing of devices."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import programs as p
import pytest

from metaljit.runtime.array import Array, array, asarray
from metaljit.runtime.device import Device, find
from metaljit.runtime.launch import Launcher
from metaljit.source import LaunchFault, SizeError

F = np.float32
BFLOAT = ml_dtypes.bfloat16


@pytest.fixture(params=["cpu", "metal"])
def place(request: pytest.FixtureRequest, emulated: Any) -> Device:
    return find(request.param)


def test_arrays_in_arrays_out(place: Device) -> None:
    launcher = Launcher(place, p.added())
    a = np.arange(6, dtype=F).reshape(2, 3)
    on_device = asarray(a, device=place)
    result = launcher([on_device, a])
    assert isinstance(result, Array)
    assert result.device is place
    np.testing.assert_array_equal(result, 2 * a)
    again = launcher([result, result])
    np.testing.assert_array_equal(again.numpy(), 4 * a)
    np.testing.assert_array_equal(result.numpy(), 2 * a)
    assert type(launcher([a, a])) is np.ndarray


def test_a_copy_is_made_and_the_view_makes_none(place: Device) -> None:
    a = np.ones((2, 3), F)
    made = array(a, device=place)
    a[...] = 5
    assert (made.numpy() == 1).all()
    made.numpy()[0, 0] = 7
    assert made.numpy()[0, 0] == 7
    assert np.asarray(made)[0, 0] == 7
    assert np.shares_memory(np.asarray(made), made.numpy())
    assert not np.shares_memory(np.array(made), made.numpy())
    assert asarray(made, device=place) is made
    assert (Launcher(place, p.added())([made, made]).numpy()[0, 0]) == 14


def test_asarray_shares_memory_where_kernels_work_in_place(place: Device) -> None:
    a = np.ones((2, 3), F)
    shared = asarray(a, device=place)
    a[0, 0] = 5
    assert (shared.numpy()[0, 0] == 5) == place.in_place
    shared.numpy()[1, 1] = 7
    assert (a[1, 1] == 7) == place.in_place
    for other in (a.T, a[:, ::2], np.frombuffer(bytes(25), np.uint8)[1:].view(F)):
        copied = asarray(other, device=place)
        assert not np.shares_memory(copied.numpy(), other)
        np.testing.assert_array_equal(copied.numpy(), other)


def test_what_it_knows_of_itself(place: Device) -> None:
    array = asarray(np.ones((2, 3), F), device=place.name)
    assert (array.shape, array.ndim, array.size, array.nbytes) == ((2, 3), 2, 6, 24)
    assert array.dtype == F
    assert len(array) == 2
    assert f"device='{place.name}'" in repr(array)
    assert np.asarray(array, np.float64).dtype == np.float64


ANYTHING = [np.float32(3), np.zeros((0, 3), F), np.arange(6)[::-2], [1, 2], True, np.ones(3, BFLOAT)]


@pytest.mark.parametrize("value", ANYTHING)
def test_asarray_takes_what_numpy_takes(place: Device, value: Any) -> None:
    array = asarray(value, device=place)
    assert array.dtype == np.asarray(value).dtype
    assert array.shape == np.shape(value)
    np.testing.assert_array_equal(array, value)


@pytest.mark.parametrize("value", [np.float64(1.5), 1j, "x", np.array([None]), np.zeros(2, ">i4")])
def test_asarray_refuses_what_the_language_has_not(place: Device, value: Any) -> None:
    with pytest.raises(LaunchFault) as caught:
        asarray(value, device=place)
    assert caught.value.slug == "array-dtype"
    assert "help: " in str(caught.value)


def test_asarray_refuses_more_than_an_i32_counts(place: Device) -> None:
    with pytest.raises(SizeError, match="2147483648 elements"):
        asarray(np.broadcast_to(np.uint8(0), (2**16, 2**15)), device=place)


def test_devices_do_not_mix(emulated: Any) -> None:
    cpu, metal = find("cpu"), find("metal")
    a = np.ones((1, 1), F)
    for here, there in ((cpu, metal), (metal, cpu)):
        launcher = Launcher(here, p.added())
        with pytest.raises(LaunchFault, match=f"memory of device '{there.name}'") as caught:
            launcher([asarray(a, device=here), asarray(a, device=there)])
        assert f"device='{here.name}'" in str(caught.value)
        with pytest.raises(LaunchFault, match="out"):
            launcher([a, a], asarray(a, device=there))
        moved = asarray(asarray(a, device=there), device=here)
        assert (np.asarray(launcher([moved, a])) == 2).all()


def test_out_may_be_an_array(place: Device) -> None:
    launcher = Launcher(place, p.added())
    a, out = np.ones((2, 3), F), asarray(np.zeros((2, 3), F), device=place)
    assert launcher([a, a], out) is out
    assert (out.numpy() == 2).all()
    with pytest.raises(LaunchFault, match="shares memory"):
        launcher([out, a], out)
    bins, marks = (asarray(np.zeros(4, np.int32), device=place) for _ in range(2))
    Launcher(place, p.counted())([bins], (bins, marks))
    assert bins.numpy().tolist() == [1] * 4


def test_its_dtype_and_shape_are_checked(place: Device) -> None:
    launcher = Launcher(place, p.added())
    with pytest.raises(LaunchFault, match="f32"):
        launcher([asarray(np.ones((1, 1), np.int32), device=place)] * 2)
    with pytest.raises(LaunchFault, match="2 axes"):
        launcher([asarray(np.ones(1, F), device=place)] * 2)


def test_operators_run_where_the_array_is(place: Device) -> None:
    x = np.arange(12, dtype=F).reshape(3, 4)
    a = asarray(x, device=place)
    results: dict[str, tuple[Any, Any]] = {
        "numbers": (1 - a * 2.5, 1 - x * 2.5),
        "an array": (a + x[0], x + x[0]),
        "both": (np.maximum(a, a[::-1]), np.maximum(x, x[::-1])),
        "rows": (a.sum(axis=1), x.sum(axis=1)),
        "several kernels": (a - np.exp(a / 8).mean(), x - np.exp(x / 8).mean()),
        "elements": (a[1:, ::2], x[1:, ::2]),
        "by index": (a[np.array([2, 0])], x[[2, 0]]),
        "changed": (a.at[1].set(7), np.array([x[0], [7] * 4, x[2]], F)),
        "axes": (a.T.reshape(2, 6), x.T.reshape(2, 6)),
        "empty": (a[:0] + 1, x[:0]),
    }
    for name, (found, wanted) in results.items():
        assert isinstance(found, Array)
        assert found.device is place, name
        np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-6, err_msg=name)
    a[0] = 5
    np.testing.assert_array_equal((a + 0).numpy()[0], 5)
    assert (x[0, 0] == 5) == place.in_place
    parts: list[Any] = np.split(a, 3)
    assert all(part.device is place for part in parts)
