"""The standard ops: `metaljit.ops.laplacian(x)`, `metaljit.ops.random.bits(state, shape)`.

In: a name. Out: the op, from the family of `metaljit.stdlib_ops` that has it, which is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .stdlib_ops import random as random
    from .stdlib_ops.activations import erf as erf
    from .stdlib_ops.activations import gelu as gelu
    from .stdlib_ops.activations import relu as relu
    from .stdlib_ops.activations import sigmoid as sigmoid
    from .stdlib_ops.activations import silu as silu
    from .stdlib_ops.activations import softplus as softplus
    from .stdlib_ops.activations import tanh as tanh
    from .stdlib_ops.bits import hamming_distance as hamming_distance
    from .stdlib_ops.conv import conv as conv
    from .stdlib_ops.conv import conv_grad_input as conv_grad_input
    from .stdlib_ops.conv import conv_grad_weight as conv_grad_weight
    from .stdlib_ops.gather import embedding as embedding
    from .stdlib_ops.gather import gather_nd as gather_nd
    from .stdlib_ops.gather import take as take
    from .stdlib_ops.gather import take_along_axis as take_along_axis
    from .stdlib_ops.losses import log_softmax as log_softmax
    from .stdlib_ops.losses import nll as nll
    from .stdlib_ops.losses import softmax as softmax
    from .stdlib_ops.losses import softmax_cross_entropy as softmax_cross_entropy
    from .stdlib_ops.norms import batch_norm as batch_norm
    from .stdlib_ops.norms import layer_norm as layer_norm
    from .stdlib_ops.norms import local_response_norm as local_response_norm
    from .stdlib_ops.norms import rms_norm as rms_norm
    from .stdlib_ops.optim import adadelta as adadelta
    from .stdlib_ops.optim import adam as adam
    from .stdlib_ops.optim import momentum as momentum
    from .stdlib_ops.optim import optimizer_state as optimizer_state
    from .stdlib_ops.optim import rmsprop as rmsprop
    from .stdlib_ops.optim import sgd as sgd
    from .stdlib_ops.pooling import max_pool as max_pool
    from .stdlib_ops.pooling import max_pool_grad as max_pool_grad
    from .stdlib_ops.pooling import max_unpool as max_unpool
    from .stdlib_ops.pooling_means import avg_pool as avg_pool
    from .stdlib_ops.pooling_means import avg_pool_grad as avg_pool_grad
    from .stdlib_ops.pooling_means import l2_pool as l2_pool
    from .stdlib_ops.random import dropout as dropout
    from .stdlib_ops.scatter import put_along_axis as put_along_axis
    from .stdlib_ops.scatter import scatter_nd as scatter_nd
    from .stdlib_ops.scatter import scatter_nd_update as scatter_nd_update
    from .stdlib_ops.sort import argsort as argsort
    from .stdlib_ops.sort import sort as sort
    from .stdlib_ops.sort import top_k as top_k
    from .stdlib_ops.rnn import gru as gru
    from .stdlib_ops.rnn import lstm as lstm
    from .stdlib_ops.rnn import rnn as rnn
    from .stdlib_ops.stencil import laplacian as laplacian

FAMILIES = {
    "stencil": ("laplacian",),
    "gather": ("gather_nd", "take", "take_along_axis", "embedding"),
    "scatter": ("scatter_nd", "scatter_nd_update", "put_along_axis"),
    "bits": ("hamming_distance",),
    "sort": ("sort", "argsort", "top_k"),
    "pooling": ("max_pool", "max_pool_grad", "max_unpool"),
    "pooling_means": ("avg_pool", "avg_pool_grad", "l2_pool"),
    "random": ("dropout",),
    "activations": ("relu", "gelu", "sigmoid", "silu", "softplus", "tanh", "erf"),
    "losses": ("softmax", "log_softmax", "softmax_cross_entropy", "nll"),
    "norms": ("layer_norm", "rms_norm", "batch_norm", "local_response_norm"),
    "optim": ("sgd", "momentum", "adam", "adadelta", "rmsprop", "optimizer_state"),
    "conv": ("conv", "conv_grad_input", "conv_grad_weight"),
    "rnn": ("rnn", "lstm", "gru"),
}
# Families that are a module of ops by themselves.
_RANDOM = "bernoulli bits from_mpsgraph integers normal philox_state skip split state_from to_mpsgraph truncated_normal uniform"
MODULES = {"random": tuple(_RANDOM.split())}

__all__ = [*(name for names in FAMILIES.values() for name in names), *MODULES]


def names() -> tuple[str, ...]:
    """Every op, as it is called: "laplacian", "random.bits"."""
    inner = (f"{module}.{name}" for module, names in MODULES.items() for name in names)
    return (*(name for names in FAMILIES.values() for name in names), *inner)


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f"metaljit.stdlib_ops.{name}")
    for family, members in FAMILIES.items():
        if name in members:
            found = getattr(importlib.import_module(f"metaljit.stdlib_ops.{family}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"metaljit.ops has no op {name!r}; it has {', '.join(names())}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
