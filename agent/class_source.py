"""Classes and functions of a module at hand, written down as text that stands by itself.

A constructor is written from what the instance is, so that the text needs neither the arguments
that it was made with nor a file of its class: functions have their source in scripts, packages and
notebook cells alike. Definitions come along with all that they use; what is installed is imported.
What cannot be written raises `UsageError`, in one line.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, count
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

from agent.recording.drawn_tensor import Expression, drawn, literal
from problems.errors import UsageError

_NEVER_WRITTEN = {"torch", "numpy", "einops", *sys.stdlib_module_names}
"""Packages whose functions are imported."""
_HOMES = ("torch.nn.functional", "torch", "math")
"""Where a user looks for a function that is compiled into torch."""
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
_METHODS = (types.FunctionType, staticmethod, classmethod, property)
_MOST_NUMBERS = 64
"""Of a tensor that is no weight, as text."""
_DECORATORS = ("torch.", "staticmethod", "classmethod", "property")
"""Others are left out: what they decorate is looked at."""


def class_source(module: nn.Module) -> str:
    """Imports and definitions; the last is `module`'s class, which is called `Model`."""
    writing = _Writing()
    for each in module.modules():
        writing.find_methods(each)
    model = writing.class_of(module, _modes(module))
    imports = sorted(writing.imports, key=lambda line: (line.startswith("from"), line))
    return "\n\n\n".join(["\n".join(imports), *writing.definitions.values(), f"class Model{model}"])


