"""Reads compilers' output: whose fault the first error is, and what a model should see of it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from evaluator.build import headers

MAX_LOG_BYTES = 64 * 1024

_GCC = re.compile(r"^(?P<file>[^\s:()]+):\d+:(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_NVCC = re.compile(
    r"^(?P<file>[^\s()]+)\(\d+\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)$"
)
_OUR_NAMES = re.compile(
    r"\b(?:at|c10|torch|caffe2|pybind11|py|refinery)::|"
    r"['\"](?:at|c10|torch|caffe2|pybind11|py|std)['\"]|'std::|refinery_"
)
_PYTORCH_HEADER = re.compile(r"\b(?:ATen|c10|torch|pybind11|caffe2|THC|TH)/[\w/.]+: No such file")
_NVCC_MISSING = re.compile(r"cannot open source file \"(?:ATen|c10|torch|pybind11|caffe2|THC?)/")
_UNKNOWN = (
    re.compile(r"'(\w+)' was not declared"),
    re.compile(r"'(\w+)' does not name a type"),
    re.compile(r"'(\w+)' has not been declared"),
    re.compile(r"identifier \"(\w+)\" is undefined"),
    re.compile(r"there are no arguments to '(\w+)'"),
)
_OF_STD = re.compile(r"note: 'std::(\w+)' is defined in header")
"""Where a source says `using namespace std`."""
_PYTORCH_NAME = re.compile(
    r"(?:AT|TORCH|C10|PYBIND11|CUDA|THC)_\w+|cu(?:blas|dnn|sparse|solver)\w*"
)
_MACRO = re.compile(r"\b(?:AT|TORCH|C10|PYBIND11|THC)_\w+\b")

_HEADER = re.compile(r"^(In file included from | +from )?(/[^\s:()]*/\.\./[^\s:()]*)", re.MULTILINE)
"""A header whose name GCC or nvcc put together from where they look: `/x/bin/../include/y.h`."""
_GIVEN = frozenset({"TORCH_EXTENSION_NAME"})
"""Macros that the command line defines, over either headers."""


@cache
def _our_macros() -> frozenset[str]:
    return headers.macros() | _GIVEN


def needs_full_headers(log: str) -> bool:
    """Whether the first error may come from what the light headers lack or do otherwise.

    It may when it lies in a header of ours or of PyTorch's, or names a type or namespace that ours
    stand in for, a macro or header that ours lack, or something missing in `std`, which PyTorch's
    headers may have brought along.
    """
    lines = log.splitlines()
    for number, line in enumerate(lines):
        match = _GCC.match(line) or _NVCC.match(line)
        if match is None:
            continue
        if "/refinery/" in match["file"] or "/torch/" in match["file"]:
            return True
        text = match["text"]
        # nvcc and gcc quote the line after the message.
        quoted = " ".join(lines[number + 1 : number + 3])
        if _OUR_NAMES.search(text) or _PYTORCH_HEADER.search(text) or _NVCC_MISSING.search(text):
            return True
        found = (pattern.search(text) for pattern in _UNKNOWN)
        unknown = {name[1] for name in found if name}
        if any(map(_PYTORCH_NAME.fullmatch, unknown)) or unknown & set(_OF_STD.findall(log)):
            return True
        return any(macro not in _our_macros() for macro in _MACRO.findall(quoted))
    return False


def readable(log: str, folder: Path, header_folder: Path | None = None) -> str:
    """The log as the candidate's author should see it: their names, no paths of ours, 64 KiB."""
    log = log.replace(f"{folder}/", "")
    if header_folder is not None:
        log = log.replace(f"{header_folder}/", "")
    log = log.replace("refinery_::", "")
    # The temporary folder that nvcc puts in messages of its stages.
    log = re.sub(r"\btmp/tmpxft_\w+-\w+_", "", log)
    log = _HEADER.sub(lambda found: (found[1] or "") + os.path.normpath(found[2]), log)
    raw = log.encode()
    if len(raw) <= MAX_LOG_BYTES:
        return log
    return raw[:MAX_LOG_BYTES].decode(errors="ignore") + "\n[the rest is cut off]\n"
