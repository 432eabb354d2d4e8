"""Reads what NVIDIA's compute-sanitizer prints: one block of lines an error, all behind `=====`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.collect.ncu_export import base_name
from evaluator.deep_audit.own_code import OwnCode
from evaluator.deep_audit.record import Finding, Tool

_MOST_FINDINGS = 16
_MOST_TEXT = 300
_PREFIX = "========= "
_NO_ERROR = re.compile(
    r"COMPUTE-SANITIZER|CUDA-MEMCHECK|(?:ERROR|RACECHECK|LEAK|SYNCCHECK|INITCHECK) SUMMARY|"
    r"Target application|Program hit|Internal Sanitizer|No attachable process|This can happen|"
    r"Options|Error: (?:No|Target|process|The)|Warning: (?!Race)|Saved host|Host Frame|Error "
    r"process"
)
# `at kernel(int*)+0x70 in file.cu:12`; older versions: `at 0x70 in file.cu:12:kernel(int*)`.
_AT = re.compile(
    r"\bat (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>[^:\s]+):(?P<line>\d+))?(?:\s|:|$)"
)
_AT_OLD = re.compile(
    r"\bat 0x[0-9a-f]+ in (?:(?P<file>[^:\s]+):(?P<line>\d+):)?(?P<kernel>[^\s(]+[^\n]*?)(?: \[|$)"
)
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
_SEVERITY = re.compile(r"^(?:ERROR|Error|WARN(?:ING)?|Warning|INFO|Info): ")


def findings_of(tool: Tool, text: str, code: OwnCode) -> tuple[Finding, ...]:
    """The errors in a tool's output, each place once.

    Errors of memcheck and racecheck refuse where they lie in one of the candidate's own kernels.
    initcheck takes padding that nobody uses for an error, and synccheck what some devices allow,
    so these only tell.
    """
    found: dict[tuple[str, str, str], Finding] = {}
    for block in _blocks(text):
        head = block[0]
        place = _place(block)
        kernel = base_name(place["kernel"]) if place else ""
        line = place["line"] if place else None
        kind = _ADDRESS.sub("...", _SEVERITY.sub("", head)).split(" at ")[0].strip()
        more = [each for each in block[1:] if _tells(each)]
        severe = tool is Tool.MEMCHECK or (
            tool is Tool.RACECHECK and not head.startswith(("WARN", "Warning", "INFO", "Info"))
        )
        finding = Finding(
            kind=kind,
            text=_ADDRESS.sub("...", "; ".join([*([kernel] if kernel else []), *more]))[
                :_MOST_TEXT
            ],
            file=(place["file"] or "").rpartition("/")[2] if place else "",
            line=int(line) if line else None,
            frames=(kernel,) if kernel else (),
            refuses=severe and kernel in code.kernels,
        )
        found.setdefault((finding.kind, kernel, finding.place), finding)
    return tuple(found.values())[:_MOST_FINDINGS]


def ended_properly(text: str) -> bool:
    """Whether the tool got as far as its summary: without one, silence means nothing."""
    return re.search(r"^========= (?:\w+ )?SUMMARY: ", text, re.MULTILINE) is not None


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of each error, without the mark in front of them."""
    block: list[str] = []
    for line in text.splitlines():
        said = line[len(_PREFIX) :] if line.startswith(_PREFIX) else ""
        if said.startswith(" ") and block:
            block.append(said.strip())
            continue
        if block:
            yield block
        block = [said.strip()] if said.strip() and not _NO_ERROR.match(said) else []
    if block:
        yield block


def _place(block: list[str]) -> re.Match[str] | None:
    """The first line of a block that names a kernel."""
    for line in block:
        match = _AT_OLD.search(line) or _AT.search(line)
        if match:
            return match
    return None


def _tells(line: str) -> bool:
    """Whether a line says more about the error than where each thread stood."""
    return line.startswith(("Access", "Address", "and ", "by thread", "Current"))
