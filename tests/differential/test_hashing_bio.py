"""Hashing, coding, text and bioinformatics programs: integers of every width, bits, tables, dynamic programming."""

# An extent may be a parameter: `f32[N // size]`. Linters and type checkers do not know that.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined,no-untyped-def,operator"

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from differential import Program, Programs

import metaljit as mj
from metaljit.lang import (
    bitcast,
    clz,
    const,
    f32,
    i16,
    i32,
    i64,
    local_array,
    mulhi,
    offsets,
    popcount,
    position,
    rotate,
    static_assert,
    u8,
    u16,
    u32,
    u32x4,
    u64,
)

programs = Programs()
H, W, N, M, K = mj.dims("H W N M K")
MASK = 0xFFFFFFFF


@mj.kernel
def fnv1a(text: u8[N, M]) -> u32[N]:
    i = position()
    h = u32(2166136261)
    for k in range(M):
        h = (h ^ text[i, k]) * 16777619
    return h


def _fnv(text: Any) -> Any:
    out = []
    for row in text.tolist():
        h = 2166136261
        for b in row:
            h = (h ^ b) * 16777619 & MASK
        out.append(h)
    return np.array(out, np.uint32)


programs.add(fnv1a, _fnv, lambda r: [(r.bits(6, 11, dtype=np.uint8),), (r.bits(2, 0, dtype=np.uint8),)])


@mj.function
def xorshift(s: u32) -> u32:
    s ^= s << 13
    s ^= s >> 17
    s ^= s << 5
    return s


@mj.kernel
def random_bits(seed: u32[N], count: const[int] = 3) -> u32[N, 3]:
    i, j = position()
    s = seed[i]
    for _ in range(j + 1):
        s = xorshift(s)
    return s


def _xorshift(seed: Any) -> Any:
    s, out = seed.copy(), []
    for _ in range(3):
        s ^= s << np.uint32(13)
        s ^= s >> np.uint32(17)
        s ^= s << np.uint32(5)
        out.append(s.copy())
    return np.stack(out, 1)


programs.add(random_bits, _xorshift, lambda r: (r.bits(9),))


@mj.kernel
def splitmix(seed: u64, count: i32) -> u64[count]:
    i = position()
    z = seed + u64(i + 1) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def _splitmix(seed: int, count: int) -> Any:
    out, m = [], 2**64 - 1
    for i in range(count):
        z = seed + (i + 1) * 0x9E3779B97F4A7C15 & m
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & m
        z = (z ^ z >> 27) * 0x94D049BB133111EB & m
        out.append(z ^ z >> 31)
    return np.array(out, np.uint64)


programs.add(splitmix, _splitmix, lambda r: [(12345, 7), (2**64 - 1, 3)])


@mj.function
def philox_round(c: u32x4, k0: u32, k1: u32) -> u32x4:
    m0, m1 = 0xD2511F53, 0xCD9E8D57
    return u32x4(mulhi(c.z, m1) ^ c.y ^ k0, c.z * m1, mulhi(c.x, m0) ^ c.w ^ k1, c.x * m0)


@mj.kernel
def philox(counter: u32x4[N], k0: u32, k1: u32) -> u32x4[N]:
    i = position()
    c = counter[i]
    a, b = k0, k1
    for _ in range(10):
        c = philox_round(c, a, b)
        a += 0x9E3779B9
        b += 0xBB67AE85
    return c


def _philox(counter: Any, k0: int, k1: int) -> Any:
    out = []
    for row in counter.tolist():
        x, y, z, w = row
        a, b = k0, k1
        for _ in range(10):
            p, q = x * 0xD2511F53, z * 0xCD9E8D57
            x, y, z, w = (q >> 32) ^ y ^ a, q & MASK, (p >> 32) ^ w ^ b, p & MASK
            a, b = a + 0x9E3779B9 & MASK, b + 0xBB67AE85 & MASK
        out.append([x, y, z, w])
    return np.array(out, np.uint32).reshape(-1, 4)


