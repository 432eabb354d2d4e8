"""A module at hand -> a problem file in KernelBench's format, made from its source.

Only source text is worked on, so torch isn't imported here: the class (from `inspect`), what its
module defines that it uses, and the imports. What that does not show is refused: a class typed
into an interpreter, arguments that aren't literals, relative imports, hooks and other changes made
to the instance after construction (they are not seen; parameters get values of the judge's anyway).
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from problems.errors import UsageError

InputSpec = Callable[[], Sequence[Any]] | Sequence[Any]
_LITERALS = (int, float, bool, str, type(None))


def problem_source(
    module: object, inputs: InputSpec | None, init_inputs: Sequence[Any] | None
) -> str:
    """The text of a problem file for `module`, an instance of a `torch.nn.Module` class.

    `inputs` is a function without arguments (its source becomes `get_inputs`), or one item per
    argument of `forward`: a tensor (its shape, dtype and, for integers, its range are kept), a
    shape (float32), a pair (shape, dtype name), or a number. `init_inputs` are the constructor's
    arguments, literals only. Raises `UsageError` for what can't be turned into source.
    """
    kind = type(module)
    if inputs is None:
        raise UsageError(
            f"optimize({kind.__name__}(...)) needs inputs=: a function like KernelBench's"
            " get_inputs, or a list of example tensors or shapes"
        )
    tree = _file_of(kind)
    parts = ["\n".join(_imports(tree, kind))]
    for node in _needed(kind, tree):
        parts.append(ast.unparse(_as_model(node, kind, bool(getattr(module, "training", True)))))
    return "\n\n\n".join([*parts, _inputs_source(inputs), _init_source(kind, init_inputs)]) + "\n"


def _file_of(kind: type) -> ast.Module:
    try:
        file = inspect.getsourcefile(kind)
        tree = ast.parse(inspect.getsource(inspect.getmodule(kind) or kind) if file else "")
    except (OSError, TypeError, SyntaxError) as error:
        raise UsageError(
            f"the source of {kind.__name__} can't be read ({error}); write a file in KernelBench's"
            " format"
        ) from None
    if not any(isinstance(node, ast.ClassDef) and node.name == kind.__name__ for node in tree.body):
        raise UsageError(
            f"{kind.__name__} is not defined at the top of a file; move it there, or write a file"
            " in KernelBench's format"
        )
    return tree


def _needed(kind: type, tree: ast.Module) -> list[ast.stmt]:
    """Every definition that the class uses, directly or not; the class itself is last."""
    defined = {name: node for node in tree.body for name in _binds(node)}
    wanted, queue = {kind.__name__}, [kind.__name__]
    while queue:
        for inner in ast.walk(defined[queue.pop()]):
            used = inner.id if isinstance(inner, ast.Name) else None
            if used in defined and used not in wanted:
                wanted.add(used)
                queue.append(used)
    last = defined[kind.__name__]
    nodes = {defined[name] for name in wanted}
    return sorted(nodes, key=lambda node: (node is last, node.lineno))


def _binds(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return [node.name]
        case ast.Assign(targets=targets):
            inner = (part for target in targets for part in ast.walk(target))
            return [part.id for part in inner if isinstance(part, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def _imports(tree: ast.Module, kind: type) -> list[str]:
    lines: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            raise UsageError(
                f"the file of {kind.__name__} has a relative import ({ast.unparse(node)}); the"
                " judge runs the class alone: write a file in KernelBench's format"
            )
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines.append(ast.unparse(node))
    return lines if "import torch" in lines else [*lines, "import torch"]


def _as_model(node: ast.stmt, kind: type, training: bool) -> ast.stmt:
    """`node` with the class called `Model`, which is put into eval mode where the instance is."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id == kind.__name__:
            inner.id = "Model"
    if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
        node.name = "Model"
        for method in node.body:
            if not training and isinstance(method, ast.FunctionDef) and method.name == "__init__":
                method.body += ast.parse("self.eval()").body
    return node


def _inputs_source(inputs: InputSpec) -> str:
    if not callable(inputs):
        made = ", ".join(_input(item) for item in inputs)
        return f"def get_inputs():\n    return [{made}]"
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(inputs))).body[0]
    except (OSError, TypeError, SyntaxError):
        node = None
    if not isinstance(node, ast.FunctionDef) or node.args.args:
        raise UsageError("inputs= takes a function without arguments made with def, not a lambda")
    outside = inspect.getclosurevars(inputs)
    free = {*outside.globals, *outside.nonlocals} - {"torch", "math"}
    if free:
        raise UsageError(
            f"the function given as inputs= uses {sorted(free)[0]}; only torch and math can be used"
        )
    node.name = "get_inputs"
    return (
        f"import math\n\n\n{ast.unparse(node)}" if "math" in outside.globals else ast.unparse(node)
    )


def _input(item: Any) -> str:
    if isinstance(item, bool | int | float):
        return repr(item)
    if hasattr(item, "shape") and hasattr(item, "dtype"):
        shape, dtype = tuple(int(size) for size in item.shape), str(item.dtype)
        low, high = (0, 2)
        if "int" in dtype and 0 not in shape:
            low, high = int(item.min()), int(item.max()) + 1
        return _tensor(shape, dtype.removeprefix("torch."), low, high)
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], str):
        return _tensor(tuple(item[0]), item[1].removeprefix("torch."), 0, 2)
    if isinstance(item, tuple | list) and all(isinstance(size, int) for size in item):
        return _tensor(tuple(item), "float32", 0, 2)
    raise UsageError(
        f"inputs= holds {type(item).__name__}; give tensors, shapes, (shape, dtype) or numbers"
    )


def _tensor(shape: tuple[int, ...], dtype: str, low: int, high: int) -> str:
    if dtype == "bool":
        return f"torch.randint(0, 2, {shape}).bool()"
    if "int" in dtype:
        return f"torch.randint({low}, {high}, {shape}, dtype=torch.{dtype})"
    return f"torch.randn({shape}, dtype=torch.{dtype})"


def _init_source(kind: type, init_inputs: Sequence[Any] | None) -> str:
    required = [
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if init_inputs is None:
        if required:
            raise UsageError(
                f"{kind.__name__} was made with arguments ({', '.join(required)}): give them as"
                " init_inputs=[...]"
            )
        init_inputs = []
    for value in init_inputs:
        if not _is_literal(value):
            raise UsageError(
                f"init_inputs= holds {type(value).__name__}; only numbers, strings, and lists,"
                " tuples and dicts of them can be written into a problem file"
            )
    return f"def get_init_inputs():\n    return {list(init_inputs)!r}"


def _is_literal(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_literal(item) for item in value)
    if isinstance(value, Mapping):
        return all(_is_literal(part) for item in value.items() for part in item)
    return isinstance(value, _LITERALS) and not (
        isinstance(value, float) and not math.isfinite(value)
    )
