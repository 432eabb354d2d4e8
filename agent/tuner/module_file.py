"""The answer's Python file: the reference with its class renamed and a new `forward`."""

from __future__ import annotations

import ast

from agent.tuner.planning.fused import Fused
from agent.tuner.planning.partition import Program
from agent.tuner.tracing.graph import Kind, Node

IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F"


def write(
    plan: str, reference: str, program: Program, kernels: str, *, one_case: bool = False
) -> str:
    """The whole file: `plan` in its first line, `kernels` the code that defines `kernels`.
    `one_case`: inputs of other shapes are left to PyTorch."""
    before, model = [IMPORTS], ""
    for statement in ast.parse(reference).body:
        if getattr(statement, "name", "") == "Model":
            assert isinstance(statement, ast.ClassDef)
            model = _model(statement, program, one_case=one_case)
        elif not _is_dropped(statement):
            before.append(ast.unparse(statement))
    return f"# plan: {plan}\n\n" + "\n\n".join(["\n".join(before), kernels, model]) + "\n"


def _is_dropped(statement: ast.stmt) -> bool:
    """What the candidate has no use for; the reference's sizes and helpers stay."""
    name = getattr(statement, "name", "")
    if isinstance(statement, ast.Expr) or name in ("get_inputs", "get_init_inputs"):
        return True
    text = ast.unparse(statement)
    return text in IMPORTS.split("\n") or text.startswith(("from __future__", "if __name__"))


def _model(model: ast.ClassDef, program: Program, *, one_case: bool) -> str:
    for node in ast.walk(model):
        if isinstance(node, ast.Name) and node.id == "Model":
            node.id = "ModelNew"
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    model.name = "ModelNew"
    methods = [s for s in model.body if isinstance(s, ast.FunctionDef)]
    original = next((method for method in methods if method.name == "forward"), None)
    graph, given = program.graph, ", ".join(program.graph.arguments)
    lines = statements(program)
    if one_case:
        in_pytorch = "super().forward"  # a Sequential's
        if original is not None:
            original.name, in_pytorch = "in_pytorch", "self.in_pytorch"
        inputs = [node for node in graph.nodes() if node.kind is Kind.INPUT]
        other = [f"{node.name}.shape != {node.shape}" for node in inputs]
        if graph.fixed is not None:
            values = [f"{name} != {text}" for name, text in graph.fixed.items()]
            plain = [f"type({node.name}) is not torch.Tensor" for node in inputs]
            dtypes = [f"{node.name}.dtype != torch.float32" for node in inputs]
            other = [*values, *plain, *dtypes, *other]
        lines.insert(0, f"if {' or '.join(other)}: return {in_pytorch}({given})")
    taken = f"self, {given}"
    if original is not None and graph.fixed is not None:
        taken = ast.unparse(original.args)  # a function's defaults stay
    forward = "\n".join([f"def forward({taken}):", *(f"    {line}" for line in lines)])
    kept = [method for method in methods if method.name != "forward"]
    model.body = [*kept, *ast.parse(forward).body]
    return ast.unparse(model)


def statements(program: Program) -> list[str]:
    names: dict[Node, str] = {}
    lines: list[str] = []

    def name(node: Node) -> str:
        return node.name if node.is_leaf else names[node]

    for step in program.steps:
        if isinstance(step, Fused):
            made = [f"t{len(names) + i}" for i in range(len(step.outputs))]
            names.update(zip(step.outputs, made, strict=True))
            given = ", ".join(name(o.node) for o in step.operands)
            lines.append(f"{', '.join(made)} = kernels.{step.name}({given})")
        else:
            text = step.call.format(*map(name, step.args))
            names[step] = f"t{len(names)}"
            lines.append(f"{names[step]} = {text}")
    # What was computed once may be asked for twice: each output has memory of its own.
    owners: set[Node] = set()
    outputs = []
    for output in program.graph.outputs:
        owner = output.args[0] if output.kind is Kind.VIEW else output
        outputs.append(f"{name(output)}.clone()" if owner in owners else name(output))
        owners.add(owner)
    return [*lines, f"return {', '.join(outputs)}"]
