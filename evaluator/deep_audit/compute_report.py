"""Reads what NVIDIA's compute-sanitizer prints: one block of lines an error, all behind `=====`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.audit_record import Finding, Tool
from evaluator.collect.kernel_name import base_name
from evaluator.deep_audit.own_code import OwnCode

_MOST_FINDINGS = 16
_MOST_TEXT = 300
_MOST_FRAMES = 5
_MOST_OF_A_LINE = 2048
"""A candidate prints beside the tool, and looking for a place takes the square of a line."""
_PREFIX = "========= "
_NO_ERROR = re.compile(
    r"COMPUTE-SANITIZER|CUDA-MEMCHECK|(?:ERROR|RACECHECK|LEAK|SYNCCHECK|INITCHECK) SUMMARY|"
    r"Target application|Program hit|Internal Sanitizer|No attachable process|This can happen|"
    r"Options|Error: (?:No|Target|process|The)|Warning: (?!Race)|Saved host|Host Frame|Error "
    r"process"
)
# `at kernel(int*)+0x70 in file.cu:12`, with file and line where the kernel was compiled with them.
_AT = re.compile(
    r"\bat (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>[^:\s]+):(?P<line>\d+))?(?:\s|:|$)"
)
# Where the place is in a function that the kernel calls.
_DEVICE_FRAME = re.compile(r"^Device Frame:\s*(?P<kernel>.+?)\+0x[0-9a-f]+")
# What a kernel's own `assert` prints.
_ASSERTION = re.compile(
    r"^(?P<file>\S+?):(?P<line>\d+): (?P<kernel>.+): block: \[(?P<block>[\d,]+)\], "
    r"thread: \[(?P<thread>[\d,]+)\] Assertion [`'](?P<text>.+)[`'] failed\.?$",
    re.MULTILINE,
)
# How a line begins that says more about the error than where each thread stood.
_TELLING = ("Access", "Address", "and ", "by thread", "Current")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
_SEVERITY = re.compile(r"^(?:ERROR|Error|WARN(?:ING)?|Warning|INFO|Info): ")


def findings_of(
    tool: Tool, text: str, code: OwnCode, *, plain_barriers: bool = True
) -> tuple[Finding, ...]:
    """The errors in a tool's output, each place once.

    Errors of memcheck and racecheck refuse where they lie in one of the candidate's own kernels.
    racecheck knows the plain barriers of a block and a warp; with any others
    (`plain_barriers=False`) it sees races where there are none, so they are only reported.
    initcheck takes unused padding for an error, and synccheck what some devices allow. Their
    findings are only reported, too.
    """
    found: dict[tuple[str, ...], Finding] = {}
    for block in _blocks(text):
        head = block[0]
        place = next((match for line in block if (match := _AT.search(line))), None)
        kernels = _kernels(place, block)
        kind = _ADDRESS.sub("...", _SEVERITY.sub("", head)).split(" at ")[0].strip()
        more = [each for each in block[1:] if each.startswith(_TELLING)]
        severe = tool is Tool.MEMCHECK or (
            tool is Tool.RACECHECK
            and plain_barriers
            and not head.startswith(("WARN", "Warning", "INFO", "Info"))
        )
        finding = Finding(
            kind=kind,
            text=_ADDRESS.sub("...", "; ".join([*kernels[:1], *more]))[:_MOST_TEXT],
            file=(place["file"] or "").rpartition("/")[2] if place else "",
            line=int(place["line"]) if place and place["line"] else None,
            frames=tuple(kernels[:_MOST_FRAMES]),
            refuses=severe and any(kernel in code.kernels for kernel in kernels),
        )
        found.setdefault((finding.kind, *(kernels[:1] or [""]), finding.place), finding)
    return tuple(found.values())[:_MOST_FINDINGS]


def assertion_findings(text: str) -> tuple[Finding, ...]:
    """The assertions that failed in kernels, each place once, with the first thread that failed."""
    found: dict[tuple[str, str], Finding] = {}
    for match in _ASSERTION.finditer("\n".join(_lines(text))):
        kernel = base_name(match["kernel"])
        finding = Finding(
            kind="device-side assert",
            text=f"`{match['text']}` failed; by thread ({match['thread']}) in block "
            f"({match['block']})"[:_MOST_TEXT],
            file=match["file"].rpartition("/")[2],
            line=int(match["line"]),
            frames=(kernel,),
        )
        found.setdefault((match["file"], match["line"]), finding)
    return tuple(found.values())[:_MOST_FINDINGS]


def ended_properly(text: str) -> bool:
    """Whether the tool got as far as its summary: without one, silence means nothing."""
    if "Internal Sanitizer Error" in text:
        return False
    return re.search(r"^========= (?:\w+ )?SUMMARY: ", text, re.MULTILINE) is not None


def counts_errors(text: str) -> bool:
    """Whether a summary counts errors: none of them read means that they were made unreadable."""
    return re.search(r"SUMMARY: [1-9]", text) is not None


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in _lines(text):
        said = line[len(_PREFIX) :] if line.startswith(_PREFIX) else ""
        if said.startswith(" "):
            if block:
                block.append(said.strip())
            continue
        if block:
            yield block
        block = [said.strip()] if said.strip() and not _NO_ERROR.match(said) else []
    if block:
        yield block


def _lines(text: str) -> list[str]:
    return [line[:_MOST_OF_A_LINE] for line in text.splitlines()]


def _kernels(place: re.Match[str] | None, block: list[str]) -> list[str]:
    found = [place["kernel"]] if place else []
    found += [match["kernel"] for line in block if (match := _DEVICE_FRAME.match(line))]
    return list(dict.fromkeys(base_name(name) for name in found))
