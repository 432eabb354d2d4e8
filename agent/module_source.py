"""A module at hand -> a problem file in KernelBench's format, made from its source.

Only source text is worked on, so torch isn't imported here: the class (from `inspect`), what its
module defines that it uses, and the imports. What that does not show is refused: a class typed
into an interpreter, arguments that aren't literals, relative imports, hooks and other changes made
to the instance after construction (they are not seen; parameters get values of the judge's anyway).
"""

from __future__ import annotations

import ast
import inspect
import io
import math
import textwrap
import tokenize
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
    tree, text = _file_of(kind)
    parts = _needed(kind, tree, text)
    parts[-1] = _renamed(parts[-1], kind.__name__, training=bool(getattr(module, "training", True)))
    return (
        "\n\n\n".join(
            [
                "\n".join(_imports(tree, kind)),
                *parts,
                _inputs_source(inputs),
                _init_source(kind, init_inputs),
            ]
        )
        + "\n"
    )


def _file_of(kind: type) -> tuple[ast.Module, str]:
    try:
        file = inspect.getsourcefile(kind)
        text = inspect.getsource(inspect.getmodule(kind) or kind) if file else ""
        tree = ast.parse(text)
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
    return tree, text


def _needed(kind: type, tree: ast.Module, text: str) -> list[str]:
    """Source of every definition that the class uses, directly or not; the class itself is last."""
    defined: dict[str, ast.stmt] = {}
    for node in tree.body:
        for name in _binds(node):
            defined[name] = node
    wanted, queue = {kind.__name__}, [kind.__name__]
    while queue:
        for inner in ast.walk(defined[queue.pop()]):
            used = inner.id if isinstance(inner, ast.Name) else None
            if used in defined and used not in wanted:
                wanted.add(used)
                queue.append(used)
    nodes = {id(defined[name]): defined[name] for name in wanted}
    last = id(defined[kind.__name__])
    order = sorted(nodes.values(), key=lambda node: (id(node) == last, node.lineno))
    return [_segment(text, node) for node in order]


def _binds(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return [node.name]
        case ast.Assign():
            return [name.id for target in node.targets for name in _names(target)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def _names(target: ast.expr) -> list[ast.Name]:
    return [node for node in ast.walk(target) if isinstance(node, ast.Name)]


def _segment(text: str, node: ast.stmt) -> str:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


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


def _renamed(source: str, name: str, *, training: bool) -> str:
    """The class under the name `Model`; put into eval mode where the instance is."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        own = token.type == tokenize.NAME and token.string == name
        tokens.append(token._replace(string="Model") if own and name != "Model" else token)
    lines = _replaced(source, tokens).splitlines()
    if not training:
        node = ast.parse("\n".join(lines)).body[0]
        assert isinstance(node, ast.ClassDef)
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                indent = " " * method.body[0].col_offset
                lines.insert(method.end_lineno or len(lines), f"{indent}self.eval()")
    return "\n".join(lines)


def _replaced(source: str, tokens: list[tokenize.TokenInfo]) -> str:
    lines = source.splitlines()
    for token in reversed(tokens):
        (row, start), (_, end) = token.start, token.end
        if token.type == tokenize.NAME and lines[row - 1][start:end] != token.string:
            lines[row - 1] = lines[row - 1][:start] + token.string + lines[row - 1][end:]
    return "\n".join(lines)


def _inputs_source(inputs: InputSpec) -> str:
    if not callable(inputs):
        made = ", ".join(_input(item) for item in inputs)
        return f"def get_inputs():\n    return [{made}]"
    try:
        source = textwrap.dedent(inspect.getsource(inputs))
        node = ast.parse(source).body[0]
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
    body = _renamed_function(source, node)
    return f"import math\n\n\n{body}" if "math" in source else body


def _renamed_function(source: str, node: ast.FunctionDef) -> str:
    lines = source.splitlines()[node.lineno - 1 :]
    return "\n".join([lines[0].replace(node.name, "get_inputs", 1), *lines[1:]])


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
