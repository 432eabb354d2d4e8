"""How the arguments of a recorded call are made, as a Python expression."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import torch
from pydantic import Field
from torch.overrides import get_overridable_functions, resolve_name

from evaluator.record import Record

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "truediv": "/", "true_divide": "/",
    "matmul": "@", "lt": "<", "gt": ">", "and": "&", "or": "|",
}  # fmt: skip
_METHOD = "torch.Tensor."
_SCALED = ".mul(torch.rand(()).add(0.5).clamp(max=1))"
"""Behind numbers that a test lists: half of the calls get them as they are, others scaled down,
which keeps signs, order, symmetry and definiteness."""
_MADE = {"torch.empty": "torch.zeros", "torch.empty_like": "torch.zeros_like"}
"""What would hold other values each time."""
Part = str | int | float
"""Of a text; numbers stand alone, so that calls which differ in numbers can be told."""


class UnrecordableError(Exception):
    """A task that can't be compiled, with the reason."""


class Step(Record):
    number: int
    name: str
    args: Any
    kwargs: Any
    writes: tuple[int, ...]


class TensorNote(Record):
    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        dtype: torch.dtype = getattr(torch, self.dtype)
        return math.prod(self.shape) * dtype.itemsize


class RecordedCall(Record):
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    tensors: tuple[TensorNote, ...] = ()
    unusable: str = ""
    """Why it can't be repeated."""
    moved_bytes: float | None = None
    """By the task's own count, as its operations."""
    operations: float | None = None

    @property
    def bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.tensors)


def listed(call: RecordedCall, values: Sequence[Any]) -> list[Part]:
    """An expression that gives these, a call's encoded arguments, as a list.

    Raises `UnrecordableError` for what no record of ours holds: it comes from a process that ran a
    foreign file.
    """
    return _Program(call).listed(values)


class _Program:
    def __init__(self, call: RecordedCall) -> None:
        self._steps = {step.number: step for step in call.steps}
        self._uses = Counter(n for s in call.steps for n in _used([s.args, s.kwargs]))
        self._writes = any(step.writes for step in call.steps)
        self._names: dict[int, str] = {}
        """Of results that are used several times, or change."""

    def listed(self, values: Sequence[Any]) -> list[Part]:
        self._uses.update(_used(list(values)))
        named = [n for n in self._steps if self._writes or self._uses[n] != 1]
        self._names = {number: f"t{place}" for place, number in enumerate(named)}
        result = self._text(list(values))
        if not named:
            return result
        lines = [[f"{self._names[n]} := ", *self._step(self._steps[n])] for n in named]
        joined = [part for line in lines for part in (*line, ", ")]
        return ["(", *joined, *result, ")[-1]"]

    def _step(self, step: Step) -> list[Part]:
        name = _MADE.get(step.name, step.name)
        if name not in _allowed():
            raise UnrecordableError(f"its inputs are made by {name}")
        args = [self._text(each) for each in _items(step.args)]
        given = step.kwargs["dict"]
        kwargs = [[_word(k), "=", *self._text(v)] for k, v in given if v is not None]
        has_real = any(isinstance(p, float) for text in args if text[0] == "[" for p in text)
        if name == "torch.tensor" and has_real:
            return [*_called(name, args + kwargs), _SCALED]
        owner, _, method = name.removeprefix(_METHOD).partition(".")
        if not name.startswith(_METHOD) or not args:
            return _called(name, args + kwargs)
        first, *rest = args
        if method == "__get__":
            return [*first, f".{owner}"]
        if owner == "mul" and first[0] == "torch.eye(" and _is_lost(first, rest):
            rest = [[1.0]]
        operator = _OPERATORS.get(owner.removeprefix("__").removesuffix("__"))
        if operator and len(rest) == 1 and not kwargs:
            return ["(", *first, f" {operator} ", *rest[0], ")"]
        return [*first, *_called(f".{owner}", rest + kwargs)]

    def _text(self, value: Any) -> list[Part]:
        match value:
            case None | bool() | str():
                return [repr(value)]
            case int() | float():
                return [value]
            case list():
                return ["[", *_joined([self._text(item) for item in value]), "]"]
            case {"tuple": list(items)}:
                inner = _joined([self._text(item) for item in items])
                return ["(", *inner, ",)" if len(items) == 1 else ")"]
            case {"tensor": [int(number), *path]} if number in self._steps:
                places = [f"[{int(place)}]" for place in path]
                if number in self._names:
                    return [self._names[number], *places]
                return [*self._step(self._steps[number]), *places]
            case {"device": _}:
                return ["torch.get_default_device()"]
            case {"torch": str(name)} if isinstance(
                getattr(torch, name, None), torch.dtype | torch.layout | torch.memory_format
            ):
                return [f"torch.{name}"]
            case {"float": "inf" | "-inf" | "nan" as text}:
                return [f"float({text!r})"]
            case {"complex": [int() | float() as real, int() | float() as imaginary]}:
                return [f"complex({real!r}, {imaginary!r})"]
            case {"slice": [start, stop, step]}:
                return _called("slice", [self._text(each) for each in (start, stop, step)])
            case {"ellipsis": _}:
                return ["..."]
            case {"dict": list(items)}:
                pairs = [[*self._text(k), ": ", *self._text(v)] for k, v in items]
                return ["{", *_joined(pairs), "}"]
        raise UnrecordableError("the record of its calls is not one of ours")


def _items(args: Any) -> list[Any]:
    return list(args["tuple"] if isinstance(args, dict) else args)


def _is_lost(identity: list[Part], factor: list[list[Part]]) -> bool:
    """Of one that is to make a product definite: fp32 adds it in vain, and some draws raise."""
    small = len(factor) == 1 and isinstance(factor[0][0], float) and 0 < factor[0][0] < 1e-5
    return small and not {"torch.float64", "torch.complex128"}.intersection(identity)


def _called(name: str, arguments: list[list[Part]]) -> list[Part]:
    return [f"{name}(", *_joined(arguments), ")"]


def _joined(items: list[list[Part]]) -> Iterator[Part]:
    for number, item in enumerate(items):
        yield from (", ", *item) if number else item


def _word(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise UnrecordableError("the record of its calls is not one of ours")
    return name


def _used(value: Any) -> Iterator[int]:
    """The numbers of steps that a value refers to, as often as it does."""
    if isinstance(value, dict) and "tensor" in value:
        yield value["tensor"][0]
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _used(item)


@cache
def _allowed() -> frozenset[str]:
    """Names of functions that work on tensors; none of them reads or writes a file."""
    functions: dict[Any, list[Callable[..., Any]]] = get_overridable_functions()
    names = {resolve_name(each) for several in functions.values() for each in several}
    made = ("arange", "as_tensor", "complex", "empty", "eye", "full", "linspace", "logspace",
            "ones", "rand", "randint", "randn", "randperm", "tensor", "tril_indices",
            "triu_indices", "zeros", *("empty_like", "full_like", "ones_like", "rand_like",
            "randint_like", "randn_like", "zeros_like"))  # fmt: skip
    wanted = {name for name in names if name and name.startswith("torch.")}
    return frozenset(wanted | {f"torch.{name}" for name in made})
