"""The same problem under other names and with other sizes."""

import ast

FIXED = {"Model", "ModelNew", "get_inputs", "get_init_inputs", "self", "forward", "super"}


def renamed(source: str) -> str:
    """Every name that the file itself introduces, but those of the contract, changed."""
    tree = ast.parse(source)
    own = {a.arg for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) for a in n.args.args}
    own |= {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    attributes = {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }
    buffers = {
        n.args[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "register_buffer"
    }
    attributes |= {b.value for b in buffers}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in own - FIXED:
            node.id = f"{node.id}_other"
        elif isinstance(node, ast.arg) and node.arg in own - FIXED:
            node.arg = f"{node.arg}_other"
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in attributes
            and ast.unparse(node.value).startswith("self")
        ):
            node.attr = f"{node.attr}_other"
        elif node in buffers:
            node.value = f"{node.value}_other"
    return ast.unparse(tree)


def resized(source: str) -> str:
    """Every whole-number constant of the module's top level, halved or doubled."""
    tree = ast.parse(source)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            size = statement.value.value
            if isinstance(size, int):
                statement.value.value = size * 2 if size < 200 else size // 2
    return ast.unparse(tree)
