"""Runs the Python of a reference module without PyTorch: numbers as numbers, tensors as nodes.

A small part of Python is enough: assignments, arithmetic, calls, `if` over known values, classes
and functions of the file itself. Everything else raises CannotTrace. No code is executed: the
syntax tree is walked, so nothing in a reference can touch this process.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from agent.tuner.tracing.graph import CannotTrace, Kind, Node
from agent.tuner.tracing.library import Layer, operator_named, sizes_of

FRESH = "(fresh)"
"""The name of tensors that the file makes: only their shape counts."""

ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
NAMED: dict[type[ast.AST], str] = {
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
"""Operators on tensors that go by the name of PyTorch's function."""


# Values besides plain Python's and tensors --------------------------------------------------------


@dataclass(frozen=True)
class Dotted:
    """A name in PyTorch or the standard library, e.g. `torch.nn.functional.relu`."""

    path: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What PyTorch would return; CannotTrace where the name is unknown."""
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        module, _, name = self.path.rpartition(".")
        if name == "Parameter":
            return args[0]
        if name == "Sequential":
            return sequential(*args)
        if module == "torch.nn":
            return Layer(name, args, kwargs)
        if name == "tensor" and isinstance(args[0], (int, float)):
            return Node(Kind.INPUT, (), name=FRESH)
        if name in ("rand", "randn", "ones", "zeros", "full"):
            if kwargs.get("dtype", Dotted("torch.float32")) != Dotted("torch.float32"):
                raise CannotTrace("an input that is not in fp32")
            sizes = args[0] if name == "full" else sizes_of(args)
            return Node(Kind.INPUT, tuple(sizes), name=FRESH)
        if not module.startswith("torch"):
            raise CannotTrace(f"`{self.path}`")
        return operator_named(name)(*args, **kwargs)


class Instance(dict[str, Any]):
    """The attributes of a module made of others, its methods among them."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self["forward"](*args, **kwargs)


def sequential(*modules: Any) -> Instance:
    items = {str(i): module for i, module in enumerate(modules)}
    return Instance(items, forward=lambda x: reduce(lambda y, module: module(y), modules, x))


def place(value: Any, path: str) -> Any:
    """`value` once it is known by which Python expression it is reached: tensors are weights."""
    if isinstance(value, Node):
        return Node(Kind.WEIGHT, value.shape, value.dtype, name=path)
    if isinstance(value, Layer):
        value.path = path
    elif isinstance(value, Instance):
        for name, item in value.items():
            value[name] = place(item, f"{path}[{name}]" if name.isdigit() else f"{path}.{name}")
    return value


