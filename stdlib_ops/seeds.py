"""The states that seeds stand for.

In: a seed and who made the rule. Out: a state, which `random.py` draws from: a uint32 array of six words, the counter of
128 bits, least significant word first, then the key of 64 bits.
"""

from __future__ import annotations

import random as python_random
from collections.abc import Sequence
from operator import index
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import metaljit as mj
from metaljit.lang import i32, u32
from metaljit.stdlib_ops.operands import check_array, refuse, whole

Convention = Literal["tensorflow", "stateless", "legacy", "set_seed", "mpsgraph"]
STATE_WORDS = 6
_SCRAMBLE_KEY = 0x02461E293EC8F720
_LEGACY_SEEDS = 2**31 - 1  # tf.random's integer seeds count modulo this
_NO_GLOBAL_SEED = 87654321


def state_from(counter: int | Sequence[int], key: int | Sequence[int]) -> NDArray[np.uint32]:
    """The state of a counter (128 bits) and a key (64 bits).

    Each is one number, or a sequence of equal words, the least significant first: `counter` of two or four, `key` of
    one or two. Negative numbers count as their two's complement.

    Returns a uint32 array of 6 words: the counter, then the key.
    Raises LaunchFault where a number has too many bits.
    Compare: MPSGraph `randomPhiloxStateTensor(counterLow:counterHigh:key:)`; TensorFlow
    `tf.random.Generator.from_key_counter`; NumPy `np.random.Philox(counter=…, key=…)`.

    Example:
    >>> from metaljit import ops
    >>> ops.random.state_from([7, 8], 9)
    array([7, 0, 8, 0, 9, 0], dtype=uint32)
    """
    number = _joined("counter", counter, 128) | _joined("key", key, 64) << 128
    return np.frombuffer(number.to_bytes(4 * STATE_WORDS, "little"), np.dtype("<u4")).astype(np.uint32)


def philox_state(seed: int | Sequence[int], *, convention: Convention = "tensorflow") -> NDArray[np.uint32]:
    """The state that a seed stands for; who made that rule is the `convention`.

    "tensorflow": `tf.random.Generator.from_seed`. A number's lowest 128 bits are the counter, the next 64 the key. A
        sequence is (counter low, counter high, key), the first three of a longer one, with zeros before a shorter one.

    "stateless": the seed pair of `tf.random.stateless_uniform` and its kin.

    "legacy": the pair `(seed, seed2)` of `tf.raw_ops.RandomUniform` and its kin, or `seed` alone.

    "set_seed": `tf.random.uniform(…, seed=s)` and its kin after `tf.random.set_seed(g)`: the pair (g, s), with None for a
        seed that was not set. `(g, None, k)` is what the op number k (from 0) that names no seed takes. A second op with the
        same two seeds goes on where the first one ended.

    "mpsgraph": `randomPhiloxStateTensor(seed:)`: two draws of POSIX's `mrand48` after `srand48(seed)` for each of the three
        words of 64 bits; only the lowest 32 bits of the number count. Not TensorFlow's numbers for that seed.

    Returns a uint32 array of 6 words. With "tensorflow" a small seed is the counter itself: nearby ones have streams that
    overlap (256 is where 0 stands after one number). `random.split` makes streams that do not.
    Raises LaunchFault for a seed that the convention does not have.
    Compare: MPSGraph `randomPhiloxStateTensor(seed:)`; TensorFlow `tf.random.Generator.from_seed`; NumPy
    `np.random.Philox(seed)`.

    Example:
    >>> from metaljit import ops
    >>> ops.random.philox_state(1234)
    array([1234,    0,    0,    0,    0,    0], dtype=uint32)
    >>> ops.random.philox_state((42, 0), convention="legacy")
    array([ 0,  0,  0,  0, 42,  0], dtype=uint32)
    """
    if isinstance(seed, np.ndarray):
        seed = seed.tolist()
    match convention:
        case "tensorflow" if isinstance(seed, Sequence):
            words = [0, 0, 0, *(_word("seed", s, 64) for s in seed[:3])][-3:]
            return state_from(words[:2], words[2])
        case "tensorflow":
            number = _number("seed", seed) % 2**192
            return state_from(number % 2**128, number >> 128)
        case "stateless":
            return _scrambled(*_pair(convention, seed))
        case "legacy":
            key, high = _pair(convention, seed if isinstance(seed, Sequence) else (seed, 0))
            if key == high == 0:
                refuse("random.philox_state", "the legacy seeds (0, 0) mean a different stream each time",
                       "pass another pair; tf.random.uniform uses (0, 2147483647) in its place")  # fmt: skip
            return state_from((0, high), key)
        case "set_seed":
            return philox_state(_of_global_seed(seed), convention="legacy")
        case "mpsgraph" if not isinstance(seed, Sequence):
            low, high, key = _drand48(_number("seed", seed))
            return state_from((low, high), key)
        case "mpsgraph":
            refuse("random.philox_state", f"the convention 'mpsgraph' takes one number and got {seed!r}")
    refuse("random.philox_state", f"there is no convention {convention!r}",
           "there are " + ", ".join(map(repr, get_args(Convention))))  # fmt: skip


