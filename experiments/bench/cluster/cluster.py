"""Whether a Ray cluster says of candidates what one machine says, and what a lost node costs.

The cluster is two nodes on this machine (`local_cluster.py`): it shows that verdicts are the same
and that nothing is lost or blamed, and nothing about speed.
"""

from __future__ import annotations

import importlib.metadata
import threading
from concurrent.futures import ThreadPoolExecutor

from agent.record.revision import revision
from evaluator.evaluation import Backend, Candidate, Evaluation, EvaluationRequest, Status
from evaluator.executor.executor import Executor
from evaluator.executor.local import LocalExecutor
from evaluator.executor.ray import RayExecutor
from evaluator.record import Record
from evaluator.settings import Settings
from experiments.bench.cluster.candidates import CANDIDATES, REFERENCE
from experiments.bench.cluster.local_cluster import local_cluster

NODES = 2
_SETTINGS = Settings(timing_seconds=0.2, audit="never")


class Word(Record):
    """What the judge said, times left out: they differ from one measurement to the next."""

    status: Status
    reason: str


class Judged(Record):
    """One candidate, judged three times."""

    candidate: str
    local: Word
    ray: Word
    ray_losing_a_node: Word


class ClusterFigures(Record):
    """Verdicts of one machine, of a cluster, and of a cluster that loses a node meanwhile."""

    device: str
    nodes: int
    commit: str | None
    packages: dict[str, str]
    candidates: tuple[Judged, ...]
    answered_before_the_loss: int
    """Verdicts that were there when the node was killed; more were asked for than nodes are."""
    judges_after_the_loss: int

    @property
    def same(self) -> int:
        """Candidates of which all three said the same."""
        return sum(one.local == one.ray == one.ray_losing_a_node for one in self.candidates)


def measure_cluster() -> ClusterFigures:
    """Judge every candidate here, on a cluster, and on one that loses a node in the middle."""
    with LocalExecutor("cpu") as here:
        local = {name: _word(here.evaluate(_request(name))) for name in CANDIDATES}
    with local_cluster(NODES) as cluster, RayExecutor("cpu", cluster.address) as there:
        device = there.place.device_name
        ray = _all_of(there, _Progress())
        progress = _Progress(wanted=len(CANDIDATES) // 2)
        with ThreadPoolExecutor(1) as pool:
            losing = pool.submit(_all_of, there, progress)
            progress.reached.wait()
            answered = progress.answered
            cluster.lose()
            words = losing.result()
        left = there.judges
    return ClusterFigures(
        device=device,
        nodes=NODES,
        commit=revision(),
        packages={name: importlib.metadata.version(name) for name in ("ray", "torch")},
        candidates=tuple(
            Judged(candidate=name, local=local[name], ray=ray[name], ray_losing_a_node=words[name])
            for name in CANDIDATES
        ),
        answered_before_the_loss=answered,
        judges_after_the_loss=left,
    )


def told(figures: ClusterFigures) -> list[str]:
    """The figures as lines for a person."""
    count = len(figures.candidates)
    lines = [
        f"{figures.same} of {count} candidates: the same status and reason here, on"
        f" {figures.nodes} Ray nodes, and with one of these killed after"
        f" {figures.answered_before_the_loss} verdicts ({figures.judges_after_the_loss} left)"
    ]
    for one in figures.candidates:
        words = [one.local, one.ray, one.ray_losing_a_node]
        unlike = "" if words.count(words[0]) == len(words) else "  DIFFERENT"
        said = [f"{word.status} {word.reason}".strip() for word in dict.fromkeys(words)]
        lines.append(f"  {one.candidate:<24}{' / '.join(said)}{unlike}")
    return lines


class _Progress:
    """Counts verdicts; `reached` is set once so many are there that a node may be killed."""

    def __init__(self, wanted: int | None = None) -> None:
        self.reached = threading.Event()
        self.answered = 0
        self._wanted = wanted
        self._lock = threading.Lock()

    def count(self) -> None:
        with self._lock:
            self.answered += 1
            if self.answered == self._wanted:
                self.reached.set()


def _all_of(executor: Executor, progress: _Progress) -> dict[str, Word]:
    def judge(name: str) -> Word:
        word = _word(executor.evaluate(_request(name)))
        progress.count()
        return word

    # More than there are judges, so that none is ever without work.
    with ThreadPoolExecutor(2 * NODES) as pool:
        return dict(zip(CANDIDATES, pool.map(judge, CANDIDATES), strict=True))


def _request(name: str) -> EvaluationRequest:
    return EvaluationRequest(
        problem_id="scale_and_bias",
        reference=REFERENCE,
        candidate=Candidate(source=CANDIDATES[name], backend=Backend.CPP),
        settings=_SETTINGS,
    )


def _word(evaluation: Evaluation) -> Word:
    return Word(status=evaluation.status, reason=evaluation.reason)
