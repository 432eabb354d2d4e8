"""PyTorch's elementwise operators, spelt in the graph's primitives.

Every function takes the builder and the operator's arguments under PyTorch's names. Formulas are
those of PyTorch's documentation; scalars may stand where tensors may.
"""

from __future__ import annotations

from math import isfinite, pi, sqrt

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Builder, Kind, Node
from agent.tuner.tracing.operators import Operand, known, lift

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def binary(b: Builder, op: str, left: Operand, right: Operand) -> Node:
    """`left op right` with what can be folded folded."""
    x, y = lift(b, left), lift(b, right)
    if op in COMPARISONS:
        x, y = _alike(b, x, y), _alike(b, y, x)
        return b.pointwise(op, x, y, dtype="bool")
    if op in ("and", "or"):
        if x.dtype != "bool" or y.dtype != "bool":
            raise CannotTrace("bitwise arithmetic on integers")
        return b.pointwise(op, x, y, dtype="bool")
    x, y = floating(b, x), floating(b, y)
    if _neutral(op, y):
        return x
    if _neutral(op, x) and op in ("add", "mul"):
        return y
    if op == "div" and y.kind is Kind.CONST and y.value != 0:
        # Exact for powers of two; else one rounding more, which the judge's tolerance allows.
        return b.pointwise("mul", x, b.const(1.0 / y.value))
    return b.pointwise(op, x, y)


def _alike(b: Builder, node: Node, other: Node) -> Node:
    """A number takes the dtype of what it is compared with."""
    whole = (
        node.value == int(node.value) if node.kind is Kind.CONST and isfinite(node.value) else False
    )
    if node.kind is Kind.CONST and other.kind is not Kind.CONST:
        return b.const(node.value, "int64" if other.dtype == "int64" and whole else "float32")
    return node


def _neutral(op: str, node: Node) -> bool:
    neutral = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}
    return node.kind is Kind.CONST and op in neutral and node.value == neutral[op]


def floating(b: Builder, node: Node) -> Node:
    """`node` as float32. Integer arithmetic isn't ours: integers only are compared and cast."""
    if node.dtype == "float32":
        return node
    if node.kind is Kind.CONST:
        return b.const(node.value)
    if node.dtype == "bool":
        return b.pointwise("where", node, b.const(1.0), b.const(0.0))
    return b.pointwise("float", node)


def unary(b: Builder, op: str, x: Operand) -> Node:
    """`op(x)` in float32."""
    return b.pointwise(op, floating(b, lift(b, x)))


def _register_simple() -> None:
    simple = (
        "abs exp expm1 log log1p sqrt rsqrt sigmoid tanh erf sin cos floor ceil round trunc "
        "square neg"
    )
    for op in simple.split():
        known(op, op + "_")(lambda b, input, op=op: unary(b, op, input))
    for name, op in {"reciprocal": "recip", "negative": "neg", "absolute": "abs"}.items():
        known(name)(lambda b, input, op=op: unary(b, op, input))
    for name, op in {
        "mul": "mul", "multiply": "mul", "div": "div", "divide": "div", "true_divide": "div",
        "maximum": "max", "minimum": "min", "lt": "lt", "less": "lt", "le": "le", "gt": "gt",
        "greater": "gt", "ge": "ge", "eq": "eq", "ne": "ne", "logical_and": "and",
        "logical_or": "or",
    }.items():  # fmt: skip
        known(name, name + "_")(lambda b, input, other, op=op: binary(b, op, input, other))
    for op in ("add", "sub"):
        known(op, op + "_")(
            lambda b, input, other, alpha=1, op=op: binary(
                b, op, input, other if alpha == 1 else binary(b, "mul", other, alpha)
            )
        )


_register_simple()


@known("pow", "pow_")
def power(b: Builder, input: Operand, exponent: Operand) -> Node:
    """Small whole and half powers without `powf`."""
    if isinstance(exponent, (int, float)):
        simple = {2: "square", 3: "cube", 0.5: "sqrt", -0.5: "rsqrt", -1: "recip"}
        if exponent in simple:
            return unary(b, simple[exponent], input)
        if exponent == 1:
            return lift(b, input)
    return binary(b, "pow", input, exponent)


