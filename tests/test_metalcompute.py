"""`metaljit.metalcompute` against what the published source of metalcompute 0.2.9 does."""

# Wrong calls are what is tested.
# mypy: disable-error-code="call-arg, arg-type"

from __future__ import annotations

import copy
import os
import subprocess
import sys
from array import array
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import metaljit.metalcompute as mc
from metaljit.metalcompute_objects import Buffer, Function, Kernel

F = np.float32
ADD = """#include <metal_stdlib>
using namespace metal;
kernel void add(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]],
                device float* c [[buffer(2)]], uint id [[thread_position_in_grid]]) {
    c[id] = a[id] + b[id];
}
kernel void next(device float* a [[buffer(0)]], uint id [[thread_position_in_grid]]) { a[id] += 1; }
kernel void sizes(device uint* out [[buffer(0)]], uint id [[thread_position_in_grid]],
                  uint n [[threads_per_grid]], uint w [[threads_per_threadgroup]]) {
    if (id == 0) { out[0] = n; out[1] = w; }
}
"""
SQUARE = """#include <metal_stdlib>
kernel void square(const device float* a [[buffer(0)]], device float* b [[buffer(1)]],
                   uint id [[thread_position_in_grid]]) { b[id] = a[id] * a[id]; }
kernel void bytes(const device uchar* a [[buffer(0)]], device uchar* b [[buffer(1)]],
                  uint id [[thread_position_in_grid]]) { b[id] = a[id] + 2; }
"""
STRAY = "<class 'metalcompute.Run'> returned a result with an exception set"
ENDLESS = """kernel void endless(device int* a [[buffer(0)]], uint id [[thread_position_in_grid]]) {
    while (a[0] == 0) { a[1] = 1; }
}
kernel void wild(device int* a [[buffer(0)]]) { a[100000000] = 1; }
"""


@pytest.fixture(scope="module")
def gpu() -> mc.Device:
    return mc.Device()


@pytest.fixture(scope="module")
def kernel(gpu: mc.Device) -> Kernel:
    return gpu.kernel(ADD)


@pytest.fixture
def released() -> Iterator[None]:
    mc.release()
    yield
    mc.release()


# ---- objects ----


def test_the_module_has_metalcomputes_names() -> None:
    names = {"init", "release", "compile", "run", "rerun", "get_devices", "Device", "error"}
    assert {name for name in dir(mc) if name[0] not in "_@"} == names  # pytest adds some with "@"
    assert all(getattr(mc, name).__module__ == "metaljit.metalcompute" for name in names)
    assert issubclass(mc.error, Exception)


def test_devices() -> None:
    (found,) = mc.get_devices()
    assert isinstance(found, tuple)
    assert len(found) == 4
    assert found.recommendedWorkingSetSize > 0
    assert found.hasUnifiedMemory is True
    for index in ((), (0,), (-1,)):
        assert str(mc.Device(*index)) == f"metalcompute.Device({found.deviceName})"
    with pytest.raises(mc.error, match=r"^Cannot create device$"):
        mc.Device(1)
    for wrong in ("0", 0.5, None, 2**63, b""):
        for call in (mc.Device, mc.init):
            with pytest.raises(SystemError, match="returned a result with an exception set"):
                call(wrong)
    for named in (mc.init, mc.get_devices, mc.release):
        with pytest.raises(TypeError, match=f"{named.__name__}\\(\\) takes no keyword arguments"):
            named(device_index=0)


def test_texts_of_objects(gpu: mc.Device, kernel: Kernel) -> None:
    function = kernel.function("next")
    buffer = gpu.buffer(8)
    shown = [str(x) for x in (kernel, function, buffer, function(1, buffer))]
    assert shown == [f"metalcompute.{x}" for x in ("Kernel", "Function", "Buffer(length=8)", "Run")]


