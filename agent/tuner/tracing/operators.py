"""PyTorch's elementwise operators, reductions, normalisations and losses, spelt in primitives.

Every function takes the operator's arguments under PyTorch's names; numbers may stand where tensors
may. Formulas are those of PyTorch's documentation. A reduction keeps its dimensions, so that what
follows goes into the same kernel; where PyTorch drops them, a free view does so at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import pi, prod, sqrt
from typing import Any

from agent.tuner.tracing.graph import (
    CannotTrace,
    Node,
    Operand,
    binary,
    floating,
    pointwise,
    unary,
    view,
)
from agent.tuner.tracing.graph import reduce as reduction_node

Operator = Callable[..., Any]
Dims = int | Sequence[int] | None

# Elementwise --------------------------------------------------------------------------------------


def power(input: Operand, exponent: Operand) -> Node:
    """Small whole and half powers without `powf`."""
    if not isinstance(exponent, Node):
        simple = {2: "square", 3: "cube", 0.5: "sqrt", -0.5: "rsqrt", -1: "recip"}
        if exponent in simple:
            return unary(simple[exponent], input)
        if exponent == 1:
            return floating(input)
    return binary("pow", input, exponent)


def where(condition: Node, input: Operand, other: Operand) -> Node:
    return pointwise("where", condition, floating(input), floating(other))


def clamp(input: Operand, min: Operand | None = None, max: Operand | None = None) -> Node:
    x = input if min is None else binary("max", input, min)
    return floating(x) if max is None else binary("min", x, max)


def leaky_relu(input: Node, negative_slope: float = 0.01, inplace: bool = False) -> Node:
    return where(input > 0.0, input, input * negative_slope)


def elu(input: Node, alpha: float = 1.0, inplace: bool = False) -> Node:
    return where(input > 0.0, input, unary("expm1", binary("min", input, 0.0)) * alpha)


def gelu(input: Node, approximate: str = "none") -> Node:
    if approximate == "tanh":
        factor = unary("tanh", (input + unary("cube", input) * 0.044715) * sqrt(2.0 / pi))
    else:
        factor = unary("erf", input * sqrt(0.5))
    return input * 0.5 * (factor + 1.0)


def softplus(input: Node, beta: float = 1.0, threshold: float = 20.0) -> Node:
    """log(1 + exp(beta x)) / beta, linear above the threshold."""
    scaled = input * beta
    soft = unary("log1p", unary("exp", binary("min", scaled, threshold)))
    return where(scaled > threshold, input, soft / beta)


def hardswish(input: Node, inplace: bool = False) -> Node:
    return input * (clamp(input + 3.0, 0.0, 6.0) * (1.0 / 6.0))


# Reductions ---------------------------------------------------------------------------------------


def every(x: Node, dim: Dims) -> tuple[int, ...]:
    """The dimensions meant by `dim`, non-negative and ascending."""
    if dim is None:
        return tuple(range(len(x.shape)))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if any(not -len(x.shape) <= d < len(x.shape) for d in dims):
        raise CannotTrace(f"dimension {dim} of {list(x.shape)}")
    return tuple(sorted(d % len(x.shape) for d in dims))


def reduce(op: str, x: Node, dim: Dims = None) -> Node:
    """A reduction that keeps its dimensions; over those of size 1 it is the value itself."""
    dims = every(x, dim)
    return x if all(x.shape[d] == 1 for d in dims) else reduction_node(op, floating(x), dims)


def reducing(kept: Callable[..., Node]) -> Callable[..., Node]:
    """`kept(input, dim, ...)`, which keeps the reduced dimensions, as PyTorch's operator."""

    def operator(input: Node, dim: Dims = None, keepdim: bool = False, **options: Any) -> Node:
        result, dims = kept(input, dim, **options), every(input, dim)
        shape = tuple(n for d, n in enumerate(input.shape) if d not in dims)
        return result if keepdim else view(result, shape)

    return operator


def mean(x: Node, dim: Dims = None) -> Node:
    return reduce("sum", x, dim) * (1.0 / _count(x, dim))


def _count(x: Node, dim: Dims) -> int:
    """Elements that one result of a reduction over `dim` is made of."""
    return prod(x.shape[d] for d in every(x, dim))


def extreme(op: str, input: Node, dim: Dims = None, keepdim: bool = False) -> Any:
    """Of everything, or along one dimension; then with indices, which are beyond us."""
    values = reducing(partial(reduce, op))(input, dim, keepdim)
    return values if dim is None else (values, None)


