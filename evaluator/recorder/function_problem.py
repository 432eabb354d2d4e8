"""A recorded function as a problem file: `Model` calls it, `CASES` are the calls of its sweep."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.recorder.program import Part, RecordedCall, UnrecordableError, listed

_ON_CPU_BYTES = 2**22
"""Of a call's arguments: a judge on a CPU times no larger ones, if there are such."""
_MOST_BYTES = 2**34
"""A judge holds several times as much; the suite's own machines have no room for more either."""
_ON_CPU = 3
"""So many sizes of a sweep are timed there."""


@dataclass(frozen=True)
class _Parameter:
    name: str
    default: str | None
    by_name: bool
    several: bool = False


class _Signature:
    """Those parameters of the function that some call gives."""

    def __init__(self, function: ast.FunctionDef, calls: Sequence[RecordedCall]) -> None:
        self.name = function.name
        most = max(len(call.args) for call in calls)
        given = {name for call in calls for name in call.kwargs}
        parameters = [*_parameters(function)]
        self._all = [p.name for p in parameters if not p.by_name and not p.several]
        given.update(self._all[:most])
        if unknown := given - {p.name for p in parameters}:
            raise UnrecordableError(f"its function is called with {', '.join(sorted(unknown))}")
        rest = most > len(self._all)
        self._positional = self._all[:most]
        self.parameters = [p for p in parameters if p.name in given or (p.several and rest)]
        if rest and self.parameters[-1].by_name:
            raise UnrecordableError("its function takes any number of arguments, and some by name")

    @property
    def model(self) -> str:
        texts, called, defaulted = [], [], False
        for p in self.parameters:
            defaulted = defaulted or p.default is not None
            star = "*" if p.several else ""
            default = p.default or ("None" if defaulted and not p.several else None)
            texts.append(f"{star}{p.name}" + ("" if default is None else f"={default}"))
            in_place = p.several or p.name in self._positional
            called.append(f"{star}{p.name}" if in_place else f"{p.name}={p.name}")
        return (
            "class Model(torch.nn.Module):\n"
            f"    def forward({', '.join(['self', *texts])}):\n"
            f"        return {self.name}({', '.join(called)})\n"
        )

    def arguments(self, call: RecordedCall) -> list[Part]:
        given = dict(zip(self._all, call.args, strict=False)) | call.kwargs
        wanted = [p for p in self.parameters if not p.several]
        last = max((n + 1 for n, p in enumerate(wanted) if p.name in given), default=0)
        values = []
        for parameter in wanted[:last]:
            if parameter.name in given:
                values.append(given[parameter.name])
            elif parameter.default is None:
                raise UnrecordableError(f"a call lacks {parameter.name}")
            else:
                values.append(_encoded(parameter))
        return listed(call, [*values, *call.args[len(self._all) :]])


def function_of(reference: str, name: str) -> ast.FunctionDef:
    """The one that the file is about: of its name, else the last one."""
    found = {n.name: n for n in ast.parse(reference).body if isinstance(n, ast.FunctionDef)}
    if not found:
        raise UnrecordableError("its reference defines no function")
    return found.get(name) or [*found.values()][-1]


