"""Where a run's kernels are judged and profiled: on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.config.run_config import RunConfig
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.executor.executor import Executor
from tools.profiling.profile_report import Profile

if TYPE_CHECKING:
    from evaluator.executor.local import LocalExecutor
    from evaluator.executor.ray import RayExecutor
    from evaluator.executor.ray_judge import Place
    from evaluator.judge.workers.zygote import Zygote

Profiler = Callable[[EvaluationRequest, Evaluation], Profile]
"""Raises `InfrastructureError` (`ProfilerError`) when it can't."""


@dataclass(frozen=True)
class Judging:
    executor: Executor
    profiler: Profiler
    place: Place | None = None
    """Of the judges of a cluster; None: this machine."""
    note: str = ""
    """One line for the user; empty: none."""


@contextmanager
def open_judging(config: RunConfig, say: Callable[[str], None]) -> Iterator[Judging]:
    """What `config.executor` names, until the end of the block.

    A cluster is reached at once, and its judges' places are known; nothing is judged before the
    first candidate; `say` is told when another command holds the device. Raises `UsageError` where
    the cluster can't be used.
    """
    if config.executor == "ray":
        from evaluator.executor.ray import RayExecutor

        with RayExecutor(config.device, config.ray_address) as cluster:
            note = f"Ray cluster, judges: {cluster.judges}, each on {cluster.place.device_name}"
            yield Judging(cluster, _profiler_of(cluster), cluster.place, note)
        return
    from evaluator.collect.own_collectors import target_zygote
    from evaluator.executor.local import STARTING, LocalExecutor

    zygotes: list[Zygote] = []
    profiles = config.first_device == "cpu" and config.shown_feedback.needs_profile

    def stage(what: str) -> None:
        # With the first kernel: before, it would hold up the first prompt.
        if profiles and what == STARTING and not zygotes:
            zygotes.append(target_zygote())

    with (
        LocalExecutor(*config.devices, say=say, stage=stage) as executor,
        profiler_beside(executor, config, zygotes) as profiler,
    ):
        yield Judging(executor, profiler)


def place_of(config: RunConfig) -> Place | None:
    """Of the judges of a cluster, which is asked for it; None: this machine. Raises as
    `open_judging`."""
    if config.executor == "local":
        return None
    from evaluator.executor.ray import RayExecutor

    with RayExecutor(config.device, config.ray_address) as cluster:
        return cluster.place


@contextmanager
def profiler_beside(
    executor: LocalExecutor, config: RunConfig, zygotes: Sequence[Zygote] = ()
) -> Iterator[Profiler]:
    """Profiles on one of the devices that judge, while nothing is judged there.

    Where the run will profile, the first profile's process on each GPU is started at once; in
    rounds, when there is something to profile. `zygotes`: of targets, once there is one; they are
    closed here.
    """
    from evaluator.collect.ncu import NcuSession
    from tools.profile import prepare, profile

    with closing(NcuSession()) as session:
        if config.shown_feedback.needs_profile and not config.is_in_rounds:
            for device in config.devices:
                prepare(session, device)

        def on_a_device(request: EvaluationRequest, evaluation: Evaluation) -> Profile:
            with executor.for_profiler() as device:
                place, zygote = request.on(device), next(iter(zygotes), None)
                return profile(place, evaluation, session=session, zygote=zygote)

        try:
            yield on_a_device
        finally:
            for zygote in zygotes:
                zygote.close()


def _profiler_of(cluster: RayExecutor) -> Profiler:
    """Profiles on a machine of the cluster, beside one of its judges."""
    from tools.profile_server import ProfileRequest

    def profile(request: EvaluationRequest, evaluation: Evaluation) -> Profile:
        asked = ProfileRequest(request=request.on(cluster.device), evaluation=evaluation)
        answer = cluster.ask("tools.profile_server", asked.model_dump_json().encode())
        return Profile.model_validate_json(answer)

    return profile
