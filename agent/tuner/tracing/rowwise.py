"""PyTorch's reductions, normalisations and losses, spelt in the graph's primitives.

Formulas are those of PyTorch's documentation. A reduction keeps its dimensions in the graph; a
free view drops them where PyTorch does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Node, Operand, binary, floating, unary, view
from agent.tuner.tracing.graph import reduce as reduction_node
from agent.tuner.tracing.pointwise import Operator, where

Dims = int | Sequence[int] | None


class Extremes(NamedTuple):
    """What `torch.max(x, dim)` and `torch.min(x, dim)` return; places are beyond us."""

    values: Node
    indices: None = None


def every(x: Node, dim: Dims) -> tuple[int, ...]:
    """The dimensions meant by `dim`, non-negative and ascending."""
    if dim is None:
        return tuple(range(len(x.shape)))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if any(not -len(x.shape) <= d < len(x.shape) for d in dims):
        raise CannotTrace(f"dimension {dim} of {list(x.shape)}")
    return tuple(sorted(d % len(x.shape) for d in dims))


def _kept_or_not(kept: Node, x: Node, dim: Dims, keepdim: bool) -> Node:
    """`kept` without the dimensions of `x` that were reduced, unless they stay."""
    dims = every(x, dim)
    return kept if keepdim else view(kept, tuple(n for d, n in enumerate(x.shape) if d not in dims))


def reduce(op: str, input: Node, dim: Dims = None, keepdim: bool = False) -> Node:
    """A reduction; over dimensions of size 1 it is the value itself."""
    dims = every(input, dim)
    alone = all(input.shape[d] == 1 for d in dims)
    kept = input if alone else reduction_node(op, floating(input), dims)
    return _kept_or_not(kept, input, dim, keepdim)


def mean(input: Node, dim: Dims = None, keepdim: bool = False) -> Node:
    """Over some or all dimensions."""
    return reduce("sum", input, dim, keepdim) * (1.0 / _count(input, dim))


def _count(x: Node, dim: Dims) -> int:
    """Elements that one result of a reduction over `dim` is made of."""
    return prod(x.shape[d] for d in every(x, dim))


def extreme(
    op: str, input: Node, dim: Operand | None = None, keepdim: bool = False
) -> Node | Extremes:
    """All three forms: everything, one dimension, another tensor."""
    if isinstance(dim, Node):
        return binary(op, input, dim)
    if dim is None:
        return reduce(op, input)
    return Extremes(reduce(op, input, int(dim), keepdim))


def _centred(x: Node, dim: Dims) -> tuple[Node, Node]:
    """x minus its mean, and the sum of its squares; both keep the dimensions."""
    difference = x - mean(x, dim, True)
    return difference, reduce("sum", unary("square", difference), dim, True)


def var(
    input: Node,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: int | None = None,
) -> Node:
    """Two passes: the mean, then the squares about it."""
    less = correction if correction is not None else int(unbiased)
    _, squares = _centred(input, dim)
    return _kept_or_not(squares * (1.0 / (_count(input, dim) - less)), input, dim, keepdim)


def norm(input: Node, p: float | str | None = 2, dim: Dims = None, keepdim: bool = False) -> Node:
    """p = 2 or Frobenius."""
    if p not in (2, "fro", None):
        raise CannotTrace(f"the {p}-norm")
    return unary("sqrt", reduce("sum", unary("square", input), dim, keepdim))


def logsumexp(input: Node, dim: Dims, keepdim: bool = False) -> Node:
    """With the maximum taken out."""
    top = reduce("max", input, dim, True)
    total = reduce("sum", unary("exp", input - top), dim, True)
    return _kept_or_not(unary("log", total) + top, input, dim, keepdim)


def softmax(input: Node, dim: int) -> Node:
    """With the maximum taken out."""
    weights = unary("exp", input - reduce("max", input, dim, True))
    return weights / reduce("sum", weights, dim, True)


def log_softmax(input: Node, dim: int) -> Node:
    """(x - max) - log(sum(exp(x - max)))."""
    shifted = input - reduce("max", input, dim, True)
    return shifted - unary("log", reduce("sum", unary("exp", shifted), dim, True))


def _standardised(x: Node, dims: tuple[int, ...], eps: float) -> Node:
    """(x - mean) / sqrt(var + eps), biased variance."""
    difference, squares = _centred(x, dims)
    return difference * unary("rsqrt", squares * (1.0 / _count(x, dims)) + eps)


def layer_norm(
    input: Node,
    normalized_shape: int | Sequence[int],
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
) -> Node:
    """Over the trailing dimensions, then weight and bias where there are any."""
    n = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    x = _standardised(input, tuple(range(len(input.shape) - n, len(input.shape))), eps)
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def instance_norm(input: Node, eps: float = 1e-5) -> Node:
    """Over the spatial dimensions, without running statistics."""
    return _standardised(input, tuple(range(2, len(input.shape))), eps)


def cosine_similarity(x1: Node, x2: Node, dim: int = 1, eps: float = 1e-8) -> Node:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps))."""
    first, second = (binary("max", norm(x, 2, dim), eps) for x in (x1, x2))
    return reduce("sum", x1 * x2, dim) / (first * second)


def pairwise_distance(x1: Node, x2: Node, p: float = 2.0, eps: float = 1e-6) -> Node:
    """Norm of x1 - x2 + eps along the last dimension."""
    return norm(x1 - x2 + eps, p, -1)


def _reduced(loss: Node, reduction: str) -> Node:
    """A loss as its `reduction` asks."""
    if reduction == "none":
        return loss
    return mean(loss) if reduction == "mean" else reduce("sum", loss)


def huber_loss(input: Node, target: Node, reduction: str = "mean", delta: float = 1.0) -> Node:
    """d^2 / 2 where d < delta, else delta (d - delta / 2)."""
    d = unary("abs", input - target)
    far = (d - 0.5 * delta) * delta
    return _reduced(where(d < delta, unary("square", d) * 0.5, far), reduction)


def triplet_margin_loss(
    anchor: Node, positive: Node, negative: Node, margin: float = 1.0, reduction: str = "mean"
) -> Node:
    """max(d(a, p) - d(a, n) + margin, 0)."""
    apart = pairwise_distance(anchor, positive) - pairwise_distance(anchor, negative)
    return _reduced(binary("max", apart + margin, 0.0), reduction)


ROWWISE: Mapping[str, Operator] = {
    "sum": partial(reduce, "sum"),
    "amax": partial(reduce, "max"),
    "amin": partial(reduce, "min"),
    "max": partial(extreme, "max"),
    "min": partial(extreme, "min"),
    "mean": mean,
    "var": var,
    "var_mean": lambda input, dim=None: (var(input, dim), mean(input, dim)),
    "norm": norm,
    "logsumexp": logsumexp,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "layer_norm": layer_norm,
    "instance_norm": instance_norm,
    "cosine_similarity": cosine_similarity,
    "pairwise_distance": pairwise_distance,
    "huber_loss": huber_loss,
    "triplet_margin_loss": triplet_margin_loss,
}
"""Bare name -> what it does."""