programs.add(
    philox, _philox, lambda r: [(r.bits(5, 4), 0xA4093822, 0x299F31D0), (np.zeros((1, 4), np.uint32), 0, 0)]
)

CRC = tuple(zlib.crc32(bytes([i])) ^ 0 for i in range(16))


def _table() -> tuple[int, ...]:
    table = []
    for n in range(16):
        c = n
        for _ in range(4):
            c = (c >> 1) ^ (0xEDB88320 if c & 1 else 0)
        table.append(c)
    return tuple(table)


NIBBLES = _table()


@mj.kernel
def crc32(text: u8[N, M]) -> u32[N]:
    i = position()
    c = u32(0xFFFFFFFF)
    for k in range(M):
        c ^= text[i, k]
        c = u32(NIBBLES[c & 15]) ^ (c >> 4)
        c = u32(NIBBLES[c & 15]) ^ (c >> 4)
    return ~c


programs.add(
    crc32,
    lambda t: np.array([zlib.crc32(row.tobytes()) for row in t], np.uint32),
    lambda r: (r.bits(5, 23, dtype=np.uint8),),
)


@mj.kernel
def murmur_finish(h: u64[N]) -> u64[N]:
    i = position()
    k = h[i]
    k ^= k >> 33
    k *= 0xFF51AFD7ED558CCD
    k ^= k >> 33
    return rotate(k, 31) + clz(k)


def _murmur(h: Any) -> Any:
    out, m = [], 2**64 - 1
    for k in h.tolist():
        k ^= k >> 33
        k = k * 0xFF51AFD7ED558CCD & m
        k ^= k >> 33
        out.append(((k << 31 | k >> 33) & m) + 64 - k.bit_length() & m)
    return np.array(out, np.uint64)


programs.add(murmur_finish, _murmur, lambda r: (r.bits(12, dtype=np.uint64),))


@mj.kernel
def hamming(a: u64[N, K], b: u64[N, K]) -> i32[N]:
    i = position()
    return sum(i32(popcount(a[i, k] ^ b[i, k])) for k in range(K))


programs.add(
    hamming,
    lambda a, b: np.bitwise_count(a ^ b).sum(1, dtype=np.int32),
    lambda r: (r.bits(7, 3, dtype=np.uint64), r.bits(7, 3, dtype=np.uint64)),
)


@mj.kernel
def pack_bits(x: mj.lang.bool_[8 * N]) -> u8[N]:
    i = position()
    byte = u8(0)
    for k in range(8):
        byte |= u8(x[8 * i + k]) << (7 - k)
    return byte


programs.add(pack_bits, np.packbits, lambda r: (r.bools(40),))