def to_mpsgraph(state: Any) -> NDArray[np.int32]:
    """The state as MPSGraph keeps it: an int32 array of 7 elements, a 1 and then the words of counter and key.

    state: uint32 array of 6 words, on the host or on a device.

    Raises TypeFault or ShapeError for what is no state.
    Compare: MPSGraph `randomPhiloxStateTensor`.

    Example:
    >>> from metaljit import ops
    >>> ops.random.to_mpsgraph(ops.random.philox_state(42, convention="mpsgraph"))
    array([          1,  1471891643, -1097256770,  1813932012,   477107655,
            -616582465,   348369827], dtype=int32)
    """
    check_state("random.to_mpsgraph", state)
    return np.concatenate([np.ones(1, np.int32), np.asarray(state).view(np.int32)])


def from_mpsgraph(state: Any) -> NDArray[np.uint32]:
    """The state that a state of MPSGraph's layout is.

    state: int32 array of 7 elements, the first of them 1.

    Returns a uint32 array of 6 words.
    Raises TypeFault, ShapeError or LaunchFault for what is no such array.
    Compare: MPSGraph `randomPhiloxStateTensor`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.random.from_mpsgraph(np.array([1, 7, 0, 8, 0, -1, 0], np.int32))
    array([         7,          0,          8,          0, 4294967295,
                    0], dtype=uint32)
    """
    check_array("random.from_mpsgraph", "state", state, (i32,), "an int32 array of 7 elements")
    if tuple(state.shape) != (1 + STATE_WORDS,):
        refuse("random.from_mpsgraph", f"a state of MPSGraph's has shape (7,), not {tuple(state.shape)}",
               slug="op-shape", error=mj.ShapeError)  # fmt: skip
    words = np.asarray(state)
    if words[0] != 1:
        refuse("random.from_mpsgraph", f"a state of MPSGraph's begins with 1, not {words[0]}")
    return words[1:].view(np.uint32).copy()


def check_state(op: str, state: Any) -> None:
    check_array(op, "state", state, (u32,), "a uint32 array of 6 words")
    open_yet = [
        n for n in state.shape if hasattr(n, "trace") and n.trace.env is None
    ]  # ahead of time: its kernels say it
    if len(state.shape) != 1 or (not open_yet and state.shape[0] != STATE_WORDS):
        refuse(op, f"a state has shape (6,), not {tuple(state.shape)}", "make one with `ops.random.philox_state(seed)`",
               "op-shape", mj.ShapeError)  # fmt: skip


def _number(name: str, value: Any) -> int:
    try:
        number: int = index(value)
    except TypeError:
        refuse("random.philox_state", f"`{name}` takes whole numbers and got {value!r}")
    return number


def _word(name: str, value: Any, width: int) -> int:
    """The number's two's complement of `width` bits."""
    number = _number(name, value)
    if not -(2 ** (width - 1)) <= number < 2**width:
        refuse("random.philox_state", f"`{name}` has {number}, and there are {width} bits for it")
    return number & (1 << width) - 1


def _joined(name: str, value: int | Sequence[int], width: int) -> int:
    if not isinstance(value, Sequence | np.ndarray):
        return _word(name, value, width)
    if len(value) not in (width // 64, width // 32):
        refuse(
            "random.state_from", f"`{name}` has {len(value)} words and takes {width // 64} or {width // 32}"
        )
    each = width // len(value)
    return sum(_word(name, v, each) << each * k for k, v in enumerate(value))


def _pair(convention: str, seed: Any) -> tuple[int, int]:
    if not isinstance(seed, Sequence) or len(seed) != 2:
        refuse("random.philox_state", f"the convention {convention!r} takes a pair of seeds and got {seed!r}")
    return _word("seed", seed[0], 64), _word("seed", seed[1], 64)


def _of_global_seed(seed: Any) -> tuple[int, int]:
    """The seeds that TensorFlow's op takes, from the global one, its own, and how many ops before it had none."""
    if not isinstance(seed, Sequence) or len(seed) not in (2, 3) or (len(seed) == 3 and seed[1] is not None):
        refuse(
            "random.philox_state",
            f"the convention 'set_seed' takes (global, op) or (global, None, k) and got {seed!r}",
        )
    first, own = (None if s is None else _number("seed", s) for s in seed[:2])
    if own is None:
        if first is None:
            refuse("random.philox_state", "without a global seed and one of the op, TensorFlow's streams differ each time",
                   "pass one of them")  # fmt: skip
        drawn = python_random.Random(first)
        for _ in range(whole("random.philox_state", "seed", seed[2] if len(seed) == 3 else 0, 0) + 1):
            own = drawn.randint(0, _LEGACY_SEEDS)
    assert own is not None
    pair = (_NO_GLOBAL_SEED if first is None else first) % _LEGACY_SEEDS, own % _LEGACY_SEEDS
    return pair if any(pair) else (0, _LEGACY_SEEDS)


def _scrambled(low: int, high: int) -> NDArray[np.uint32]:
    """One block of the generator makes the key and the upper half of the counter."""
    block = np.asarray(mj.stdlib.random.blocks(state_from((low, high), _SCRAMBLE_KEY), 1)).reshape(4)
    return np.concatenate([np.zeros(2, np.uint32), block[2:], block[:2]])


def _drand48(seed: int) -> tuple[int, int, int]:
    """Six draws of the generator that POSIX calls drand48, two for each word of 64 bits, the upper half first."""
    x = (seed & 0xFFFFFFFF) << 16 | 0x330E
    draws = []
    for _ in range(6):
        x = (0x5DEECE66D * x + 0xB) % 2**48
        draws.append(x >> 16)
    low, high, key = (a << 32 | b for a, b in zip(draws[::2], draws[1::2], strict=True))
    return low, high, key
