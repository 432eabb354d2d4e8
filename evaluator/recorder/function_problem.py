"""A recorded function as a problem file: `Model` calls it, `CASES` are the calls of its sweep."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence

from evaluator.recorder.program import Part, RecordedCall, UnrecordableError, listed
from evaluator.recorder.recording import CallRecord
from problems.case import spread
from problems.kernelbench_x import TaskFiles

_ON_CPU_BYTES = 2**22
"""Of a call's arguments: a judge on a CPU times no larger ones, if there are such."""
_MOST_BYTES = 2**34
"""A judge holds several times as much; the suite's own machines have no room for more either."""
_QUICK_BYTES = 2**28
"""A search times no larger ones, if there are such: they exceed all caches."""
_SEARCHED = 3
"""So many sizes of a sweep come first, for a search, and as many are timed on a CPU."""


class _Signature:
    """Those parameters of the function that some call gives."""

    def __init__(self, function: ast.FunctionDef, calls: Sequence[RecordedCall]) -> None:
        args = function.args
        ordered = [*args.posonlyargs, *args.args]
        lacking = len(ordered) - len(args.defaults)
        defaults = [*([None] * lacking), *args.defaults, *args.kw_defaults]
        self.name = function.name
        self._defaults = {
            each.arg: None if default is None else ast.unparse(default)
            for each, default in zip([*ordered, *args.kwonlyargs], defaults, strict=True)
        }
        self._in_order = [each.arg for each in ordered]
        most = max(len(call.args) for call in calls)
        self._by_place = self._in_order[:most]
        given = {*self._by_place, *(name for call in calls for name in call.kwargs)}
        if unknown := given - self._defaults.keys():
            raise UnrecordableError(f"its function is called with {', '.join(sorted(unknown))}")
        self._given = [name for name in self._defaults if name in given]
        self._rest = f"*{args.vararg.arg}" if args.vararg and most > len(ordered) else ""
        if self._rest and given - set(self._in_order):
            raise UnrecordableError("its function takes any number of arguments, and some by name")

    @property
    def model(self) -> str:
        taken, called, default = ["self"], [], None
        for name in self._given:
            # Behind a default each needs one.
            default = self._defaults[name] or (default and "None")
            taken.append(f"{name}={default}" if default else name)
            called.append(name if name in self._by_place else f"{name}={name}")
        rest = [self._rest] if self._rest else []
        return (
            "class Model(torch.nn.Module):\n"
            f"    def forward({', '.join(taken + rest)}):\n"
            f"        return {self.name}({', '.join(called + rest)})\n"
        )

    def arguments(self, call: RecordedCall) -> list[Part]:
        given = dict(zip(self._in_order, call.args, strict=False)) | call.kwargs
        last = max((n + 1 for n, name in enumerate(self._given) if name in given), default=0)
        values = [
            given[name] if name in given else _encoded(name, self._defaults[name])
            for name in self._given[:last]
        ]
        return listed(call, [*values, *call.args[len(self._in_order) :]])


def function_of(reference: str, name: str) -> ast.FunctionDef:
    """The one that the file is about: of its name, else the last one."""
    try:
        body = ast.parse(reference).body
    except SyntaxError as error:
        raise UnrecordableError(f"line {error.lineno}: {error.msg}") from None
    found = {n.name: n for n in body if isinstance(n, ast.FunctionDef)}
    if not found:
        raise UnrecordableError("its reference defines no function")
    return found.get(name) or [*found.values()][-1]


def problem_source(task: TaskFiles, function: ast.FunctionDef, record: CallRecord) -> str:
    """Raises `UnrecordableError`."""
    for call in (*record.test, *record.sweep):
        if call.unusable:
            raise UnrecordableError(call.unusable)
    words = task.words + (f"\n({record.ended})" if record.ended else "")
    sweep = [call for call in record.sweep if call.bytes <= _MOST_BYTES]
    if not (record.test and sweep):
        raise UnrecordableError(record.ended or "its files make no call that a judge can hold")
    if left_out := len(record.sweep) - len(sweep):
        words += (
            f"\n({left_out} of {len(record.sweep)} sizes are left out: over 16 GiB of arguments)"
        )
    signature = _Signature(function, [*record.test, *sweep])
    timed = {}
    for call in sorted(sweep, key=lambda call: -call.bytes):
        parts = signature.arguments(call)
        timed[_text(parts)] = call, parts
    hidden = dict.fromkeys(_text(signature.arguments(call)) for call in record.test)
    quick = [text for text, (call, _) in timed.items() if call.bytes <= _QUICK_BYTES] or [*timed]
    order = [*dict.fromkeys([*spread(quick, _SEARCHED), *timed])]
    small = [text for text, (call, _) in timed.items() if call.bytes <= _ON_CPU_BYTES]
    on_cpu = spread(small, _SEARCHED) or [*timed][-1:]
    names, expression, rows = _cases([timed[text][1] for text in order])
    for text, row in zip(order, rows, strict=True):
        on = [] if text in on_cpu else ['"on": "gpu"']
        row += ['"weight": 1', *on, *_counts(timed[text][0])]
    lines = [
        *(f"# {line}".rstrip() for line in words.splitlines()),
        "",
        task.reference.strip(),
        "",
        "import torch",
        "",
        "",
        signature.model,
        "",
        f"FUNCTION = {function.name!r}",
        f"CATEGORY = {json.dumps(task.category)}",
        *([f"THRESHOLDS = {task.thresholds!r}"] if task.thresholds else []),
        *names,
        f"arguments = lambda: {expression}",
        "CASES = [",
        *(f"    {{{', '.join(row)}}}," for row in rows),
        "]",
        "HIDDEN_SIZES = [",
        *(f'    {{"arguments": lambda: {text}}},' for text in hidden if text not in timed),
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


def _counts(call: RecordedCall) -> list[str]:
    counts = call.moved_bytes, call.operations
    if not all(each is not None and 0 <= each < math.inf for each in counts) or not call.tensors:
        return []
    return [f'"counts": {(*counts, max(call.tensors, key=lambda t: t.bytes).dtype)!r}']


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
        at = alike.index(call) if _form(call) == _form(calls[0]) else None
        row = [f'"{name}": {column[at]!r}' for column, name in names.items() if at is not None]
        rows.append(row or [f'"arguments": lambda: {_text(call)}'])
    return [f"{name} = {column[0]!r}" for column, name in names.items()], _text(first), rows


def _form(call: Sequence[Part]) -> list[str]:
    return [part if isinstance(part, str) else type(part).__name__ for part in call]


def _text(call: Sequence[Part]) -> str:
    return "".join(part if isinstance(part, str) else repr(part) for part in call)


def _encoded(name: str, default: str | None) -> object:
    """A default as a recorder would have encoded it."""
    if default is None:
        raise UnrecordableError(f"a call lacks {name}")
    try:
        value = ast.literal_eval(default)
    except ValueError:
        if default.startswith("torch."):
            return {"torch": default.removeprefix("torch.")}
        raise UnrecordableError(f"{name} is not always given") from None
    return {"tuple": [*value]} if isinstance(value, tuple) else value
