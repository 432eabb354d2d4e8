"""Reads what compilers, assemblers and linkers print: the errors, and how much of it was noise."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Diagnostic:
    tool: str
    """Of a note or a warning, that it is one."""
    message: str
    file: str = ""
    line: int = 0
    quoted: str = ""
    notes: list[Diagnostic] = field(default_factory=list)
    caller: tuple[str, int] | None = None
    """File and line in the candidate's own code that led to an error inside a header."""

    @property
    def own(self) -> bool:
        return bool(self.file) and is_own(self.file)

    @property
    def of_binding(self) -> bool:
        """True when it lies in the lines that bind the functions, which the builder writes."""
        return bool(_BINDING.match(self.quoted))


@dataclass
class BuildLog:
    errors: list[Diagnostic]
    lines: int
    """Lines of the log that are not blank."""
    used: int
    """Lines that `errors` holds; the rest is noise."""


_GXX = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<message>.*)$"
)
_NVCC = re.compile(
    r"^(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|error|warning|remark|note)(?: #[\w-]+)?: (?P<message>.*)$"
)
_PTXAS = re.compile(
    r"^ptxas (?:(?P<file>\S+), line (?P<line>\d+); )?(?:error|fatal)\s*: (?P<message>.*)$"
)
_DRIVER = re.compile(
    r"^(?P<tool>nvcc|nvlink|cc1plus|cc1|g\+\+|gcc|c\+\+|clang\+\+|ninja)"
    r"\s*(?:fatal|error|: (?:fatal )?error)\s*: (?P<message>.*)$"
)
_REFUSAL = re.compile(r"^error: (?P<message>.*)$")
_LINKER = re.compile(
    r"^(?:\S*ld(?:\.\w+)?: )?(?P<place>.*?)"
    r"(?P<message>undefined reference to .*|multiple definition of .*|cannot find -l.*"
    r"|undefined symbol: .*|relocation .* can not be used.*)$"
)
_PYTHON = re.compile(r'^(?:\w+: )?\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_PYTHON_ERROR = re.compile(
    r"^(?:\w+: )?(?P<message>(?:SyntaxError|IndentationError|TabError): .*)$"
)
_WITHOUT_FILE = ((_PTXAS, "ptxas"), (_DRIVER, ""), (_REFUSAL, "builder"),
                 (_PYTHON_ERROR, "python"), (_LINKER, "linker"))  # fmt: skip
_NO_ERRORS = {"warning": "warning", "remark": "warning", "note": "note"}
_GXX_QUOTE = re.compile(r"^\s*\d+ \| ?(?P<text>.*)$")
_FROM_HERE = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)?\s+required from here")
_AT_LINE = re.compile(
    r"^\s+(?:detected during )?instantiation of .* at line (?P<line>\d+)(?: of (?P<file>.*))?$"
)
_EDG_CARET = re.compile(r"^\s*\^\s*$")
_EDG_DETAIL = re.compile(r"^ {8,}(?P<text>(?:operand|argument|object) types? (?:are|is): .*)$")
_BINDING = re.compile(
    r"\s*(?:PYBIND11_MODULE\(TORCH_EXTENSION_NAME|m\.def\(.*wrap_pybind_function)"
)
_IDLE_NOTE = re.compile(
    r"template argument deduction/substitution failed|suggested alternatives?:|in (?:expansion|"
    r"definition) of macro|built-in operator|candidate: '?(?:template|constexpr|\S+::\S+\(const "
    r"\S+&\)|\S+::\S+\(\S+&&\))"
)
_MOST_NOTES = 3
_SUMMARY = re.compile(r"fatal\s*: Ptx assembly aborted|ld returned \d|^\d+ errors? detected")


def is_own(file: str) -> bool:
    """False for headers of the system, of CUDA and of PyTorch."""
    return not (file.startswith("/usr/") or "/include/" in file or "site-packages" in file)


def parse(log: str) -> BuildLog:
    """The errors of a log in the order in which they were printed, each once."""
    lines = [line.rstrip() for line in log.splitlines()]
    errors: list[Diagnostic] = []
    seen: set[tuple[str, int, str]] = set()
    used = 0
    caller: tuple[str, int] | None = None
    current: Diagnostic | None = None
    python_place: tuple[str, int] | None = None
    for position, line in enumerate(lines):
        if match := _FROM_HERE.match(line):
            caller = (match["file"], int(match["line"]))
        elif match := _AT_LINE.match(line):
            if current is not None:
                current.caller = (match["file"] or current.file, int(match["line"]))
                used += 1
        elif match := _PYTHON.match(line):
            python_place = (match["file"], int(match["line"]))
        elif (found := _match_error(line)) is not None:
            if found.tool == "note":
                if current is not None and _says_more(found, current):
                    current.notes.append(found)
                    used += 1
                continue
            current = None
            if found.tool == "warning":
                continue
            if found.tool == "python" and python_place is not None:
                found.file, found.line = python_place
            found.caller, caller = (None if found.own else caller), None
            # One call into a template can fail in a dozen of its instantiations.
            place = found.caller or (found.file, found.line)
            if (*place, found.message) in seen:
                continue
            seen.add((*place, found.message))
            if found.tool == "nvcc":
                position = _after_details(lines, position, found)
            found.quoted = _quoted(lines, position, found.tool)
            used += 2 if found.quoted else 1
            current = found
            errors.append(found)
    filled = [line for line in lines if line.strip()]
    return BuildLog(errors, len(filled), min(used, len(filled)))


def _match_error(line: str) -> Diagnostic | None:
    if _SUMMARY.search(line):
        return None
    for pattern, tool in ((_GXX, "g++"), (_NVCC, "nvcc")):
        if match := pattern.match(line):
            kind = _NO_ERRORS.get(match["severity"], tool)
            return Diagnostic(kind, match["message"], match["file"], int(match["line"]))
    for pattern, tool in _WITHOUT_FILE:
        if match := pattern.match(line):
            groups = {"tool": tool, "line": ""} | match.groupdict()
            place = f"PTX line {groups['line']}: " if groups["line"] else ""
            return Diagnostic(groups["tool"], place + groups["message"])
    return None


def _says_more(note: Diagnostic, error: Diagnostic) -> bool:
    """Whether a note is about the candidate's own code and says something new."""
    # Of several candidates the first one is reported.
    begin = note.message[: len("candidate expects")]
    known = any(each.message.startswith((note.message, begin)) for each in error.notes)
    idle = _IDLE_NOTE.match(note.message.strip()) is not None
    return is_own(note.file) and not known and not idle and len(error.notes) < _MOST_NOTES


def _after_details(lines: list[str], position: int, error: Diagnostic) -> int:
    """Takes what nvcc says between an error and the line that it quotes."""
    while position + 1 < len(lines) and (match := _EDG_DETAIL.match(lines[position + 1])):
        error.notes.append(Diagnostic("note", match["text"]))
        position += 1
    return position


def _quoted(lines: list[str], position: int, tool: str) -> str:
    following = lines[position + 1 : position + 4]
    if tool == "g++" and following and (match := _GXX_QUOTE.match(following[0])):
        return match["text"]
    # The front end of nvcc prints the line, then a caret, and no number.
    if tool == "nvcc" and len(following) > 1 and _EDG_CARET.match(following[1]):
        return following[0]
    if tool == "python":
        for line in reversed(lines[max(0, position - 3) : position]):
            if line.strip() and not _PYTHON.match(line) and not set(line.strip()) <= {"^", "~"}:
                return line
    return ""
