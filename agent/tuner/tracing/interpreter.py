"""Runs the Python of a reference module without PyTorch: numbers as numbers, tensors as nodes.

A small part of Python is enough: assignments, arithmetic, calls, `if` and `for` over known values,
comprehensions, classes and functions of the file itself. Everything else raises CannotTrace. No
code is executed: the syntax tree is walked, so nothing in a reference can touch this process.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.apply import apply
from agent.tuner.tracing.graph import Builder, Kind, Node
from agent.tuner.tracing.layers import Layer, run
from agent.tuner.tracing.library import index
from agent.tuner.tracing.pointwise import binary, logical_not, power, unary
from agent.tuner.tracing.python_values import (
    Class,
    Dotted,
    Function,
    Instance,
    Method,
    Parameter,
    plainly,
    set_mode,
)
from agent.tuner.tracing.torch_names import TorchNames

STEPS = 200_000
"""Expressions and statements walked before the tuner gives up."""

ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("", operator.floordiv),
    ast.Mod: ("", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.MatMult: ("matmul", operator.matmul),
}
COMPARISON: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Is: ("", operator.is_),
    ast.IsNot: ("", operator.is_not),
    ast.In: ("", lambda a, b: a in b),
    ast.NotIn: ("", lambda a, b: a not in b),
}
BUILTINS: dict[str, Any] = {
    f.__name__: f
    for f in (len, range, int, float, bool, min, max, sum, abs, tuple, list, zip, enumerate, round)
} | {"True": True, "False": False, "None": None, "print": None}


class _Return(Exception):  # noqa: N818
    def __init__(self, value: Any) -> None:
        self.value = value


class Interpreter:
    """Walks one file. `builder` receives the operations on tensors."""

    def __init__(self, tree: ast.Module, builder: Builder) -> None:
        self.builder = builder
        self.steps = 0
        self.torch = TorchNames(builder)
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
                scope[node.name] = Function(node, scope)
            case ast.ClassDef():
                scope[node.name] = Class(node, scope)
            case ast.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope)
            case ast.AnnAssign():
                if node.value is not None:
                    self._assign(node.target, self.value(node.value, scope), scope)
            case ast.AugAssign():
                left = self.value(_loaded(node.target), scope)
                right = self.value(node.value, scope)
                self._assign(node.target, self._arithmetic(node.op, left, right), scope)
            case ast.Return():
                raise _Return(None if node.value is None else self.value(node.value, scope))
            case ast.If():
                chosen = node.body if self._truth(self.value(node.test, scope)) else node.orelse
                self._block(chosen, scope)
            case ast.For():
                for item in self._iterate(self.value(node.iter, scope)):
                    self._assign(node.target, item, scope)
                    self._block(node.body, scope)
            case ast.With():
                self._block(node.body, scope)
            case ast.Expr():
                self._expression_statement(node.value, scope)
            case ast.Pass() | ast.Assert():
                pass
            case _:
                raise CannotTrace(f"a `{type(node).__name__.lower()}` statement")

    def _block(self, body: Iterable[ast.stmt], scope: dict[str, Any]) -> None:
        for statement in body:
            self.statement(statement, scope)

    def _expression_statement(self, node: ast.expr, scope: dict[str, Any]) -> None:
        if isinstance(node, ast.Constant):
            return
        value = self.value(node, scope)
        if isinstance(value, Node) and self.torch.anchor is not None:
            raise CannotTrace("an operation in place")

    def _import(self, node: ast.Import | ast.ImportFrom, scope: dict[str, Any]) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                scope[alias.asname or alias.name] = Dotted(f"{node.module}.{alias.name}")
            elif alias.asname:
                scope[alias.asname] = Dotted(alias.name)
            else:
                top = alias.name.partition(".")[0]
                scope[top] = Dotted(top)

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case ast.Name():
                scope[target.id] = value
            case ast.Tuple() | ast.List():
                items = list(self._iterate(value))
                if len(items) != len(target.elts):
                    raise CannotTrace("unpacking")
                for part, item in zip(target.elts, items, strict=True):
                    self._assign(part, item, scope)
            case ast.Attribute():
                owner = self.value(target.value, scope)
                if not isinstance(owner, Instance):
                    raise CannotTrace(f"setting `{ast.unparse(target)}`")
                owner.attributes[target.attr] = (
                    Parameter(value) if isinstance(value, Node) else value
                )
            case ast.Subscript():
                owner = self.value(target.value, scope)
                if isinstance(owner, (dict, list)):
                    owner[self.value(target.slice, scope)] = value
                elif not isinstance(owner, Node) or self.torch.anchor is not None:
                    raise CannotTrace("writing into a tensor")
            case _:
                raise CannotTrace(f"assigning to `{ast.unparse(target)}`")

    # Expressions ----------------------------------------------------------------------------------

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """What an expression gives."""
        self._tick()
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node.id, scope)
            case ast.Tuple():
                return tuple(self._items(node.elts, scope))
            case ast.List():
                return self._items(node.elts, scope)
            case ast.Dict():
                return {
                    self.value(k, scope): self.value(v, scope)
                    for k, v in zip(node.keys, node.values, strict=True)
                    if k is not None
                }
            case ast.BinOp():
                left, right = self.value(node.left, scope), self.value(node.right, scope)
                return self._arithmetic(node.op, left, right)
            case ast.UnaryOp():
                return self._unary(node.op, self.value(node.operand, scope))
            case ast.Compare():
                return self._compare(node, scope)
            case ast.BoolOp():
                return self._boolean(node, scope)
            case ast.IfExp():
                chosen = node.body if self._truth(self.value(node.test, scope)) else node.orelse
                return self.value(chosen, scope)
            case ast.Attribute():
                return self.attribute(self.value(node.value, scope), node.attr)
            case ast.Subscript():
                return self._subscript(self.value(node.value, scope), self._key(node.slice, scope))
            case ast.Call():
                return self._call(node, scope)
            case ast.ListComp() | ast.GeneratorExp():
                return list(self._comprehend(node, scope))
            case ast.Lambda():
                return Function(node, scope)
            case ast.JoinedStr():
                return ""
            case _:
                raise CannotTrace(f"the expression `{ast.unparse(node)}`")

    def _tick(self) -> None:
        self.steps += 1
        if self.steps > STEPS:
            raise CannotTrace("a computation this long")

    def _name(self, name: str, scope: dict[str, Any]) -> Any:
        for table in (scope, self.globals, BUILTINS):
            if name in table:
                return table[name]
        if name in ("super", "dict", "set"):
            return Dotted(name)
        raise CannotTrace(f"the name `{name}`")

    def _items(self, nodes: Iterable[ast.expr], scope: dict[str, Any]) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items.extend(self._iterate(self.value(node.value, scope)))
            else:
                items.append(self.value(node, scope))
        return items

    def _arithmetic(self, op: ast.operator, left: Any, right: Any) -> Any:
        if type(op) not in ARITHMETIC:
            raise CannotTrace(f"the operator {type(op).__name__}")
        name, plain = ARITHMETIC[type(op)]
        if not isinstance(left, Node) and not isinstance(right, Node):
            return plainly(plain, left, right)
        if not name:
            raise CannotTrace(f"the operator {type(op).__name__} on tensors")
        if name == "matmul":
            return apply(self.builder, "matmul", (left, right), {})
        return (
            power(self.builder, left, right)
            if name == "pow"
            else binary(self.builder, name, left, right)
        )

    def _unary(self, op: ast.unaryop, value: Any) -> Any:
        if isinstance(value, Node):
            if isinstance(op, ast.USub):
                return unary(self.builder, "neg", value)
            if isinstance(op, ast.Invert):
                return logical_not(self.builder, value)
            raise CannotTrace("`not` of a tensor")
        if isinstance(op, ast.Not):
            return not self._truth(value)
        return plainly(operator.neg if isinstance(op, ast.USub) else operator.pos, value)

    def _compare(self, node: ast.Compare, scope: dict[str, Any]) -> Any:
        left = self.value(node.left, scope)
        result: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node, scope)
            name, plain = COMPARISON[type(op)]
            if name and (isinstance(left, Node) or isinstance(right, Node)):
                return binary(self.builder, name, left, right)
            result = result and plainly(plain, left, right)
            left = right
        return result

    def _boolean(self, node: ast.BoolOp, scope: dict[str, Any]) -> Any:
        result: Any = None
        for part in node.values:
            result = self.value(part, scope)
            if self._truth(result) != isinstance(node.op, ast.And):
                break
        return result

    def _truth(self, value: Any) -> bool:
        if isinstance(value, Node):
            raise CannotTrace("a decision that depends on a tensor's values")
        return bool(value)

    def _iterate(self, value: Any) -> Iterable[Any]:
        if isinstance(value, Instance) and value.items is not None:
            return value.items
        if isinstance(value, (Node, Instance, Dotted, Layer, int, float)) or value is None:
            raise CannotTrace("a loop over this")
        return value  # type: ignore[no-any-return]

    def _comprehend(
        self, node: ast.ListComp | ast.GeneratorExp, scope: dict[str, Any]
    ) -> Iterable[Any]:
        if len(node.generators) != 1:
            raise CannotTrace("a nested comprehension")
        generator = node.generators[0]
        inner = dict(scope)
        for item in self._iterate(self.value(generator.iter, scope)):
            self._assign(generator.target, item, inner)
            if all(self._truth(self.value(test, inner)) for test in generator.ifs):
                yield self.value(node.elt, inner)

    def _key(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._key(n, scope) for n in node.elts)
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if n is None else self.value(n, scope) for n in ends))
        return self.value(node, scope)

    def _subscript(self, owner: Any, key: Any) -> Any:
        if isinstance(owner, Node):
            return index(self.builder, owner, key)
        if isinstance(owner, Instance):
            return plainly(operator.getitem, owner.items, key)
        return plainly(operator.getitem, owner, key)

    # Attributes and calls -------------------------------------------------------------------------

    def attribute(self, owner: Any, name: str) -> Any:
        """`owner.name`."""
        match owner:
            case Dotted("math"):
                return getattr(math, name, None)
            case Dotted():
                return Dotted(f"{owner.path}.{name}")
            case Instance():
                return self._instance_attribute(owner, name)
            case Layer():
                if name in ("eval", "train", "to"):
                    return lambda *mode: set_mode(owner, name, *mode)
                weight = owner.weight(self.builder, name)
                return owner.options.get(name) if weight is None else weight
            case Node():
                return self.torch.attribute(owner, name)
        if isinstance(owner, tuple) and name in getattr(owner, "_fields", ()):
            return getattr(owner, name)
        if isinstance(owner, list) and name in ("append", "extend"):
            return getattr(owner, name)
        raise CannotTrace(f"the attribute `{name}`")

    def _instance_attribute(self, owner: Instance, name: str) -> Any:
        if name in owner.attributes:
            value = owner.attributes[name]
            if isinstance(value, Parameter):
                tensor = value.value
                if not owner.path:
                    return tensor
                return self.builder.leaf(
                    Kind.WEIGHT, f"{owner.path}.{name}", tensor.shape, tensor.dtype
                )
            return value
        if name == "training":
            return owner.training
        if name in ("eval", "train", "to"):
            return lambda *mode: set_mode(owner, name, *mode)
        if owner.cls is not None:
            for statement in owner.cls.node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == name:
                    static = any("static" in ast.unparse(d) for d in statement.decorator_list)
                    return Function(statement, owner.cls.scope, None if static else owner)
                if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
                    return self.value(statement.value, owner.cls.scope)
        if name == "append" and owner.items is not None:
            return owner.items.append
        if name in ("register_buffer", "register_parameter"):
            return lambda key, value=None, **_: owner.attributes.__setitem__(
                key, Parameter(value) if isinstance(value, Node) else value
            )
        raise CannotTrace(f"the attribute `self.{name}`")

    def _call(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Call)
            and isinstance(node.func.value.func, ast.Name)
            and node.func.value.func.id == "super"
        ):
            return None
        called = self.value(node.func, scope)
        args = tuple(self._items(node.args, scope))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            given = self.value(keyword.value, scope)
            kwargs.update(given if keyword.arg is None else {keyword.arg: given})
        return self.call(called, args, kwargs)

    def call(self, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call whatever it is."""
        match called:
            case Function():
                return self.function(called, args, kwargs)
            case Class():
                return self.construct(called, args, kwargs)
            case Instance():
                return self._call_instance(called, args, kwargs)
            case Layer():
                return run(self.builder, called, (*args, *kwargs.values()))
            case Method():
                return self.torch.call_method(called, args, kwargs)
            case Dotted():
                return self.torch.call(called.path, args, kwargs)
            case None:
                return None
        if any(isinstance(a, Node) for a in args) and called in (min, max, sum, abs):
            if called is abs:
                return unary(self.builder, "abs", args[0])
            raise CannotTrace("a Python builtin on tensors")
        return plainly(called, *args, **kwargs)

    def function(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the file."""
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        given = (function.owner, *args) if function.owner is not None else args
        scope: dict[str, Any] = dict(function.scope) if function.scope is not self.globals else {}
        if len(given) > len(names) and spec.vararg is None:
            raise CannotTrace("these arguments")
        defaults = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
        for keyword, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            names.append(keyword.arg)
            if default is not None:
                defaults[keyword.arg] = default
        bound = dict(zip(names, given, strict=False)) | kwargs
        for name in names:
            if name not in bound and name not in defaults:
                raise CannotTrace(f"a call without `{name}`")
            scope[name] = bound[name] if name in bound else self.value(defaults[name], scope)
        if spec.vararg is not None:
            scope[spec.vararg.arg] = tuple(given[len(spec.args) :])
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body, scope)
        try:
            self._block(function.node.body, scope)
        except _Return as returned:
            return returned.value
        return None

    def construct(self, cls: Class, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instance:
        """Make an instance of a class of the file."""
        bases = {ast.unparse(b).rpartition(".")[2] for b in cls.node.bases}
        if not bases <= {"Module"}:
            raise CannotTrace(f"a class derived from {', '.join(sorted(bases))}")
        instance = Instance(cls)
        for statement in cls.node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                self.function(Function(statement, cls.scope, instance), args, kwargs)
        return instance

    def _call_instance(
        self, instance: Instance, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if instance.items is not None:
            value = args
            for item in instance.items:
                result = self.call(item, value, {})
                value = (result,)
            return value[0]
        return self.call(self.attribute(instance, "forward"), args, kwargs)


def _loaded(target: ast.expr) -> ast.expr:
    """The same name or attribute, read instead of written."""
    return ast.parse(ast.unparse(target), mode="eval").body
