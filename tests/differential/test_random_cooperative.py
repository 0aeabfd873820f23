"""Random cooperative kernels give the same bits on every device and in interpret mode."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cooperative import text
from random_runs import compare


@st.composite
def texts(draw: st.DrawFn) -> str:
    return text(draw)


DRAWN = st.tuples(texts(), st.integers(0, 2**32 - 1), st.integers(1, 130))


def check(kernel: str, seed: int, n: int, *, sanitized: bool = False, order: int | None = None) -> bool:
    """Whether the kernel was a valid one."""
    x = np.random.default_rng(seed).integers(-50, 50, n).astype(np.int32)
    return compare(kernel, (x, np.int32(seed % 17)), sanitized=sanitized, order=order)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(DRAWN, st.booleans())
def test_cooperative_kernels(drawn: tuple[str, int, int], checked: bool) -> None:
    check(*drawn, sanitized=checked, order=None if checked else drawn[1] % 7)
