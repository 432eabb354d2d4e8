"""The judges of a Ray cluster: which are there, which are free, which were lost.

Every node gets as many judges as it has whole GPUs, or one for all its cores where kernels are
judged on the CPU. A lost node takes its judges with it, a node that joins brings its own. This runs
in the driver's process (`evaluator/executor/ray_driver.py`), after `ray.init`.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import ray
from pydantic import ValidationError
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from evaluator.errors import ClusterError, InfrastructureError
from evaluator.executor.ray_judge import Answer, Place, RayJudge

START_S = 60.0
"""How long the judges of a cluster may take to come up."""
PATIENCE_S = 60.0
"""How long a candidate waits for a judge where none is left."""
_LOOK_EVERY_S = 1.0
_REST_S = 20.0
"""How long a node is left alone on which a judge did not come up."""
_MOST_CALLS = 16
"""Of the actor of a GPU at a time: more than the candidates that keep it busy."""


@dataclass(eq=False)
class Judge:
    actor: ActorHandle
    node: str
    number: int
    candidates: int = field(default=0)
    """Those that it works on."""
    width: int = field(default=1)
    """Candidates at a time that keep it busy; known once it has started."""


class ActorPool:
    """Lends judges, each for as many candidates at a time as it can work on."""

    def __init__(self, device: str) -> None:
        """Start a judge on each node. `device` is `cpu` or `cuda:0`.

        Raises `ClusterError` where none comes up, or two are not alike.
        """
        self._device = device
        self._ready: list[Judge] = []
        self._starting: dict[ray.ObjectRef, Judge] = {}
        self._rest_until: dict[str, float] = {}
        self._numbers = itertools.count()
        self._warned: set[str] = set()
        """Nodes with a reported fault that lasts; "" is the cluster."""
        self._why_not = ""
        """Why the last judge that failed to start did not."""
        self._change = threading.Condition()
        self.place = self._first_judges()
        threading.Thread(target=self._watch, daemon=True, name="pool").start()

    @property
    def size(self) -> int:
        with self._change:
            return len(self._ready)

    @contextmanager
    def lent(self, tried: Collection[Judge]) -> Iterator[Judge]:
        """A judge with room for one more candidate, another than those in `tried` if there is one.

        Raises `ClusterError` where no judge has been left for `PATIENCE_S`.
        """
        judge = self._lend(tried)
        try:
            yield judge
        finally:
            with self._change:
                judge.candidates -= 1
                self._change.notify_all()

    def evict(self, judge: Judge) -> None:
        with self._change:
            if judge in self._ready:
                self._ready.remove(judge)
        # It may be out of reach rather than gone, and hold its GPU.
        ray.kill(judge.actor)

    def _lend(self, tried: Collection[Judge]) -> Judge:
        last_seen = time.monotonic()
        with self._change:
            while True:
                free = [judge for judge in self._ready if judge.candidates < judge.width]
                if free:
                    judge = min(free, key=lambda one: (one in tried, one.candidates))
                    judge.candidates += 1
                    return judge
                if self._ready:
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > PATIENCE_S:
                    raise ClusterError(
                        f"no judge is left in the Ray cluster, and none came up in {PATIENCE_S:g} s"
                    )
                self._change.wait(_LOOK_EVERY_S)

    def _first_judges(self) -> Place:
        found: list[Place] = []
        end = time.monotonic() + START_S
        self._start_missing()
        while self._starting and time.monotonic() < end:
            for judge, place in self._started():
                found.append(place)
                if words := place.difference(found[0]):
                    raise ClusterError(
                        f"the judges of this cluster are not alike ({words}), so their figures"
                        " can't be compared; start Ray only on nodes that are"
                    )
                self._ready.append(judge)
        if not found:
            wanted = "all its CPUs free" if self._device == "cpu" else "a whole GPU free"
            why = self._why_not or f"no node has {wanted}"
            raise ClusterError(f"no judge came up ({_offered()} in the cluster): {why}")
        return found[0]

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_EVERY_S)
            try:
                self._start_missing()
                self._admit_started()
                self._warned.discard("")
            except RayError as error:
                # Judges that are there work on; the next look may find the cluster in order.
                self._warn("", f"the cluster can't be looked over: {error}")

    def _admit_started(self) -> None:
        for judge, place in self._started():
            if words := place.difference(self.place):
                print(f"node {judge.node} is left out: {words}", file=sys.stderr)
                self._rest_until[judge.node] = float("inf")
                ray.kill(judge.actor)
                continue
            with self._change:
                self._ready.append(judge)
                self._change.notify_all()

    def _warn(self, node: str, words: str) -> None:
        if node not in self._warned:
            self._warned.add(node)
            print(words, file=sys.stderr)

    def _start_missing(self) -> None:
        with self._change:
            there = [*self._ready, *self._starting.values()]
        have = Counter(judge.node for judge in there)
        for node in ray.nodes():
            name = node["NodeID"]
            if not node["Alive"] or self._rest_until.get(name, 0.0) > time.monotonic():
                continue
            due = self._due(node["Resources"])
            for _ in range(due - have[name]):
                actor = self._actor(name, node["Resources"], due)
                self._starting[actor.place.remote()] = Judge(actor, name, next(self._numbers))

    def _due(self, resources: dict[str, float]) -> int:
        if self._device == "cpu":
            return int(resources.get("CPU", 0) >= 1)
        return int(resources.get("GPU", 0))

    def _actor(self, node: str, resources: dict[str, float], due: int) -> ActorHandle:
        on_cpu = self._device == "cpu"
        return (
            ray.remote(RayJudge)
            .options(
                # All that Ray counts there, so that nothing of Ray's runs beside a measurement.
                num_cpus=resources["CPU"] if on_cpu else 0,
                num_gpus=0 if on_cpu else 1,
                max_concurrency=1 if on_cpu else _MOST_CALLS,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote(self._device, due)
        )

    def _started(self) -> Iterator[tuple[Judge, Place]]:
        done, _ = (
            ray.wait(list(self._starting), timeout=_LOOK_EVERY_S) if self._starting else ([], [])
        )
        for ref in done:
            judge = self._starting.pop(ref)
            try:
                answer = Answer.model_validate_json(ray.get(ref))
                place = Place.model_validate_json(answer.value())
            except (RayError, InfrastructureError, ValidationError) as error:
                # One that answers what is no answer runs another version of this program.
                self._why_not = " ".join(str(error).split()[:60])
                self._warn(judge.node, f"no judge on node {judge.node}: {error}")
                self._rest_until[judge.node] = time.monotonic() + _REST_S
                ray.kill(judge.actor)
                continue
            self._warned.discard(judge.node)
            judge.width = place.width
            yield judge, place


def _offered() -> str:
    total = ray.cluster_resources()
    return ", ".join(f"{total.get(name, 0):g} {name}" for name in ("CPU", "GPU"))
