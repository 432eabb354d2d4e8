"""Mistakes in a module's Python: operators, dimensions, constants, weights, precision."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch

from tests.mutation.edit import Edit, Rule
from tests.mutation.subject import Subject

Node = TypeVar("Node", bound=ast.AST)

_TINY = 2e-3
_FORM = ("shape", "dim", "dtype", "device", "size", "numel")
"""Attributes of a tensor that do not depend on its values."""

_OTHER_FUNCTION = {
    "relu": "gelu", "gelu": "silu", "silu": "gelu", "mish": "silu", "softplus": "relu",
    "elu": "selu", "selu": "elu", "celu": "elu", "hardswish": "silu", "tanhshrink": "softsign",
    "softsign": "tanh", "logsigmoid": "softplus", "relu6": "relu", "hardtanh": "relu6",
    "softmax": "log_softmax", "log_softmax": "softmax", "tanh": "sin", "sigmoid": "tanh",
    "exp": "expm1", "log": "log1p", "sqrt": "abs", "rsqrt": "reciprocal", "abs": "square",
    "erf": "tanh", "sin": "cos", "cos": "sin", "floor": "round", "expm1": "exp", "log1p": "log",
    "sum": "mean", "mean": "sum", "max": "min", "min": "max", "amax": "amin", "amin": "amax",
    "argmax": "argmin", "argmin": "argmax", "maximum": "minimum", "cumsum": "cumprod",
    "std": "var", "var": "std", "prod": "sum", "logsumexp": "sum", "norm": "sum",
    "max_pool2d": "avg_pool2d", "adaptive_avg_pool2d": "adaptive_max_pool2d",
    "huber_loss": "smooth_l1_loss", "smooth_l1_loss": "l1_loss", "l1_loss": "mse_loss",
    "mse_loss": "l1_loss", "MaxPool2d": "AvgPool2d", "triu": "tril", "tril": "triu",
}  # fmt: skip

_SYMMETRIC = (
    "maximum", "mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "cosine_similarity",
)  # fmt: skip

_ROUNDED = {
    "fp16": "{0}.half().to({0}.dtype)",
    "bf16": "{0}.bfloat16().to({0}.dtype)",
    # By Veltkamp's splitting: eleven bits stay.
    "tf32": "({0} * 8193.0 - ({0} * 8193.0 - {0}))",
}


@dataclass(frozen=True)
class _Module:
    """The candidate's class as a tree, and how its nodes lie in the text."""

    subject: Subject
    tree: ast.ClassDef
    starts: tuple[int, ...]
    parents: dict[ast.AST, ast.AST]

    @staticmethod
    def of(subject: Subject) -> _Module:
        source = subject.source
        tree = next(
            node
            for node in ast.parse(source).body
            if isinstance(node, ast.ClassDef) and node.name == "ModelNew"
        )
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        return _Module(subject, tree, tuple(starts), parents)

    def edit(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> Edit:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return Edit(
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
            text,
        )

    def function(self, name: str) -> ast.FunctionDef | None:
        return next(
            (f for f in self.tree.body if isinstance(f, ast.FunctionDef) and f.name == name), None
        )

    def nodes(self, *functions: str) -> Iterator[ast.AST]:
        """Nodes of the bodies of `forward` and, where named, others; no annotations, no words."""
        for name in functions or ("forward",):
            function = self.function(name)
            for statement in function.body if function else []:
                match statement:
                    case ast.Expr(value=ast.Constant()):
                        continue
                    case ast.Assign(targets=[ast.Attribute(attr=made)]) if not self._reads(made):
                        continue
                yield from ast.walk(statement)

    def of_kind(self, kind: type[Node], *functions: str) -> Iterator[Node]:
        return (node for node in self.nodes(*functions) if isinstance(node, kind))

    def _reads(self, name: str) -> bool:
        """Whether an attribute of that name is read anywhere in the class."""
        reads = (n for n in ast.walk(self.tree) if isinstance(n, ast.Attribute))
        return any(n.attr == name and isinstance(n.ctx, ast.Load) for n in reads)


Look = Callable[[_Module], Iterator[Edit]]


def _rule(name: str) -> Callable[[Look], Rule]:
    def make(look: Look) -> Rule:
        return Rule(name, "python", lambda subject: look(_Module.of(subject)))

    return make


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _leaf(function: ast.expr) -> str:
    """The last name of `torch.nn.functional.relu` or `x.relu`."""
    return _text(function).rpartition(".")[2]


def _inner(call: ast.Call) -> str:
    """What stands between a call's parentheses."""
    return ", ".join(_text(a) for a in (*call.args, *call.keywords))


@_rule("operator")
def operator(module: _Module) -> Iterator[Edit]:
    others: dict[type[ast.operator], str] = {
        ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.Pow: "*", ast.FloorDiv: "*",
    }  # fmt: skip
    for node in module.of_kind(ast.BinOp):
        if type(node.op) in others:
            left, right = _text(node.left), _text(node.right)
            yield module.edit(node, f"(({left}) {others[type(node.op)]} ({right}))")


@_rule("operands swapped")
def operands_swapped(module: _Module) -> Iterator[Edit]:
    signs: dict[type[ast.operator], str] = {
        ast.Sub: "-", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**",
    }  # fmt: skip
    for node in module.of_kind(ast.BinOp):
        if type(node.op) in signs:
            left, right = _text(node.left), _text(node.right)
            yield module.edit(node, f"(({right}) {signs[type(node.op)]} ({left}))")


@_rule("term or factor dropped")
def term_dropped(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.BinOp):
        yield module.edit(node, f"({_text(node.left)})")
        if isinstance(node.op, ast.Add | ast.Mult):
            yield module.edit(node, f"({_text(node.right)})")


@_rule("constant")
def constant(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.Constant, "forward", "__init__"):
        if isinstance(node.value, bool):
            yield module.edit(node, str(not node.value))
        elif isinstance(node.value, int):
            yield module.edit(node, str(node.value + 1))
            if node.value > 0:
                yield module.edit(node, str(node.value - 1))
        elif isinstance(node.value, float) and abs(node.value) >= _TINY:
            yield module.edit(node, repr(node.value * 1.001))


@_rule("epsilon")
def epsilon(module: _Module) -> Iterator[Edit]:
    for node in module.nodes("forward", "__init__"):
        tiny = isinstance(node, ast.Constant) and isinstance(node.value, float)
        if tiny and 0 < node.value < _TINY:
            yield from (module.edit(node, repr(node.value * f)) for f in (10, 0.1, 0.0))
        if isinstance(node, ast.Attribute) and node.attr == "eps":
            if isinstance(node.ctx, ast.Load):
                yield from (module.edit(node, f"({f} * {_text(node)})") for f in (10, 0.1, 0.0))
        elif isinstance(node, ast.Call) and re.fullmatch(r"nn\.\w*Norm\w*", _text(node.func)):
            for eps in ("1e-3", "1e-6", "0.0"):
                yield module.edit(node, f"{_text(node.func)}({_inner(node)}, eps={eps})")


@_rule("dimension")
def dimension(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.UnaryOp):
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                yield module.edit(node, f"-{number + 1}")
                yield module.edit(node, "0")


@_rule("keyword dropped")
def keyword_dropped(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.Call, "forward", "__init__"):
        for dropped in (k for k in node.keywords if k.arg not in ("device", "inplace", "dtype")):
            rest = (*node.args, *(k for k in node.keywords if k is not dropped))
            yield module.edit(node, f"{_text(node.func)}({', '.join(_text(a) for a in rest)})")


@_rule("other function")
def other_function(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.Attribute, "forward", "__init__"):
        owner = _text(node.value)
        if node.attr in _OTHER_FUNCTION and owner != "self":
            other = _OTHER_FUNCTION[node.attr]
            where = "F" if owner == "torch" and not hasattr(torch, other) else owner
            yield module.edit(node, f"{where}.{other}")


@_rule("approximate gelu")
def approximate_gelu(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.Call):
        if _text(node.func).endswith(".gelu"):
            x = _text(node.args[0])
            other = f"F.gelu({x})" if node.keywords else f"F.gelu({x}, approximate='tanh')"
            yield module.edit(node, other)
            yield module.edit(node, f"(lambda g: g * torch.sigmoid(1.702 * g))({x})")


@_rule("other correction of a variance")
def other_correction(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.Call):
        spread = _leaf(node.func) in ("var", "std", "var_mean")
        if spread and all(k.arg not in ("unbiased", "correction") for k in node.keywords):
            yield module.edit(node, f"{_text(node.func)}({_inner(node)}, correction=0)")


@_rule("sign")
def sign(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.UnaryOp):
        if isinstance(node.op, ast.USub | ast.Invert) and not isinstance(
            node.operand, ast.Constant
        ):
            yield module.edit(node, f"({_text(node.operand)})")


@_rule("comparison")
def comparison(module: _Module) -> Iterator[Edit]:
    others: dict[type[ast.cmpop], str] = {
        ast.Gt: "<", ast.Lt: ">", ast.Eq: "!=", ast.GtE: "<=", ast.LtE: ">=",
    }  # fmt: skip
    for node in module.of_kind(ast.Compare):
        if type(node.ops[0]) in others:
            left, right = _text(node.left), _text(node.comparators[0])
            yield module.edit(node, f"(({left}) {others[type(node.ops[0])]} ({right}))")


@_rule("transposition lost")
def transposition_lost(module: _Module) -> Iterator[Edit]:
    for node in module.nodes():
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            yield module.edit(node, _text(node.value))
        elif isinstance(node, ast.Call) and _leaf(node.func) in ("transpose", "t", "permute"):
            assert isinstance(node.func, ast.Attribute)
            yield module.edit(node, _text(node.func.value))


@_rule("arguments swapped")
def arguments_swapped(module: _Module) -> Iterator[Edit]:
    for node in module.of_kind(ast.Call):
        if len(node.args) >= 2 and _leaf(node.func) not in _SYMMETRIC:
            first, second, *rest = (_text(a) for a in (*node.args, *node.keywords))
            yield module.edit(node, f"{_text(node.func)}({', '.join([second, first, *rest])})")


@_rule("statement lost")
def statement_lost(module: _Module) -> Iterator[Edit]:
    for node in module.nodes():
        if isinstance(node, ast.AugAssign):
            yield module.edit(node, "pass")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            own = node.targets[0].id
            if any(isinstance(n, ast.Name) and n.id == own for n in ast.walk(node.value)):
                yield module.edit(node, "pass")


@_rule("other variable")
def other_variable(module: _Module) -> Iterator[Edit]:
    forward = module.function("forward")
    assert forward is not None
    known = [argument.arg for argument in forward.args.args[1:]]
    for node in module.of_kind(ast.Name):
        if node.id in ("torch", "F", "nn", "math", "self", "float"):
            continue
        if isinstance(node.ctx, ast.Store):
            known.append(node.id)
        elif node.id in known:
            for other in dict.fromkeys(known):
                if other != node.id:
                    yield module.edit(node, other)


@_rule("parameter ignored")
def parameter_ignored(module: _Module) -> Iterator[Edit]:
    parameters = dict(module.subject.model.named_parameters(recurse=False))
    for node in module.of_kind(ast.Attribute):
        own = _text(node)
        if own.startswith("self.") and own.removeprefix("self.") in parameters:
            yield module.edit(node, f"torch.zeros_like({own})")
            yield module.edit(node, f"torch.ones_like({own})")
            if parameters[own.removeprefix("self.")].shape[:1] not in ((), (1,)):
                yield module.edit(node, f"{own}.flip(0)")


def _layers(module: _Module) -> Iterator[tuple[ast.Call, str, torch.nn.Module]]:
    """Calls `self.layer(x)`: the node, its argument, and the reference's layer of that name."""
    layers = dict(module.subject.model.named_children())
    for node in module.of_kind(ast.Call):
        own = _text(node.func) if node.args else ""
        if own.startswith("self.") and own.removeprefix("self.") in layers:
            yield node, _text(node.args[0]), layers[own.removeprefix("self.")]


@_rule("layer's weight or bias ignored")
def weight_ignored(module: _Module) -> Iterator[Edit]:
    for node, x, layer in _layers(module):
        own = _text(node.func)
        for name, tensor in (*layer.named_parameters(), *layer.named_buffers()):
            if "." in name or not tensor.is_floating_point():
                continue
            kinds = ["zeros", "ones"] if tensor.dim() == 1 else []
            texts = [f"torch.{kind}_like({own}.{name})" for kind in kinds]
            if tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1]:
                texts.append(f"{own}.{name}.T.contiguous()")
            texts.append(f"{own}.{name}.flip(0)")
            for text in texts:
                yield module.edit(
                    node, f"torch.func.functional_call({own}, {{'{name}': {text}}}, ({x},))"
                )


