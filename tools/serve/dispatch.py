"""Has waiting candidates judged, as many at a time as keep the executor busy."""

from __future__ import annotations

import asyncio
import math
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from evaluator.errors import InfrastructureError
from tools.serve.batch import Batch, Job, Ticket, WaitingLine, one_line

_FIRST_GUESS_S = 5.0
"""What a candidate takes, until one was judged."""
_LONGEST_WAIT_S = 600
_STOPPED = {"error": "the server is stopping and did not judge this candidate; send it again"}


class StoppingError(Exception):
    """Nothing is taken any more."""


class Dispatch:
    """Lives in one event loop and evaluates in threads. Each candidate that was taken is answered
    once, unless its batch is dropped before it began."""

    def __init__(self, *, width: int, room: int) -> None:
        """`width` candidates are under way at a time, and at most `room` wait, or answers that
        nobody has read yet."""
        self.room = room
        self.answered = 0
        """Verdicts so far."""
        self.failed = 0
        """Infrastructure failures so far."""
        self.stopping = False
        self._width = width
        self._line = WaitingLine()
        self._batches: set[Batch] = set()
        self._pool = ThreadPoolExecutor(width, thread_name_prefix="judging")
        self._under_way: dict[asyncio.Future[tuple[bool, bytes]], Ticket] = {}
        self._usual_s = _FIRST_GUESS_S

    @property
    def waiting(self) -> int:
        return len(self._line)

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def admit(self, batch: Batch, jobs: Sequence[Job]) -> int | None:
        """Take all of them (None), or none: then in how many seconds there may be room, a guess.
        Raises `StoppingError`."""
        if self.stopping:
            raise StoppingError
        unread = sum(each.answers.qsize() for each in self._batches)
        over = len(self._line) + unread + len(jobs) - self.room
        if over > 0:
            seconds = math.ceil(over * self._usual_s / self._width)
            return min(max(seconds, 1), _LONGEST_WAIT_S)
        self._batches.add(batch)
        self._line.add([Ticket(batch, index, each) for index, each in enumerate(jobs)])
        self._begin()
        return None

    def drop(self, batch: Batch) -> None:
        """The client has gone: what has not begun never will. What is under way
        is finished, and its answer is not read."""
        self._batches.discard(batch)
        self._line.drop(batch)

    async def stop(self, limit_s: float) -> bool:
        """Take nothing more, answer those that wait with an error, and let those under way finish.
        Returns whether they did within `limit_s`; those that did not are answered as well."""
        self.stopping = True
        while (ticket := self._line.take()) is not None:
            ticket.batch.answers.put_nowait(ticket.line(_STOPPED))
        if not self._under_way:
            self._pool.shutdown()
            return True
        _, late = await asyncio.wait(list(self._under_way), timeout=limit_s)
        for answer in late:
            begun = self._under_way[answer]
            begun.batch.answers.put_nowait(begun.line(_STOPPED))
        self._pool.shutdown(wait=not late)
        return not late

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self._under_way) < self._width and (ticket := self._line.take()) is not None:
            answer = loop.run_in_executor(self._pool, self._answer, ticket)
            self._under_way[answer] = ticket
            answer.add_done_callback(partial(self._end, loop.time()))

    def _end(self, began_s: float, answer: asyncio.Future[tuple[bool, bytes]]) -> None:
        judged, line = answer.result()
        self._under_way.pop(answer).batch.answers.put_nowait(line)
        taken_s = asyncio.get_running_loop().time() - began_s
        self._usual_s += 0.1 * (taken_s - self._usual_s)
        self.answered += judged
        self.failed += not judged
        self._begin()

    def _answer(self, ticket: Ticket) -> tuple[bool, bytes]:
        try:
            return True, ticket.line(ticket.job.answer())
        except InfrastructureError as error:
            text = one_line(f"{type(error).__name__}: {error}")
            _record(f"a candidate for {one_line(ticket.job.problem)}: {text}\n")
        except Exception as error:  # noqa: BLE001 - the boundary of a request, which records
            text = f"{type(error).__name__} in the server, which has recorded it"
            _record(traceback.format_exc())
        return False, ticket.line({"error": text})


def _record(text: str) -> None:
    with suppress(OSError):  # stderr may be closed
        sys.stderr.write(text)
        sys.stderr.flush()
