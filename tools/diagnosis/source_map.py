"""Finds what a compiler quotes again in the candidate's Python file.

A compiler numbers the lines of the C++ or CUDA text that it was given, which is a string in the
candidate's file with a header in front of it. A model can act on the lines of its own file.
"""

from __future__ import annotations

import re
from collections import Counter

from tools.diagnosis.inline_layout import inline_layout

_CANDIDATE = "candidate.py"
"""Triton names lines of the candidate's own file."""
# nvcc quotes `__global__ void k()` as the host compiler sees it: rewritten, or left out.
_SPACES = "device|global|host|shared|constant"
_ATTRIBUTE = re.compile(rf"__attribute__\(\((?:{_SPACES})\)\)|__(?:{_SPACES})__")


class SourceMap:
    """Maps lines of compiled files to lines of the candidate's file, both counted from 1."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines()
        self._places: dict[str, list[int]] = {}
        for number, line in enumerate(self._lines, 1):
            if text := _bare(line):
                self._places.setdefault(text, []).append(number)
        self._offsets: dict[str, Counter[int]] = {}
        self._layout = inline_layout(source)

    def learn(self, file: str, line: int, quoted: str) -> None:
        """Take note that the compiler quoted `quoted` as line `line` of `file`."""
        for number in self._places.get(_bare(quoted), ()):
            self._offsets.setdefault(file, Counter())[number - line] += 1

    def locate(self, file: str, line: int, quoted: str = "") -> int | None:
        """The candidate's line, or None where the text was not found in it."""
        if file.rpartition("/")[2] == _CANDIDATE:
            return line if self.line(line) else None
        places = self._places.get(_bare(quoted), []) if quoted else []
        laid = self._layout.get(file, {}).get(line)
        if laid is not None and (not places or laid in places):
            return laid
        if quoted and not places:
            return None
        ranking = self._offsets.get(file, Counter()).most_common()
        for offset, _ in ranking:
            if (places and line + offset in places) or (not places and self.line(line + offset)):
                return line + offset
        return places[0] if len(places) == 1 else None

    def naming(self, name: str) -> list[int]:
        """The lines in which a name stands as a word, of what was compiled where that is known."""
        pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        compiled = {number for lines in self._layout.values() for number in lines.values()}
        numbers = sorted(compiled) or range(1, len(self._lines) + 1)
        return [number for number in numbers if pattern.search(self.line(number))]

    def line(self, number: int) -> str:
        """The text of a line; empty outside of the file."""
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def excerpt(self, number: int, around: int = 0) -> list[str]:
        """The line with its number, marked, and `around` lines on either side."""
        first, last = max(1, number - around), min(len(self._lines), number + around)
        return [
            f"{'>' if n == number else ' '} {n:4d} | {self.line(n)[:160]}"
            for n in range(first, last + 1)
        ]


def _bare(line: str) -> str:
    return "".join(_ATTRIBUTE.sub("", line).split())
