"""Random numbers; the kernels are in random.mjk.

In: a state. Out: values and the state that follows; no state is ever changed. A state is a uint32 array of six words:
the counter of 128 bits, least significant word first, then the key of 64 bits. On a little-endian machine
`state.view(np.int64)` is the state of TensorFlow's `Generator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import metaljit as mj
from metaljit.lang import i32, i64, u32, u64
from metaljit.stdlib_ops.operands import Operand, check_array, dtype_of, refuse, viewed, whole

__all__ = ["bits", "philox_state", "skip", "state_from"]

Convention = Literal["tensorflow", "stateless", "legacy", "mpsgraph"]
STATE_WORDS = 6
BLOCKS_AN_OUTPUT = 256  # TensorFlow moves the counter by this much for each number that it returns
_SCRAMBLE_KEY = 0x02461E293EC8F720


def bits(state: Operand, shape: int | Sequence[int], dtype: Any = np.uint32) -> tuple[Any, Any]:
    """Random bits: `(values, new_state)`, the numbers of TensorFlow's `Generator.uniform_full_int`.

    state: uint32 array of 6 words (see `philox_state`, `state_from`), on the host or on a device.
    shape: of the values; an int is one axis.
    dtype: uint32 or int32 (four values from each block of the generator), uint64 or int64 (two).

    Returns values of that shape and dtype, and the state moved on by 256 blocks for each value.
    Raises TypeFault for another dtype, ShapeError for a state of another shape.
    Compare `np.random.Philox.random_raw`, MPSGraph `randomTensor`.
    """
    kind = dtype_of("random.bits", dtype, (u32, i32, u64, i64))
    _check_state("random.bits", state)
    extents = tuple(
        whole("random.bits", "shape", n, 0) for n in (shape if isinstance(shape, Sequence) else (shape,))
    )
    count = prod(extents)
    words = mj.stdlib.random.blocks(state, -(-count * kind.itemsize // 16))
    values = viewed(words, lambda w: w.reshape(-1).view(kind)[:count].reshape(extents))
    return values, skip(state, count)


def skip(state: Operand, count: int) -> Any:
    """The state after `count` values of any kind (TensorFlow's `Generator.skip`); negative counts lead back.

    TypeFault or ShapeError for what is no state.
    """
    _check_state("random.skip", state)
    try:
        blocks = BLOCKS_AN_OUTPUT * index(count) % 2**64
    except TypeError:
        refuse("random.skip", f"`count` takes whole numbers and got {count!r}")
    return mj.stdlib.random.skipped(state, blocks)


def state_from(counter: int | Sequence[int], key: int | Sequence[int]) -> NDArray[np.uint32]:
    """The state of a counter (128 bits) and a key (64 bits).

    Each is one number, or a sequence of equal words, the least significant first: `counter` of two or four, `key` of
    one or two. Negative numbers count as their two's complement. LaunchFault where a number has too many bits.
    """
    number = _joined("counter", counter, 128) | _joined("key", key, 64) << 128
    return np.frombuffer(number.to_bytes(4 * STATE_WORDS, "little"), np.dtype("<u4")).astype(np.uint32)


def philox_state(seed: int | Sequence[int], *, convention: Convention = "tensorflow") -> NDArray[np.uint32]:
    """The state that a seed stands for; who made that rule is the `convention`.

    "tensorflow": `tf.random.Generator.from_seed`. A number's lowest 128 bits are the counter, the next 64 the key. A
        sequence is (counter low, counter high, key), the first three of a longer one, with zeros before a shorter one.
    "stateless": the seed pair of `tf.random.stateless_uniform` and its kin.
    "legacy": the pair `(seed, seed2)` of `tf.raw_ops.RandomUniform` and its kin, or `seed` alone.
    "mpsgraph": `randomPhiloxStateTensor(seed:)`; only the lowest 32 bits of the number count.

    Returns a uint32 array of 6 words. LaunchFault for a seed that the convention does not have.
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
        case "mpsgraph" if not isinstance(seed, Sequence):
            low, high, key = _drand48(_number("seed", seed))
            return state_from((low, high), key)
        case "mpsgraph":
            refuse("random.philox_state", f"the convention 'mpsgraph' takes one number and got {seed!r}")
    refuse("random.philox_state", f"there is no convention {convention!r}",
           "there are 'tensorflow', 'stateless', 'legacy', 'mpsgraph'")  # fmt: skip


def _check_state(op: str, state: Operand) -> None:
    check_array(op, "state", state, (u32,), "a uint32 array of 6 words")
    if tuple(state.shape) != (STATE_WORDS,):
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
