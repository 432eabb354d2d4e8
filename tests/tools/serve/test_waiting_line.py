from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tools.serve.batch import Batch, Job, Ticket, WaitingLine

JOB = Job("test", dict)


def tickets(batch: Batch, count: int) -> list[Ticket]:
    return [Ticket(batch, index, JOB) for index in range(count)]


def taken(line: WaitingLine) -> list[tuple[Batch, int]]:
    found = []
    while (ticket := line.take()) is not None:
        found.append((ticket.batch, ticket.index))
    return found


def test_clients_take_turns() -> None:
    line, large, small = WaitingLine(), Batch(), Batch()
    line.add(tickets(large, 4))
    line.add(tickets(small, 2))
    assert taken(line) == [(large, 0), (small, 0), (large, 1), (small, 1), (large, 2), (large, 3)]


def test_batches_of_one_name_share_their_turns() -> None:
    line, first, second, other = WaitingLine(), Batch("a"), Batch("a"), Batch("b")
    for batch in (first, second):
        line.add(tickets(batch, 2))
    line.add(tickets(other, 2))
    assert [batch for batch, _ in taken(line)] == [first, other, first, other, second, second]


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(1, 5)), max_size=8))
def test_each_is_taken_once_or_dropped(batches: list[tuple[str, int]]) -> None:
    line, added = WaitingLine(), []
    for client, count in batches:
        added.append(Batch(client))
        line.add(tickets(added[-1], count))
    assert len(line) == sum(count for _, count in batches)
    dropped = added[::2]
    for batch in dropped:
        line.drop(batch)
    expected = {
        (batch, index)
        for batch, (_, count) in zip(added, batches, strict=True)
        for index in range(count)
        if batch not in dropped
    }
    found = taken(line)
    assert len(found) == len(expected) and set(found) == expected
    assert len(line) == 0 and line.take() is None
