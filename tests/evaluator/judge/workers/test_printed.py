"""What a worker prints: all of it is taken, the end is kept."""

from __future__ import annotations

import gc
import os
import select
import sys
import threading

from evaluator.judge.workers.printed import Printed


def test_the_end_is_kept():
    printed = Printed()
    os.write(printed.for_worker, b"first\n" + b"x" * 100_000 + b"\nlast\n")
    printed.give_away()
    text = printed.close()
    assert text.endswith("\nlast\n") and "first" not in text and len(text) == 16384


def test_somebody_who_goes_on_printing_is_left_behind():
    printed = Printed()
    other = os.dup(printed.for_worker)
    printed.give_away()

    def babble() -> None:
        try:
            while True:
                os.write(other, b"x" * 4096)
        except BrokenPipeError:
            os.close(other)

    thread = threading.Thread(target=babble)
    thread.start()
    assert set(printed.close()) <= {"x"}
    thread.join(10.0)
    assert not thread.is_alive()


def test_many_small_pieces_take_no_more_than_their_bytes():
    printed = Printed(2**20)
    for _ in range(5000):
        os.write(printed.for_worker, b"ab")
        # Each is read by itself.
        while select.select([printed._pipe], [], [], 0)[0]:
            pass
    held = sum(map(sys.getsizeof, gc.get_referents(printed._kept))) + sys.getsizeof(printed._kept)
    printed.give_away()
    assert printed.close() == "ab" * 5000 and not printed.cut
    assert held < 50_000


def test_whether_something_is_missing_is_known():
    for size, cut in ((100, False), (101, True)):
        printed = Printed(100)
        os.write(printed.for_worker, b"x" * size)
        printed.give_away()
        assert len(printed.close()) == 100 and printed.cut is cut
