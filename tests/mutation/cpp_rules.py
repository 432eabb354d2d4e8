"""Mistakes in C++ text: what a programmer, or a model, gets wrong in a loop nest.

Rules look at single lines of the string that goes to `load_inline`. Some of what they make does not
compile; that is told apart and is no kill.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import Match

from tests.mutation.edit import Edit, Rule
from tests.mutation.subject import Subject

_SOURCE = re.compile(r'r"""(.*?)"""', re.S)
_NOT_CODE = re.compile(
    r"\s*(#include|#if|#endif|#pragma GCC|//|template|TORCH_CHECK|static inline)"
)
_NOT_COMPUTING = re.compile(
    r"for \(|#pragma|\b(TORCH_CHECK|_mm_prefetch|uintptr_t|data_ptr|empty|contiguous|task)\b"
)
"""Where arithmetic is about loops, placement or forms, for which there are rules of their own."""
_SCHEDULE = re.compile(r"\b(task|block|chunk)\b")
"""Loops over pieces of work; their ends are guarded by a minimum: one more piece is empty."""
_DECLARING = re.compile(r"\s*(const|auto|float|double|int)")
_TERM = r"(?:[A-Za-z_]\w*(?:\([^()]*\)|\[[^\[\]]*\])?|\d[\w.]*)"
_FLOAT = re.compile(r"(?<![\w.])(\d+\.\d*(?:e-?\d+)?|\d+e-\d+)(f?)(?![\w.])")
_TINY = 2e-3

_CUT = (
    "({{ union {{ float f; unsigned u; }} t_{{({0})}}; "
    "t_.u = (t_.u + 0x{1:x}u) & ~0x{2:x}u; t_.f; }})"
)
THROUGH: dict[str, Callable[[str], str]] = {
    "fp16": lambda e: f"(float)(_Float16)({e})",
    "tf32": lambda e: _CUT.format(e, 0x1000, 0x1FFF),
    "bf16": lambda e: _CUT.format(e, 0x8000, 0xFFFF),
}
"""An fp32 expression, rounded on the way."""

_OTHER_FUNCTION = {
    "expf": ("expm1f", "exp2f"),
    "logf": ("log1pf", "log2f"),
    "tanhf": ("sinf", "erff"),
    "erff": ("tanhf",),
    "sqrtf": ("cbrtf", "fabsf"),
    "fabsf": ("", "-"),
    "std::max": ("std::min",),
    "std::min": ("std::max",),
    "std::exp": ("std::exp2",),
    "std::sqrt": ("std::cbrt",),
    "_mm512_max_ps": ("_mm512_min_ps",),
    "_mm512_mask_max_ps": ("_mm512_mask_min_ps",),
    "_mm512_reduce_max_ps": ("_mm512_reduce_min_ps",),
    "_mm512_add_ps": ("_mm512_sub_ps",),
    "_mm512_sub_ps": ("_mm512_add_ps",),
    "_mm512_fmadd_ps": ("_mm512_fmsub_ps", "_mm512_fnmadd_ps"),
    "_mm512_fnmadd_ps": ("_mm512_fmadd_ps",),
    "_mm512_mul_ps": ("_mm512_add_ps",),
    "_mm512_reduce_add_ps": ("_mm512_reduce_max_ps",),
}


def _lines(source: str) -> Iterator[tuple[int, str]]:
    """Start and text of every line of C++ that may be changed."""
    for found in _SOURCE.finditer(source):
        start = found.start(1)
        for line in found.group(1).splitlines(keepends=True):
            # A function of one line is code; the opening of a longer one is not.
            if not _NOT_CODE.match(line) or re.search(r"static inline .*return", line):
                yield start, line
            start += len(line)


def _computing(line: str) -> bool:
    return not _NOT_COMPUTING.search(line)


def _looping(line: str) -> bool:
    return "for (" in line


def _replacing(
    pattern: str, *replacements: str | Callable[[Match[str]], str | None], on: Callable[[str], bool]
) -> Callable[[Subject], Iterator[Edit]]:
    """Every match on the lines that `on` admits, by every replacement (None: not here)."""
    compiled = re.compile(pattern)

    def edits(subject: Subject) -> Iterator[Edit]:
        for start, line in _lines(subject.source):
            if not on(line):
                continue
            for match in compiled.finditer(line):
                for replacement in replacements:
                    text = (
                        match.expand(replacement)
                        if isinstance(replacement, str)
                        else replacement(match)
                    )
                    if text is not None and text != match.group():
                        yield Edit(start + match.start(), start + match.end(), text)

    return edits


def _changed_constant(match: Match[str]) -> str | None:
    value = float(match.group(1))
    return f"{value * 1.001!r}{match.group(2)}" if value >= _TINY else None


def _changed_epsilon(factor: float) -> Callable[[Match[str]], str | None]:
    def change(match: Match[str]) -> str | None:
        value = float(match.group(1))
        if not 0 < value < _TINY:
            return None
        return f"{value * factor:.6g}{match.group(2)}" if factor else f"0.0{match.group(2)}"

    return change


def _without_tail(match: Match[str]) -> str | None:
    bound = match.group(2)
    if bound.isdigit():
        steps = [s for s in (4, 8, 16, 32, 64, 128) if int(bound) % s]
        return f"{match.group(1)} < {bound} / {steps[0]} * {steps[0]};" if steps else None
    return f"{match.group(1)} < ({bound}) / 64 * 64;"


def _earlier(match: Match[str]) -> str:
    return f"{match.group(1)}{int(match.group(2)) - 1}"


def _other_functions(subject: Subject) -> Iterator[Edit]:
    for start, line in _lines(subject.source):
        if _looping(line) or _SCHEDULE.search(line):
            continue
        for name, others in _OTHER_FUNCTION.items():
            for match in re.finditer(rf"(?<![\w:]){re.escape(name)}(?=[(<])", line):
                for other in others:
                    yield Edit(start + match.start(), start + match.end(), other)


def _rounded(precision: str) -> Callable[[Match[str]], str]:
    return lambda match: f"{match.group(1)}{THROUGH[precision](match.group(2))};"


def _cpp(name: str, pattern: str, *replacements: str | Callable[[Match[str]], str | None],
         on: Callable[[str], bool] = _computing) -> Rule:  # fmt: skip
    return Rule(name, "cpp", _replacing(pattern, *replacements, on=on))


def _plain_loop(line: str) -> bool:
    return _looping(line) and not _SCHEDULE.search(line)


def _in_index(line: str) -> bool:
    return _computing(line) and not _SCHEDULE.search(line)


def _anywhere(line: str) -> bool:
    return True


_VALUE = r"(\bfloat \w+ = )([^;{]*[a-z][^;{]*);"

RULES: tuple[Rule, ...] = (
    _cpp("minus for plus", r"(?<=[\w)\]]) \+ (?=[\w(])", " - "),
    _cpp("plus for minus", r"(?<=[\w)\]]) - (?=[\w(])", " + "),
    _cpp("plus for times", r"(?<=[\w)\]]) \* (?=[\w(])", " + "),
    _cpp("times for division", r"(?<=[\w)\]]) / (?=[\w(])", " * "),
    _cpp("operands swapped", rf"({_TERM}) ([-/]) ({_TERM})", r"\3 \2 \1"),
    _cpp("term dropped", rf"({_TERM}) \+ ({_TERM})", r"\1", r"\2"),
    _cpp("factor dropped", rf" \* {_TERM}", ""),
    _cpp("whole division", rf"({_TERM}) / ({_TERM})", r"(float)((int64_t)(\1) / (int64_t)(\2))"),
    _cpp("constant off by 0.1 %", _FLOAT.pattern, _changed_constant),
    _cpp(
        "epsilon",
        _FLOAT.pattern,
        _changed_epsilon(10),
        _changed_epsilon(0.1),
        _changed_epsilon(0),
    ),
    _cpp("index off by one", r"\[(\w+)\]", r"[\1 + 1]", r"[\1 - 1]", on=_in_index),
    _cpp(
        "stride off by one",
        r"(?<=\* )(\d+)(?=[;,)\] ])",
        lambda m: str(int(m.group(1)) + 1),
        lambda m: str(int(m.group(1)) - 1),
        on=_in_index,
    ),
    _cpp("bound too far", r"; (\w+) < ", r"; \1 <= ", on=_plain_loop),
    _cpp("bound too near", r"; (\w+) < ([^;]+);", r"; \1 < (\2) - 1;", on=_looping),
    _cpp("first left out", r"(int64_t|int) (\w+) = 0;", r"\1 \2 = 1;", on=_looping),
    _cpp("tail dropped", r"(?<=; )(\w+) < ([^;]+);", _without_tail, on=_plain_loop),
    _cpp("every second left out", r"(\+\+(\w+)|(\w+)\+\+)\)", r"\2\3 += 2)", on=_plain_loop),
    _cpp("comparison turned", r"(?<=[\w)\]]) > (?=[\w(-])", " < "),
    _cpp("comparison turned back", r"(?<=[\w)\]]) < (?=[\w(-])", " > "),
    _cpp("equal for unequal", r" == ", " != "),
    _cpp("mask forgotten", r"(?<=[\w)]) \? ", " || true ? "),
    _cpp("wrong start", r"(\b(?:float|double) \w+) = (?:0(?:\.0?f?)?|-INFINITY);", r"\1 = 1;"),
    _cpp("no start", r"(\b(?:float|double) \w+) = (?:0(?:\.0?f?)?|-INFINITY);", r"\1;"),
    _cpp("zero for infinity", r"-INFINITY", "0.0f"),
    _cpp("negation lost", r"(= |\()-(\w)", r"\1\2"),
    _cpp("sign", r"(\bfloat v\d+ = )([^;]+);", r"\1-(\2);"),
    _cpp("statement lost", r"^\s*[\w\[\]* +]+ [-+*]?= [^;{]+;\n", "\n",
         on=lambda line: _computing(line) and not _DECLARING.match(line)),
    _cpp("other variable", r"(?<=[= (,])([vxpqcb])([1-9]\d*)\b(?! =)", _earlier),
    _cpp("fp16 on the way", _VALUE, _rounded("fp16")),
    _cpp("tf32 on the way", _VALUE, _rounded("tf32")),
    _cpp("bf16 on the way", _VALUE, _rounded("bf16")),
    _cpp("fp16 result", r"(\bq?o?\d*\w*\[[^\]]+\] = )([^;]+);", _rounded("fp16")),
    _cpp("sum in fp16", r"\b(\w+) (?:= \1 \+|\+=) ([^;]+);", r"\1 = (float)(_Float16)(\1 + \2);"),
    _cpp("sum in bf16", r"\b(\w+) (?:= \1 \+|\+=) ([^;]+);",
         lambda m: f"{m.group(1)} = {THROUGH['bf16'](f'{m.group(1)} + {m.group(2)}')};"),
    _cpp("no reduction over threads", r"(parallel for.*?) reduction\([^)]*\)", r"\1", on=_anywhere),
    _cpp("not atomic", r"^\s*#pragma omp (atomic|critical|barrier).*\n", "\n", on=_anywhere),
    _cpp("scratch shared by threads", r"^(\s*)(float|double|__m512) (\w+\[)", r"\1static \2 \3",
         on=_anywhere),
    Rule("other function", "cpp", _other_functions),
)  # fmt: skip
