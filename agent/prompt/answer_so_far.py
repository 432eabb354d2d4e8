"""The kernel in an answer that is still being written."""

from __future__ import annotations

from collections.abc import Callable

from agent.prompt.answer import extract

_MARKS = ("```", "~~~")


class AnswerSoFar:
    """Hands on the kernel of an answer as soon as its block is closed.

    Each time the text has a new fence, what stands before it is read as a whole answer is. A later
    block may replace the kernel, which then is handed on as well.
    """

    def __init__(self, take: Callable[[str], None]) -> None:
        """`take` is given the source of each kernel, once."""
        self._take = take
        self._read = 0
        self._taken: set[str] = set()

    def __call__(self, text: str) -> None:
        """Look at `text`, all that there is of the answer."""
        end = max(text.rfind(mark) for mark in _MARKS) + len(_MARKS[0])
        if end == self._read:
            return
        self._read = end
        fence = text[:end].rpartition("\n")[2]
        if fence.strip(" \t`~"):  # marks in the midst of a line
            return
        source = extract(text[:end], "stop").source
        if source is not None and source not in self._taken:
            self._taken.add(source)
            self._take(source)
