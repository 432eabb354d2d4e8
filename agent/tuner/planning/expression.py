"""The pointwise operations of the graph, and how C++ and CUDA spell them.

Functions that end in an underscore (`exp_`, `tanh_`, ...) take and give `float`; each emitter's
prelude defines them as its schedule asks. The rest is plain C. Formulas of activations are
PyTorch's documentation's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.tuner.tracing.graph import Node

SPELLINGS: Mapping[str, str] = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "neg": "(-{0})",
    "abs": "fabsf({0})",
    "square": "({0} * {0})",
    "cube": "({0} * {0} * {0})",
    "recip": "(1.0f / {0})",
    "sqrt": "sqrtf({0})",
    "rsqrt": "rsqrt_({0})",
    "exp": "exp_({0})",
    "expm1": "expm1_({0})",
    "log": "log_({0})",
    "log1p": "log1p_({0})",
    "sigmoid": "sigmoid_({0})",
    "tanh": "tanh_({0})",
    "erf": "erf_({0})",
    "pow": "powf({0}, {1})",
    "max": "({0} > {1} ? {0} : {1})",
    "min": "({0} < {1} ? {0} : {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "eq": "({0} == {1})",
    "ne": "({0} != {1})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "not": "(!{0})",
    "where": "({0} ? {1} : {2})",
}
"""Operation -> C expression over the operands' names."""

COSTLY = frozenset(
    "exp expm1 log log1p sigmoid tanh erf pow div sqrt rsqrt recip".split()  # noqa: SIM905
)
"""Operations worth not doing twice."""

CTYPES = {"float32": "float", "bool": "bool"}


def literal(node: Node) -> str:
    """A CONST node as C text."""
    if node.value != node.value:
        return "NAN"
    if node.value in (float("inf"), float("-inf")):
        return "INFINITY" if node.value > 0 else "(-INFINITY)"
    text = repr(float(node.value))
    return f"({text}f)" if node.value < 0 else f"{text}f"


def spell(node: Node, name: Callable[[Node], str]) -> str:
    """The C expression of a POINTWISE node; `name` says how its operands are called."""
    return SPELLINGS[node.op].format(*(name(a) for a in node.args))