def var(x: Node, dim: Dims = None, unbiased: bool = True) -> Node:
    """Two passes: the mean, then the squares about it."""
    squares = unary("square", x - mean(x, dim))
    return reduce("sum", squares, dim) * (1.0 / (_count(x, dim) - unbiased))


def norm(x: Node, dim: Dims = None, p: float | str | None = 2) -> Node:
    if p not in (2, "fro", None):
        raise CannotTrace(f"the {p}-norm")
    return unary("sqrt", reduce("sum", unary("square", x), dim))


def logsumexp(x: Node, dim: Dims) -> Node:
    top = reduce("max", x, dim)
    return unary("log", reduce("sum", unary("exp", x - top), dim)) + top


def softmax(input: Node, dim: int) -> Node:
    weights = unary("exp", input - reduce("max", input, dim))
    return weights / reduce("sum", weights, dim)


def log_softmax(input: Node, dim: int) -> Node:
    shifted = input - reduce("max", input, dim)
    return shifted - unary("log", reduce("sum", unary("exp", shifted), dim))


def layer_norm(
    input: Node,
    normalized_shape: int | Sequence[int],
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
) -> Node:
    """(x - mean) / sqrt(var + eps), biased variance."""
    n = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    dims = tuple(range(-n, 0))
    x = (input - mean(input, dims)) * unary("rsqrt", var(input, dims, unbiased=False) + eps)
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def cosine_similarity(x1: Node, x2: Node, dim: int = 1, eps: float = 1e-8) -> Node:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps))."""
    first, second = (binary("max", norm(x, dim), eps) for x in (x1, x2))
    return reducing(lambda x, dim: reduce("sum", x, dim) / (first * second))(x1 * x2, dim)


def huber_loss(input: Node, target: Node, reduction: str = "mean", delta: float = 1.0) -> Node:
    """d^2 / 2 where d < delta, else delta (d - delta / 2)."""
    d = unary("abs", input - target)
    loss = where(d < delta, unary("square", d) * 0.5, (d - 0.5 * delta) * delta)
    if reduction == "none":
        return loss
    return reducing(mean if reduction == "mean" else partial(reduce, "sum"))(loss)


UNARY = ("abs", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "square",
         "neg")  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne")
FORMULAS: Mapping[str, Operator] = {
    **{op: partial(unary, op) for op in UNARY},
    **{op: partial(binary, op) for op in BINARY},
    **dict.fromkeys(("contiguous", "clone", "detach"), lambda input, *ignored: input),
    "float": floating,
    "maximum": partial(binary, "max"),
    "minimum": partial(binary, "min"),
    "reciprocal": partial(unary, "recip"),
    "pow": power,
    "where": where,
    "masked_fill": lambda input, mask, value: where(mask, value, input),
    "clamp": clamp,
    "clamp_min": clamp,
    "hardtanh": lambda input, min_val=-1.0, max_val=1.0: clamp(input, min_val, max_val),
    "relu": lambda input, inplace=False: binary("max", input, 0.0),
    "relu6": lambda input, inplace=False: clamp(input, 0.0, 6.0),
    "leaky_relu": leaky_relu,
    "elu": elu,
    "selu": lambda input, inplace=False: elu(input, 1.6732632423543772) * 1.0507009873554805,
    "gelu": gelu,
    "silu": lambda input, inplace=False: input * unary("sigmoid", input),
    "softplus": softplus,
    "mish": lambda input, inplace=False: input * unary("tanh", softplus(input)),
    "hardswish": hardswish,
    "sum": reducing(partial(reduce, "sum")),
    "amax": reducing(partial(reduce, "max")),
    "amin": reducing(partial(reduce, "min")),
    "max": partial(extreme, "max"),
    "min": partial(extreme, "min"),
    "mean": reducing(mean),
    "var": reducing(var),
    "var_mean": lambda input, dim=None: (reducing(var)(input, dim), reducing(mean)(input, dim)),
    "norm": lambda input, p=2, dim=None, keepdim=False: reducing(norm)(input, dim, keepdim, p=p),
    "logsumexp": reducing(logsumexp),
    "softmax": softmax,
    "log_softmax": log_softmax,
    "layer_norm": layer_norm,
    "cosine_similarity": cosine_similarity,
    "huber_loss": huber_loss,
}
"""Bare name (`relu` of `torch.relu`, `F.relu`, `x.relu`) -> what it does."""