def test_buffers_of_ours_are_shared_and_others_copied(gpu: mc.Device, kernel: Kernel) -> None:
    add, a, b = kernel.function("add"), np.arange(1000, dtype=F), array("f", [2] * 1000)
    c = gpu.buffer(4000)
    add(1000, a, b, c)
    np.testing.assert_array_equal(np.frombuffer(c, F), a + 2)
    kernel.function("next")(1000, a)
    assert a[0] == 0
    shared = gpu.buffer(a)
    view = np.frombuffer(shared, F)
    for _ in range(3):
        kernel.function("next")(1000, shared)
    np.testing.assert_array_equal(view, a + 3)
    view[:] = 5
    add(1000, shared, shared, c)
    assert (np.frombuffer(c, F) == 10).all()


def test_runs_go_on_in_the_background_in_order(gpu: mc.Device, kernel: Kernel) -> None:
    buffer, function = gpu.buffer(4 * 1024), kernel.function("next")
    runs = [function(1024, buffer) for _ in range(20)]
    del runs[-1]  # waits for it, and so for all
    assert (np.frombuffer(buffer, F) == 20).all()
    del runs


@pytest.mark.parametrize(("count", "total"), [(1, 1024), (1024, 1024), (1025, 2048), (3.9, 1024)])
def test_the_grid_is_whole_groups(gpu: mc.Device, kernel: Kernel, count: Any, total: int) -> None:
    out = gpu.buffer(8)
    kernel.function("sizes")(count, out)
    assert np.frombuffer(out, np.uint32).tolist() == [total, 1024]


@pytest.mark.parametrize("count", [0, -1, -5000])
def test_no_threads_are_no_run(gpu: mc.Device, kernel: Kernel, count: int) -> None:
    out = gpu.buffer(8)
    kernel.function("sizes")(count, out)
    assert np.frombuffer(out, np.uint32).tolist() == [0, 0]


def test_what_overhangs_in_the_last_page_does_no_harm(gpu: mc.Device, kernel: Kernel) -> None:
    for n in (1, 1023, 5000):
        out = gpu.buffer(4 * n)
        kernel.function("add")(n, np.ones(n, F), np.ones(n, F), out)
        assert np.frombuffer(out, F).tolist() == [2] * n


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (7, bytes(7)),
        (7.9, bytes(7)),
        ("12", bytes(12)),
        (b"12", b"12"),
        (bytearray(b"xyz"), b"xyz"),
        (array("h", [1, 2]), b"\1\0\2\0"),
        (np.float32(1), b"\0\0\x80\x3f"),
        (memoryview(b"abcd")[1:3], b"bc"),
        (np.arange(4, dtype=np.uint8).reshape(2, 2), bytes(range(4))),
        (np.array([1], "M8[s]"), b"\1\0\0\0\0\0\0\0"),  # of no format that a memoryview knows
    ],
)
def test_what_makes_a_buffer(gpu: mc.Device, contents: Any, expected: bytes) -> None:
    buffer = gpu.buffer(contents)
    view = memoryview(buffer)
    assert view.tobytes() == expected
    assert (view.format, view.itemsize, view.ndim, view.readonly) == ("B", 1, 1, False)
    assert memoryview(gpu.buffer(16)).cast("f").tolist() == [0] * 4


@pytest.mark.parametrize("contents", [0, b"", np.zeros(0), -1, 2**45, 2**70])
def test_buffers_that_metal_has_not(gpu: mc.Device, contents: Any) -> None:
    with pytest.raises(mc.error, match=r"^Could not make buffer$"):
        gpu.buffer(contents)


@pytest.mark.parametrize("contents", ["x", None, [1], object(), np.arange(6)[::2]])
def test_what_makes_no_buffer(gpu: mc.Device, contents: Any) -> None:
    with pytest.raises(mc.error, match=r"^Unsupported input format$"):
        gpu.buffer(contents)


