"""Where a crash happened, in words: what a sanitizer found, at the candidate's own line."""

from __future__ import annotations

import re

from evaluator.audit_record import DeepAudit, Finding, Tool
from tools.diagnosis.source_map import SourceMap

_AROUND = 2
_MOST_MORE = 2
_PLACE = re.compile(r"(?P<file>[\w./+-]+\.(?:cpp|cc|cxx|c|cu|cuh|h|hpp|py)):(?P<line>\d+)")
_NAMES = {
    Tool.ADDRESS: "AddressSanitizer",
    Tool.UNDEFINED: "UndefinedBehaviorSanitizer",
    Tool.MEMCHECK: "compute-sanitizer",
    Tool.RACECHECK: "racecheck",
    Tool.INITCHECK: "initcheck",
    Tool.SYNCCHECK: "synccheck",
}
_PAST_THE_END = (
    "an index just past the end: `<=` for `<`, a tail without a guard (`if (i < n)`), a vector"
    " load over the last elements, or a buffer made one row or element too small"
)
_FAR_OUTSIDE = (
    "an index far outside: a stride or a size taken from the wrong dimension, rows and columns"
    " swapped, or a count of bytes taken for a count of elements"
)
_MEANINGS = (
    (r"use-after-(?:free|scope|return|poison)",
     "a pointer kept to what is gone: memory of a temporary tensor, of a vector that has grown, or"
     " of a variable whose block has ended"),
    (r"double-free|bad-free",
     "memory that was given back twice, or that malloc and new never gave"),
    (r"(?:^| )\d+ bytes before", "an index below 0: a window, padding or shift without a guard"),
    (r"stack-buffer|global-buffer|index-out-of-bounds",
     "an array of fixed size that is too small for the sizes at hand, or an index without a bound"),
    (r"null pointer",
     "a pointer that was never set: an undefined tensor, an allocation that failed, or an index"
     " into an empty vector"),
    (r"SEGV|BUS",
     "a wild pointer: an index computed in 32 bits that wrapped, an uninitialised variable, or a"
     " stride that does not fit the tensor"),
    (r"stack-overflow",
     "too much on the stack (8 MB, less in a thread of OpenMP), or a recursion without end: put"
     " large arrays into a std::vector or a tensor"),
    (r"ABRT",
     "an exception that left a thread, an OpenMP loop, a destructor or a noexcept function, or a"
     " failed assertion: check before, or catch it there"),
    (r"FPE|division by zero", "an integer division by zero, or of the smallest integer by -1"),
    (r"misaligned",
     "a vector access (float4, half2, ...) at an address that is not a multiple of its size: check"
     " offsets, row lengths and the tail"),
    (r"__shared__",
     "an index outside of the shared array: check it against the tile's size, padding included,"
     " and the bytes of shared memory given at the launch"),
    (r"__local__", "an index outside of an array of the thread's own"),
    (r"device-side assert", "an assertion of the kernel failed, most often on an index"),
)  # fmt: skip
_DISTANCE = re.compile(r"(\d[\d,]*) bytes after")
_NEAR_BYTES = 64


def site_words(audit: DeepAudit, source: str) -> list[str]:
    """What happened, where, and what it usually means; empty where no tool found the place.

    `source` is the candidate's file, whose lines are quoted; empty: none is.
    """
    found = [
        (_NAMES[run.tool], finding)
        for run in audit.sanitizers
        for finding in run.findings
        if finding.file or finding.frames
    ]
    if not found:
        return []
    # A finding at a line says more than one without.
    found.sort(key=lambda each: (not each[1].file, not each[1].refuses))
    tool, first = found[0]
    mapped = _learnt([finding for _, finding in found], source)
    lines = [f"Run again under {tool}: {_reported(first, mapped)}"]
    lines += _place_words(first, mapped, quoting=bool(source))
    more = [each for _, each in found[1:] if each.place and each.place != first.place]
    lines += [
        f"Also, {_where(each, mapped)}: {_reported(each, mapped)}" for each in more[:_MOST_MORE]
    ]
    if meaning := _meaning(first):
        lines.append(f"What it usually means: {meaning}.")
    return lines


