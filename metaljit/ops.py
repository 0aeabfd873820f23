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
    from .stdlib_ops.arrange import arange as arange
    from .stdlib_ops.arrange import concatenate as concatenate
    from .stdlib_ops.arrange import coordinates as coordinates
    from .stdlib_ops.arrange import depth_to_space as depth_to_space
    from .stdlib_ops.arrange import linspace as linspace
    from .stdlib_ops.arrange import one_hot as one_hot
    from .stdlib_ops.arrange import repeat as repeat
    from .stdlib_ops.arrange import roll as roll
    from .stdlib_ops.arrange import space_to_depth as space_to_depth
    from .stdlib_ops.arrange import stack as stack
    from .stdlib_ops.arrange import tile as tile
    from .stdlib_ops.arrange import where as where
    from .stdlib_ops.bits import bitwise_count as bitwise_count
    from .stdlib_ops.bits import hamming_distance as hamming_distance
    from .stdlib_ops.bits import packbits as packbits
    from .stdlib_ops.bits import unpackbits as unpackbits
    from .stdlib_ops.canny import canny as canny
    from .stdlib_ops.conv import conv as conv
    from .stdlib_ops.conv import conv_grad_input as conv_grad_input
    from .stdlib_ops.conv import conv_grad_weight as conv_grad_weight
    from .stdlib_ops.gather import embedding as embedding
    from .stdlib_ops.gather import gather_nd as gather_nd
    from .stdlib_ops.gather import take as take
    from .stdlib_ops.gather import take_along_axis as take_along_axis
    from .stdlib_ops.image import gaussian_blur as gaussian_blur
    from .stdlib_ops.image import histogram as histogram
    from .stdlib_ops.image import maximum_filter as maximum_filter
    from .stdlib_ops.image import median_filter as median_filter
    from .stdlib_ops.image import minimum_filter as minimum_filter
    from .stdlib_ops.image import prewitt as prewitt
    from .stdlib_ops.image import sobel as sobel
    from .stdlib_ops.image import uniform_filter as uniform_filter
    from .stdlib_ops.linear import dot as dot
    from .stdlib_ops.linear import gram as gram
    from .stdlib_ops.linear import matmul as matmul
    from .stdlib_ops.linear import outer as outer
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
    from .stdlib_ops.pad import pad as pad
    from .stdlib_ops.pooling import max_pool as max_pool
    from .stdlib_ops.pooling import max_pool_grad as max_pool_grad
    from .stdlib_ops.pooling import max_unpool as max_unpool
    from .stdlib_ops.pooling_means import avg_pool as avg_pool
    from .stdlib_ops.pooling_means import avg_pool_grad as avg_pool_grad
    from .stdlib_ops.pooling_means import l2_pool as l2_pool
    from .stdlib_ops.random import dropout as dropout
    from .stdlib_ops.reduce import all as all
    from .stdlib_ops.reduce import any as any
    from .stdlib_ops.reduce import argmax as argmax
    from .stdlib_ops.reduce import argmin as argmin
    from .stdlib_ops.reduce import logsumexp as logsumexp
    from .stdlib_ops.reduce import max as max
    from .stdlib_ops.reduce import mean as mean
    from .stdlib_ops.reduce import min as min
    from .stdlib_ops.reduce import prod as prod
    from .stdlib_ops.reduce import sum as sum
    from .stdlib_ops.reduce import var as var
    from .stdlib_ops.rnn import gru as gru
    from .stdlib_ops.rnn import lstm as lstm
    from .stdlib_ops.rnn import rnn as rnn
    from .stdlib_ops.scan import cummax as cummax
    from .stdlib_ops.scan import cummin as cummin
    from .stdlib_ops.scan import cumprod as cumprod
    from .stdlib_ops.scan import cumsum as cumsum
    from .stdlib_ops.scatter import put_along_axis as put_along_axis
    from .stdlib_ops.scatter import scatter_nd as scatter_nd
    from .stdlib_ops.scatter import scatter_nd_update as scatter_nd_update
    from .stdlib_ops.shape import broadcast_to as broadcast_to
    from .stdlib_ops.shape import expand_dims as expand_dims
    from .stdlib_ops.shape import flip as flip
    from .stdlib_ops.shape import reshape as reshape
    from .stdlib_ops.shape import slice as slice
    from .stdlib_ops.shape import split as split
    from .stdlib_ops.shape import squeeze as squeeze
    from .stdlib_ops.shape import transpose as transpose
    from .stdlib_ops.sort import argsort as argsort
    from .stdlib_ops.sort import sort as sort
    from .stdlib_ops.sort import top_k as top_k
    from .stdlib_ops.spatial import hash_grid_corners as hash_grid_corners
    from .stdlib_ops.spatial import hash_grid_encode as hash_grid_encode
    from .stdlib_ops.spatial import hash_grid_index as hash_grid_index
    from .stdlib_ops.spatial import resize as resize
    from .stdlib_ops.stencil import convolve as convolve
    from .stdlib_ops.stencil import correlate as correlate
    from .stdlib_ops.stencil import laplacian as laplacian
    from .stdlib_ops.stencil import stencil as stencil

FAMILIES = {
    "stencil": ("stencil", "laplacian", "correlate", "convolve"),
    "pad": ("pad",),
    "image": (
        "gaussian_blur",
        "sobel",
        "prewitt",
        "median_filter",
        "maximum_filter",
        "minimum_filter",
        "uniform_filter",
        "histogram",
    ),
    "canny": ("canny",),
    "gather": ("gather_nd", "take", "take_along_axis", "embedding"),
    "scatter": ("scatter_nd", "scatter_nd_update", "put_along_axis"),
    "pooling": ("max_pool", "max_pool_grad", "max_unpool"),
    "pooling_means": ("avg_pool", "avg_pool_grad", "l2_pool"),
    "random": ("dropout",),
    "bits": ("hamming_distance", "bitwise_count", "packbits", "unpackbits"),
    "shape": ("expand_dims", "squeeze", "reshape", "transpose", "flip", "broadcast_to", "slice", "split"),
    "arrange": (
        "concatenate",
        "stack",
        "tile",
        "repeat",
        "roll",
        "where",
        "one_hot",
        "space_to_depth",
        "depth_to_space",
        "coordinates",
        "arange",
        "linspace",
    ),
    "reduce": ("sum", "prod", "max", "min", "mean", "var", "all", "any", "argmax", "argmin", "logsumexp"),
    "scan": ("cumsum", "cumprod", "cummax", "cummin"),
    "sort": ("sort", "argsort", "top_k"),
    "linear": ("matmul", "dot", "outer", "gram"),
    "conv": ("conv", "conv_grad_input", "conv_grad_weight"),
    "rnn": ("rnn", "lstm", "gru"),
    "activations": ("relu", "gelu", "sigmoid", "silu", "softplus", "tanh", "erf"),
    "losses": ("softmax", "log_softmax", "softmax_cross_entropy", "nll"),
    "norms": ("layer_norm", "rms_norm", "batch_norm", "local_response_norm"),
    "optim": ("sgd", "momentum", "adam", "adadelta", "rmsprop", "optimizer_state"),
    "spatial": ("hash_grid_encode", "hash_grid_corners", "hash_grid_index", "resize"),
}
# Families that are a module of ops by themselves.
MODULES = {
    "random": (
        "philox_state",
        "state_from",
        "to_mpsgraph",
        "from_mpsgraph",
        "bits",
        "uniform",
        "normal",
        "truncated_normal",
        "integers",
        "bernoulli",
        "split",
        "skip",
    )
}

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
