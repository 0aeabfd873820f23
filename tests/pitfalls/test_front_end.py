"""Sources that cannot be found, lines that are not the user's, names that collide with Metal's."""

from __future__ import annotations

import functools
import importlib.util
import keyword
import linecache
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_type import I32

import metaljit as mj
from metaljit import lang
from metaljit.lang import f32, i32, position

F = np.float32
N = mj.dims("N")
HERE = Path(__file__)
X = np.array([1, 2], F)


def line_of(text: str) -> int:
    """The one line of this file that ends with a comment of that text."""
    lines = [
        k for k, line in enumerate(HERE.read_text("utf-8").splitlines(), 1) if line.endswith(f"# {text}")
    ]
    assert len(lines) == 1
    return lines[0]


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- where the source comes from ----

TYPED = """
import metaljit as mj
from metaljit.lang import f32, position
N = mj.dims("N")

@mj.kernel
def typed(x: f32[N]) -> f32[N]:
    return x[position()] + 3
"""


def test_a_source_that_linecache_knows_is_enough(place: str) -> None:
    name = "<cell 1>"
    linecache.cache[name] = (len(TYPED), None, TYPED.splitlines(True), name)
    scope: dict[str, Any] = {}
    exec(compile(TYPED, name, "exec"), scope)
    assert scope["typed"](X).tolist() == [4, 5]
    del linecache.cache[name]


def test_a_function_without_source_is_an_error_with_a_way_out() -> None:
    for name in ("<string>", "<stdin>", "nowhere.py"):
        scope: dict[str, Any] = {}
        exec(compile(TYPED, name, "exec"), scope)
        for _ in range(2):
            with pytest.raises(mj.SyntaxFault) as caught:
                scope["typed"](X)
            assert caught.value.slug == "no-source"
            assert "kernel_from_text" in str(caught.value)


def test_a_kernel_typed_at_a_prompt() -> None:
    script = (
        TYPED
        + "\n\nimport numpy as np\ntry:\n    print(typed(np.ones(1, np.float32)))\nexcept mj.SyntaxFault as e:\n    print(e.slug)\n\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-"], input=script, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["no-source"]


def test_a_file_that_was_edited_after_it_was_imported_gives_no_other_functions_text(tmp_path: Path) -> None:
    """Python knows a function by a line number, and another function may stand there now."""
    file = tmp_path / "edited.py"
    first = (
        TYPED.replace("typed", "one")
        + "\n\n@mj.kernel\ndef two(x: f32[N]) -> f32[N]:\n    return x[position()] + 100\n"
    )
    file.write_text(first)
    decorators = [k for k, line in enumerate(first.splitlines()) if line == "@mj.kernel"]
    between = decorators[1] - decorators[0]  # after so many lines one stands where two stood
    for inserted in ("\n\n\n", "#\n" * between, "#\n" * (between - 1), "M = mj.dims('M')\n"):
        file.write_text(first)
        linecache.checkcache()
        module = imported(file)
        assert module.one(X).tolist() == [4, 5]
        before, after = first.split("@mj.kernel\ndef two")
        file.write_text(before.replace("N = mj", inserted + "N = mj") + "@mj.kernel\ndef two" + after)
        linecache.checkcache()
        assert module.one(X).tolist() == [4, 5]
        try:
            assert module.two(X).tolist() == [101, 102]
        except mj.SyntaxFault as e:
            assert e.slug == "no-source"  # noqa: PT017


def test_a_file_that_was_edited_and_imported_again_gives_its_new_text(tmp_path: Path) -> None:
    file = tmp_path / "again.py"
    for amount in (3, 44, 5):
        file.write_text(TYPED.replace("+ 3", f"+ {amount}"))
        assert imported(file).typed(X).tolist() == [1 + amount, 2 + amount]


def test_lambdas_and_other_things_are_refused_by_name() -> None:
    class Thing:
        def __call__(self, x: Any) -> Any:
            return x

    for decorate in (mj.kernel, mj.function):
        with pytest.raises(mj.SyntaxFault, match="lambda"):
            decorate(lambda x: x)
        things: list[Any] = [Thing(), Thing, len, np.sin, 3, "text", functools.partial(line_of, "x")]
        for thing in things:
            with pytest.raises((mj.MetaljitError, TypeError), match="def"):
                decorate(thing)


# Two functions of one name on neighbouring lines; the second is meant.
if True:

    @mj.kernel
    def chosen(x: f32[N]) -> f32[N]:
        return x[position()] + 1

    first_chosen = chosen
else:

    @mj.kernel
    def chosen(x: f32[N]) -> f32[N]:
        return x[position()] + 2


@mj.kernel  # type: ignore[no-redef]
def chosen(x: f32[N]) -> f32[N]:
    return x[position()] + 3


def test_of_functions_with_one_name_the_very_one_is_read(place: str) -> None:
    assert first_chosen(X).tolist() == [2, 3]
    assert chosen(X).tolist() == [4, 5]


