"""Candidates that a client posts in one request, and how they wait for a judge."""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated

from pydantic import Field, ValidationError

from evaluator.record import Record

_MOST_NAME = 200
"""Characters of a name. A misspelt one is compared with all that there are."""
_MOST_WORDS = 300
_MOST_PROBLEMS = 16
_MOST_PROBLEM = 2**17
"""Characters of a problem that a client sends."""
_PART = re.compile(rb'"(?:\\.|[^"\\]++)*+"?|\S', re.DOTALL)
"""Of JSON: a whole string, or a character between strings."""


class MalformedError(Exception):
    """A client sent what is no request; its text is one line that says where and why."""

    status = 400


class OversizeError(MalformedError):
    status = 413


class CandidateRequest(Record):
    problem: Annotated[str, Field(max_length=_MOST_NAME)]
    """A name in `problems`, else an id or alias of the suite, never a file."""
    source: Annotated[str, Field(max_length=2**20)]
    """It waits in memory."""


class BatchRequest(Record):
    candidates: Annotated[tuple[CandidateRequest, ...], Field(min_length=1)]
    problems: Annotated[
        dict[
            Annotated[str, Field(min_length=1, max_length=_MOST_NAME)],
            Annotated[str, Field(max_length=_MOST_PROBLEM)],
        ],
        Field(default_factory=dict, max_length=_MOST_PROBLEMS),
    ]
    """The client's own, by names that it gives them: their sources."""
    client: Annotated[str, Field(max_length=_MOST_NAME)] = ""
    """Batches of one name share that client's turns. Empty: a client of its own."""


def read_batch(body: bytes, room: int) -> BatchRequest:
    """Raises `MalformedError` for what never fits, is no JSON, or has other fields or types."""
    # Nine parts, ten a candidate, and four a problem. Parsed, each may become a hundred times as
    # large.
    sent = 5 + 4 * _MOST_PROBLEMS if b'"problems"' in body else 0
    over = OversizeError(f"too many candidates, or parts of one: at most {room} may wait")
    if any(islice(_PART.finditer(body), 9 + 10 * room + sent, None)):
        raise over
    try:
        batch = BatchRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MalformedError(one_line(f"{where}: {first['msg']}" if where else first["msg"])) from (
            None
        )
    if len(batch.candidates) > room:
        raise over
    return batch


def one_line(text: str) -> str:
    words = " ".join(text[: 30 * _MOST_WORDS].split())[:_MOST_WORDS]
    return "".join(each if each.isprintable() else "?" for each in words)


@dataclass(eq=False)
class Batch:
    """Candidates of one request over HTTP, and the lines that answer them as they come."""

    client: str = ""
    answers: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    """Lines of JSON. Each ticket of the batch leads to one, unless the batch was dropped."""

    @property
    def owner(self) -> object:
        return self.client or self


@dataclass(frozen=True)
class Job:
    """A candidate that can be judged now."""

    problem: str
    answer: Callable[[], Mapping[str, object]]
    """The fields of its answer. Raises `InfrastructureError`."""


@dataclass(frozen=True, eq=False)
class Ticket:
    batch: Batch
    index: int
    job: Job

    def line(self, answer: Mapping[str, object]) -> bytes:
        return json.dumps({"index": self.index} | dict(answer)).encode() + b"\n"


class WaitingLine:
    """First come, first served within a client; between clients one candidate each in turn.

    A new client comes last in the round, so it waits for at most one candidate of each
    other client. Not safe for several threads.
    """

    def __init__(self) -> None:
        self._clients: OrderedDict[object, deque[Ticket]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._clients.values()))

    def add(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            self._clients.setdefault(ticket.batch.owner, deque()).append(ticket)

    def take(self) -> Ticket | None:
        if not self._clients:
            return None
        owner, tickets = self._clients.popitem(last=False)
        ticket = tickets.popleft()
        if tickets:
            self._clients[owner] = tickets
        return ticket

    def drop(self, batch: Batch) -> None:
        kept = deque(each for each in self._clients.get(batch.owner, ()) if each.batch is not batch)
        if kept:
            self._clients[batch.owner] = kept
        else:
            self._clients.pop(batch.owner, None)
