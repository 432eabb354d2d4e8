from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.ipc.failure import Failure
from evaluator.ipc.reply import DTYPES, OutputLayout, Reply, Sources
from evaluator.ipc.wire import Channel, ClosedError, Kind, WireError, WireTimeoutError, pair


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_messages_arrive_whole_and_in_order():
    mine, theirs = pair()
    other = Channel(theirs)
    other.send(Kind.DONE, b"abc")
    other.send(Kind.RETURNED)
    first, second = mine.receive(1.0), mine.receive(1.0)
    assert (first.kind, first.payload) == (Kind.DONE, b"abc")
    assert (second.kind, second.payload) == (Kind.RETURNED, b"")
    mine.close()
    other.close()


def test_who_has_hung_up_hears_of_it():
    mine, theirs = pair()
    mine.close()
    assert mine.ready(1.0)
    with pytest.raises(ClosedError):
        mine.send(Kind.DONE)
    with pytest.raises(ClosedError):
        mine.receive(1.0)
    theirs.close()


def test_descriptors_reach_only_who_takes_them(tmp_path):
    taker, theirs = pair(takes_fds=True)
    sender = Channel(theirs)
    with (tmp_path / "file").open("w") as file:
        sender.send(Kind.BUILT, b"x", (file.fileno(),))
    message = taker.receive(1.0)
    assert len(message.fds) == 1
    os.close(message.fds[0])
    refuser, theirs2 = pair()
    before = _descriptors()
    with (tmp_path / "file").open("w") as file:
        Channel(theirs2).send(Kind.DONE, b"x", (file.fileno(),))
    assert refuser.receive(1.0).fds == ()
    assert _descriptors() == before
    for end in (taker, sender, refuser):
        end.close()
    theirs2.close()


@pytest.mark.parametrize(
    "data",
    [
        b"garbage that is long enough",
        struct.pack("<4sII", b"KRf1", 999, 0),
        struct.pack("<4sII", b"KRf1", Kind.DONE, 2**30),
        struct.pack("<4sII", b"KRf1", Kind.RETURNED, 1),
    ],
)
def test_what_is_no_message_is_refused(data):
    mine, theirs = pair()
    theirs.sendall(data)
    with pytest.raises(WireError):
        mine.receive(1.0)
    mine.close()
    theirs.close()


def test_silence_and_absence_are_told_apart():
    mine, theirs = pair()
    with pytest.raises(WireTimeoutError):
        mine.receive(0.01)
    theirs.close()
    with pytest.raises(ClosedError):
        mine.receive(1.0)
    with pytest.raises(ClosedError):
        for _ in range(10):
            mine.send(Kind.GO, b"x" * 65536)
    mine.close()


def test_a_slow_sender_does_not_stretch_the_deadline():
    mine, theirs = socket.socketpair()
    channel = Channel(mine)
    theirs.sendall(b"KRf1")
    with pytest.raises(WireTimeoutError):
        channel.receive(0.05)
    channel.close()
    theirs.close()


layouts = st.builds(
    lambda dtype, sizes, place: OutputLayout(
        dtype, tuple(shape for shape, _ in sizes), tuple(stride for _, stride in sizes), place
    ),
    st.sampled_from(DTYPES),
    st.lists(st.tuples(st.integers(0, 2**6), st.integers(0, 2**40)), max_size=8),
    st.integers(0, 2**60),
)
sources = st.builds(
    Sources,
    st.lists(layouts, min_size=1, max_size=10).map(tuple),
    st.tuples(st.integers(0, 2**60), st.integers(0, 2**60)),
)
replies = st.builds(
    Reply,
    st.lists(layouts, max_size=10).map(tuple),
    st.floats(0, 1e11),
    st.floats(0, 1e11),
    st.none() | sources,
)


@given(replies)
def test_a_reply_survives_its_bytes(reply):
    assert Reply.decode(reply.encode()) == reply


@pytest.mark.parametrize("shape", [(2**48,) * 8, (2**48, 2**48, 0), (2**25, 2**25), ()])
def test_no_output_is_larger_than_any_memory_or_lies_at_its_end(shape):
    reply = Reply((OutputLayout("float32", shape, (0,) * len(shape), 0 if shape else 2**64 - 4),))
    with pytest.raises(ValueError, match="shape"):
        Reply.decode(reply.encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_a_reply_or_a_value_error(data):
    try:
        Reply.decode(data)
    except ValueError:
        return


@given(st.text(max_size=50), st.text(max_size=40000), st.text(max_size=40000))
def test_a_failure_fits_its_message_however_long_its_texts(error, summary, trace):
    failure = Failure("call", error, summary, trace)
    data = failure.encode()
    assert len(data) <= 65536
    again = Failure.decode(data)
    assert again.phase == "call"
    if len(summary.encode(errors="replace")) < 16000:
        assert again.summary == summary.encode(errors="replace").decode()
