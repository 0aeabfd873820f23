"""Loops in loops, unrolled or not: what they carry, and when they need to know their variable."""

from __future__ import annotations

import numpy as np
import pytest

import metaljit as mj

HEAD = 'N = dims("N")\nTABLE = ((1, 2), (3, 4))\nPAIR = (1, 2)\n'
U = np.array([1, 2], np.float32)
BODIES = {
    "a table of tuples": ("for a in range(2):\n  for b in range(2):\n   s += TABLE[a][b] * u[i]", 10 * U),
    "an inner loop that must be unrolled": (
        "for a in range(2):\n  for b in range(2):\n   t = local_array(f32, b + 1)\n   t[b] = PAIR[a] * u[i]\n   s += t[b]",
        6 * U,
    ),
    "a while in an unrolled loop, left by break": (
        "k = 0\n for a in (1, 2):\n  while k < a * 2:\n   k += 1\n   s += u[i] * k\n  if k == 3:\n   break",
        10 * U,
    ),
    "continue in nested unrolled loops": (
        "for a in (1, 2):\n  for b in (3, 4):\n   s += a * b\n   continue",
        U * 0 + 21,
    ),
    "a pair that is swapped": (
        "p, q = 0, 1\n for a in (1, 2, 3):\n  for b in range(3):\n   p, q = q, p + q\n s += p",
        U * 0 + 34,
    ),
    "a carried tuple": (
        "t = (0.0, 1.0)\n for a in range(4):\n  t = (t[1], t[0] + u[i])\n s = t[0] + t[1]",
        4 * U + 1,
    ),
    "a name that the inner loop binds anew": (
        "for k in (0, 1):\n  s += k\n for a in range(2):\n  for k in (0, 1):\n   s += PAIR[k] * u[i]",
        6 * U + 1,
    ),
    "a generator over constants": ("s = sum(TABLE[a][b] * u[i] for a in range(2) for b in range(2))", 10 * U),
    "early exit of the inner loop": (
        "for a in (2, 3):\n  for k in range(5):\n   s += u[i]\n   if k == a:\n    break",
        7 * U,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_loops_keep_what_they_carry(name: str) -> None:
    body, want = BODIES[name]
    kernel = mj.kernel_from_text(
        HEAD + f"@kernel\ndef f(u: f32[N]) -> f32[N]:\n i = position()\n s = 0.0\n {body}\n return s\n"
    )
    np.testing.assert_array_equal(kernel(U), want)


def test_a_literal_meets_narrow_integers() -> None:
    """0 + u8 is i32 where turns meet, whether the loop is unrolled or not."""
    for loop in ("(-1, 0, 1)", "range(-1, 2)"):
        kernel = mj.kernel_from_text(
            HEAD
            + f"@kernel\ndef f(u: u8[N]) -> i32[N]:\n i = position()\n n = 0\n for d in {loop}:\n  n += u[i + d]\n return n\n"
        )
        np.testing.assert_array_equal(kernel(np.array([200, 100, 50], np.uint8)), [300, 350, 150])


def test_a_name_keeps_its_own_type_until_paths_meet() -> None:
    kernel = mj.kernel_from_text(
        HEAD
        + "@kernel\ndef f(u: u8[N]) -> i32[N]:\n x = 0\n for k in range(3):\n  x = u[position()]\n return x\n"
    )
    np.testing.assert_array_equal(kernel(np.array([0, 200, 255], np.uint8)), [0, 200, 255])


def test_a_type_that_changes_from_turn_to_turn_is_named() -> None:
    kernel = mj.kernel_from_text(
        HEAD
        + "@kernel\ndef f(u: f32[N]) -> f32[N]:\n i = position()\n s = i\n while s < 3:\n  s = s + u[i]\n return s\n"
    )
    with pytest.raises(mj.TypeFault, match="it is i32 before this loop and becomes f32") as failure:
        kernel(U)
    assert failure.value.slug == "type-join"


def test_a_loop_that_only_returns_leave() -> None:
    kernel = mj.kernel_from_text(
        HEAD
        + "@kernel(loop_limit=1000)\ndef f(u: f32[N]) -> f32[N]:\n x = u[position()]\n while True:\n  x += 1\n  if x > 10:\n   return x\n"
    )
    np.testing.assert_array_equal(kernel(U), [11, 11])
    endless = mj.kernel_from_text(
        HEAD + "@kernel(loop_limit=1000)\ndef f(u: f32[N]) -> f32[N]:\n while True:\n  pass\n"
    )
    with pytest.raises(mj.KernelAssertion, match="more than 1000 turns"):
        endless(U)


def test_bounds_that_every_turn_keeps() -> None:
    """A counter that only grows stays in range: no guard."""
    kernel = mj.kernel_from_text(
        HEAD
        + "@kernel\ndef f(u: f32[N]) -> f32:\n k = 0\n s = 0.0\n while k < N:\n  s += u[k]\n  k += 1\n return s\n"
    )
    assert "proved in range" in kernel.explain(U)
    assert kernel(U) == 3
