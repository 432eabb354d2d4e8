import os
import signal
import subprocess
import sys
import threading

from agent.job import FIRST, two_stage_interrupt
from tests.waiting import once

STUBBORN = """
import sys, threading, time
from agent.job import two_stage_interrupt
stop = threading.Event()
def say(text="bye"):
    print(text, flush=True)
with two_stage_interrupt(stop, say, at_once=say):
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
"""


def test_the_second_ctrl_c_ends_what_will_not_drain() -> None:
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == FIRST + "\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "bye\n"
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.stdout.close()


def test_the_first_ctrl_c_sets_the_event_and_the_old_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    stop, said = threading.Event(), list[str]()
    with two_stage_interrupt(stop, said.append, at_once=lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(5)
    assert once(lambda: said) == [FIRST]
    assert signal.getsignal(signal.SIGINT) is before


def test_in_a_thread_nothing_is_changed() -> None:
    before, seen = signal.getsignal(signal.SIGINT), list[object]()

    def work() -> None:
        with two_stage_interrupt(threading.Event(), print, at_once=lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
