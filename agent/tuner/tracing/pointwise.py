"""PyTorch's elementwise operators, spelt in the graph's primitives.

Every function takes the operator's arguments under PyTorch's names. Formulas are those of PyTorch's
documentation; scalars may stand where tensors may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import pi, sqrt
from typing import Any

from agent.tuner.tracing.graph import Node, Operand, binary, floating, pointwise, unary

Operator = Callable[..., Any]


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
    """Three-operand form only."""
    return pointwise("where", condition, floating(input), floating(other))


def clamp(input: Operand, min: Operand | None = None, max: Operand | None = None) -> Node:
    """Either bound may be missing."""
    x = input if min is None else binary("max", input, min)
    return floating(x) if max is None else binary("min", x, max)


def leaky_relu(input: Node, negative_slope: float = 0.01, inplace: bool = False) -> Node:
    """x where x > 0, else slope * x."""
    return where(input > 0.0, input, input * negative_slope)


def elu(input: Node, alpha: float = 1.0, inplace: bool = False) -> Node:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    low = unary("expm1", binary("min", input, 0.0)) * alpha
    return where(input > 0.0, input, low)


def gelu(input: Node, approximate: str = "none") -> Node:
    """Both forms."""
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
    """x * clamp(x + 3, 0, 6) / 6."""
    return input * (clamp(input + 3.0, 0.0, 6.0) * (1.0 / 6.0))


def same(input: Node, *ignored: object) -> Node:
    """The values themselves."""
    return input


POINTWISE: Mapping[str, Operator] = {
    **{
        op: partial(unary, op)
        for op in "abs exp expm1 log log1p sqrt rsqrt sigmoid tanh erf square neg".split()  # noqa: SIM905
    },
    **{op: partial(binary, op) for op in "add sub mul div lt le gt ge eq ne".split()},  # noqa: SIM905
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
    "float": floating,
    **dict.fromkeys(("contiguous", "clone", "detach"), same),
}
"""Bare name (`relu` of `torch.relu`, `F.relu`, `x.relu`) -> what it does."""
