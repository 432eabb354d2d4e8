"""PyTorch's reductions, normalisations and losses, spelt in the graph's primitives.

Formulas are those of PyTorch's documentation. A reduction keeps its dimensions in the graph; a
free view drops them where PyTorch does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import NamedTuple

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Builder, Kind, Node
from agent.tuner.tracing.operators import Operand, known, lift
from agent.tuner.tracing.pointwise import binary, floating, unary, where

Dims = int | Sequence[int] | None


class ValuesIndices(NamedTuple):
    """What `torch.max(x, dim)` and its kin return."""

    values: Node
    indices: Node


def every(x: Node, dim: Dims) -> tuple[int, ...]:
    """The dimensions meant by `dim`, non-negative and ascending."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(len(x.shape)))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if any(not -len(x.shape) <= d < len(x.shape) for d in dims):
        raise CannotTrace(f"dimension {dim} of {list(x.shape)}")
    return tuple(sorted(d % len(x.shape) for d in dims))


def reduce(b: Builder, op: str, x: Node, dim: Dims, keepdim: bool = True) -> Node:
    """A reduction; over dimensions of size 1 it is the value itself."""
    dims = every(x, dim)
    if all(x.shape[d] == 1 for d in dims):
        if op.startswith("arg"):
            raise CannotTrace("an arg-reduction over one element")
        kept = x
    else:
        source = x if op.startswith("arg") else floating(b, x)
        kept = b.reduce(op, source, dims)
    if keepdim:
        return kept
    return b.view(kept, tuple(n for d, n in enumerate(x.shape) if d not in dims))


def count(x: Node, dim: Dims) -> int:
    """Elements that one result of a reduction over `dim` is made of."""
    return prod(x.shape[d] for d in every(x, dim))


@known("sum")
def sum_(b: Builder, input: Operand, dim: Dims = None, keepdim: bool = False) -> Node:
    """Over some or all dimensions."""
    return reduce(b, "sum", lift(b, input), dim, keepdim)


@known("mean")
def mean(b: Builder, input: Operand, dim: Dims = None, keepdim: bool = False) -> Node:
    """Over some or all dimensions."""
    x = lift(b, input)
    return binary(b, "mul", reduce(b, "sum", x, dim, keepdim), 1.0 / count(x, dim))


@known("prod")
def prod_(b: Builder, input: Operand, dim: Dims = None, keepdim: bool = False) -> Node:
    """Over one or all dimensions."""
    return reduce(b, "prod", lift(b, input), dim, keepdim)


@known("amax")
def amax(b: Builder, input: Operand, dim: Dims = None, keepdim: bool = False) -> Node:
    """Values only."""
    return reduce(b, "max", lift(b, input), dim, keepdim)


@known("amin")
def amin(b: Builder, input: Operand, dim: Dims = None, keepdim: bool = False) -> Node:
    """Values only."""
    return reduce(b, "min", lift(b, input), dim, keepdim)


def _extreme(
    b: Builder, op: str, input: Operand, dim: Operand | None, keepdim: bool
) -> Node | ValuesIndices:
    x = lift(b, input)
    if isinstance(dim, Node):
        return binary(b, op, x, dim)
    if dim is None:
        return reduce(b, op, x, None, False)
    axis = int(dim)
    return ValuesIndices(reduce(b, op, x, axis, keepdim), reduce(b, "arg" + op, x, axis, keepdim))


@known("max")
def max_(
    b: Builder, input: Operand, dim: Operand | None = None, keepdim: bool = False
) -> Node | ValuesIndices:
    """All three forms: everything, one dimension, another tensor."""
    return _extreme(b, "max", input, dim, keepdim)


@known("min")
def min_(
    b: Builder, input: Operand, dim: Operand | None = None, keepdim: bool = False
) -> Node | ValuesIndices:
    """All three forms: everything, one dimension, another tensor."""
    return _extreme(b, "min", input, dim, keepdim)


@known("argmax")
def argmax(b: Builder, input: Operand, dim: int, keepdim: bool = False) -> Node:
    """Along one dimension; the first of equals."""
    return reduce(b, "argmax", lift(b, input), dim, keepdim)


@known("argmin")
def argmin(b: Builder, input: Operand, dim: int, keepdim: bool = False) -> Node:
    """Along one dimension; the first of equals."""
    return reduce(b, "argmin", lift(b, input), dim, keepdim)


