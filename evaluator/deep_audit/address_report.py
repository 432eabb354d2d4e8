"""Reads what AddressSanitizer and UndefinedBehaviorSanitizer print.

The text comes from the candidate's process, so it may hold anything. A candidate that forges a
report only refuses itself.
"""

from __future__ import annotations

import re

from evaluator.audit_record import Finding

_MOST_FINDINGS = 16
_MOST_FRAMES = 5
_MOST_TEXT = 300
_ERROR = re.compile(r"ERROR: AddressSanitizer: (?P<words>.+)$", re.MULTILINE)
_SUMMARY = re.compile(
    r"SUMMARY: AddressSanitizer: (?P<kind>\S+)(?: (?P<file>\S+?):(?P<line>\d+))?(?::\d+)?"
    r"(?: in (?P<function>.+))?"
)
_ACCESS = re.compile(r"^((?:READ|WRITE) of size \d+).*? thread T(\d+)", re.MULTILINE)
_REGION = re.compile(r"is located (\d+ bytes .+? \d+-byte region)")
_GLOBAL = re.compile(
    r"is located (\d+ bytes .+? of global variable '\w+') .*?defined in .*? of size (\d+)"
)
_SIGNAL = re.compile(r"The signal is caused by a (READ|WRITE) memory access")
_NULL = "address points to the zero page"
_VARIABLE = re.compile(r"'(\w+)' \(line \d+\) <== (Memory access .+?)$", re.MULTILINE)
_FRAME = re.compile(r"^\s+#\d+ (?P<function>.+) (?P<file>\S+?):(?P<line>\d+)(?::\d+)?$")
_UNDEFINED = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: runtime error: (?P<text>.+)$")
_BUILD_FOLDER = re.compile(r"^.*/work-[^/]+/")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")

_FIRST = re.compile("")
_BEFORE = {
    "freed": re.compile(r"^freed by thread", re.MULTILINE),
    "allocated": re.compile(r"^(?:previously )?allocated by thread", re.MULTILINE),
}

# Always an error of the code that was compiled with the sanitizer.
_MEMORY = re.compile(
    r"(?:heap|stack|dynamic-stack|global)-buffer-(?:over|under)flow|container-overflow|"
    r"heap-use-after-free|stack-use-after-(?:return|scope)|use-after-poison|double-free|bad-free|"
    r"negative-size-param|memcpy-param-overlap|unknown-crash"
)
_SPOKEN = {"attempting double-free": "double-free", "attempting free on address": "bad-free"}


def memory_finding(text: str) -> Finding | None:
    """The error with which AddressSanitizer ended the process; None without one.

    It refuses where it is an error of memory for certain. A plain crash (`SEGV`) does so only
    inside the candidate's own sources, and exhausted memory or stack never: the sanitizer itself
    takes a good deal of both.
    """
    errors = list(_ERROR.finditer(text))
    summaries = list(_SUMMARY.finditer(text))
    if not errors and not summaries:
        return None
    # A long stack may have pushed the beginning out of the log: the summary is at its end.
    report = text[errors[-1].start() :] if errors else text
    words = errors[-1]["words"] if errors else ""
    kind = next((name for spoken, name in _SPOKEN.items() if words.startswith(spoken)), "")
    kind = kind or (words.split()[0] if words else summaries[-1]["kind"])
    frames = _own_frames(report, _FIRST) if errors else []
    file, line = "", None
    if frames:
        _, file, line = frames[0]
    elif summaries and summaries[-1]["file"] and _BUILD_FOLDER.match(summaries[-1]["file"]):
        file = _BUILD_FOLDER.sub("", summaries[-1]["file"])
        line = int(summaries[-1]["line"])
        if summaries[-1]["function"]:
            frames = [(_function(summaries[-1]["function"]), file, line)]
    return Finding(
        kind=kind,
        text=_what(report)[:_MOST_TEXT],
        file=file,
        line=line,
        frames=tuple(f"{function} {file}:{line}" for function, file, line in frames),
        refuses=_MEMORY.fullmatch(kind) is not None or (kind == "SEGV" and bool(file)),
    )


def undefined_findings(text: str) -> tuple[Finding, ...]:
    """What UndefinedBehaviorSanitizer said of the candidate's own sources, each place once.

    An index outside a fixed array refuses; overflows, shifts and the like are only reported.
    """
    found: dict[tuple[str, int], Finding] = {}
    for match in map(_UNDEFINED.match, text.splitlines()):
        # The judge's headers and PyTorch's are named by their whole path.
        if match is None or match["file"].startswith("/"):
            continue
        words = _ADDRESS.sub("...", match["text"])[:_MOST_TEXT]
        outside = "out of bounds for type" in words
        finding = Finding(
            kind="index-out-of-bounds" if outside else "undefined-behaviour",
            text=words,
            file=match["file"],
            line=int(match["line"]),
            refuses=outside,
        )
        found.setdefault((finding.file, int(match["line"])), finding)
    return tuple(found.values())[:_MOST_FINDINGS]


def _own_frames(report: str, begin: re.Pattern[str]) -> list[tuple[str, str, int]]:
    started = begin.search(report)
    frames: list[tuple[str, str, int]] = []
    inside = False
    for line in report[started.start() :].splitlines() if started else ():
        match = _FRAME.match(line)
        if match is None:
            if inside and not line.lstrip().startswith("#"):
                break
            inside = inside or line.lstrip().startswith("#")
            continue
        inside = True
        if _BUILD_FOLDER.match(match["file"]):
            name = _function(match["function"])
            frame = (name, _BUILD_FOLDER.sub("", match["file"]), int(match["line"]))
            if frame not in frames:
                frames.append(frame)
    return frames[:_MOST_FRAMES]


def _function(spoken: str) -> str:
    """`kernel<float>` for `kernel<float>(float const*)`."""
    name = spoken.removeprefix("in ").replace("(anonymous namespace)::", "")
    name = name.partition("(")[0]
    return "a lambda" if name.endswith("operator") else name


def _what(report: str) -> str:
    parts = []
    if access := _ACCESS.search(report):
        parts.append(access[1] if access[2] == "0" else f"{access[1]} by thread {access[2]}")
    if signal := _SIGNAL.search(report):
        null = _NULL in report
        parts.append(f"{signal[1]} {'through a null pointer' if null else 'of unmapped memory'}")
    if region := _REGION.search(report):
        parts.append(region[1])
    if named := _GLOBAL.search(report):
        parts.append(f"{named[1]} of {named[2]} bytes")
    if variable := _VARIABLE.search(report):
        parts.append(f"{variable[2]}: {variable[1]}")
    for word, pattern in _BEFORE.items():
        if own := _own_frames(report, pattern):
            _, file, line = own[0]
            parts.append(f"{word} at {file}:{line}")
    # GCC 12 says left and right.
    text = ", ".join(parts).replace("to the right of", "after").replace("to the left of", "before")
    return _ADDRESS.sub("...", text)
