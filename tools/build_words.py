"""A failed build in words that a model can act on: the first error first, its own lines quoted."""

from __future__ import annotations

import re

from tools.build_log import BuildLog, Diagnostic, is_own, parse
from tools.source_map import SourceMap

_MAX_ERRORS = 6
_MAX_MESSAGE = 300
_MANGLED = re.compile(r"_Z(\d+)(\w+)")

_REMEDIES = (
    (r"uses too much shared data", "Static shared memory ends at 48 KB a block: use a smaller tile,"
     " or dynamic shared memory with cudaFuncSetAttribute(MaxDynamicSharedMemorySize)."),
    (r"uses too much (?:local|parameter)", "Make the arrays of a thread smaller."),
    (r"undefined reference|undefined symbol", "It is declared but nowhere defined: check that the"
     " definition is there, with the same parameter types, in the sources that are compiled."),
    (r"multiple definition", "It is defined in two sources: keep one definition, or make it"
     " static or inline."),
    (r"cannot find -l", "That library is not there: do without it."),
    (r"[Uu]nknown option|unrecognized command|bad value|the flag .* is not allowed",
     "Leave that flag out."),
    (r"No such file or directory|cannot open source file", "That header is not there: include only"
     " the standard library, CUDA's headers and PyTorch's."),
)  # fmt: skip


def build_words(log: str, source: str) -> list[str]:
    """Lines of text on a build log; `source` is the candidate's Python file, or empty."""
    parsed = parse(log)
    if not parsed.errors:
        return _unrecognised(log)
    mapped = SourceMap(source)
    for error in parsed.errors:
        if error.quoted and is_own(error.file):
            mapped.learn(error.file, error.line, error.quoted)
    # An error in the candidate's own text says more than what follows from it inside a header.
    errors = sorted(parsed.errors, key=lambda error: not (error.own or not error.file))
    lines = []
    for position, error in enumerate(errors[:_MAX_ERRORS]):
        lines += _error_lines(error, mapped, first=position == 0, quoting=bool(source))
    lines += _rest(parsed, len(errors) - _MAX_ERRORS)
    return lines


def _error_lines(error: Diagnostic, mapped: SourceMap, *, first: bool, quoting: bool) -> list[str]:
    message = _MANGLED.sub(_demangled, error.message)
    if len(message) > _MAX_MESSAGE:
        message = message[:_MAX_MESSAGE] + " ..."
    lines = [f"{'First error' if first else 'Then'} ({error.tool}): {message}"]
    around = 1 if first or message.startswith("expected") else 0
    if error.own:
        number = error.line if error.tool == "python" else None
        number = number or mapped.locate(error.file, error.line, error.quoted)
        if number is not None:
            lines += mapped.excerpt(number, around)
        elif error.quoted and quoting:
            lines.append(f"  {error.file} line {error.line}: {error.quoted.strip()[:160]}")
    elif error.file:
        lines.append(f"  inside {error.file.rsplit('/', 1)[-1]} line {error.line}, not your text")
    if error.caller is not None and is_own(error.caller[0]):
        number = mapped.locate(*error.caller)
        if number is not None:
            lines += ["  which this line of yours leads to:", *mapped.excerpt(number, around)]
        else:
            lines.append(f"  which {error.caller[0]} line {error.caller[1]} leads to")
    lines += [f"  note: {note.strip()[:_MAX_MESSAGE]}" for note in error.notes]
    for pattern, remedy in _REMEDIES:
        if re.search(pattern, error.message):
            lines.append(f"  {remedy}")
            break
    return lines


def _rest(parsed: BuildLog, errors_left: int) -> list[str]:
    noise = parsed.lines - parsed.used
    parts = []
    if errors_left > 0:
        parts.append(f"{errors_left} more errors")
    if noise > 3 and parsed.errors[0].tool != "python":
        parts.append(f"{noise} lines of notes and of template and include context")
    return [f"(left out: {' and '.join(parts)})"] if parts else []


def _unrecognised(log: str) -> list[str]:
    lines = [line[:200] for line in log.splitlines() if line.strip()]
    if not lines:
        return ["The compiler said nothing."]
    if len(lines) <= 30:
        return ["The compiler said:", *lines]
    return [
        "The compiler said:",
        *lines[:18],
        f"(left out: {len(lines) - 30} lines)",
        *lines[-12:],
    ]


def _demangled(match: re.Match[str]) -> str:
    length = int(match[1])
    return match[2][:length] if len(match[2]) >= length else match[0]