@_rule("train for eval")
def train_for_eval(module: _Module) -> Iterator[Edit]:
    for node, x, layer in _layers(module):
        norm = isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
        if norm and layer.track_running_stats:
            own = _text(node.func)
            yield module.edit(node, f"{own}.train(not {own}.training)({x})")


def _through(precision: str) -> Rule:
    @_rule(f"{precision} on the way")
    def through(module: _Module) -> Iterator[Edit]:
        outputs = module.subject.outputs
        returns_floats = len(outputs) == 1 and outputs[0].is_floating_point()
        for node in module.nodes():
            if isinstance(node, ast.Name):
                parent = module.parents[node]
                formal = isinstance(parent, ast.Attribute) and parent.attr in _FORM
                floating = node.id in module.subject.floating_names
                target = node if floating and not formal else None
            elif isinstance(node, ast.Return) and returns_floats:
                # A name that is returned was met above.
                target = None if isinstance(node.value, ast.Name) else node.value
            else:
                target = None
            if target is not None and not isinstance(getattr(target, "ctx", None), ast.Store):
                rounded = _ROUNDED[precision].format(f"({_text(target)})")
                yield module.edit(target, f"({rounded})")

    return through


RULES: tuple[Rule, ...] = (
    operator, operands_swapped, term_dropped, constant, epsilon, dimension, keyword_dropped,
    other_function, approximate_gelu, other_correction, sign, comparison, transposition_lost,
    arguments_swapped, statement_lost, other_variable, parameter_ignored, weight_ignored,
    train_for_eval, *map(_through, _ROUNDED),
)  # fmt: skip