def test_a_buffer_has_the_buffer_protocol_and_nothing_else(gpu: mc.Device) -> None:
    buffer: Any = gpu.buffer(b"abc")
    uses: list[Any] = [
        lambda: buffer[0],
        lambda: len(buffer),
        lambda: list(buffer),
        lambda: b"a" in buffer,
        lambda: buffer + buffer,
    ]
    for use in uses:
        with pytest.raises(TypeError):
            use()
    for name in (
        "shape",
        "tobytes",
        "size",
        "T",
        "append",
        "decode",
        "__len__",
        "__iter__",
        "__array_interface__",
    ):
        assert not hasattr(buffer, name)
    assert not [name for name in dir(buffer) if name[0] != "_"]
    assert not isinstance(buffer, np.ndarray)
    for things in (buffer, cast(Any, gpu), kernel_of(gpu)):
        with pytest.raises(AttributeError):
            things.x = 1
        with pytest.raises(TypeError, match="cannot pickle"):
            copy.copy(things)
    assert buffer == buffer
    assert buffer != gpu.buffer(b"abc")
    assert bool(buffer)
    assert {buffer: 1}[buffer] == 1
    assert bytearray(buffer) == b"abc"
    assert "object at" in repr(buffer)


def kernel_of(gpu: mc.Device) -> Any:
    return gpu.kernel(ADD)


def test_numpy_takes_a_buffer_as_bytes(gpu: mc.Device) -> None:
    buffer: Any = gpu.buffer(b"abc")
    np.testing.assert_array_equal(buffer, [97, 98, 99])
    assert np.stack([buffer, buffer]).tolist() == [[97, 98, 99]] * 2
    assert type(np.zeros_like(buffer)) is np.ndarray
    assert (np.ones(3) + buffer).tolist() == [98, 99, 100]
    assert np.sum(buffer) == 294
    assert b"x" + buffer == b"xabc"
    np.asarray(buffer)[0] = 122
    assert bytes(buffer) == b"zbc"


def test_a_view_outlives_its_buffer(gpu: mc.Device) -> None:
    view = np.frombuffer(gpu.buffer(b"abc"), np.uint8)
    assert view.tobytes() == b"abc"


def test_arguments_of_the_objects(gpu: mc.Device, kernel: Kernel) -> None:
    function, buffer = kernel.function("next"), gpu.buffer(4)
    words: list[tuple[Any, type[Exception], str]] = [
        (lambda: gpu.kernel(), TypeError, "function takes exactly 1 argument (0 given)"),
        (lambda: gpu.kernel("a", "b"), TypeError, "function takes exactly 1 argument (2 given)"),
        (lambda: gpu.kernel(1), TypeError, "argument 2 must be str, not int"),
        (lambda: gpu.kernel(None), TypeError, "argument 2 must be str, not None"),
        (lambda: gpu.kernel("a\0b"), ValueError, "embedded null character"),
        (lambda: kernel.function(b"next"), TypeError, "argument 2 must be str, not bytes"),
        (lambda: kernel.function("other"), mc.error, "Function not found"),
        (
            lambda: Kernel(kernel, "x"),
            mc.error,
            "First argument should be a metalcompute.Device object",
        ),
        (
            lambda: Function(gpu, "x"),
            mc.error,
            "First argument should be a metalcompute.Kernel object",
        ),
        (lambda: Buffer(kernel, 1), mc.error, "First argument should be a metalcompute.Device object"),
        (lambda: function(), mc.error, "Buffer not found"),
        (lambda: function(1), mc.error, "Buffer not found"),
        (
            lambda: function("1", buffer),
            mc.error,
            "First argument should be an integer kernel count",
        ),
        (lambda: function(buffer, buffer), mc.error, "First argument should be an integer kernel count"),
        (lambda: function(1, "x"), mc.error, "Unsupported input format"),
        (
            lambda: function(np.str_("1"), buffer),
            mc.error,
            "First argument should be an integer kernel count",
        ),
        (lambda: function(1j, buffer), SystemError, STRAY),
        (lambda: function(2**63, buffer), SystemError, STRAY),
        (lambda: function(float("nan"), buffer), SystemError, STRAY),
    ]
    for use, kind, text in words:
        with pytest.raises(kind) as caught:
            use()
        assert str(caught.value) == text
        assert type(caught.value) is kind
    with pytest.raises(TypeError, match="no keyword arguments"):
        gpu.buffer(contents=4)