def problem_source(
    reference: str,
    function: ast.FunctionDef,
    category: str,
    words: str,
    test: Sequence[RecordedCall],
    sweep: Sequence[RecordedCall],
    thresholds: dict[str, float],
) -> str:
    """Raises `UnrecordableError`."""
    fitting = [call for call in sweep if call.bytes <= _MOST_BYTES]
    if len(fitting) < len(sweep):
        left_out = len(sweep) - len(fitting)
        words += f"\n({left_out} of {len(sweep)} sizes are left out: over 16 GiB of arguments)"
        sweep = fitting
    signature = _Signature(function, [*test, *sweep])
    timed = sorted({str(p): (c, p) for c in sweep for p in [signature.arguments(c)]}.values(),
                   key=lambda pair: -pair[0].bytes)  # fmt: skip
    if not timed:
        raise UnrecordableError("its performance file makes no call")
    shown = {_text(parts) for _, parts in timed}
    hidden = dict.fromkeys(_text(signature.arguments(call)) for call in test)
    calls = [parts for _, parts in timed]
    small = _spread(
        [n for n, (call, _) in enumerate(timed) if call.bytes <= _ON_CPU_BYTES], _ON_CPU
    )
    small = small or [len(timed) - 1]
    names, expression, rows = _cases(calls)
    order = _spread([*range(len(timed))], 3)
    order += [n for n in range(len(timed)) if n not in order]
    cases = [
        "    {"
        + ", ".join([*rows[n], '"weight": 1', *([] if n in small else ['"on": "gpu"'])])
        + _counts(timed[n][0])
        + "}"
        for n in order
    ]
    lines = [
        *(f"# {line}".rstrip() for line in words.splitlines()),
        "",
        reference.strip(),
        "",
        "import torch",
        "",
        "",
        signature.model,
        "",
        f"FUNCTION = {function.name!r}",
        f"CATEGORY = {json.dumps(category)}",
        *([f"THRESHOLDS = {thresholds!r}"] if thresholds else []),
        *names,
        f"arguments = lambda: {expression}",
        "CASES = [\n" + ",\n".join(cases) + ",\n]",
        "HIDDEN_SIZES = [",
        *(f'    {{"arguments": lambda: {text}}},' for text in hidden if text not in shown),
        "]",
        "",
        "",
        "def get_inputs():\n    return arguments()",
        "",
        "",
        "def get_init_inputs():\n    return []",
    ]
    source = "\n".join(lines) + "\n"
    compile(source, function.name, "exec")
    return source


def _counts(call: RecordedCall) -> str:
    counts = call.moved_bytes, call.operations
    if not all(each is not None and 0 <= each < math.inf for each in counts) or not call.tensors:
        return ""
    return f', "counts": {(*counts, max(call.tensors, key=lambda t: t.bytes).dtype)!r}'


def _cases(calls: Sequence[list[Part]]) -> tuple[list[str], str, list[list[str]]]:
    """Numbers in which calls differ become constants: how these are set at first, an expression
    with their names, and of each call its row of `CASES`. A call that differs otherwise has an
    expression of its own."""
    names: dict[tuple[Part, ...], str] = {}
    alike = [call for call in calls if _form(call) == _form(calls[0])]
    first = list(calls[0])
    for place, column in enumerate(zip(*alike, strict=True)):
        if len({*column}) > 1:
            first[place] = names.setdefault(column, f"size_{len(names)}")
    rows = []
    for call in calls:
        if _form(call) == _form(first) or _form(call) == _form(calls[0]):
            at = alike.index(call)
            rows.append([f'"{name}": {column[at]!r}' for column, name in names.items()])
        else:
            rows.append([f'"arguments": lambda: {_text(call)}'])
    if len(calls) == 1:
        rows = [[f'"arguments": lambda: {_text(calls[0])}']]
    return [f"{name} = {column[0]!r}" for column, name in names.items()], _text(first), rows


def _form(call: Sequence[Part]) -> list[str]:
    return [part if isinstance(part, str) else type(part).__name__ for part in call]


def _text(call: Sequence[Part]) -> str:
    return "".join(part if isinstance(part, str) else repr(part) for part in call)


def _spread(numbers: list[int], count: int) -> list[int]:
    """So many of them: the first, the last, and between."""
    if len(numbers) <= count:
        return numbers
    return [numbers[round(n * (len(numbers) - 1) / (count - 1))] for n in range(count)]


def _parameters(function: ast.FunctionDef) -> list[_Parameter]:
    args = function.args
    ordered = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(ordered) - len(args.defaults)) + [*args.defaults]
    return [
        *(_Parameter(a.arg, _default(d), False) for a, d in zip(ordered, defaults, strict=True)),
        *([_Parameter(args.vararg.arg, None, False, True)] if args.vararg else []),
        *(_Parameter(a.arg, _default(d), True)
          for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)),
    ]  # fmt: skip


def _default(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)


def _encoded(parameter: _Parameter) -> object:
    """A default as a recorder would have encoded it."""
    assert parameter.default is not None
    try:
        value = ast.literal_eval(parameter.default)
    except ValueError:
        if parameter.default.startswith("torch."):
            return {"torch": parameter.default.removeprefix("torch.")}
        raise UnrecordableError(f"{parameter.name} is not always given") from None
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return {"float": repr(value)}
    return {"tuple": [*value]} if isinstance(value, tuple) else value