@mj.kernel
def unpack_nibbles(x: u8[N]) -> u8[2 * N]:
    i = position()
    return x[i // 2] >> 4 if i % 2 == 0 else x[i // 2] & 15


programs.add(
    unpack_nibbles,
    lambda x: np.stack([x >> 4, x & 15], 1).reshape(-1),
    lambda r: (r.bits(9, dtype=np.uint8),),
)


@mj.kernel
def gray_code(x: u16[N]) -> tuple[u16[N], u16[N]]:
    """To the code, and back."""
    i = position()
    g = x[i] ^ (x[i] >> 1)
    b = g
    shift = 1
    while shift < 16:
        b ^= b >> shift
        shift *= 2
    return g, b


programs.add(gray_code, lambda x: (x ^ (x >> 1), x), lambda r: (r.bits(20, dtype=np.uint16),))


@mj.kernel
def float_fields(x: f32[N]) -> tuple[u32[N], i32[N], u32[N]]:
    i = position()
    b = bitcast(u32, x[i])
    return b >> 31, i32((b >> 23) & 255) - 127, b & 0x7FFFFF


def _fields(x: Any) -> Any:
    b = x.view(np.uint32)
    return b >> 31, ((b >> 23) & 255).astype(np.int32) - 127, b & 0x7FFFFF


programs.add(
    float_fields, _fields, lambda r: (np.array([0, -0.0, 1, -1.5, 1e-40, np.inf, 3e38], np.float32),)
)


@mj.kernel
def base64_digit(x: u8[3 * N]) -> u8[4 * N]:
    i = position()
    block, k = i // 4, i % 4
    bits = u32(x[3 * block]) << 16 | u32(x[3 * block + 1]) << 8 | x[3 * block + 2]
    d = (bits >> (18 - 6 * k)) & 63
    if d < 26:
        return u8(d + 65)
    elif d < 52:
        return u8(d + 71)
    elif d < 62:
        return u8(d - 4)
    return 43 if d == 62 else 47


def _base64(x: Any) -> Any:
    import base64

    return np.frombuffer(base64.b64encode(x.tobytes()), np.uint8)


programs.add(base64_digit, _base64, lambda r: (r.bits(30, dtype=np.uint8),))


@mj.kernel
def utf8_starts(x: u8[N]) -> i32[N]:
    """The number of the character that a byte belongs to."""
    i = position()
    return sum((x[k] & 0xC0) != 0x80 for k in range(i + 1)) - 1


programs.add(
    utf8_starts,
    lambda x: (np.cumsum((x & 0xC0) != 0x80) - 1).astype(np.int32),
    lambda r: (np.frombuffer("naïve — ok".encode(), np.uint8),),
)


# ---- bioinformatics ----

COMPLEMENT = (3, 2, 1, 0)  # of A C G T


@mj.kernel
def reverse_complement(s: u8[N]) -> u8[N]:
    i = position()
    return u8(COMPLEMENT[s[N - 1 - i]])


programs.add(reverse_complement, lambda s: 3 - s[::-1], lambda r: (r.ints(13, high=4, dtype=np.uint8),))


@mj.kernel
def kmer_codes(s: u8[N], k: const[int]) -> u32[N - k + 1]:
    static_assert(k <= 16, "a code has 32 bits")
    i = position()
    code = u32(0)
    for j in range(k):
        code = code << 2 | s[i + j]
    return code


def _kmers(s: Any, k: int) -> Any:
    return np.array(
        [int("".join(map(str, s[i : i + k].tolist())), 4) for i in range(len(s) - k + 1)], np.uint32
    )


programs.add(
    kmer_codes,
    _kmers,
    lambda r: [(r.ints(20, high=4, dtype=np.uint8), 5), (r.ints(20, high=4, dtype=np.uint8), 16)],
)


@mj.kernel
def edit_distance(a: u8[N, 12], b: u8[N, 12], n: i32[N], m: i32[N]) -> i32[N]:
    i = position()
    row = local_array(i32, 13)
    for k in range(13):
        row[k] = k
    for y in range(n[i]):
        diagonal = row[0]
        row[0] = y + 1
        for x in range(m[i]):
            above = row[x + 1]
            row[x + 1] = min(above + 1, row[x] + 1, diagonal + (a[i, y] != b[i, x]))
            diagonal = above
    return row[m[i]]


def _edit(a: Any, b: Any, n: Any, m: Any) -> Any:
    out = []
    for s, t, p, q in zip(a.tolist(), b.tolist(), n.tolist(), m.tolist(), strict=True):
        d = [[max(y, x) if not (y and x) else 0 for x in range(q + 1)] for y in range(p + 1)]
        for y in range(1, p + 1):
            for x in range(1, q + 1):
                d[y][x] = min(d[y - 1][x] + 1, d[y][x - 1] + 1, d[y - 1][x - 1] + (s[y - 1] != t[x - 1]))
        out.append(d[p][q])
    return np.array(out, np.int32)


programs.add(
    edit_distance,
    _edit,
    lambda r: (
        r.ints(9, 12, high=3, dtype=np.uint8),
        r.ints(9, 12, high=3, dtype=np.uint8),
        r.ints(9, high=13),
        r.ints(9, high=13),
    ),
)


@mj.kernel
def smith_waterman(a: u8[N], b: u8[K, M], gap: const[int] = 2) -> i16[K]:
    """The best local alignment of `a` with each of `b`; two rows, a letter is worth 3, a mismatch −3."""
    k = position()
    row = local_array(i16, 33)
    best = i16(0)
    for y in range(N):
        diagonal = i16(0)
        for x in range(min(M, 32)):
            score = 3 if a[y] == b[k, x] else -3
            value = max(diagonal + score, row[x] - gap, row[x + 1] - gap, 0)
            diagonal = row[x + 1]
            row[x + 1] = i16(value)
            best = max(best, row[x + 1])
        row[0] = 0
    return best


def _smith(a: Any, b: Any) -> Any:
    out = []
    for t in b:
        h = np.zeros((len(a) + 1, len(t) + 1), int)
        for y in range(len(a)):
            for x in range(len(t)):
                s = 3 if a[y] == t[x] else -3
                h[y + 1, x + 1] = max(h[y, x] + s, h[y + 1, x] - 2, h[y, x + 1] - 2, 0)
        out.append(h.max())
    return np.array(out, np.int16)


programs.add(
    smith_waterman,
    _smith,
    lambda r: (r.ints(14, high=4, dtype=np.uint8), r.ints(6, 11, high=4, dtype=np.uint8)),
)


@mj.kernel
def gc_content(s: u8[N], window: const[int] = 4) -> f32[N // window]:
    i = position()
    return sum(s[i * window + k] in (1, 2) for k in range(window)) / window


programs.add(
    gc_content,
    lambda s: np.isin(s[: len(s) // 4 * 4], (1, 2)).reshape(-1, 4).mean(1),
    lambda r: (r.ints(27, high=4, dtype=np.uint8),),
)


@mj.kernel
def longest_run(s: u8[N, M]) -> tuple[i32[N], u8[N]]:
    i = position()
    best, letter, run = 0, s[i, 0], 0
    for k in range(M):
        if k > 0 and s[i, k] == s[i, k - 1]:
            run += 1
        else:
            run = 1
        if run > best:
            best, letter = run, s[i, k]
    return best, letter


def _longest(s: Any) -> Any:
    import itertools

    runs = [[(len(list(g)), k) for k, g in itertools.groupby(row.tolist())] for row in s]
    best = [max(r, key=lambda t: t[0]) for r in runs]
    return np.array([b for b, _ in best], np.int32), np.array([k for _, k in best], np.uint8)


programs.add(longest_run, _longest, lambda r: (r.ints(8, 17, high=2, dtype=np.uint8),))


@mj.kernel
def median_of_counts(x: i64[N], y: i64[N]) -> i64[N]:
    """Overflow-free: the mean of two, rounded down."""
    i = position()
    a, b = x[i], y[i]
    return (a & b) + ((a ^ b) >> 1)


programs.add(
    median_of_counts,
    lambda x, y: np.array([(int(a) + int(b)) // 2 for a, b in zip(x, y, strict=True)], np.int64),
    lambda r: (r.bits(9, dtype=np.int64), r.bits(9, dtype=np.int64)[::-1]),
)


@mj.kernel
def local_maxima(x: i32[H, W]) -> mj.lang.bool_[H, W]:
    p = position()
    x = mj.lang.border(x, "constant", value=-2147483648)
    return all(x[p] > x[p + o] for o in offsets(2, 1) if o != (0, 0))


def _maxima(x: Any) -> Any:
    p = np.pad(x, 1, constant_values=-(2**31))
    w = np.lib.stride_tricks.sliding_window_view(p, (3, 3)).reshape(*x.shape, 9)
    return (np.delete(w, 4, -1) < x[..., None]).all(-1)


programs.add(local_maxima, _maxima, lambda r: (r.ints(6, 7, high=12),))


@programs.parametrize
def test_hashing_bio(program: Program, runner: str) -> None:
    program.check(runner)
