"""The kernel in an answer that is still being written."""

from __future__ import annotations

from collections.abc import Callable

from agent.prompt.answer import extract

_MARKS = ("```", "~~~")
_MOST_LOOKS = 32
"""At fences of one answer. Each reads the whole text, and some models repeat themselves."""
_MOST_KERNELS = 4
"""Of one answer: each takes a builder from others, and only the last one is judged."""


class AnswerSoFar:
    """Hands on the kernel of an answer as soon as its block is closed.

    Each time the text has a new fence, what stands before it is read as a whole answer is. A later
    block may replace the kernel, which then is handed on as well. Of an answer with very many
    fences or kernels only the first ones are.
    """

    def __init__(self, take: Callable[[str], None]) -> None:
        """`take` is given the source of each kernel, once."""
        self._take = take
        self._read = 0
        self._looks = 0
        self._taken: set[str] = set()

    def __call__(self, text: str) -> None:
        """Look at `text`, all that there is of the answer."""
        if self._looks == _MOST_LOOKS or len(self._taken) == _MOST_KERNELS:
            return
        end = max(text.rfind(mark) for mark in _MARKS) + len(_MARKS[0])
        if end == self._read:
            return
        self._read = end
        fence = text[:end].rpartition("\n")[2]
        if fence.strip(" \t`~"):  # marks in the midst of a line
            return
        self._looks += 1
        source = extract(text[:end], "stop").source
        if source is not None and source not in self._taken:
            self._taken.add(source)
            self._take(source)