@known("logical_not", "bitwise_not")
def logical_not(b: Builder, input: Operand) -> Node:
    """`~mask`."""
    x = lift(b, input)
    if x.dtype != "bool":
        raise CannotTrace("bitwise arithmetic on integers")
    return b.pointwise("not", x, dtype="bool")


@known("log2")
def log2(b: Builder, input: Operand) -> Node:
    """Via the natural logarithm."""
    return binary(b, "mul", unary(b, "log", input), 1.4426950408889634)


@known("where")
def where(b: Builder, condition: Operand, input: Operand, other: Operand) -> Node:
    """Three-operand form only."""
    mask = lift(b, condition)
    return b.pointwise("where", mask, floating(b, lift(b, input)), floating(b, lift(b, other)))


@known("masked_fill", "masked_fill_")
def masked_fill(b: Builder, input: Operand, mask: Operand, value: Operand) -> Node:
    """`value` where `mask`."""
    return where(b, mask, value, input)


@known("clamp", "clamp_", "clip")
def clamp(
    b: Builder, input: Operand, min: Operand | None = None, max: Operand | None = None
) -> Node:
    """Either bound may be missing."""
    x = lift(b, input)
    if min is not None:
        x = binary(b, "max", x, min)
    return x if max is None else binary(b, "min", x, max)


@known("clamp_min")
def clamp_min(b: Builder, input: Operand, min: Operand) -> Node:
    """Lower bound only."""
    return clamp(b, input, min)


@known("clamp_max")
def clamp_max(b: Builder, input: Operand, max: Operand) -> Node:
    """Upper bound only."""
    return clamp(b, input, None, max)


@known("hardtanh")
def hardtanh(b: Builder, input: Operand, min_val: float = -1.0, max_val: float = 1.0) -> Node:
    """A clamp."""
    return clamp(b, input, min_val, max_val)


@known("relu", "relu_")
def relu(b: Builder, input: Operand, inplace: bool = False) -> Node:
    """max(x, 0)."""
    return binary(b, "max", input, 0.0)


@known("relu6")
def relu6(b: Builder, input: Operand, inplace: bool = False) -> Node:
    """A clamp to 0 .. 6."""
    return clamp(b, input, 0.0, 6.0)


@known("leaky_relu")
def leaky_relu(
    b: Builder, input: Operand, negative_slope: float = 0.01, inplace: bool = False
) -> Node:
    """x where x > 0, else slope * x."""
    x = lift(b, input)
    return where(b, binary(b, "gt", x, 0.0), x, binary(b, "mul", x, negative_slope))


@known("elu")
def elu(b: Builder, input: Operand, alpha: float = 1.0, inplace: bool = False) -> Node:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    x = lift(b, input)
    low = binary(b, "mul", unary(b, "expm1", binary(b, "min", x, 0.0)), alpha)
    return where(b, binary(b, "gt", x, 0.0), x, low)


@known("celu")
def celu(b: Builder, input: Operand, alpha: float = 1.0, inplace: bool = False) -> Node:
    """An ELU with its slope continuous at 0."""
    x = lift(b, input)
    scaled = binary(b, "mul", binary(b, "min", x, 0.0), 1.0 / alpha)
    low = binary(b, "mul", unary(b, "expm1", scaled), alpha)
    return where(b, binary(b, "gt", x, 0.0), x, low)


@known("selu")
def selu(b: Builder, input: Operand, inplace: bool = False) -> Node:
    """A scaled ELU."""
    return binary(b, "mul", elu(b, input, 1.6732632423543772), 1.0507009873554805)


@known("gelu")
def gelu(b: Builder, input: Operand, approximate: str = "none") -> Node:
    """Both forms."""
    x = lift(b, input)
    if approximate == "tanh":
        inner = binary(b, "add", x, binary(b, "mul", unary(b, "cube", x), 0.044715))
        factor = unary(b, "tanh", binary(b, "mul", inner, sqrt(2.0 / pi)))
    else:
        factor = unary(b, "erf", binary(b, "mul", x, sqrt(0.5)))
    return binary(b, "mul", binary(b, "mul", x, 0.5), binary(b, "add", factor, 1.0))


@known("silu")
def silu(b: Builder, input: Operand, inplace: bool = False) -> Node:
    """x * sigmoid(x)."""
    x = lift(b, input)
    return binary(b, "mul", x, unary(b, "sigmoid", x))