def unfound_words(audit: DeepAudit) -> list[str]:
    for run in audit.sanitizers:
        for finding in run.findings[:1]:
            return [f"Run again under {_NAMES[run.tool]}: {finding}, in no line of yours."]
    clean = next((run for run in audit.sanitizers if run.outcome == "clean"), None)
    if clean is not None:
        return [
            f"Run again under {_NAMES[clean.tool]} it did not fail in {clean.calls} calls: look for"
            " memory that is read before it is written, and for threads that are not waited for."
        ]
    stuck = next((run for run in audit.sanitizers if run.outcome == "inconclusive"), None)
    return [] if stuck is None else [f"{_NAMES[stuck.tool]} could not tell where: {stuck.note}."]


def _learnt(findings: list[Finding], source: str) -> SourceMap:
    mapped = SourceMap(source)
    for finding in findings:
        for place, text in finding.lines.items():
            file, _, line = place.rpartition(":")
            mapped.learn(file, int(line), text)
    return mapped


def _place_words(finding: Finding, mapped: SourceMap, *, quoting: bool) -> list[str]:
    if not finding.file:
        inner = finding.frames[:1]
        return [f"In {inner[0]}, which no line is known of."] if inner else []
    lines = [f"At {_where(finding, mapped)}:" if quoting else f"At {_where(finding, mapped)}."]
    if not quoting:
        return lines
    number = _number(finding.place, finding, mapped)
    if number is not None:
        lines += mapped.excerpt(number, _AROUND)
    elif finding.place in finding.lines:
        lines.append(f"> {finding.lines[finding.place].strip()[:160]}")
    callers = [frame for frame in finding.frames[1:] if _PLACE.search(frame)]
    for frame in callers[:1]:
        match = _PLACE.search(frame)
        outer = match and _number(match[0], finding, mapped)
        if outer is not None and outer != number:
            lines += ["  called from:", *mapped.excerpt(outer)]
    return lines


def _where(finding: Finding, mapped: SourceMap) -> str:
    """`line 12, in scale`, or the file's own line where it is not found in the source."""
    number = _number(finding.place, finding, mapped)
    where = f"{finding.file} line {finding.line}" if number is None else f"line {number}"
    if finding.line is None:
        where = finding.file
    name = _PLACE.sub("", finding.frames[0]).strip() if finding.frames else ""
    return f"{where}, in {name}" if name else where


def _reported(finding: Finding, mapped: SourceMap) -> str:
    """Kind and text, with lines of the candidate's file for those that were compiled."""

    def line(match: re.Match[str]) -> str:
        number = _number(match[0], finding, mapped)
        return match[0] if number is None else f"line {number}"

    # The kernel stands in front of compute-sanitizer's text, and is reported with the place.
    text = finding.text
    for frame in finding.frames[:1]:
        text = text.removeprefix(f"{frame}; ")
    text = _PLACE.sub(line, text.replace("...", "an address") if "at ..." in text else text)
    return f"{finding.kind}: {text}" if text else f"{finding.kind}"


def _number(place: str, finding: Finding, mapped: SourceMap) -> int | None:
    file, _, line = place.rpartition(":")
    # Two extensions may share a file name: the compiled text tells which. Triton has one file.
    known = file and (finding.lines or file.endswith(".py"))
    return mapped.locate(file, int(line), finding.lines.get(place, "")) if known else None


def _meaning(finding: Finding) -> str:
    text = f"{finding.kind} {finding.text}"
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text):
            return meaning
    if distance := _DISTANCE.search(text):
        near = int(distance[1].replace(",", "")) < _NEAR_BYTES
        return _PAST_THE_END if near else _FAR_OUTSIDE
    return _PAST_THE_END if "out of bounds" in text or "overflow" in text else ""
