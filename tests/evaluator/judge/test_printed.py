"""What a worker prints: all of it is taken, the end is kept."""

from __future__ import annotations

import os
import threading

from evaluator.judge.printed import Printed


def test_the_end_is_kept():
    printed = Printed()
    os.write(printed.for_worker, b"first\n" + b"x" * 100_000 + b"\nlast\n")
    printed.give_away()
    text = printed.close()
    assert text.endswith("\nlast\n") and "first" not in text and len(text) == 16384


def test_nothing_printed():
    printed = Printed()
    printed.give_away()
    assert printed.close() == ""


def test_a_flood_does_not_block():
    printed = Printed()
    for _ in range(64):
        os.write(printed.for_worker, b"x" * 2**20)
    printed.give_away()
    assert len(printed.close()) == 16384


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