def test_what_the_compiler_says(gpu: mc.Device) -> None:
    with pytest.raises(mc.error) as caught:
        gpu.kernel("#include <metal_stdlib>\nkernel void k(device float* a [[buffer(0)]]) {\n\tb = 1;\n}")
    assert str(caught.value) == "program_source:3:2: error: use of undeclared identifier 'b'\n\tb = 1;\n\t^\n"
    with pytest.raises(mc.error, match=r"program_source:1:"):
        gpu.kernel("invalid_program")
    with pytest.raises(mc.error, match=r"nowhere.h"):
        gpu.kernel("#include <nowhere.h>\n")


# ---- faults ----


def test_a_fault_of_a_run_is_told_at_its_end_and_at_the_next_call(
    gpu: mc.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    function = gpu.kernel(ENDLESS).function("wild")
    buffer = gpu.buffer(4)
    told: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        function(1, buffer)
    finally:
        sys.unraisablehook = before
    assert told[0].exc_type is mc.error
    assert "wild" in str(told[0].exc_value)
    del told[:]
    with pytest.raises(mc.error, match="program_source:4"):
        gpu.buffer(4)
    assert memoryview(gpu.buffer(b"fine")).tobytes() == b"fine"


FAULTS = f"""
import metaljit.metalcompute as mc, numpy as np
device = mc.Device()
text = '''{ENDLESS}'''
function = device.kernel(text).function("endless")
buffer = device.buffer(64)
function(1, buffer)
try:
    device.buffer(4)
except mc.error as e:
    print("told", "endless" in str(e), np.frombuffer(buffer, np.int32).any())
np.frombuffer(buffer, np.int32)[0] = 1
function(1, buffer)
print("again")
"""
OVERHANG = f"""
import metaljit.metalcompute as mc, numpy as np
device = mc.Device()
add = device.kernel('''{ADD}''').function("add")
add(1000, np.ones(1000, "f"), np.ones(1000, "f"), device.buffer(4000))
try:
    device.buffer(4)
except mc.error as e:
    print("out-of-bounds" in str(e), "program_source:5:" in str(e))
"""


def python(text: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | settings,
    )


def test_an_endless_loop_ends() -> None:
    done = python(FAULTS, METALJIT_EMULATOR_LIMIT="1")
    assert done.stdout.splitlines() == ["told True False", "again"], done.stderr
    assert "Exception ignored" in done.stderr


def test_the_check_of_every_access_reports_what_overhangs() -> None:
    done = python(OVERHANG, METALJIT_SANITIZE="1")
    assert done.stdout.splitlines() == ["True True"], done.stderr
    assert python(OVERHANG, METALJIT_SANITIZE="0").stdout == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_queue_of_its_own(gpu: mc.Device, kernel: Kernel) -> None:
    buffer = gpu.buffer(4 * 1024)
    kernel.function("next")(1024, buffer)
    child = os.fork()
    if child == 0:
        kernel.function("next")(1024, buffer)
        os._exit(int(np.frombuffer(buffer, F)[7]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


# ---- the first generation ----


def test_the_simple_functions(released: None) -> None:
    mc.init()
    mc.compile(SQUARE, "square")
    source, target = array("f", range(10)), array("f", [0] * 10)
    mc.run(source, target, 10)
    assert target.tolist() == [x * x for x in range(10)]
    mc.rerun(10)
    mc.compile(SQUARE, "bytes")
    out = bytearray(5)
    mc.run(b"abcde", out, 5)
    assert out == b"cdefg"
    pixels = np.zeros((2, 3), np.uint8)
    mc.run(b"abcdef", pixels, 6)
    assert pixels.tobytes() == b"cdefgh"


def test_the_simple_functions_out_of_order(released: None) -> None:
    i, o = array("f", [1]), array("f", [1])
    steps: list[tuple[Any, str]] = [
        (lambda: mc.compile(SQUARE, "square"), "Not ready to compile"),
        (lambda: mc.run(i, o, 1), "Not ready to compute"),
        (lambda: mc.rerun(1), "Failed to make output buffer"),
        (lambda: mc.init(3), "Cannot create device"),
        (mc.init, ""),
        (lambda: mc.run(i, o, 1), "Not ready to compute"),
        (lambda: mc.compile(SQUARE, "other"), "Failed to find function"),
        (lambda: mc.run(i, o, 1), "Not ready to compute"),
        (lambda: mc.compile("x", "square"), "program_source:1:1: error: "),
        (lambda: mc.compile(SQUARE, "square"), ""),
        (lambda: mc.rerun(1), "Failed to make output buffer"),
        (lambda: mc.run(array("f"), o, 1), "Failed to make input buffer"),
        (lambda: mc.run(i, array("f"), 1), "Failed to make output buffer"),
        (lambda: mc.run(array("d", [1]), o, 1), "Unsupported input format"),
        (lambda: mc.run(array("d", [1]), array("d", [1]), 1), "Unsupported output format"),
        (lambda: mc.run(i, b"abcd", 1), "Unsupported output format"),
        (lambda: mc.run(1, o, 1), "Unsupported input format"),
        (lambda: mc.run(np.ones(8, F)[::2], o, 1), "Unsupported input format"),
        (lambda: mc.run(i, o, 1), ""),
        (lambda: mc.compile(SQUARE, "other"), "Failed to find function"),
        (lambda: mc.rerun(1), ""),  # the last function that was found
        (lambda: mc.compile(SQUARE, "bytes"), ""),
        (lambda: mc.rerun(1), "Failed to make output buffer"),
        (mc.release, ""),
        (lambda: mc.compile(SQUARE, "square"), "Not ready to compile"),
    ]
    for number, (step, expected) in enumerate(steps):
        if not expected:
            step()
            continue
        with pytest.raises(mc.error) as caught:
            step()
        assert str(caught.value).startswith(expected), number


def test_arguments_of_the_simple_functions(released: None) -> None:
    mc.init()
    mc.compile(SQUARE, "square")
    i = array("f", [1])
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: mc.compile("x"), TypeError, "function takes exactly 2 arguments (1 given)"),
        (lambda: mc.compile(1, "x"), TypeError, "argument 1 must be str, not int"),
        (lambda: mc.compile("x", None), TypeError, "argument 2 must be str, not None"),
        (lambda: mc.run(i, i), TypeError, "function takes exactly 3 arguments (2 given)"),
        (lambda: mc.run(i, i, 1.5), TypeError, "'float' object cannot be interpreted as an integer"),
        (lambda: mc.run(i, i, 2**70), OverflowError, "Python int too large to convert to C long"),
        (lambda: mc.run(i, i, 2**31), OverflowError, "signed integer is greater than maximum"),
        (lambda: mc.rerun(), TypeError, "function takes exactly 1 argument (0 given)"),
    ]
    for call, kind, text in calls:
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value) == text


# ---- a program that was written for metalcompute ----

PROGRAM = """
import metalcompute as mc
import sys

device = mc.Device(0)
body = "out[id] = in[id] ^ 0x20"
kernel = '''#include <metal_stdlib>
using namespace metal;
kernel void pipe(const device uchar *in [[ buffer(0) ]], device uchar  *out [[ buffer(1) ]],
                 uint id [[ thread_position_in_grid ]]) {
''' + body + ";}"
function = device.kernel(kernel).function("pipe")
data = sys.stdin.buffer.read()
out = device.buffer(len(data))
function(len(data), data, out)
sys.stdout.buffer.write(out)
"""


def test_a_program_runs_as_it_is() -> None:
    start = f"import sys, metaljit.metalcompute as mc\nsys.modules['metalcompute'] = mc\nexec({PROGRAM!r})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", start], input=b"mETAL", capture_output=True, check=False, timeout=60
    )
    assert done.stdout == b"Metal", done.stderr