def test_functions_made_in_a_loop_have_one_source_and_their_own_values(place: str) -> None:
    def make(k: int) -> mj.Kernel:
        @mj.kernel
        def made(x: f32[N]) -> f32[N]:
            return x[position()] * k

        return made

    kernels = [make(k) for k in (2, 3, 4)]
    assert [k(X).tolist() for k in kernels] == [[2, 4], [3, 6], [4, 8]]


class Holder:
    factor = 3

    @mj.kernel
    def method(x: f32[N]) -> f32[N]:
        return x[position()] * 5

    class Inner:
        # fmt: off
        @ mj . kernel (
            math = "precise" ,
        )
        def nested ( x : f32 [ N ] , *, k : i32 = 1 ,
                   ) -> f32 [ N ] :
            """A text
  that leaves the indentation."""
            return ( x [ position ( ) ]
  + k )  # a comment
        # fmt: on


def test_kernels_in_classes_with_odd_layouts(place: str) -> None:
    assert Holder.method(X).tolist() == [5, 10]
    assert Holder.Inner.nested(X, k=4).tolist() == [5, 6]


# ---- the user's own line ----


class Faulty:
    def make(self) -> mj.Kernel:
        if True:

            @mj.kernel
            def wrong(x: f32[N]) -> f32[N]:
                i = position()
                y = x[i] * 2
                return y & i  # the fault

            return wrong


def test_an_error_deep_inside_shows_the_users_file_line_and_column() -> None:
    kernel = Faulty().make()
    for _ in range(2):
        with pytest.raises(mj.TypeFault) as caught:
            kernel(X)
        (found,) = caught.value.diagnostics
        assert found.span is not None
        source = "                return y & i  # the fault"
        assert found.span.line == line_of("the fault")
        assert Path(found.span.source.name).name == HERE.name
        shown = str(caught.value).splitlines()
        assert f"{HERE.name}:{found.span.line}:{found.span.column}" in shown[0]
        excerpt = next(k for k, text in enumerate(shown) if source in text)
        assert shown[excerpt + 1].index("^") - shown[excerpt].index("|") - 2 == found.span.column - 1
        assert source[found.span.column - 1 :].startswith(("y & i", "y", "i"))


@mj.function
def callee(v):  # type: ignore[no-untyped-def]
    w = v + 1
    return w @ w  # in the callee


@mj.kernel
def caller(x: f32[N]) -> f32[N]:
    y = x[position()]
    return callee(y)


def test_an_error_in_a_called_function_shows_its_line() -> None:
    with pytest.raises(mj.TypeFault) as caught:
        caller(X)
    assert f":{line_of('in the callee')}:" in str(caught.value)


def test_an_error_in_an_imported_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "inner.mjk").write_text('"""Doc."""\n\n\ndef g(v):\n    w = v\n    return w + missing\n')
    (tmp_path / "outer.mjk").write_text(
        'from inner import g\nN = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    return g(x[position()])\n'
    )
    kernel = mj.load_kernels(tmp_path / "outer.mjk").f
    with pytest.raises(mj.TypeFault) as caught:
        kernel(X)
    assert "inner.mjk:6:16" in str(caught.value)
    assert "return w + missing" in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_lines_and_columns_with_other_line_ends_tabs_and_letters(
    tmp_path: Path, end: str, start: str
) -> None:
    lines = [
        "# grüße",
        'N = dims("N")',
        "@kernel",
        "def f(x: f32[N]) -> f32[N]:",
        '\ts = "é→"',
        "\treturn max(x[position()],",
        "\t\tmissing)",
    ]
    file = tmp_path / "f.mjk"
    file.write_bytes((start + end.join(lines) + end).encode())
    with pytest.raises(mj.TypeFault) as caught:
        mj.load_kernels(file).f(X)
    found = caught.value.diagnostics[-1]
    assert found.span is not None
    assert (found.span.line, found.span.column) == (7, 3)


def test_a_failed_assertion_shows_its_line_and_position(place: str) -> None:
    @mj.kernel
    def positive(x: f32[N]) -> f32[N]:
        v = x[position()]
        assert v > 0, "only positive"  # the assertion
        return v

    x = np.ones(50, F)
    x[37] = -1
    for _ in range(2):
        with pytest.raises(mj.KernelAssertion, match="only positive") as caught:
            positive(x)
        assert f"{HERE.name}:{line_of('the assertion')}" in str(caught.value)
        assert "37" in str(caught.value)
        assert 'assert v > 0, "only positive"' in str(caught.value)
    assert (positive(np.abs(x)) == 1).all()


def test_all_errors_of_a_kernel_come_together_in_the_order_of_its_lines() -> None:
    text = (
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    a = one\n    b = two\n    if x[0] > 0:\n        c = three\n'
        "    return four\n"
    )
    with pytest.raises(mj.TypeFault) as caught:
        mj.kernel_from_text(text)(X)
    lines = [d.span.line for d in caught.value.diagnostics if d.span]
    assert lines == [4, 5, 7, 8]


# ---- names ----