def centred(b: Builder, x: Node, dim: Dims) -> tuple[Node, Node]:
    """x minus its mean, and the sum of its squares; both keep the dimensions."""
    difference = binary(b, "sub", x, mean(b, x, dim, True))
    return difference, reduce(b, "sum", unary(b, "square", difference), dim)


@known("var")
def var(
    b: Builder,
    input: Operand,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: int | None = None,
) -> Node:
    """Two passes: the mean, then the squares about it."""
    x = lift(b, input)
    less = correction if correction is not None else int(unbiased)
    dims = every(x, dim)
    _, squares = centred(b, x, dims)
    result = binary(b, "mul", squares, 1.0 / (count(x, dims) - less))
    if keepdim:
        return result
    return b.view(result, tuple(n for d, n in enumerate(x.shape) if d not in dims))


@known("var_mean")
def var_mean(
    b: Builder,
    input: Operand,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: int | None = None,
) -> tuple[Node, Node]:
    """Both."""
    return var(b, input, dim, unbiased, keepdim, correction), mean(b, input, dim, keepdim)


@known("std_mean")
def std_mean(
    b: Builder,
    input: Operand,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: int | None = None,
) -> tuple[Node, Node]:
    """Both."""
    return std(b, input, dim, unbiased, keepdim, correction), mean(b, input, dim, keepdim)


@known("std")
def std(
    b: Builder,
    input: Operand,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: int | None = None,
) -> Node:
    """Root of the variance."""
    return unary(b, "sqrt", var(b, input, dim, unbiased, keepdim, correction))


@known("norm", "vector_norm")
def norm(
    b: Builder,
    input: Operand,
    p: float | str | None = 2,
    dim: Dims = None,
    keepdim: bool = False,
    ord: float | None = None,
) -> Node:
    """p = 1, 2, infinity, or Frobenius."""
    x = lift(b, input)
    order = ord if ord is not None else p
    if order in (2, "fro", None):
        return unary(b, "sqrt", reduce(b, "sum", unary(b, "square", x), dim, keepdim))
    if order == 1:
        return reduce(b, "sum", unary(b, "abs", x), dim, keepdim)
    if order == inf:
        return reduce(b, "max", unary(b, "abs", x), dim, keepdim)
    raise CannotTrace(f"the {order}-norm")


@known("normalize")
def normalize(
    b: Builder, input: Operand, p: float = 2.0, dim: Dims = 1, eps: float = 1e-12
) -> Node:
    """x / max(norm, eps)."""
    x = lift(b, input)
    return binary(b, "div", x, binary(b, "max", norm(b, x, p, dim, True), eps))


@known("logsumexp")
def logsumexp(b: Builder, input: Operand, dim: Dims, keepdim: bool = False) -> Node:
    """With the maximum taken out."""
    x = lift(b, input)
    dims = every(x, dim)
    top = reduce(b, "max", x, dims)
    total = reduce(b, "sum", unary(b, "exp", binary(b, "sub", x, top)), dims)
    result = binary(b, "add", unary(b, "log", total), top)
    if keepdim:
        return result
    return b.view(result, tuple(n for d, n in enumerate(x.shape) if d not in dims))


def _axis(x: Node, dim: int | None) -> int:
    if dim is None:
        return 0 if len(x.shape) in (0, 1, 3) else 1
    return dim


@known("softmax")
def softmax(b: Builder, input: Operand, dim: int | None = None) -> Node:
    """With the maximum taken out."""
    x = lift(b, input)
    axis = _axis(x, dim)
    weights = unary(b, "exp", binary(b, "sub", x, reduce(b, "max", x, axis)))
    return binary(b, "div", weights, reduce(b, "sum", weights, axis))


@known("softmin")
def softmin(b: Builder, input: Operand, dim: int | None = None) -> Node:
    """Softmax of -x."""
    return softmax(b, unary(b, "neg", input), dim)


@known("log_softmax")
def log_softmax(b: Builder, input: Operand, dim: int | None = None) -> Node:
    """(x - max) - log(sum(exp(x - max)))."""
    x = lift(b, input)
    axis = _axis(x, dim)
    shifted = binary(b, "sub", x, reduce(b, "max", x, axis))
    total = reduce(b, "sum", unary(b, "exp", shifted), axis)
    return binary(b, "sub", shifted, unary(b, "log", total))


def _trailing(x: Node, shape: int | Sequence[int]) -> tuple[int, ...]:
    n = 1 if isinstance(shape, int) else len(shape)
    return tuple(range(len(x.shape) - n, len(x.shape)))


