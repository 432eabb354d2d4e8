"""Runs a job many times over and kills it with SIGKILL, each time somewhere else, then resumes it.

`python -m tests.agent.crash_lab FOLDER` imports everything once and forks a child for each run, so
that a hundred kills take seconds. Each experiment leaves `FOLDER/<name>/run` and a diary beside it;
`FOLDER/undisturbed` is the run that nothing happened to.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import agent.record.durable
from agent.record.events import Event
from tests.agent.stand_in import SOUND_KERNEL, Diary, Listener, StandInProfiler
from tests.agent.world import World

RANDOM_KILLS = 10
BUDGET = 3
SAMPLE = {"strategy": "sample", "budget": 6, "workers": 4, "problems": ("first",)}
HYBRID = {
    "strategy": "hybrid",
    "drafts": 3,
    "refine_best": 2,
    "budget": 7,
    "problems": ("first",),
}


def run_job(folder: Path, listener: Listener | None = None, **settings: object) -> None:
    """The same command, whatever happened before. `repeating`: always with the same kernel."""
    world = World(folder)
    world.listener = listener or world.listener
    world.client.delay_s = world.executor.delay_s = 0.002
    world.profiler = StandInProfiler(world.diary, delay_s=0.002)
    if settings.pop("repeating", False):
        world.client.answer = lambda _: SOUND_KERNEL
    world.run(**{"budget": BUDGET, **settings})


def forked(work: Callable[[], None]) -> int:
    """The pid of a child that does `work`."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            if code:
                import traceback

                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
    return child


def in_child(work: Callable[[], None], kill_after_s: float | None = None) -> int:
    """Do `work` in a forked child; its exit status, negative for the signal that ended it."""
    child = forked(work)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(child, signal.SIGKILL)
    return ended_with(child)


def ended_with(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at_event(folder: Path, index: int, **settings: object) -> int:
    """Die when the event of that index is told: at the borders of the nodes."""

    def at(seen: int, _: Event) -> None:
        if seen == index:
            die()

    return in_child(lambda: run_job(folder, Listener(at), **settings))


def killed_at_write(folder: Path, index: int, **settings: object) -> int:
    """Die at the write of that index: when a text has reached the disk, before a line is appended,
    or when a file is whole but not in its place."""

    def work() -> None:
        written, sync = 0, os.fsync
        durable = agent.record.durable
        append_line, put_in_place = durable.append_line, durable.put_in_place

        def count() -> None:
            nonlocal written
            if written == index:
                die()
            written += 1

        def counting_sync(handle: int) -> None:
            sync(handle)
            count()

        def counting_put(temporary: Path, path: Path) -> None:
            count()
            put_in_place(temporary, path)

        def counting_append(path: Path, line: str, *, wait: bool) -> int:
            count()
            return append_line(path, line, wait=wait)

        agent.record.durable.os.fsync = counting_sync  # type: ignore[assignment]
        agent.record.durable.put_in_place = counting_put
        agent.record.durable.append_line = counting_append
        run_job(folder, **settings)

    return in_child(work)


def killed_in(folder: Path, what: str, index: int, **settings: object) -> int:
    """Die in the middle of the call, early build, evaluation or profile of that index."""

    def work() -> None:
        begun, write = 0, Diary.write

        def counting(self: Diary, *words: object) -> None:
            nonlocal begun
            write(self, *words)
            if words[:2] == ("begin", what):
                if begun == index:
                    die()
                begun += 1

        Diary.write = counting  # type: ignore[method-assign]
        run_job(folder, **settings)

    return in_child(work)


def fresh(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def expect(code: int, wanted: int, folder: Path) -> None:
    if code != wanted:
        raise SystemExit(f"{folder.name}: ended with {code}, expected {wanted}")


def resume(folder: Path, **settings: object) -> None:
    expect(in_child(lambda: run_job(folder, **settings)), 0, folder)


def until_it_survives(
    folder: Path, name: str, kill: Callable[..., int], **settings: object
) -> None:
    """Kill at index 0, 1, 2, ... until there is nothing left to be killed at; resume each."""
    for index in range(1000):
        place = fresh(folder / f"{name}-{index:03}")
        code = kill(place, index, **settings)
        if code == 0:
            return
        expect(code, -signal.SIGKILL, place)
        resume(place, **settings)
    raise SystemExit(f"{name}: no end")


def main(folder: Path) -> None:
    """All experiments."""
    # This imports and compiles what each child would import and compile else.
    run_job(fresh(folder / "rehearsal"))
    assert threading.active_count() == 1, "a fork would lack the other threads"
    undisturbed = fresh(folder / "undisturbed")
    began = time.monotonic()
    resume(undisturbed)
    took = time.monotonic() - began
    resume(undisturbed)  # a finished run does nothing when it is run again
    # About half of it in a process of its own, since each leaves its processor idle now and then.
    half = forked(lambda: at_every_border(folder))
    repeating: dict[str, object] = {"problems": ("first",), "repeating": True}
    resume(fresh(folder / "undisturbed-deduplication"), **repeating)
    until_it_survives(folder, "deduplication", killed_at_write, **repeating)
    for what in ("model", "build", "judge", "profile"):
        for index in (0, 1):
            place = fresh(folder / f"in-{what}-{index}")
            expect(killed_in(place, what, index), -signal.SIGKILL, place)
            resume(place)
    chance = random.Random(7)
    for index in range(RANDOM_KILLS):
        killed_at_random(fresh(folder / f"random-{index:03}"), chance.uniform(0, took))
    for index in range(3):  # killed again and again, also while it resumes
        place = fresh(folder / f"often-{index:03}")
        killed_at_random(place, *(chance.uniform(0, took / 2) for _ in range(5)))
    for name, settings in (("sample", SAMPLE), ("hybrid", {**HYBRID, "workers": 4})):
        resume(fresh(folder / f"undisturbed-{name}"), **settings)
        for index in range(5):
            place = fresh(folder / f"{name}-{index:03}")
            killed_at_random(place, chance.uniform(0, took), **settings)
    place = fresh(folder / "torn-line")
    expect(killed_at_event(place, 16), -signal.SIGKILL, place)
    turns = place / "run" / "turns.jsonl"
    turns.write_bytes(turns.read_bytes()[:-40])
    resume(place)
    expect(ended_with(half), 0, folder)


def at_every_border(folder: Path) -> None:
    until_it_survives(folder, "event", killed_at_event)
    until_it_survives(folder, "write", killed_at_write, problems=("first",))
    until_it_survives(folder, "hybrid_event", killed_at_event, **HYBRID)


def killed_at_random(place: Path, *after_s: float, **settings: object) -> None:
    """Kill after each of these times, which may be after the end, then resume."""
    for seconds in after_s:
        in_child(lambda: run_job(place, **settings), seconds)
    resume(place, **settings)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
