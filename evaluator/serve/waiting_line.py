"""The candidates that wait, of which each client's take turns with the others'."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from evaluator.serve.ticket import Batch, Ticket


class WaitingLine:
    """First come, first served within a client; between clients one candidate each in turn.

    A new client stands at the end of the round, so it waits for at most one candidate of each
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
        """The next one, which waits no longer; None where nobody waits."""
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
