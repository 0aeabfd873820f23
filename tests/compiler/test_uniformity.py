"""Barriers in divergent control flow are refused, and those that all threads reach are not."""

from __future__ import annotations

import pytest

import metaljit as mj
from metaljit.lang import f32

HEAD = """\
N = dims("N")

def first(x):
    return x[0]

def twice(x):
    return 2 * x

def waits(tile, x):
    tile[thread_index()] = x
    barrier()
    return tile[0]

@kernel(grid="ceil_div(N, 64)", threadgroup={threadgroup})
def f(x: f32[N], y: InOut[f32[N]], at: i32, n: const[int] = 3):
    tile, other = threadgroup_array(f32, 64), threadgroup_array(i32, 64)
    t, i, g, s = thread_index(){item}, global_index(){item}, group_index(){item}, simd_index()
"""


def compiled(body: str, threadgroup: str = "64") -> str:
    item = "" if "," not in threadgroup else "[0]"
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    text = HEAD.replace("{threadgroup}", threadgroup).replace("{item}", item) + lines
    spec = mj.spec((None,), f32)
    return mj.kernel_from_text(text).msl(spec, spec, 1)


UNIFORM = {
    "constants, extents, scalars, group indices": """
if n > 2 and N > 5 and at < 3 and g == 0:
    barrier()
""",
    "a loop over uniform bounds": """
for k in range(at, N, 2):
    for j in range(k):
        barrier()
""",
    "a variable that all threads change alike": """
step = 32
while step > 0:
    tile[t] = 1.0
    barrier()
    if step == 4:
        break
    step //= 2
""",
    "an argument at a uniform index": """
if x[at] > x[g]:
    barrier()
""",
    "threadgroup memory that a barrier separates from its writes": """
tile[t] = x[i]
barrier()
if tile[0] > 1:
    barrier()
tile[t] = 0.0
""",
    "what a group has computed together": """
if group_sum(x[i]) > group_max(x[i]):
    barrier()
""",
    "the user's word": """
if uniform(y[0] > x[i]):
    barrier()
""",
    "functions of uniform values": """
if twice(at) > 3 and first(x) > 0:
    barrier()
""",
    "a function that waits": """
v = waits(tile, x[i])
""",
    "divergence that ends before": """
if t < 3:
    tile[t] = 1.0
for k in range(t):
    if k == 7:
        break
    y[i] = 1.0
barrier()
""",
    "a return of all threads": """
if N < at:
    return
barrier()
""",
    "a return of some after the last barrier": """
barrier()
if t > 3:
    return
y[i] = 1.0
""",
    "a simdgroup's own way": """
if s == 1:
    v = simd_sum(x[i])
    if v > 0:
        y[i] = simd_max(x[i])
if t // 32 == 0:
    y[i] = simd_shuffle(x[i], t)
if simd_ballot(x[i] > 0) != 0:
    y[i] = simd_min(x[i])
""",
    "a local array of uniform values": """
own = local_array(i32, 4)
own[0] = at
if own[0] > 3:
    barrier()
""",
}


@pytest.mark.parametrize("body", UNIFORM.values(), ids=UNIFORM)
def test_reached_by_all(body: str) -> None:
    assert "barrier" in compiled(body) or "simd_" in compiled(body)


