"""A pool in a process that may import Ray: `python -m tests.evaluator.executor.actor_pool_at_work`.

It reaches the cluster at ADDRESS, and says what came of the case that it is given.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import ray
from ray.exceptions import RaySystemError

from evaluator.executor.actor_pool import ActorPool
from tests.waiting import once


@contextmanager
def nodes_unknown() -> Iterator[Callable[[], int]]:
    """Ray can't say for a while which nodes there are; how often it was asked."""
    nodes, asked = ray.nodes, []

    def refuse():
        asked.append(1)
        raise RaySystemError("the head did not answer")

    ray.nodes = refuse
    try:
        yield lambda: len(asked)
    finally:
        ray.nodes = nodes


def loses_sight() -> None:
    pool = ActorPool("cpu")
    with nodes_unknown() as asked:
        once(lambda: asked() >= 3, why=lambda: "it does not go on looking")
    with pool.lent([]) as judge:
        pool.evict(judge)
    once(lambda: pool.size == 0)
    once(lambda: pool.size == 1)


def lends() -> None:
    pool = ActorPool("cuda:0")
    print("width", pool.place.width, flush=True)
    with ExitStack() as lent:
        for _ in range(pool.place.width):
            lent.enter_context(pool.lent([]))
        entered = threading.Event()

        def enter() -> None:
            with pool.lent([]):
                entered.set()

        another = threading.Thread(target=enter)
        another.start()
        assert not entered.wait(0.5), "no more than keep it busy"
    assert entered.wait(30.0)
    another.join()


if __name__ == "__main__":
    ray.init(sys.argv[1], namespace="kernel-refinery", log_to_driver=False)
    {"loses_sight": loses_sight, "lends": lends}[sys.argv[2]]()
    print("done", flush=True)
    os._exit(0)
