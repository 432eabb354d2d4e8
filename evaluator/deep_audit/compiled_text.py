"""The sources of a candidate as its compilers got them, whose lines a sanitizer names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evaluator.audit_record import Finding
from evaluator.builder.sources import BadRequestError, arrange
from evaluator.ipc.build_request import BuildRequest

_AROUND = 2
_MOST_WIDTH = 200
_MOST_PLACES = 6
_PLACE = re.compile(r"(?P<file>[\w./+-]+\.(?:cpp|cc|cxx|c|cu|cuh|h|hpp)):(?P<line>\d+)")

Texts = tuple[tuple[str, str], ...]
"""File name and content; two extensions of one candidate may have files of one name."""


def compiled_texts(requests: Iterable[BuildRequest]) -> Texts:
    found: dict[tuple[str, str], None] = {}
    for request in requests:
        try:
            sources = arrange(request)
        except BadRequestError:
            continue
        files = [(unit.name, unit.content) for unit in sources.units]
        found |= dict.fromkeys((*files, *sources.others))
    return tuple(found)


def with_lines(finding: Finding, texts: Texts) -> Finding:
    """The finding with the lines that it names, and two on either side of each.

    A file that several texts could be is left out.
    """
    named = " ".join([finding.place, *finding.frames, finding.text])
    lines: dict[str, str] = {}
    for match in list(_PLACE.finditer(named))[:_MOST_PLACES]:
        number = int(match["line"])
        rows = _rows(texts, match["file"], number, finding.frames)
        for each in range(max(1, number - _AROUND), min(len(rows), number + _AROUND) + 1):
            lines.setdefault(f"{match['file']}:{each}", rows[each - 1][:_MOST_WIDTH])
    return finding.model_copy(update={"lines": lines})


def _rows(texts: Texts, file: str, number: int, frames: Sequence[str]) -> list[str]:
    own = [text.splitlines() for name, text in texts if _base(name) == _base(file)]
    own = [rows for rows in own if number <= len(rows)]
    if len(own) > 1:
        # The function that it happened in must be there.
        names = [re.split(r"[<(: ]", frame)[0] for frame in frames[:1]]
        own = [rows for rows in own if all(any(n in row for row in rows) for n in names)]
    return own[0] if len(own) == 1 else []


def _base(name: str) -> str:
    return name.rpartition("/")[2]