class _Writing:
    """The text of one file so far."""

    def __init__(self) -> None:
        self.imports = {"import torch", "from torch import nn"}
        self.definitions: dict[str, str] = {}
        """By name, each behind those that it uses."""
        taken = dict.fromkeys(("Model", "CASES", "get_inputs", "get_init_inputs"))
        self._meant: dict[str, object] = {"torch": torch, "nn": nn, **taken}
        """What each name of the file stands for."""
        self._methods: dict[type, list[str]] = {}
        self._read: defaultdict[type | None, set[str]] = defaultdict(set)
        """Attributes that the methods of a class read; with None, those that functions read."""
        self._read_of: defaultdict[str, set[str]] = defaultdict(set)
        """By the name of an attribute or variable: what is read of it."""

    def find_methods(self, module: nn.Module) -> None:
        """`forward` and what it calls, as methods of one class."""
        kind, base = type(module), _base(module)
        if kind in self._methods:
            return
        found = self._methods[kind] = []
        needed = [(_owner(kind.__mro__, "forward"), "forward", "forward")]
        for owner, name, new in needed:  # which grows
            if owner is None or issubclass(base, owner):
                continue
            method = vars(owner)[name]
            node = self._function(inspect.unwrap(getattr(method, "fget", method)), new)
            self._read[kind] |= _attributes(node)
            for each in ast.walk(node):
                match each:
                    case ast.Attribute(ast.Name("self"), called) if called not in vars(module):
                        callee = _owner(kind.__mro__, called)
                    case ast.Attribute(ast.Call(ast.Name("super")), called):
                        callee = _owner(kind.__mro__[kind.__mro__.index(owner) + 1 :], called)
                        if callee and not issubclass(base, callee):
                            each.value, each.attr = ast.Name("self"), f"_{callee.__name__}_{called}"
                    case ast.Call(args=args) if "self" in map(ast.unparse, args):
                        # What reads it may want any of its numbers.
                        own = vars(module).items()
                        self._read[kind] |= {n for n, v in own if literal(v) is not None}
                        continue
                    case _:
                        continue
                step = callee, called, each.attr
                if callee and isinstance(vars(callee)[called], _METHODS) and step not in needed:
                    needed.append(step)
            found.append(ast.unparse(node))

    # Modules

    def module(self, module: nn.Module) -> str:
        """An expression that makes such a module."""
        kind = type(module)
        if _base(module) is kind:
            return f"nn.{kind.__name__}({self._arguments(kind, module)})"
        self.find_methods(module)
        # Equal texts are one class.
        text = sys.intern(self.class_of(module))
        name = self._name(kind.__name__, text)
        self.definitions[name] = f"class {name}{text}"
        return f"{name}()"

    def class_of(self, module: nn.Module, last: Iterable[str] = ()) -> str:
        """What follows its name; `last` ends the constructor."""
        base = _base(module)
        lines = [f"super().__init__({self._arguments(base, module)})"]
        lines += [*self._assignments(module, base), *last]
        constructor = "def __init__(self):\n" + textwrap.indent("\n".join(lines), "    ")
        body = "\n\n".join([constructor, *self._methods[type(module)]])
        return f"(nn.{base.__name__}):\n" + textwrap.indent(body, "    ")

    def _arguments(self, kind: type[nn.Module], module: nn.Module) -> str:
        where = type(module).__name__
        if not issubclass(kind, _CONTAINERS):
            made = _made_with(kind, module) or {}
            return ", ".join(f"{n}={self.value(v, f'{where}.{n}')}" for n, v in made.items())
        children = {name: self.module(child) for name, child in module._modules.items() if child}
        if issubclass(kind, nn.ModuleDict) or [*children] != [*map(str, range(len(children)))]:
            pairs = f"{{{_lines(f'{name!r}: {text}' for name, text in children.items())}}}"
            if issubclass(kind, nn.ModuleDict):
                return pairs
            self.imports.add("import collections")
            return f"collections.OrderedDict({pairs})"
        listed = _lines(children.values())
        return f"[{listed}]" if issubclass(kind, nn.ModuleList) else listed

    def _assignments(self, module: nn.Module, base: type[nn.Module]) -> Iterator[str]:
        """Lines that give an instance what this one has besides what its base makes."""
        kind = type(module)
        plain = base(**_made_with(base, module) or {})
        known = {*vars(plain), *plain._parameters, *plain._buffers, *plain._modules}
        if issubclass(base, _CONTAINERS):
            known |= {*module._modules}
        for name, value in (module._parameters | module._buffers | module._modules).items():
            if name in known:
                continue
            text = self.value(value, f"{kind.__name__}.{name}")
            if name in module._buffers:
                is_kept = name not in module._non_persistent_buffers_set
                text = f"{name!r}, {text}{'' if is_kept else ', persistent=False'}"
                yield f"self.register_buffer({text})"
            elif isinstance(value, nn.Parameter):
                yield f"self.{name} = nn.Parameter({text})"
            else:
                yield f"self.{name} = {text}"
        for name in sorted((self._read[kind] | self._read[None]) - known):
            owner = _owner(kind.__mro__, name)
            is_of_class = owner is not None and not issubclass(base, owner)
            if name in vars(module) or (
                is_of_class and not isinstance(vars(owner)[name], _METHODS)
            ):
                value = getattr(module, name)
                yield f"self.{name} = {self.value(value, f'{kind.__name__}.{name}')}"

    # Values and what they use

    def value(self, value: object, where: str) -> str:
        """An expression for it; `where` ends with the name that it has."""
        return repr(tree_map(lambda leaf: Expression(self._leaf(leaf, where)), value))

    def _leaf(self, value: Any, where: str) -> str:
        if (text := literal(value)) is not None:
            return text
        if isinstance(value, torch.Tensor):
            return self._tensor(value, where)
        if isinstance(value, nn.Module):
            return self.module(value)
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            return self._object(value, value.__name__, value.__module__, where)
        # A configuration, say: of it, what is read.
        parts = [
            f"{name}={self.value(getattr(value, name), f'{where}.{name}')}"
            for name in sorted(self._read_of[where.rpartition(".")[2]])
            if hasattr(value, name)
        ]
        if not parts:
            raise UsageError(
                f"{where} holds {type(value).__name__}, which can't be written into a problem file;"
                " write a file in KernelBench's format"
            )
        self.imports.add("import types")
        return f"types.SimpleNamespace({', '.join(parts)})"

    def _tensor(self, tensor: torch.Tensor, where: str) -> str:
        """Of a weight its kind of values, of another tensor the same ones where they are short."""
        values, shape, count = tensor.detach().cpu(), tuple(tensor.shape), tensor.numel()
        texts = [f"torch.full({shape}, {literal(n)})" for n in values.flatten()[:1].tolist()]
        if not isinstance(tensor, nn.Parameter):
            if count <= _MOST_NUMBERS:
                numbers = self.value(values.tolist(), where)
                return f"torch.tensor({numbers}, dtype={tensor.dtype})"
            texts += [f"torch.arange({count}).reshape({shape})"]
            texts += [f"{texts[0]}.tril()"] * (len(shape) > 1)  # a mask
        for text in texts:
            made = eval(text, {"torch": torch})
            if torch.equal(made.to(tensor.dtype), values):
                return text if made.dtype is tensor.dtype else f"{text}.to({tensor.dtype})"
        if tensor.is_floating_point():
            return drawn(tensor, shape)
        raise UsageError(
            f"{where} holds {count} constants, too many for a problem file; write one in"
            " KernelBench's format that computes them"
        )

    def _name(self, wanted: str, value: object) -> str:
        """What the file calls `value`: as its users do, unless that means something else."""
        names = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
        return next(name for name in names if self._meant.setdefault(name, value) is value)

    def _object(self, value: Any, wanted: str, home: str | None, where: str) -> str:
        """The name of what is imported or defined; the module `home` has it as `wanted`."""
        before = len(self._meant)
        name = self._name(wanted, value)
        if len(self._meant) == before:
            return name
        if isinstance(value, types.FunctionType) and _root(value.__module__) not in _NEVER_WRITTEN:
            node = self._function(inspect.unwrap(value), name)
            self._read[None] |= _attributes(node)
            self.definitions[name] = ast.unparse(node)
        elif literal(value) is None and (line := _import(value, wanted, home, name)):
            self.imports.add(line)
        elif isinstance(value, type | types.BuiltinFunctionType | types.ModuleType):
            raise UsageError(
                f"{where} uses {wanted}, which the judge can't import: use functions by name, and"
                " classes of installed packages"
            )
        else:
            self.definitions[name] = f"{name} = {self.value(value, f'{where}.{wanted}')}"
        return name

    def _function(self, function: types.FunctionType, name: str) -> ast.FunctionDef:
        """Its tree under a new name, without annotations; all that it uses gets written, too."""
        node: ast.FunctionDef = _Plain().visit(_source_of(function))
        node.name = name
        outside = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        bound = {each.id for each in names if isinstance(each.ctx, ast.Store)}
        bound |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        renamed = {
            used: self._object(outside[used], used, function.__module__, function.__qualname__)
            for used in sorted({each.id for each in names} - bound)
            if used in outside
        }
        for each in names:
            each.id = renamed.get(each.id, each.id)
        for inner in ast.walk(node):
            match inner:
                case ast.Attribute(ast.Name(of) | ast.Attribute(_, of), read):
                    self._read_of[of].add(read)
        return node