ROOT = HERE.parent.parent.parent
WORDS = (
    "alignas alignof and_eq asm auto bitand bitor catch char16_t compl const_cast constexpr decltype delete do dynamic_cast enum "
    "explicit export extern friend goto inline long mutable namespace new noexcept not_eq nullptr operator or_eq private "
    "protected public register reinterpret_cast restrict short signed sizeof static struct switch template this throw typedef "
    "typeid typename union unsigned using virtual void volatile wchar_t xor xor_eq default case char double "
    "half device kernel_ vertex fragment threadgroup thread constant sampler texture2d access ray_data imageblock "
    "main uint uchar ushort ulong size_t float2 float4x4 half3 int8_t uint32_t atomic_int atomic_uint metal simd as_type "
    "NAN INFINITY INT_MAX FLT_MAX M_PI_F M_SQRT2_F MAXFLOAT true false NULL EOF assert_ errno stdin "
    "p gid status inside out buffers params begin end_ block unit row columns first last made rest result name_ "
    "mj_add mj_floor_div mj_isnan mj_fail f f_at f_params f_at_result f_cpu f_thread mj_launch status_words x__y __x _X __FILE__ "
    "linux unix i386 near far interface small and_ INT32_MAX complex I isnan_ fract_ select saturate_ discard_fragment"
).split()


def usable() -> list[str]:
    text = (ROOT / "metaljit" / "compiler" / "reserved.txt").read_text("utf-8")
    listed = [
        w for line in text.splitlines() if not line.startswith("#") for w in re.findall(r"[A-Za-z_]\w*", line)
    ]
    known = {*dir(lang), "N", "x", "i", "total"}
    return sorted({w for w in (*listed, *WORDS) if not keyword.iskeyword(w) and w not in known and w != "_"})


def test_any_name_may_be_a_local(place: str) -> None:
    words = usable()
    assert len(words) > 300
    assigned = "".join(f"    {w} = x[i] * {k}\n    total += {w}\n" for k, w in enumerate(words))
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f_(x: i32[N]) -> i32[N]:\n    i = position()\n    total = i32(0)\n{assigned}    return total\n'
    )
    assert kernel(I32([1, 2])).tolist() == [sum(range(len(words))), 2 * sum(range(len(words)))]


def test_any_name_may_be_a_scalar_an_array_a_function_or_an_extent(place: str) -> None:
    words = [w for w in usable() if w != "out"]
    scalars = words[:200]
    arrays = [
        "half",
        "device",
        "thread",
        "constant",
        "main",
        "status",
        "gid",
        "p",
        "buffers",
        "f_at",
        "float4",
        "unsigned",
        "long",
    ]
    rest = [w for w in words if w not in arrays]
    functions, extents = rest[200:240], rest[240 : 240 + len(arrays)]
    text = "".join(f'{e} = dims("{e}")\n' for e in extents)
    text += "".join(f"def {w}(v):\n    return v + {k}\n" for k, w in enumerate(functions))
    parameters = [f"{a}: i32[{e}]" for a, e in zip(arrays, extents, strict=True)] + [
        f"{s}: i32" for s in scalars if s not in arrays
    ]
    text += f"@kernel\ndef this({', '.join(parameters)}) -> i32[{extents[0]}]:\n    i_ = position()\n    total_ = i32(0)\n"
    text += "".join(f"    total_ += {a}[i_] + {e}\n" for a, e in zip(arrays, extents, strict=True))
    text += "".join(f"    total_ += {s}\n" for s in scalars if s not in arrays)
    text += "".join(f"    total_ = {w}(total_)\n" for w in functions)
    text += "    return total_\n"
    count = len([s for s in scalars if s not in arrays])
    given = [np.full(2, k, np.int32) for k in range(len(arrays))]
    found = mj.kernel_from_text(text)(*given, *range(count))
    wanted = sum(range(len(arrays))) + 2 * len(arrays) + sum(range(count)) + sum(range(len(functions)))
    assert found.tolist() == [wanted, wanted]


KERNEL_NAMES = ("main", "half", "grüße", "metal", "__x", "mj_add")


def test_any_name_may_be_a_kernel(place: str) -> None:
    for name in KERNEL_NAMES:
        kernel = mj.kernel_from_text(
            f'N = dims("N")\n@kernel\ndef {name}(a: f32[N], b: f32) -> f32[N]:\n'
            f"    {name} = a[position()] + b\n    return {name} + 1\n"
        )
        assert kernel(X, 2).tolist() == [4, 5]


def test_no_name_meets_those_that_are_made_from_the_kernels_name(place: str) -> None:
    for name in ("status", "f"):
        kernel = mj.kernel_from_text(
            f'N = dims("N")\n@kernel\ndef {name}({name}_at: f32[N], {name}_params: f32) -> f32[N]:\n'
            f"    {name}_cpu = {name}_at[position()]\n    {name} = {name}_cpu + {name}_params\n    return {name} + 1\n"
        )
        assert kernel(X, 2).tolist() == [4, 5]
