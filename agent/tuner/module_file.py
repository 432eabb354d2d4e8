"""The answer's Python file: the reference with its class renamed and a new `forward`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from agent.tuner.planning.fused import Fused
from agent.tuner.planning.partition import Program
from agent.tuner.tracing.graph import Kind, Node

IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F"
DROPPED = ("get_inputs", "get_init_inputs")


def write(plan: str, tree: ast.Module, program: Program, kernels: str) -> str:
    """The whole file: `plan` in its first line, `kernels` the code that defines `kernels`."""
    return (
        "\n\n".join(
            [f"# plan: {plan}\n\n{IMPORTS}", *_before(tree), kernels, _model(tree, program)]
        )
        + "\n"
    )


def _before(tree: ast.Module) -> list[str]:
    """The reference's own imports, constants, functions and classes that ModelNew still needs."""
    kept: list[ast.stmt] = []
    needed = _names(_class(tree, with_forward=False))
    statements = [s for s in tree.body if not _is_main(s) and getattr(s, "name", "") != "Model"]
    for statement in reversed(statements):
        if isinstance(statement, ast.Expr) or getattr(statement, "name", "") in DROPPED:
            continue
        defined = _defined(statement)
        own = isinstance(statement, (ast.Import, ast.ImportFrom))
        if defined & needed:
            if own and defined <= {"torch", "nn", "F"}:
                continue
            kept.insert(0, statement)
            needed |= _names(statement)
    text = "\n".join(
        ("\n\n" if isinstance(s, (ast.ClassDef, ast.FunctionDef)) else "") + ast.unparse(s)
        for s in kept
    )
    return [text.strip("\n")] if text else []


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _defined(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(a.asname or a.name).partition(".")[0] for a in statement.names}
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
        return {statement.name}
    return {
        n.id
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _class(tree: ast.Module, with_forward: bool) -> ast.ClassDef:
    found = next(s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == "Model")
    model = copy.deepcopy(found)
    for node in ast.walk(model):
        if isinstance(node, ast.Name) and node.id == "Model":
            node.id = "ModelNew"
    model.name = "ModelNew"
    model.body = [
        s
        for s in model.body
        if isinstance(s, ast.FunctionDef) and (with_forward or s.name != "forward")
    ]
    return model


def _model(tree: ast.Module, program: Program) -> str:
    model = _class(tree, with_forward=False)
    for statement in model.body:
        if isinstance(statement, ast.FunctionDef) and ast.get_docstring(statement):
            statement.body = statement.body[1:] or [ast.Pass()]
    methods = [ast.unparse(ast.fix_missing_locations(s)) for s in _reachable(model.body)]
    bases = ", ".join(ast.unparse(b) for b in model.bases)
    forward = [f"def forward({', '.join(['self', *program.graph.arguments])}):"]
    forward += [f"    {line}" for line in statements(program)]
    blocks = [*methods, "\n".join(forward)]
    indented = "\n\n".join("\n".join(f"    {ln}" for ln in b.split("\n")) for b in blocks)
    return f"class ModelNew({bases}):\n{indented}"


def _reachable(body: Sequence[ast.stmt]) -> list[ast.FunctionDef]:
    """`__init__` and the methods that it calls: forward's own helpers are traced through."""
    methods = {s.name: s for s in body if isinstance(s, ast.FunctionDef)}
    kept: list[str] = []
    pending = ["__init__"]
    while pending:
        name = pending.pop()
        if name in methods and name not in kept:
            kept.append(name)
            called = (n.attr for n in ast.walk(methods[name]) if isinstance(n, ast.Attribute))
            pending.extend(called)
    return [m for name, m in methods.items() if name in kept]


def statements(program: Program) -> list[str]:
    """The lines of forward."""
    names: dict[Node, str] = {}
    lines: list[str] = []

    def name(node: Node) -> str:
        if node.kind is Kind.CONST:
            return f"torch.full({node.shape}, {node.value!r})" if node.shape else repr(node.value)
        if node.kind is Kind.IOTA:
            return f"torch.arange({node.numel}).view({node.shape})"
        return node.name if node.is_leaf else names[node]

    for step in program.steps:
        if isinstance(step, Fused):
            made = [f"t{len(names) + i}" for i in range(len(step.outputs))]
            names.update(zip((o.node for o in step.outputs), made, strict=True))
            given = ", ".join(name(o.node) for o in step.operands)
            lines.append(f"{', '.join(made)} = kernels.{step.name}({given})")
        else:
            text = expression(step, [name(a) for a in step.args])
            names[step] = f"t{len(names)}"
            lines.append(f"{names[step]} = {text}")
    # What was computed once may be asked for twice: each output has memory of its own.
    owners: set[Node] = set()
    outputs = []
    for output in program.graph.outputs:
        owner = output
        while owner.kind is Kind.VIEW:
            owner = owner.args[0]
        outputs.append(f"{name(output)}.clone()" if owner in owners else name(output))
        owners.add(owner)
    return [*lines, f"return {program.graph.returns.format(*outputs)}"]


EAGER = {
    "max": "torch.maximum({0}, {1})",
    "min": "torch.minimum({0}, {1})",
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "eq": "({0} == {1})",
    "ne": "({0} != {1})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "not": "(~{0})",
    "neg": "(-{0})",
    "recip": "torch.reciprocal({0})",
    "square": "torch.square({0})",
    "cube": "({0} * {0} * {0})",
    "float": "{0}.float()",
}
"""How PyTorch spells the primitives that it calls otherwise than we do."""


def expression(node: Node, args: Sequence[str]) -> str:
    """The Python expression of a node that PyTorch carries out."""
    if node.kind is Kind.LIBRARY:
        return node.call.format(*args)
    if node.kind is Kind.VIEW:
        return f"{args[0]}.reshape({', '.join(map(str, node.shape)) or '()'})"
    if node.kind is Kind.REDUCE:
        return _reduction(node, args[0])
    pattern = (
        EAGER.get(node.op) or f"torch.{node.op}({', '.join(f'{{{i}}}' for i in range(len(args)))})"
    )
    if node.op in ("max", "min") and any(a.kind is Kind.CONST for a in node.args):
        number = next(a for a in node.args if a.kind is Kind.CONST)
        other = next(t for t, a in zip(args, node.args, strict=True) if a is not number)
        return f"{other}.clamp({'min' if node.op == 'max' else 'max'}={number.value!r})"
    return pattern.format(*args)


def _reduction(node: Node, value: str) -> str:
    if node.op.startswith("arg"):
        return f"{value}.{node.op}(dim={node.dims[0]}, keepdim=True)"
    if node.op == "prod":
        for d in node.dims:
            value = f"{value}.prod(dim={d}, keepdim=True)"
        return value
    op = {"max": "amax", "min": "amin"}.get(node.op, node.op)
    return f"{value}.{op}(dim={node.dims}, keepdim=True)"
