"""Classes and functions of a module at hand, written down as text that stands by itself.

A constructor is written from what the instance is, so that the text needs neither the arguments
that it was made with nor a file of its class: functions have their source in scripts, packages and
notebook cells alike. Definitions come along with all that they use; what belongs to torch, numpy or
Python is imported. What cannot be written raises `UsageError`, in one line.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from problems.errors import UsageError

_IMPORTED = {"torch", "numpy", "einops", *sys.stdlib_module_names}
_LITERALS = (bool, int, float, str)
_OWN = {*nn.Module().__dict__}
"""What each module has."""
_MOST_NUMBERS = 64
"""Of a tensor that is no weight, as text."""
_PLACE = "THE_NAME_OF_THIS"
_DECORATORS = ("torch.", "staticmethod", "classmethod", "property")
"""Others are left out: what they decorate is looked at."""
_HOMES = (torch.nn.functional, torch, math)
"""Where a user looks for a function that is compiled into torch."""


class Writing:
    """The text of one file so far."""

    def __init__(self) -> None:
        self.imports: dict[str, None] = {"import torch": None, "from torch import nn": None}
        self.definitions: dict[str, str] = {}
        """By name, each behind those that it uses."""
        self._names: dict[int, str] = {}
        """Of objects that have been written, by identity."""
        self._kept: list[object] = []

    def text(self) -> str:
        imports = sorted(self.imports, key=lambda line: (line.startswith("from"), line))
        return "\n\n\n".join(["\n".join(imports), *self.definitions.values()])

    def model(self, module: nn.Module) -> None:
        """`module`'s class comes last, and is called `Model`."""
        for each in module.modules():
            if each._forward_hooks or each._forward_pre_hooks:
                raise UsageError(
                    f"{type(each).__name__} has hooks, which no kernel could honour: remove them"
                )
        self.definitions["Model"] = self._class("Model", module)

    def _free(self, name: str) -> str:
        number = 2
        free = name
        while free in self.definitions or free == "Model":
            free, number = f"{name}_{number}", number + 1
        return free

    def _define(self, name: str, text: str) -> str:
        """The name under which this text is known; the same text gets no second one."""
        free = self._free(name)
        made = text.replace(_PLACE, free)
        for known, other in self.definitions.items():
            if other == text.replace(_PLACE, known):
                return known
        self.definitions[free] = made
        return free

    # Modules

    def module(self, module: nn.Module) -> str:
        """An expression that makes such a module."""
        kind = type(module)
        if _base(module) is kind:
            return f"nn.{kind.__name__}({self._arguments(kind, module)})"
        return f"{self._define(kind.__name__, self._class(_PLACE, module))}()"

    def _arguments(self, kind: type, module: nn.Module) -> str:
        """Of the constructor of a class of PyTorch's, from attributes of the same names."""
        children = dict(module.named_children())
        if issubclass(kind, nn.Sequential | nn.ModuleList):
            made = {name: self.module(child) for name, child in children.items()}
            if list(made) == [str(number) for number in range(len(made))]:
                listed = _lines(made.values())
                return f"[{listed}]" if issubclass(kind, nn.ModuleList) else listed
            self.imports["import collections"] = None
            pairs = _lines(f"({name!r}, {text})" for name, text in made.items())
            return f"collections.OrderedDict([{pairs}])"
        if issubclass(kind, nn.ModuleDict):
            pairs = _lines(f"{name!r}: {self.module(child)}" for name, child in children.items())
            return f"{{{pairs}}}"
        given = []
        for name, parameter in _parameters(kind).items():
            if name == "bias" and not isinstance(getattr(module, name, None), bool):
                value: object = _has_bias(module)
            elif name in children:
                given.append(f"{name}={self.module(children[name])}")
                continue
            elif hasattr(module, name):
                value = getattr(module, name)
            else:
                continue
            if value != parameter.default and not isinstance(value, torch.Tensor):
                given.append(f"{name}={self.value(value, f'{kind.__name__}.{name}')}")
        dtype = next((each.dtype for each in module.parameters()), torch.float32)
        if dtype is not torch.float32 and "dtype" in inspect.signature(_made(kind)).parameters:
            given.append(f"dtype={dtype}")
        return ", ".join(given)

    def _class(self, name: str, module: nn.Module) -> str:
        kind = type(module)
        base = _base(module)
        body = _Body(self, module, base)
        if not issubclass(base, _owner(kind, "forward")):
            body.add(kind, "forward", "forward")
        made = self._arguments(base, module) if base is not nn.Module else ""
        lines = [f"super().__init__({made})", *body.assignments(made)]
        if name == "Model":
            lines += _modes(module)
        head = f"class {name}(nn.{base.__name__}):\n"
        constructor = "def __init__(self):\n" + textwrap.indent("\n".join(lines), "    ")
        return head + textwrap.indent("\n\n".join([constructor, *body.methods.values()]), "    ")

    # Values and what they use

    def value(self, value: Any, where: str) -> str:
        """An expression for a value that is no module."""
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!r})"
        if value is None or isinstance(value, torch.dtype):
            return repr(value)
        if isinstance(value, _LITERALS):
            return repr(next(kind for kind in _LITERALS if isinstance(value, kind))(value))
        if isinstance(value, list | tuple) and type(value) in (list, tuple, torch.Size):
            items = [self.value(item, where) for item in value]
            listed = ", ".join(items) + ("," if len(items) == 1 else "")
            return f"[{', '.join(items)}]" if isinstance(value, list) else f"({listed})"
        if type(value) is dict:
            pairs = (f"{self.value(k, where)}: {self.value(v, where)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, torch.Tensor) and value.numel() <= _MOST_NUMBERS:
            return f"torch.tensor({value.tolist()!r}, dtype={value.dtype})"
        if isinstance(value, nn.Module):
            return self.module(value)
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            return self._object(value, where)
        raise UsageError(
            f"{where} holds {type(value).__name__}, which can't be written into a problem file;"
            " write a file in KernelBench's format"
        )

    def _object(self, value: Any, where: str) -> str:
        """The name of a function or a class, which is imported or defined."""
        if id(value) in self._names:
            return self._names[id(value)]
        home = getattr(value, "__module__", None) or ""
        name = getattr(value, "__name__", "")
        if home.partition(".")[0] in _IMPORTED or not isinstance(value, types.FunctionType):
            for place in _HOMES:
                if getattr(place, name, None) is value:
                    self.imports[f"import {place.__name__}"] = None
                    return f"{place.__name__}.{name}"
            if home == "builtins":
                return name
            if getattr(sys.modules.get(home), name, None) is not value or home == "__main__":
                raise UsageError(f"{where} uses {name or value!r}, which can't be imported")
            self.imports[f"import {home}"] = None
            return f"{home}.{name}"
        self._names[id(value)] = name  # where it calls itself
        self._kept.append(value)
        self._names[id(value)] = self._define(name, self.function(inspect.unwrap(value), _PLACE))
        return self._names[id(value)]

    def function(self, function: types.FunctionType, new: str, owner: Any = None) -> str:
        """Its text under a new name, without annotations; all that it uses gets written, too."""
        node = _source_of(function)
        renamed: dict[str, str] = {}
        for used, value in _used(function, node):
            if isinstance(value, types.ModuleType):
                renamed[used] = self._imported(value)
            else:
                renamed[used] = new if value is function else self._global(used, value, function)
        node = _Plain(renamed, owner).visit(node)
        node.name = new
        node.decorator_list = [
            each for each in node.decorator_list if ast.unparse(each).startswith(_DECORATORS)
        ]
        return ast.unparse(ast.fix_missing_locations(node))

    def _imported(self, module: types.ModuleType) -> str:
        if module.__name__.partition(".")[0] not in _IMPORTED:
            raise UsageError(
                f"forward uses the module {module.__name__} as a whole: import the functions that"
                " it needs by name, so that they can be written into the problem"
            )
        if module is nn:
            return "nn"
        self.imports[f"import {module.__name__}"] = None
        return module.__name__

    def _global(self, name: str, value: Any, function: types.FunctionType) -> str:
        try:
            if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
                return self._object(value, function.__qualname__)
            text = self.value(value, f"{name} in {function.__qualname__}")
        except UsageError:
            home = function.__module__
            if "site-packages" not in function.__code__.co_filename:
                raise
            self.imports[f"import {home}"] = None
            return f"{home}.{name}"
        return self._define(name, f"{_PLACE} = {text}")


class _Body:
    """Methods of one instance's class, and what they read of the instance."""

    def __init__(self, writing: Writing, module: nn.Module, base: type) -> None:
        self.methods: dict[str, str] = {}
        self._base = base
        self._writing = writing
        self._module = module
        self._read: dict[str, set[str]] = {}
        """Attributes that the methods read, each with those that are read of it; an empty name
        where it is read as a whole."""

    def add(self, kind: type, name: str, new: str) -> None:
        """A method of a class, with all that it calls."""
        if new in self.methods:
            return
        self.methods[new] = ""
        found = inspect.getattr_static(kind, name)
        function = _function(found)
        if function is None:
            raise UsageError(f"{kind.__name__}.{name} is no function with a source")
        self.methods[new] = self._writing.function(function, new, (self, function))

    def attribute(self, name: str, inner: str) -> None:
        """`self.name`, or `self.name.inner`, is read."""
        module = self._module
        registered = {**module._parameters, **module._buffers, **module._modules}
        if name in registered or name in _OWN or not hasattr(module, name):
            return
        static = inspect.getattr_static(type(module), name, None)
        if name not in module.__dict__ and static is not None:
            owner = _owner(type(module), name)
            if issubclass(self._base, owner):
                return
            if isinstance(static, types.FunctionType | staticmethod | classmethod | property):
                self.add(owner, name, name)
                return
        self._read.setdefault(name, set()).add(inner)

    def read_all(self) -> None:
        for name, value in self._module.__dict__.items():
            if isinstance(value, _LITERALS):
                self.attribute(name, "")

    def above(self, owner: type, name: str) -> str:
        """What `super().name` is where `owner` says it."""
        mro = type(self._module).__mro__
        above = next(c for c in mro[mro.index(owner) + 1 :] if name in c.__dict__)
        if issubclass(self._base, above):
            return ""
        new = f"_{above.__name__}_{name}"
        self.add(above, name, new)
        return new

    def assignments(self, made: str) -> Iterator[str]:
        """Lines that give an instance what this one has, besides what its base makes of `made`."""
        module, writing, kind = self._module, self._writing, type(self._module).__name__
        base = self._base
        known = _OWN
        if issubclass(base, nn.Sequential | nn.ModuleList | nn.ModuleDict):
            known = {*module._modules}
        elif base is not nn.Module:
            plain = eval(f"nn.{base.__name__}({made})", {"nn": nn, "torch": torch})
            known = {*plain._parameters, *plain._buffers, *plain._modules, *plain.__dict__}
        for name, parameter in module._parameters.items():
            if name not in known:
                text = "None" if parameter is None else f"nn.Parameter({_like(parameter)})"
                yield f"self.{name} = {text}"
        for name, buffer in module._buffers.items():
            if name not in known:
                text = "None" if buffer is None else _buffer(buffer, f"{kind}.{name}")
                is_kept = name not in module._non_persistent_buffers_set
                yield (
                    f"self.register_buffer({name!r}, {text}"
                    f"{'' if is_kept else ', persistent=False'})"
                )
        for name, child in module._modules.items():
            if name not in known:
                yield f"self.{name} = {'None' if child is None else writing.module(child)}"
        for name, inner in sorted(self._read.items()):
            if name not in known:
                value = getattr(module, name)
                yield f"self.{name} = {self._attribute(value, inner, f'{kind}.{name}')}"

    def _attribute(self, value: Any, inner: set[str], where: str) -> str:
        if "" in inner or isinstance(value, torch.Tensor) or type(value).__module__ == "builtins":
            return self._writing.value(value, where)
        # A configuration, say: of it, what is read.
        self._writing.imports["import types"] = None
        parts = (
            f"{name}={self._writing.value(getattr(value, name), f'{where}.{name}')}"
            for name in sorted(inner)
        )
        return f"types.SimpleNamespace({', '.join(parts)})"


class _Plain(ast.NodeTransformer):
    """A function without annotations and docstrings, with other names for what it uses."""

    def __init__(self, renamed: dict[str, str], owner: tuple[_Body, Any] | None) -> None:
        self._renamed = renamed
        self._owner = owner

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        if ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self._owner is not None and _is_self(node):
            self._owner[0].read_all()  # given to a function
        if node.id in self._renamed and isinstance(node.ctx, ast.Load):
            return ast.parse(self._renamed[node.id], mode="eval").body
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self._owner is not None:
            body, function = self._owner
            if _is_super(node.value):
                owner = next(
                    each
                    for each in type(body._module).__mro__
                    if any(_function(v) is function for v in each.__dict__.values())
                )
                if new := body.above(owner, node.attr):
                    return ast.Attribute(ast.Name("self", ast.Load()), new, node.ctx)
                node.value = ast.parse("super()", mode="eval").body
                return node
            if _is_self(node.value):
                body.attribute(node.attr, "")
                return node
            if isinstance(node.value, ast.Attribute) and _is_self(node.value.value):
                body.attribute(node.value.attr, node.attr)
                return node
        return self.generic_visit(node)


def _function(value: Any) -> Any:
    found = getattr(value, "__func__", getattr(value, "fget", value))
    return inspect.unwrap(found) if isinstance(found, types.FunctionType) else None


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "super"


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


def _used(function: types.FunctionType, node: ast.FunctionDef) -> Iterator[tuple[str, Any]]:
    """Names that a function reads from outside, with their values."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    outside = function.__globals__ | {
        name: cell.cell_contents for name, cell in cells if name != "__class__"
    }
    own = {name for code in _codes(function.__code__) for name in code.co_varnames}
    parts = [*node.body, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    for name in sorted(
        {
            inner.id
            for part in parts
            for inner in ast.walk(part)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
        }
    ):
        if name in outside and name not in own:
            yield name, outside[name]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _modes(module: nn.Module) -> Iterator[str]:
    """Statements that put a new instance, and all in it, into the mode of this one."""
    modes = {"": True}
    for name, each in module.named_modules():
        mode = modes[name.rpartition(".")[0]]
        if each.training != mode:
            mode = each.training
            of = f".get_submodule({name!r})" if name else ""
            yield f"self{of}.{'train' if mode else 'eval'}()"
        modes[name] = mode


def _base(module: nn.Module) -> type[nn.Module]:
    """The first of its classes that is torch.nn's own and can be made from attributes."""
    for kind in type(module).__mro__:
        if (
            issubclass(kind, nn.Module)
            and getattr(nn, kind.__name__, None) is kind
            and all(
                parameter.default is not parameter.empty or hasattr(module, name) or name == "bias"
                for name, parameter in _parameters(kind).items()
            )
        ):
            found: type[nn.Module] = kind
            return found
    return nn.Module


def _parameters(kind: type) -> dict[str, inspect.Parameter]:
    """Of the constructor of a class of torch.nn."""
    if issubclass(kind, nn.Module) and kind.__init__ is nn.Module.__init__:
        return {}
    if issubclass(kind, nn.Sequential | nn.ModuleList | nn.ModuleDict):
        return {}
    made = _made(kind)
    found = dict(inspect.signature(made).parameters)
    for name in ("device", "dtype", *["mode"] * (made is not kind)):
        found.pop(name, None)
    return {n: p for n, p in found.items() if p.kind is not p.VAR_KEYWORD}


def _made(kind: type) -> type:
    """The class whose constructor says what this one takes."""
    return nn.RNNBase if issubclass(kind, nn.RNNBase) and kind is not nn.RNNBase else kind


def _owner(kind: type, name: str) -> type:
    return next(each for each in kind.__mro__ if name in each.__dict__)


def _lines(parts: Iterable[str]) -> str:
    """One below the other."""
    listed = ",\n".join(parts)
    return f"\n{textwrap.indent(listed, '    ')},\n" if listed else ""


def _has_bias(module: nn.Module) -> bool:
    return any("bias" in name for name, value in module._parameters.items() if value is not None)


def _like(tensor: torch.Tensor) -> str:
    """An expression for values of this kind: the same shape, centre and spread."""
    shape = tuple(tensor.shape)
    dtype = "" if tensor.dtype is torch.float32 else f", dtype={tensor.dtype}"
    values = tensor.detach().double()
    first = float(values.flatten()[0]) if tensor.numel() else 0.0
    if tensor.numel() == 0 or bool((values == first).all()):
        return f"torch.full({shape}, {float(f'{first:.6g}')}{dtype})"
    spread, centre = f"{float(values.std()):.3g}", f"{float(values.mean()):.3g}"
    shift = f" + {centre}" if abs(float(centre)) > 0.01 * float(spread) else ""
    return f"torch.randn({shape}{dtype}) * {spread}{shift}"


def _buffer(tensor: torch.Tensor, where: str) -> str:
    values, shape = tensor.detach().cpu().flatten(), tuple(tensor.shape)
    if tensor.numel() <= _MOST_NUMBERS:
        return f"torch.tensor({tensor.tolist()!r}, dtype={tensor.dtype})"
    if tensor.is_floating_point():
        return _like(tensor)
    if bool((values == values[0]).all()):
        return f"torch.full({shape}, {values[0].item()!r})"
    if torch.equal(values, torch.arange(len(values))):
        return f"torch.arange({len(values)}).reshape({shape})"
    raise UsageError(
        f"the buffer {where} holds {tensor.numel()} constants, too many for a problem file; write"
        " one in KernelBench's format that computes them"
    )
