"""A failed build in words that a model can act on: the first error first, its own lines quoted."""

from __future__ import annotations

import re

from tools.diagnosis.build_log import BuildLog, Diagnostic, is_own, parse
from tools.diagnosis.source_map import SourceMap

_MAX_ERRORS = 6
_MAX_MESSAGE = 300
_MOST_LINES = 25
_LONG = 200
_MANGLED = re.compile(r"_Z(\d+)(\w+)")
_WITH = re.compile(r" \[with .*?\](?=['\s]|$)")
_INNERMOST = re.compile(r"(?<!operator)<[^<>]*>")
_HERE = re.compile(r"declared here|defined here|to match this|candidate:|does not match the call")
_AT_LINE = re.compile(r"\bat line (\d+)")
_BYTES = re.compile(r"\b0x[0-9a-f]+(?= (?:bytes|max))")
_FOLDED = "\0"
_NAMED = re.compile(
    r"undefined reference to [`'](?:\w+::)*(\w+)|undefined symbol: (\w+)"
    r"|any known instruction: '(\w+)'|Unknown symbol '(\w+)'|uses too much (shared) data"
    r"|multiple definition of [`'](?:\w+::)*(\w+)"
)
_MOST_NAMING = 3

_OF_BINDING = (
    (r"was not declared", "`functions` names it, so `cpp_sources` must define it, or declare it"
     " where `cuda_sources` defines it."),
    (r"", "A function that Python calls takes and returns torch::Tensor, int64_t, double, bool,"
     " std::string, or vectors and optionals of these."),
)  # fmt: skip
_REMEDIES = (
    (r"conflicting types for parameter", "Give both arguments one type, as in"
     " `std::max<int64_t>(a, b)`."),
    (r"is not a member of 'std'", "Include the header that it is in; what a later standard of C++"
     " brought than is compiled for is not there."),
    (r"calling a __host__ function", "Mark that function __device__."),
    (r"types? are: .*(?:__half|__nv_bfloat)", "PyTorch has the operators and conversions of half"
     " types turned off: go through __half2float and __float2half, or their bfloat16 twins."),
    (r"uses too much shared data .*0xc000 max", "Use a smaller tile, or dynamic shared memory with"
     " cudaFuncSetAttribute(MaxDynamicSharedMemorySize)."),
    (r"uses too much shared data", "A block has no more shared memory than that: use a smaller"
     " tile."),
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
    # An error in the candidate's own text says more than what follows from it inside a header, and
    # one in the binding, which is not the candidate's, mostly follows from another.
    errors = [each for each in parsed.errors if not each.of_binding] or parsed.errors
    errors.sort(key=lambda error: not (error.own or not error.file))
    lines: list[str] = []
    shown = 0
    for error in errors[:_MAX_ERRORS]:
        more = _error_lines(error, mapped, first=not shown, quoting=bool(source))
        if shown and len(lines) + len(more) >= _MOST_LINES:
            break
        lines += more
        shown += 1
    return lines + _rest(parsed, len(parsed.errors) - shown)


def _error_lines(error: Diagnostic, mapped: SourceMap, *, first: bool, quoting: bool) -> list[str]:
    message = _shortened(_MANGLED.sub(_demangled, error.message))
    message = _BYTES.sub(lambda match: f"{int(match[0], 16):,}", message)
    if error.own:
        message = _AT_LINE.sub(lambda match: _own_line(match, error, mapped), message)
    lines = [f"{'First error' if first else 'Then'} ({error.tool}): {message}"]
    around = 1 if first or message.startswith("expected") else 0
    if error.own:
        number = error.line if error.tool == "python" else None
        number = number or mapped.locate(error.file, error.line, error.quoted)
        if number is not None and quoting:
            lines += mapped.excerpt(number, around)
        elif error.quoted and quoting:
            lines.append(f"  {error.file} line {error.line}: {error.quoted.strip()[:160]}")
    elif error.file:
        lines.append(f"  inside {error.file.rsplit('/', 1)[-1]} line {error.line}, not your text")
    if not error.file and quoting:
        lines += _naming(message, mapped)
    if error.caller is not None and is_own(error.caller[0]):
        number = mapped.locate(*error.caller)
        if number is not None:
            lines += ["  which this line of yours leads to:", *mapped.excerpt(number, around)]
        else:
            lines.append(f"  which {error.caller[0]} line {error.caller[1]} leads to")
    lines += [f"  note: {_note_words(note, error, mapped)}" for note in error.notes]
    text = "\n".join([error.message, *(note.message for note in error.notes)])
    binding = error.of_binding or "wrap_pybind_function" in error.message
    for pattern, remedy in (*_REMEDIES, *(_OF_BINDING if binding else ())):
        if re.search(pattern, text):
            lines.append(f"  {remedy}")
            break
    return lines


def _note_words(note: Diagnostic, error: Diagnostic, mapped: SourceMap) -> str:
    """A note, with the line that it is about where that is another than the error's."""
    words = _shortened(note.message.strip())
    here = _HERE.search(note.message) is not None
    if not here or (note.file, note.line) == (error.file, error.line):
        return words
    number = mapped.locate(note.file, note.line)
    return (
        words if number is None else f"{words}, line {number}: {mapped.line(number).strip()[:120]}"
    )


def _own_line(match: re.Match[str], error: Diagnostic, mapped: SourceMap) -> str:
    number = mapped.locate(error.file, int(match[1]))
    return match[0] if number is None else f"at line {number}"


def _naming(message: str, mapped: SourceMap) -> list[str]:
    """The candidate's lines with the name that a linker or an assembler stopped at."""
    match = _NAMED.search(message)
    name = next((each for each in match.groups() if each), "") if match else ""
    name = "__shared__" if name == "shared" else name
    found = mapped.naming(name)[:_MOST_NAMING] if name else []
    return [row for number in found for row in mapped.excerpt(number)]


def _shortened(message: str) -> str:
    """A long message with its template arguments folded, and its end cut off."""
    if len(message) > _LONG:
        message = _WITH.sub("", message)
        while folded := _INNERMOST.search(message):
            message = message[: folded.start()] + _FOLDED + message[folded.end() :]
        message = message.replace(_FOLDED, "<...>")
    return message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + " ..."


def _rest(parsed: BuildLog, errors_left: int) -> list[str]:
    noise = parsed.lines - parsed.used
    parts = []
    if errors_left > 0:
        parts.append(f"{errors_left} more errors")
    if noise > 3 and parsed.errors[0].tool != "python":
        parts.append(f"{noise} lines of notes and of template and include context")
    return [f"(left out: {' and '.join(parts)})"] if parts else []


def _unrecognised(log: str) -> list[str]:
    lines = [f"  | {line[:200]}" for line in log.splitlines() if line.strip()]
    if not lines:
        return ["The compiler said nothing."]
    if len(lines) > 30:
        lines = [*lines[:18], f"(left out: {len(lines) - 30} lines)", *lines[-12:]]
    return ["The compiler said:", *lines]


def _demangled(match: re.Match[str]) -> str:
    length = int(match[1])
    return match[2][:length] if len(match[2]) >= length else match[0]
