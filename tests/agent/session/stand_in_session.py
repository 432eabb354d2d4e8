"""A session over stand-ins: its kernels are judged by their text."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agent.loop.drive import begin
from agent.loop.judging import Judging
from agent.record.store import open_store
from agent.session.session import NOTHING_SENT, Session
from evaluator.evaluation import Status
from tests.agent.stand_in import PLACE, number, verdict_on
from tests.agent.world import World


@contextmanager
def session_in(
    folder: Path,
    world: World | None = None,
    clock: Callable[[], float] = time.monotonic,
    **settings: object,
) -> Iterator[Session]:
    """The same command, whatever happened before."""
    world = world or World(folder)
    asked: dict[str, object] = {"strategy": "agent", "model": "agent/test", "budget_profiles": 2}
    config = world.config(**{**asked, **settings})
    with open_store(config) as store:
        problems = [world.problem(name) for name in config.problems]
        judging = Judging(world.executor, world.profiler, PLACE)
        begun = begin(config, problems, NOTHING_SENT, judging, store, world.listener, world.stop)
        yield Session([replace(deps, clock=clock) for deps in begun])


def kernels(status: Status, *, profiled: bool = True) -> Iterator[str]:
    """Sources that the stand-in finds so, and that can be profiled or not."""
    for version in range(1000):
        source = f"# plan: version {version}\nclass ModelNew:\n    n = {version}\n"
        can_be = number(source, 99) % 3 != 0
        if verdict_on(source).status is status and can_be == profiled:
            yield source
