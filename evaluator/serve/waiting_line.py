"""The candidates that wait for a judge: clients take turns."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.serve.batch_request import one_line


@dataclass(eq=False)
class Batch:
    """Candidates of one request over HTTP, and the lines that answer them as they come."""

    client: str = ""
    answers: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    """Lines of JSON. Each ticket of the batch leads to one, unless the batch was dropped."""

    @property
    def owner(self) -> object:
        return self.client or self


@dataclass(frozen=True, eq=False)
class Ticket:
    batch: Batch
    index: int
    """In the batch."""
    request: EvaluationRequest

    def verdict(self, evaluation: Evaluation) -> bytes:
        json_values = evaluation.model_dump(mode="json", by_alias=True)
        return _line({"index": self.index, "evaluation": json_values})

    def failure(self, text: str) -> bytes:
        return _line({"index": self.index, "error": one_line(text)})


def _line(answer: dict[str, object]) -> bytes:
    return json.dumps(answer).encode() + b"\n"


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

    def clear(self) -> list[Ticket]:
        left = [ticket for tickets in self._clients.values() for ticket in tickets]
        self._clients.clear()
        return left