def plainly(name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call what the file calls `name`; what fails there is beyond us."""
    try:
        return function(*args, **kwargs)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CannotTrace(f"`{name}` of these arguments ({error})") from None


def as_it_is(tensor: Node, dtype: Any) -> Node:
    if dtype != Dotted(f"torch.{tensor.dtype}"):
        raise CannotTrace("a tensor in another dtype")
    return tensor


BUILTINS: dict[str, Any] = {
    f.__name__: f for f in (len, range, int, float, bool, min, max, sum, tuple, list)
}

# The walk -----------------------------------------------------------------------------------------


class _Return(Exception):  # noqa: N818
    def __init__(self, value: Any) -> None:
        self.value = value


class Interpreter:
    def __init__(self, tree: ast.Module) -> None:
        self.forward = False
        """Whether the module runs: what it does to tensors counts now."""
        self.globals: dict[str, Any] = {"__name__": "reference"}
        for statement in tree.body:
            # What fails here may never be needed; a name that is missed says so.
            with suppress(CannotTrace):
                self.statement(statement, self.globals)

    def statement(self, node: ast.stmt, scope: dict[str, Any]) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope)
            case ast.FunctionDef():
                scope[node.name] = self._function(node)
            case ast.ClassDef():
                scope[node.name] = self._class(node)
            case ast.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope)
            case ast.Return():
                raise _Return(None if node.value is None else self.value(node.value, scope))
            case ast.If():
                test = self.value(node.test, scope)
                if isinstance(test, Node):
                    raise CannotTrace("a decision that depends on a tensor's values")
                for statement in node.body if test else node.orelse:
                    self.statement(statement, scope)
            case ast.Expr():
                self.value(node.value, scope)
            case ast.Pass() | ast.Assert():
                pass
            case _:
                raise CannotTrace(f"a `{type(node).__name__.lower()}` statement")

    def _import(self, node: ast.Import | ast.ImportFrom, scope: dict[str, Any]) -> None:
        parent = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            scope[alias.asname or name] = Dotted(parent + name)

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case ast.Name():
                scope[target.id] = value
            case ast.Tuple() | ast.List():
                items = plainly("tuple", tuple, value)
                if len(items) != len(target.elts):
                    raise CannotTrace("unpacking")
                for part, item in zip(target.elts, items, strict=True):
                    self._assign(part, item, scope)
            case ast.Attribute():
                owner = self.value(target.value, scope)
                if not isinstance(owner, Instance):
                    raise CannotTrace(f"setting `{ast.unparse(target)}`")
                owner[target.attr] = value
            case ast.Subscript() if not self.forward:
                # In `get_inputs`, where only a tensor's shape counts.
                pass
            case _:
                raise CannotTrace(f"writing into `{ast.unparse(target)}`")

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                for table in (scope, self.globals, BUILTINS):
                    if node.id in table:
                        return table[node.id]
                raise CannotTrace(f"the name `{node.id}`")
            case ast.Tuple():
                return tuple(self._items(node.elts, scope))
            case ast.List():
                return self._items(node.elts, scope)
            case ast.BinOp():
                return self._arithmetic(
                    node.op, self.value(node.left, scope), self.value(node.right, scope)
                )
            case ast.Compare(ops=[op], comparators=[other]):
                return self._arithmetic(op, self.value(node.left, scope), self.value(other, scope))
            case ast.UnaryOp():
                return self._arithmetic(node.op, self.value(node.operand, scope))
            case ast.Attribute():
                return self._attribute(self.value(node.value, scope), node.attr)
            case ast.Slice():
                ends = (node.lower, node.upper, node.step)
                return slice(*(None if n is None else self.value(n, scope) for n in ends))
            case ast.Subscript():
                owner, key = self.value(node.value, scope), self.value(node.slice, scope)
                pick = operator_named("[]") if isinstance(owner, Node) else operator.getitem
                return plainly("[]", pick, owner, key)
            case ast.Call():
                return self._call(node, scope)
            case ast.Lambda():
                return lambda: self.value(node.body, {})
            case ast.NamedExpr():
                value = self.value(node.value, scope)
                self._assign(node.target, value, scope)
                return value
            case _:
                raise CannotTrace(f"the expression `{ast.unparse(node)}`")

    def _items(self, nodes: Iterable[ast.expr], scope: dict[str, Any]) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items += plainly("*", tuple, self.value(node.value, scope))
            else:
                items.append(self.value(node, scope))
        return items

    def _arithmetic(self, op: ast.AST, *operands: Any) -> Any:
        name = type(op).__name__
        if type(op) in NAMED and any(isinstance(x, Node) for x in operands):
            return plainly(name, operator_named(NAMED[type(op)]), *operands)
        if type(op) not in ARITHMETIC:
            raise CannotTrace(f"the operator {name}")
        return plainly(name, ARITHMETIC[type(op)], *operands)

    def _attribute(self, owner: Any, name: str) -> Any:
        match owner:
            case Dotted(path="math"):
                return getattr(math, name, None)
            case Dotted():
                return Dotted(f"{owner.path}.{name}")
            case Instance() if name in owner:
                return owner[name]
            case Instance() if name == "eval":
                return lambda: owner
            case Node() if name == "dtype":
                return Dotted(f"torch.{owner.dtype}")
            case Node() if name == "to":
                return partial(as_it_is, owner)
            case Node() if name == "shape":
                return owner.shape
            case Node():
                method = partial(operator_named(name), owner)
                return method() if name in ("T", "mT") else method
            case tuple() if name == "values":
                return owner[0]
        raise CannotTrace(f"the attribute `{name}`")

    def _call(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        args = self._items(node.args, scope)
        if ast.unparse(node.func).startswith("super("):
            if args and isinstance(scope.get("self"), Instance):
                scope["self"].update(sequential(*args))
            return None
        called = self.value(node.func, scope)
        if any(k.arg is None for k in node.keywords):
            raise CannotTrace("`**` in a call")
        kwargs = {str(k.arg): self.value(k.value, scope) for k in node.keywords}
        return plainly(ast.unparse(node.func), called, *args, **kwargs)

    def _function(self, node: ast.FunctionDef, *bound: Any) -> Callable[..., Any]:
        """A function of the file, or a method with its instance in `bound`."""
        names = [a.arg for a in node.args.args]
        defaults = [self.value(default, {}) for default in node.args.defaults]
        by_name = [a.arg for a in node.args.kwonlyargs]
        given_none = [default and self.value(default, {}) for default in node.args.kw_defaults]

        def call(*args: Any, **kwargs: Any) -> Any:
            given = (*bound, *args)
            scope = dict(zip(reversed(names), reversed(defaults), strict=False))
            scope |= dict(zip(by_name, given_none, strict=True))
            scope |= dict(zip(names, given, strict=False)) | kwargs
            if len(given) > len(names) or scope.keys() != {*names, *by_name}:
                raise TypeError(f"it takes {', '.join(names)}")
            try:
                for statement in node.body:
                    self.statement(statement, scope)
            except _Return as returned:
                return returned.value
            return None

        return call

    def _class(self, node: ast.ClassDef) -> Callable[..., Instance]:
        """What makes an instance of a class of the file."""
        bases = {ast.unparse(b).rpartition(".")[2] for b in node.bases}
        if bases not in ({"Module"}, {"Sequential"}):
            raise CannotTrace(f"a class derived from {', '.join(sorted(bases))}")

        def construct(*args: Any, **kwargs: Any) -> Instance:
            instance = Instance()
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef):
                    instance[statement.name] = self._function(statement, instance)
            if "__init__" in instance:
                instance["__init__"](*args, **kwargs)
            return instance

        return construct
