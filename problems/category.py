"""What kind of work a problem is, derived from the operators that its `Model` names."""

from __future__ import annotations

import ast
import re
from collections import Counter

_OPERATORS = {
    "recurrent": r"(rnn|lstm|gru)(cell)?",
    "attention": r"scaleddotproductattention|multiheadattention|transformer.*",
    "scan": r"cum(sum|prod|max|min)|logcumsumexp",
    "convolution": r"(lazy)?conv(transpose)?[123]d",
    "matmul": r"(lazy)?linear|bilinear|matmul|mm|bmm|addmm|addbmm|baddbmm|mv|dot|einsum|tensordot",
    "loss": r".*loss|(binary)?crossentropy(withlogits)?|kldiv",
    "pooling": r"(adaptive|fractional)?(max|avg|lp)pool[123]d",
    "softmax": r"(log|gumbel)?softmax(2d)?|softmin",
    "index": r"embedding(bag)?|gather|index(select|add|copy|fill)|maskedselect|take(alongdim)?"
    r"|scatter(add|reduce)?|topk|sort|argsort|searchsorted|bincount|histc|onehot",
    "normalization": r"(lazy|sync)?(batch|layer|group|instance|rms|localresponse)norm([123]d)?"
    r"|normalize",
    "reduction": r"sum|mean|prod|a?max|a?min|arg(max|min)|(vector|matrix)?norm|std|var|varmean"
    r"|stdmean|logsumexp|median|any|all|countnonzero|cosinesimilarity|pairwisedistance|cdist",
    "elementwise": r"(leaky|r|p)?relu6?|(log|hard)?(sigmoid|tanh|swish|shrink)|[cs]?elu|gelu|silu"
    r"|mish|glu|soft(plus|sign|shrink)|tanhshrink|threshold|clamp|clip|exp|log|sqrt|rsqrt|abs|pow"
    r"|square|erf|sin|cos|add|sub|mul|div|where|maximum|minimum|lerp|dropout",
}
"""Categories with the names of PyTorch's operators, in lower case and without underscores."""
_NOT_TENSORS = {"self", "math", "np", "numpy", "random"}


def derive_category(tree: ast.Module) -> str:
    """The category of a problem that declares none; empty where no operator is recognized.

    Nothing is executed. Recurrence, attention and scans come first. One product or convolution
    decides, whatever follows it; several with something between them are a `network`. Of other
    problems the first category in the order of the table decides. What a module writes out by hand,
    such as attention as two products, is not recognized.
    """
    parts = _reachable(tree)
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch")
        for alias in node.names
    }
    counts = sum((_count(part, imported) for part in parts), Counter[str]())
    found = [category for category in _OPERATORS if counts[category]]
    heavy = {"convolution", "matmul"}.intersection(found)
    first = found[0] if found else ""
    if not heavy or first in ("recurrent", "attention", "scan"):
        return first
    several = sum(counts[category] for category in heavy) > 1
    return "network" if several and len(found) > 1 else heavy.pop()


def _reachable(tree: ast.Module) -> list[ast.ClassDef | ast.FunctionDef]:
    """`Model`, and the classes and functions of the file that it refers to, directly or not."""
    defined = {
        node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    reached = ["Model"]
    for name in reached:  # it grows meanwhile
        part = defined.get(name)
        names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)} if part else ()
        reached += [name for name in defined if name in names and name not in reached]
    return [defined[name] for name in reached if name in defined]


def _count(part: ast.AST, imported: dict[str, str]) -> Counter[str]:
    """How often operators of each category are named; in a loop each counts twice."""
    counts: Counter[str] = Counter()
    left = [(part, 1)]
    while left:
        node, times = left.pop()
        match node:
            case ast.Attribute(value=ast.Name(id=owner)) if owner in _NOT_TENSORS:
                pass
            case ast.Attribute(attr=name):
                counts[_category_of(name)] += times
            case ast.Name(id=name) if name in imported:
                counts[_category_of(imported[name])] += times
            case ast.BinOp(op=ast.MatMult()):
                counts["matmul"] += times
            case ast.BinOp() | ast.UnaryOp(op=ast.USub()):
                counts["elementwise"] += times
            case ast.For() | ast.While() | ast.ListComp() | ast.GeneratorExp():
                times = 2
            case _:
                pass
        left += [(child, times) for child in ast.iter_child_nodes(node)]
    return counts


def _category_of(name: str) -> str:
    plain = name.lower().replace("_", "")
    return next((c for c, names in _OPERATORS.items() if re.fullmatch(names, plain)), "")