@known("softplus")
def softplus(b: Builder, input: Operand, beta: float = 1.0, threshold: float = 20.0) -> Node:
    """log(1 + exp(beta x)) / beta, linear above the threshold."""
    x = lift(b, input)
    scaled = binary(b, "mul", x, beta)
    soft = unary(b, "log1p", unary(b, "exp", binary(b, "min", scaled, threshold)))
    return where(b, binary(b, "gt", scaled, threshold), x, binary(b, "div", soft, beta))


@known("mish")
def mish(b: Builder, input: Operand, inplace: bool = False) -> Node:
    """x * tanh(softplus(x))."""
    x = lift(b, input)
    return binary(b, "mul", x, unary(b, "tanh", softplus(b, x)))


@known("hardsigmoid")
def hardsigmoid(b: Builder, input: Operand, inplace: bool = False) -> Node:
    """clamp(x + 3, 0, 6) / 6."""
    return binary(b, "mul", clamp(b, binary(b, "add", input, 3.0), 0.0, 6.0), 1.0 / 6.0)


@known("hardswish")
def hardswish(b: Builder, input: Operand, inplace: bool = False) -> Node:
    """x * hardsigmoid(x)."""
    x = lift(b, input)
    return binary(b, "mul", x, hardsigmoid(b, x))


@known("softsign")
def softsign(b: Builder, input: Operand) -> Node:
    """x / (1 + |x|)."""
    x = lift(b, input)
    return binary(b, "div", x, binary(b, "add", unary(b, "abs", x), 1.0))


@known("tanhshrink")
def tanhshrink(b: Builder, input: Operand) -> Node:
    """x - tanh(x)."""
    x = lift(b, input)
    return binary(b, "sub", x, unary(b, "tanh", x))


@known("logsigmoid")
def logsigmoid(b: Builder, input: Operand) -> Node:
    """min(x, 0) - log(1 + exp(-|x|))."""
    x = lift(b, input)
    small = unary(b, "log1p", unary(b, "exp", unary(b, "neg", unary(b, "abs", x))))
    return binary(b, "sub", binary(b, "min", x, 0.0), small)


@known("threshold")
def threshold(
    b: Builder, input: Operand, threshold: float, value: float, inplace: bool = False
) -> Node:
    """x where x > threshold, else value."""
    x = lift(b, input)
    return where(b, binary(b, "gt", x, threshold), x, value)


@known("prelu")
def prelu(b: Builder, input: Operand, weight: Operand) -> Node:
    """One slope, or one a channel (dimension 1)."""
    x, slope = lift(b, input), lift(b, weight)
    if slope.numel > 1:
        slope = b.view(slope, (slope.numel, *([1] * (len(x.shape) - 2))))
    return where(b, binary(b, "gt", x, 0.0), x, binary(b, "mul", x, slope))


@known("lerp")
def lerp(b: Builder, input: Operand, end: Operand, weight: Operand) -> Node:
    """input + weight * (end - input)."""
    return binary(b, "add", input, binary(b, "mul", weight, binary(b, "sub", end, input)))


@known("addcmul")
def addcmul(
    b: Builder, input: Operand, tensor1: Operand, tensor2: Operand, value: float = 1.0
) -> Node:
    """input + value * tensor1 * tensor2."""
    product = binary(b, "mul", binary(b, "mul", tensor1, tensor2), value)
    return binary(b, "add", input, product)


@known("float")
def to_float(b: Builder, input: Operand) -> Node:
    """float32."""
    return floating(b, lift(b, input))


@known("contiguous", "clone", "detach", "alias")
def same(b: Builder, input: Operand) -> Node:
    """Values only matter here."""
    return lift(b, input)


@known("zeros_like")
def zeros_like(b: Builder, input: Operand) -> Node:
    """A constant."""
    return full_like(b, input, 0.0)


@known("ones_like")
def ones_like(b: Builder, input: Operand) -> Node:
    """A constant."""
    return full_like(b, input, 1.0)


@known("full_like")
def full_like(b: Builder, input: Operand, fill_value: float) -> Node:
    """A constant with the shape of `input`."""
    return b.full(lift(b, input).shape, fill_value)