class _Plain(ast.NodeTransformer):
    """Without annotations, docstrings and arguments of super()."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = [
            each for each in node.decorator_list if ast.unparse(each).startswith(_DECORATORS)
        ]
        if ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        made = ast.Assign([node.target], node.value)
        return self.generic_visit(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = []
        return self.generic_visit(node)


def _source_of(function: types.FunctionType) -> ast.FunctionDef:
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise UsageError(
            f"the source of {function.__qualname__} can't be read ({error}); write a file in"
            " KernelBench's format"
        ) from None
    if not isinstance(node, ast.FunctionDef) or node.name != function.__name__:
        raise UsageError(f"{function.__qualname__} is not made with def: write it as a function")
    return node


def _attributes(node: ast.AST) -> set[str]:
    return {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _owner(classes: Iterable[type], name: str) -> type | None:
    return next((each for each in classes if name in vars(each)), None)


def _import(value: Any, wanted: str, home: str | None, name: str) -> str:
    """The line that imports it as `name`; empty where it is in the user's own files alone."""
    if isinstance(value, types.ModuleType):
        line, last = f"import {value.__name__}", value.__name__
        return (line if last == name else f"{line} as {name}") if _is_installed(last) else ""
    called = getattr(value, "__name__", wanted)
    for place in (*_HOMES, getattr(value, "__module__", None), home):
        if _is_installed(place) and getattr(sys.modules.get(place or ""), called, None) is value:
            line = f"from {place} import {called}"
            return line if called == name else f"{line} as {name}"
    return ""


def _is_installed(module: str | None) -> bool:
    file = getattr(sys.modules.get(_root(module)), "__file__", None)
    return _root(module) in _NEVER_WRITTEN or "-packages/" in (file or "")


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _modes(module: nn.Module) -> Iterator[str]:
    """Statements that put a new instance, and all in it, into the mode of this one."""
    if not module.training:
        yield "self.eval()"
    for name, each in module.named_modules():
        if each.training != module.training:
            yield f"self.get_submodule({name!r}).training = {each.training}"


def _base(module: nn.Module) -> type[nn.Module]:
    """The first of its classes that is torch.nn's own and can be made from attributes."""
    found: type[nn.Module] = next(
        kind
        for kind in type(module).__mro__
        if getattr(nn, kind.__name__, None) is kind and _made_with(kind, module) is not None
    )
    return found


def _made_with(kind: type[nn.Module], module: nn.Module) -> dict[str, Any] | None:
    """What the constructor of a class of torch.nn takes, from attributes of the same names; None
    where there is no such attribute."""
    described = nn.RNNBase if issubclass(kind, nn.RNNBase) else kind
    made = {}
    for name, parameter in inspect.signature(described).parameters.items():
        usual = parameter.default
        value = getattr(module, name, usual)
        if name == "dtype":
            usual = torch.float32
            value = next((each.dtype for each in module.parameters()), usual)
        elif name == "bias" and not isinstance(module.__dict__.get(name), bool):
            value = any("bias" in own for own, _ in module.named_parameters(recurse=False))
        elif name == "mode" and described is not kind:
            continue  # which the class says
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        elif value is parameter.empty:
            return None
        if not isinstance(value, torch.Tensor | types.MethodType) and value != usual:
            made[name] = value
    return made


def _lines(parts: Iterable[str]) -> str:
    """One below the other."""
    listed = ",\n".join(parts)
    return f"\n{textwrap.indent(listed, '    ')},\n" if listed else ""
