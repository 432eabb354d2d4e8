"""A pool in a process that may import Ray: `python -m tests.evaluator.executor.actor_pool_at_work`.

It reaches the cluster at ADDRESS, and lends judges to as many as keep them busy.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack

import ray

from evaluator.executor.actor_pool import ActorPool


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
    lends()
    print("done", flush=True)
    os._exit(0)