def affine(b: Builder, x: Node, weight: Operand | None, bias: Operand | None) -> Node:
    """x * weight + bias, either of which may be missing."""
    if weight is not None:
        x = binary(b, "mul", x, weight)
    return x if bias is None else binary(b, "add", x, bias)


@known("layer_norm")
def layer_norm(
    b: Builder,
    input: Operand,
    normalized_shape: int | Sequence[int],
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Node:
    """(x - mean) / sqrt(var + eps), biased variance."""
    x = lift(b, input)
    dims = _trailing(x, normalized_shape)
    difference, squares = centred(b, x, dims)
    variance = binary(b, "mul", squares, 1.0 / count(x, dims))
    scale = unary(b, "rsqrt", binary(b, "add", variance, eps))
    return affine(b, binary(b, "mul", difference, scale), weight, bias)


@known("rms_norm")
def rms_norm(
    b: Builder,
    input: Operand,
    normalized_shape: int | Sequence[int],
    weight: Operand | None = None,
    eps: float | None = None,
) -> Node:
    """x / sqrt(mean(x^2) + eps)."""
    x = lift(b, input)
    square = mean(b, unary(b, "square", x), _trailing(x, normalized_shape), True)
    scale = unary(b, "rsqrt", binary(b, "add", square, 2.0**-23 if eps is None else eps))
    return affine(b, binary(b, "mul", x, scale), weight, None)


@known("instance_norm")
def instance_norm(b: Builder, input: Operand, eps: float = 1e-5) -> Node:
    """Over the spatial dimensions, without running statistics."""
    x = lift(b, input)
    dims = tuple(range(2, len(x.shape)))
    difference, squares = centred(b, x, dims)
    variance = binary(b, "mul", squares, 1.0 / count(x, dims))
    return binary(b, "mul", difference, unary(b, "rsqrt", binary(b, "add", variance, eps)))


@known("cosine_similarity")
def cosine_similarity(
    b: Builder, x1: Operand, x2: Operand, dim: int = 1, eps: float = 1e-8
) -> Node:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps))."""
    x, y = lift(b, x1), lift(b, x2)
    lengths = [
        binary(b, "max", unary(b, "sqrt", sum_(b, unary(b, "square", v), dim)), eps) for v in (x, y)
    ]
    return binary(
        b, "div", sum_(b, binary(b, "mul", x, y), dim), binary(b, "mul", lengths[0], lengths[1])
    )


@known("pairwise_distance")
def pairwise_distance(
    b: Builder, x1: Operand, x2: Operand, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Node:
    """Norm of x1 - x2 + eps along the last dimension."""
    return norm(b, binary(b, "add", binary(b, "sub", x1, x2), eps), p, -1, keepdim)


def reduced(b: Builder, loss: Node, reduction: str) -> Node:
    """A loss as its `reduction` asks."""
    if reduction == "none":
        return loss
    if reduction == "batchmean":
        return binary(b, "mul", sum_(b, loss), 1.0 / loss.shape[0])
    return mean(b, loss) if reduction == "mean" else sum_(b, loss)


@known("mse_loss")
def mse_loss(b: Builder, input: Operand, target: Operand, reduction: str = "mean") -> Node:
    """(x - y)^2."""
    return reduced(b, unary(b, "square", binary(b, "sub", input, target)), reduction)


@known("l1_loss")
def l1_loss(b: Builder, input: Operand, target: Operand, reduction: str = "mean") -> Node:
    """|x - y|."""
    return reduced(b, unary(b, "abs", binary(b, "sub", input, target)), reduction)


@known("smooth_l1_loss")
def smooth_l1_loss(
    b: Builder, input: Operand, target: Operand, reduction: str = "mean", beta: float = 1.0
) -> Node:
    """d^2 / (2 beta) where d < beta, else d - beta / 2."""
    d = unary(b, "abs", binary(b, "sub", input, target))
    near = binary(b, "mul", unary(b, "square", d), 0.5 / beta)
    far = binary(b, "sub", d, 0.5 * beta)
    return reduced(b, where(b, binary(b, "lt", d, beta), near, far), reduction)


@known("huber_loss")
def huber_loss(
    b: Builder, input: Operand, target: Operand, reduction: str = "mean", delta: float = 1.0
) -> Node:
    """d^2 / 2 where d < delta, else delta (d - delta / 2)."""
    d = unary(b, "abs", binary(b, "sub", input, target))
    near = binary(b, "mul", unary(b, "square", d), 0.5)
    far = binary(b, "mul", binary(b, "sub", d, 0.5 * delta), delta)
    return reduced(b, where(b, binary(b, "lt", d, delta), near, far), reduction)


@known("kl_div")
def kl_div(
    b: Builder,
    input: Operand,
    target: Operand,
    reduction: str = "mean",
    log_target: bool = False,
) -> Node:
    """t (log t - x), 0 where t = 0."""
    x, t = lift(b, input), lift(b, target)
    if log_target:
        return reduced(b, binary(b, "mul", unary(b, "exp", t), binary(b, "sub", t, x)), reduction)
    positive = binary(b, "gt", t, 0.0)
    safe = where(b, positive, t, 1.0)
    each = binary(b, "mul", safe, binary(b, "sub", unary(b, "log", safe), x))
    return reduced(b, where(b, positive, each, 0.0), reduction)


@known("binary_cross_entropy_with_logits")
def bce_with_logits(b: Builder, input: Operand, target: Operand, reduction: str = "mean") -> Node:
    """max(x, 0) - x t + log(1 + exp(-|x|))."""
    x = lift(b, input)
    tail = unary(b, "log1p", unary(b, "exp", unary(b, "neg", unary(b, "abs", x))))
    head = binary(b, "sub", binary(b, "max", x, 0.0), binary(b, "mul", x, target))
    return reduced(b, binary(b, "add", head, tail), reduction)


@known("nll_loss")
def nll_loss(b: Builder, input: Operand, target: Operand, reduction: str = "mean") -> Node:
    """-x[target] for class indices; classes are dimension 1 (0 of a vector)."""
    x, t = lift(b, input), lift(b, target)
    if t.dtype != "int64" or x.kind is Kind.CONST:
        raise CannotTrace("class probabilities as targets")
    axis = 1 if len(x.shape) > 1 else 0
    picked = sum_(b, where(b, one_hot(b, x, t, axis), x, 0.0), axis)
    return reduced(b, unary(b, "neg", picked), reduction)


@known("cross_entropy")
def cross_entropy(
    b: Builder,
    input: Operand,
    target: Operand,
    weight: Operand | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Node:
    """nll_loss of log_softmax, for class indices or probabilities.

    Smoothing by e: (1 - e) times that, plus e times the mean over classes of -w log p.
    """
    x, t = lift(b, input), lift(b, target)
    axis = 1 if len(x.shape) > 1 else 0
    classes = x.shape[axis]
    spread = [1] * len(x.shape)
    spread[axis] = classes
    weights = None if weight is None else b.view(lift(b, weight), tuple(spread))
    log_p = log_softmax(b, x, axis)
    weighted = log_p if weights is None else binary(b, "mul", log_p, weights)
    if t.dtype != "int64":
        if label_smoothing:
            raise CannotTrace("label smoothing of probabilities")
        each = unary(b, "neg", sum_(b, binary(b, "mul", weighted, t), axis))
        return reduced(b, each, reduction)
    hit = one_hot(b, x, t, axis)
    each = unary(b, "neg", sum_(b, where(b, hit, weighted, 0.0), axis))
    if label_smoothing:
        smooth = binary(b, "mul", sum_(b, weighted, axis), -label_smoothing / classes)
        each = binary(b, "add", binary(b, "mul", each, 1.0 - label_smoothing), smooth)
    if weights is None or reduction != "mean":
        return reduced(b, each, reduction)
    total = sum_(b, sum_(b, where(b, hit, weights, 0.0), axis))
    return binary(b, "div", sum_(b, each), total)


def one_hot(b: Builder, x: Node, target: Node, axis: int) -> Node:
    """True where the index along `axis` of x's space is the target's."""
    index = b.iota(len(x.shape), axis, x.shape[axis])
    column = b.view(target, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return b.pointwise("eq", index, column, dtype="bool")


@known("triplet_margin_loss")
def triplet_margin_loss(
    b: Builder,
    anchor: Operand,
    positive: Operand,
    negative: Operand,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Node:
    """max(d(a, p) - d(a, n) + margin, 0)."""
    near = pairwise_distance(b, anchor, positive, p, eps)
    far = pairwise_distance(b, anchor, negative, p, eps)
    each = binary(b, "max", binary(b, "add", binary(b, "sub", near, far), margin), 0.0)
    return reduced(b, each, reduction)
