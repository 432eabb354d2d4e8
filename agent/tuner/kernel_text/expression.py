"""The pointwise operations of the graph, and how C++ and CUDA spell them.

Functions that end in an underscore (`exp_`, `tanh_`, ...) take and give `float`; `maths.py` defines
them as the schedule asks. The rest is plain C. Formulas of activations are PyTorch's
documentation's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.tuner.tracing.graph import Node

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip
FUNCTIONS = ("exp", "expm1", "log", "log1p", "sigmoid", "tanh", "erf", "rsqrt")
"""Operations `f` that a function `f_` carries out."""

SPELLINGS: Mapping[str, str] = {
    **{op: f"({{0}} {sign} {{1}})" for op, sign in _INFIX.items()},
    **{op: f"{op}_({{0}})" for op in FUNCTIONS},
    "neg": "(-{0})",
    "not": "(!{0})",
    "abs": "fabsf({0})",
    "square": "({0} * {0})",
    "cube": "({0} * {0} * {0})",
    "recip": "(1.0f / {0})",
    "sqrt": "sqrtf({0})",
    "pow": "powf({0}, {1})",
    "max": "({0} > {1} ? {0} : {1})",
    "min": "({0} < {1} ? {0} : {1})",
    "where": "({0} ? {1} : {2})",
}
"""Operation -> C expression over the operands' names."""

COSTLY = frozenset([*FUNCTIONS, "pow", "div", "sqrt", "recip"])
"""Operations worth not doing twice."""

CTYPES = {"float32": "float", "bool": "bool"}


def literal(node: Node) -> str:
    """A CONST node as C text."""
    if node.value in (float("inf"), float("-inf")):
        return "INFINITY" if node.value > 0 else "(-INFINITY)"
    text = repr(float(node.value))
    return f"({text}f)" if node.value < 0 else f"{text}f"


def spell(node: Node, name: Callable[[Node], str]) -> str:
    """The C expression of a POINTWISE node; `name` says how its operands are called."""
    return SPELLINGS[node.op].format(*(name(a) for a in node.args))
