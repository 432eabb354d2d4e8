"""Runs the Python of a reference module without PyTorch: numbers as numbers, tensors as nodes.

A small part of Python is enough: assignments, arithmetic, calls, `if` over known values, classes
and functions of the file itself. Everything else raises CannotTrace. No code is executed: the
syntax tree is walked, so nothing in a reference can touch this process.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing import torch_names
from agent.tuner.tracing.graph import Node
from agent.tuner.tracing.operators import apply
from agent.tuner.tracing.python_values import Instance, plainly
from agent.tuner.tracing.torch_names import Dotted

STEPS = 100_000
"""Expressions and statements walked before the tuner gives up."""

ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
NAMED: dict[type[ast.AST], str] = {
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
"""Operators on tensors that go by the name of PyTorch's function."""
BUILTINS: dict[str, Any] = {
    **{f.__name__: f for f in (len, range, int, float, bool, min, max, sum, tuple, list)},
    "super": Dotted("super"),
}


class _Return(Exception):  # noqa: N818
    def __init__(self, value: Any) -> None:
        self.value = value


class Interpreter:
    """Walks one file."""

    def __init__(self, tree: ast.Module) -> None:
        self.steps = 0
        self.forward = False
        """Whether the module runs: what it does to tensors counts now."""
        self.globals: dict[str, Any] = {"__name__": "reference"}
        for statement in tree.body:
            # What fails here may never be needed; a name that is missed says so.
            with suppress(CannotTrace):
                self.statement(statement, self.globals)

    # Statements -----------------------------------------------------------------------------------

    def statement(self, node: ast.stmt, scope: dict[str, Any]) -> None:
        """Carry out one statement."""
        self._tick()
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
                self._block(node.body if test else node.orelse, scope)
            case ast.Expr():
                self.value(node.value, scope)
            case ast.Pass() | ast.Assert():
                pass
            case _:
                raise CannotTrace(f"a `{type(node).__name__.lower()}` statement")

    def _block(self, body: Iterable[ast.stmt], scope: dict[str, Any]) -> None:
        for statement in body:
            self.statement(statement, scope)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: dict[str, Any]) -> None:
        for alias in node.names:
            top = alias.name if alias.asname else alias.name.partition(".")[0]
            if isinstance(node, ast.ImportFrom):
                scope[alias.asname or alias.name] = Dotted(f"{node.module}.{alias.name}")
            else:
                scope[alias.asname or top] = Dotted(top)

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case ast.Name():
                scope[target.id] = value
            case ast.Tuple() | ast.List():
                items = plainly(tuple, value)
                if len(items) != len(target.elts):
                    raise CannotTrace("unpacking")
                for part, item in zip(target.elts, items, strict=True):
                    self._assign(part, item, scope)
            case ast.Attribute():
                owner = self.value(target.value, scope)
                if not isinstance(owner, Instance):
                    raise CannotTrace(f"setting `{ast.unparse(target)}`")
                owner.attributes[target.attr] = value
            case ast.Subscript() if not self.forward:
                # In `get_inputs`, where only a tensor's shape counts.
                pass
            case _:
                raise CannotTrace(f"writing into `{ast.unparse(target)}`")

    # Expressions ----------------------------------------------------------------------------------

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """What an expression gives."""
        self._tick()
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
                left, right = self.value(node.left, scope), self.value(node.right, scope)
                return self._arithmetic(node.op, left, right)
            case ast.Compare(ops=[op], comparators=[other]):
                return self._arithmetic(op, self.value(node.left, scope), self.value(other, scope))
            case ast.UnaryOp():
                sign = {ast.USub: operator.neg, ast.Invert: operator.invert, ast.Not: _not}
                return plainly(sign.get(type(node.op)), self.value(node.operand, scope))
            case ast.Attribute():
                return self._attribute(self.value(node.value, scope), node.attr)
            case ast.Subscript():
                owner, key = self.value(node.value, scope), self._key(node.slice, scope)
                if isinstance(owner, Node):
                    return apply("[]", (owner, key))
                return plainly(operator.getitem, owner, key)
            case ast.Call():
                return self._call(node, scope)
            case _:
                raise CannotTrace(f"the expression `{ast.unparse(node)}`")

    def _tick(self) -> None:
        self.steps += 1
        if self.steps > STEPS:
            raise CannotTrace("a computation this long")

    def _items(self, nodes: Iterable[ast.expr], scope: dict[str, Any]) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items.extend(plainly(tuple, self.value(node.value, scope)))
            else:
                items.append(self.value(node, scope))
        return items

    def _arithmetic(self, op: ast.AST, left: Any, right: Any) -> Any:
        if type(op) in NAMED and (isinstance(left, Node) or isinstance(right, Node)):
            return apply(NAMED[type(op)], (left, right))
        if type(op) not in ARITHMETIC:
            raise CannotTrace(f"the operator {type(op).__name__}")
        return plainly(ARITHMETIC[type(op)], left, right)

    def _key(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._key(n, scope) for n in node.elts)
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if n is None else self.value(n, scope) for n in ends))
        return self.value(node, scope)

    # Attributes and calls -------------------------------------------------------------------------

    def _attribute(self, owner: Any, name: str) -> Any:
        match owner:
            case Dotted():
                return owner.attribute(name)
            case Instance() if name in owner.attributes:
                return owner.attributes[name]
            case Node():
                return torch_names.attribute(owner, name)
            case tuple() if name in getattr(owner, "_fields", ()):
                return getattr(owner, name)
        raise CannotTrace(f"the attribute `{name}`")

    def _call(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        if ast.unparse(node.func).startswith("super("):
            return None
        called = self.value(node.func, scope)
        args = self._items(node.args, scope)
        if any(k.arg is None for k in node.keywords):
            raise CannotTrace("`**` in a call")
        kwargs = {str(k.arg): self.value(k.value, scope) for k in node.keywords}
        return plainly(called, *args, **kwargs)

    def _function(self, node: ast.FunctionDef, *bound: Any) -> Callable[..., Any]:
        """A function of the file, or a method with its instance in `bound`."""
        names = [a.arg for a in node.args.args]
        defaults = dict(zip(reversed(names), reversed(node.args.defaults), strict=False))

        def call(*args: Any, **kwargs: Any) -> Any:
            given = (*bound, *args)
            scope = dict(zip(names, given, strict=False)) | kwargs
            missing = [n for n in names if n not in scope and n not in defaults]
            if len(given) > len(names) or missing:
                raise CannotTrace(f"a call of `{node.name}` with these arguments")
            scope = {n: self.value(d, {}) for n, d in defaults.items() if n not in scope} | scope
            try:
                self._block(node.body, scope)
            except _Return as returned:
                return returned.value
            return None

        return call

    def _class(self, node: ast.ClassDef) -> Callable[..., Instance]:
        """What makes an instance of a class of the file."""
        bases = {ast.unparse(b).rpartition(".")[2] for b in node.bases}
        if bases != {"Module"}:
            raise CannotTrace(f"a class derived from {', '.join(sorted(bases))}")

        def construct(*args: Any, **kwargs: Any) -> Instance:
            instance = Instance()
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef):
                    instance.attributes[statement.name] = self._function(statement, instance)
            if "__init__" in instance.attributes:
                instance.attributes["__init__"](*args, **kwargs)
            return instance

        return construct


def _not(value: Any) -> bool:
    if isinstance(value, Node):
        raise CannotTrace("`not` of a tensor")
    return not value