# The text of the barrier and that of the condition that decides it.
DIVERGENT = {
    "a thread's own index": ("if t < 32:\n    barrier()", "barrier()", "t < 32"),
    "the other branch": ("if i < N:\n    y[i] = 1.0\nelse:\n    barrier()", "barrier()", "i < N"),
    "a loop over the thread's index": ("for k in range(t):\n    barrier()", "barrier()", "range(t)"),
    "a loop while a thread's value holds": (
        "v = x[i]\nwhile v > 1:\n    v /= 2\n    barrier()",
        "barrier()",
        "v > 1",
    ),
    "after a return of some": ("if i >= N:\n    return\nbarrier()", "barrier()", "i >= N"),
    "after a break of some, in the next turn": (
        "for k in range(9):\n    barrier()\n    if t == k:\n        break",
        "barrier()",
        "t == k",
    ),
    "after a continue of some": (
        "for k in range(9):\n    if x[i] > k:\n        continue\n    barrier()",
        "barrier()",
        "x[i] > k",
    ),
    "a variable that only some change": (
        "k = 0\nif t > 3:\n    k = 1\nif k == 1:\n    barrier()",
        "barrier()",
        "k == 1",
    ),
    "a variable whose loop some leave": (
        "k = 0\nwhile k < 9:\n    k += 1\n    if k == t:\n        break\nif k == 9:\n    barrier()",
        "barrier()",
        "k == 9",
    ),
    "memory of the device that threads write": ("if y[0] > 1:\n    barrier()", "barrier()", "y[0] > 1"),
    "threadgroup memory without a barrier": (
        "tile[t] = x[i]\nif tile[0] > 1:\n    barrier()",
        "barrier()",
        "tile[0] > 1",
    ),
    "threadgroup memory at a thread's index": (
        "tile[t] = x[i]\nbarrier()\nif tile[t] > 1:\n    barrier()",
        "barrier()",
        "tile[t] > 1",
    ),
    "threadgroup memory that is written before all have read it": (
        "tile[t] = x[i]\nbarrier()\nv = tile[0]\ntile[t] = 2.0\nif v > 1:\n    barrier()",
        "barrier()",
        "v > 1",
    ),
    "and within the branch": (
        "tile[t] = x[i]\nbarrier()\nif tile[0] > 1:\n    tile[t] = 0.0\n    barrier()",
        "barrier()",
        "tile[0] > 1",
    ),
    "threadgroup memory that an atomic changes": (
        "other[t] = 0\nbarrier()\natomic_add(other, 0, 1)\nif other[0] > 1:\n    barrier()",
        "barrier()",
        "other[0] > 1",
    ),
    "threadgroup memory that the last turn wrote": (
        "tile[t] = x[i]\nbarrier()\nfor k in range(3):\n    if tile[0] > k:\n        barrier()\n    tile[t] += 1",
        "barrier()",
        "tile[0] > k",
    ),
    "threadgroup memory from before a loop that may not run": (
        "tile[t] = x[i]\nfor k in range(at):\n    barrier()\nif tile[0] > 1:\n    barrier()",
        "barrier()",
        "tile[0] > 1",
    ),
    "a group's prefix sum": (
        "if group_prefix_sum(t) > 5:\n    barrier()",
        "barrier()",
        "group_prefix_sum(t) > 5",
    ),
    "a simdgroup's index": ("if s == 0:\n    barrier()", "barrier()", "s == 0"),
    "a simdgroup's sum": ("if simd_sum(x[i]) > 0:\n    barrier()", "barrier()", "simd_sum(x[i]) > 0"),
    "a collective of the group": ("if s == 0:\n    y[i] = group_sum(x[i])", "group_sum(x[i])", "s == 0"),
    "a collective of a simdgroup": ("if t > 3:\n    y[i] = simd_sum(x[i])", "simd_sum(x[i])", "t > 3"),
    "a shuffled value": ("if simd_shuffle(t, 3) > 3:\n    barrier()", "barrier()", "simd_shuffle(t, 3) > 3"),
    "a broadcast from another lane each": (
        "if simd_broadcast(t, t) > 3:\n    y[i] = simd_sum(x[i])",
        "simd_sum(x[i])",
        "simd_broadcast(t, t) > 3",
    ),
    "one side of a choice": ("v = group_sum(x[i]) if t > 3 else 0.0", "group_sum(x[i])", "group_sum"),
    "a function that waits": ("if t > 3:\n    v = waits(tile, x[i])", "barrier()", "t > 3"),
    "a local array that some write": (
        "own = local_array(i32, 4)\nif t > 3:\n    own[0] = 1\nif own[0] > 0:\n    barrier()",
        "barrier()",
        "own[0] > 0",
    ),
    "what an atomic gives": ("k = atomic_add(y, 0, 1.0)\nif k == 0:\n    barrier()", "barrier()", "k == 0"),
}


@pytest.mark.parametrize(("body", "barrier", "condition"), DIVERGENT.values(), ids=DIVERGENT)
def test_not_reached_by_all(body: str, barrier: str, condition: str) -> None:
    with pytest.raises(mj.TypeFault) as caught:
        compiled(body)
    (found,) = caught.value.diagnostics
    assert found.slug == "divergent-barrier"
    assert found.span is not None
    assert found.span.text == barrier
    assert found.second is not None
    assert condition in found.second[0].text
    # A way out: where threadgroup memory is read too early, a barrier.
    too_early = any(read in condition for read in ("tile[0]", "other[0]")) or "v = tile[0]" in body
    assert ("between each write to '" in found.help) == too_early
    assert "uniform(" in found.help or "barrier()" in found.help


def test_a_group_that_is_one_simdgroup() -> None:
    """What is the same for a simdgroup is the same for the group."""
    text = compiled("if s == 0 and simd_sum(x[i]) > 0:\n    barrier()", threadgroup="32")
    assert "simdgroup_barrier" in text


def test_an_axis_that_is_the_same_for_a_simdgroup() -> None:
    body = "if thread_index()[0] == 1:\n    y[0] = simd_sum(x[0])"
    assert "simd_sum" in compiled(body, threadgroup="(4, 64)")
    with pytest.raises(mj.TypeFault, match="divergent-barrier"):
        compiled(body, threadgroup="(16, 16)")


def test_every_barrier_is_reported() -> None:
    with pytest.raises(mj.TypeFault) as caught:
        compiled("if t > 3:\n    barrier()\n    tile[0] = 1.0\n    barrier()\nif t > 5:\n    barrier()")
    assert [d.span.text for d in caught.value.diagnostics if d.span] == ["barrier()"] * 3


@pytest.mark.parametrize("body", ["tile[64] = 1.0", "y[i] = tile[64]", "y[i] = atomic_add(other, 64, 1)"])
def test_a_known_index_behind_the_end(body: str) -> None:
    with pytest.raises(
        mj.TypeFault, match=r"index 64 is outside '(tile|other)', which has 64 elements"
    ) as caught:
        compiled(body)
    assert caught.value.slug == "index-range"


@pytest.mark.parametrize("value", ["x[i]", "tile", "1", "t, t", "first(x)"])
def test_a_kernel_with_a_grid_returns_no_value(value: str) -> None:
    with pytest.raises(mj.TypeFault, match="write it to an `Out` array") as caught:
        compiled(f"if i < N:\n    return {value}")
    assert caught.value.slug == "result-count"
    assert caught.value.diagnostics[0].span is not None
    assert caught.value.diagnostics[0].span.text == value
    assert "return;" in compiled("if i < N:\n    return\ny[i] = 1")


@pytest.mark.parametrize("index", ["0", "0, 0"])
def test_a_tile_has_no_elements_to_ask_for(index: str) -> None:
    with pytest.raises(mj.TypeFault, match="cannot be indexed"):
        compiled(f"m = simdgroup_matrix(f32)\ny[i] = m[{index}]")
