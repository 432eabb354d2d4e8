"""Judging on this machine: one long-lived judge process a device, builds ahead beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from evaluator.audit_record import DeepAudit
from evaluator.deep_audit.occasion import crashed, occasion_for
from evaluator.errors import AuditEndedError
from evaluator.evaluation import AuditRequest, Backend, Evaluation, EvaluationRequest
from evaluator.executor.builders import Builders, builders_for
from evaluator.executor.device_slots import DeviceSlot, DeviceSlots, Rank
from evaluator.executor.kept_checks import KeptChecks
from evaluator.executor.refused_file import refused_file
from evaluator.ipc.service import Service
from evaluator.ipc.wire import Kind
from evaluator.judge.cases import judged_at_each
from evaluator.rival import CheckRequest, Rival
from problems.cache_folder import cache_folder

STARTING = "starting a judge"


class LocalExecutor(AbstractContextManager["LocalExecutor"]):
    """Implements `Executor` with one judge for each device, started when it is first asked, or by
    `prepare`.

    Several threads may call `evaluate`. CUDA candidates are built side by side, in processes that
    import them without a device; then a candidate goes to whichever judge is free, and a device
    judges one candidate at a time. On a CPU the judge builds, as compilers would disturb what is
    being timed. `build_ahead` holds the CPU's lock there, or does nothing.
    """

    def __init__(
        self,
        *devices: str,
        cache: Path | None = None,
        judge: str = "evaluator.executor.judge_server",
        builder: str = "evaluator.judge.builds.build_ahead",
        executors: int = 1,
        say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
        stage: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`devices` are `cpu`, or `cuda:N` of one kind; `judge` and `builder` are modules that
        `Service` starts with a device and the folder of the cache. `executors`: how many share
        this machine's cores. `say` gets a line when a device is held by another command, `stage`
        what a judge has come to."""
        devices = devices or ("cpu",)
        folder = cache or cache_folder()
        folder.mkdir(parents=True, exist_ok=True)

        def slot(name: str) -> DeviceSlot:
            waits = f"waiting for {name}, held by "
            told = {Kind.WAITS: lambda holder: say(waits + holder), Kind.STAGE: stage}
            return DeviceSlot(name, Service(judge, name, str(folder), told=told))

        self._stage = stage
        self._slots = DeviceSlots([slot(name) for name in devices])
        self._kept = KeptChecks(folder)
        self._set_up = ThreadPoolExecutor(1, thread_name_prefix="set-up")
        self._on_cpu = devices[0] == "cpu"
        ahead = 1 if self._on_cpu else builders_for(len(devices), executors)
        self._builders = Builders(builder, devices[0], folder, ahead)
        self.width = 1 if self._on_cpu else ahead + 2 * len(devices)
        """Evaluations at a time that keep builders and devices busy."""

    def prepare(self, candidates: int = 1, backend: Backend = Backend.CUDA) -> None:
        """Start as many judges, and as many builders where candidates of this backend are built
        ahead."""
        judges = [slot.judge for slot in self._slots][:candidates]
        ahead = backend is Backend.CUDA and not self._on_cpu
        for service in judges + self._builders.services[: candidates if ahead else 0]:
            service.start()

    def check(self, request: CheckRequest) -> Rival:
        for slot in self._slots:
            if (known := self._kept.found(request, slot.device)) is not None:
                # The judge has it ready for the first candidate, or that one meets the error.
                bare = request.model_copy(update={"rival": "none"})
                self._set_up.submit(self._checked, bare, Rank.LATER)
                return known
        return self._checked(request)

    def _checked(self, request: CheckRequest, rank: Rank = Rank.TURN) -> Rival:
        with self._slots.taken(request.reference, rank) as slot:
            answer = slot.judge.ask(request.on(slot.device).model_dump_json().encode())
        found = Rival.model_validate_json(answer)
        self._kept.keep(request, slot.device, found)
        return found

    def build_ahead(self, request: EvaluationRequest) -> None:
        if request.candidate.backend is not Backend.TRITON:
            self._builders.begin(request)

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate on a free device, whichever the request names, and audit it where
        there is occasion. Waits for one; raises `InfrastructureError` when our side breaks.
        `conditions` say `judged_on`: None where the candidate needed no device: its file is none,
        or it ran into a limit while it was built."""
        if (refused := refused_file(request)) is not None:
            return refused
        self._stage(STARTING)
        self.prepare(backend=request.candidate.backend)
        ahead = request.candidate.backend is Backend.CUDA and not self._on_cpu
        built = self._builders.build(request) if ahead else None
        if built is not None and built.refused is not None:
            return built.refused
        answer = judged_at_each(request, self._audited)
        if built is None or answer.build is None:
            return answer
        whole_s = built.seconds + answer.build.seconds
        build = answer.build.model_copy(update={"seconds": whole_s, "cached": built.cached})
        seconds = answer.seconds.model_copy(update={"build": built.seconds + answer.seconds.build})
        return answer.model_copy(update={"build": build, "seconds": seconds})

    def _audited(self, request: EvaluationRequest, earlier: tuple[DeepAudit, ...]) -> Evaluation:
        """The verdict at one case, with the audit that is asked for once it is there, after
        `earlier` ones at other cases."""
        ranks = (Rank.LATER, Rank.AUDIT) if request.is_second else (Rank.TURN, Rank.TURN)
        with self._slots.taken(request.reference, ranks[0]) as slot:
            answer = self._answer(slot, request.on(slot.device))
            if isinstance(kept := answer.conditions.get("problems_set_up"), int):
                slot.forget_all_but(kept)
        conditions = answer.conditions | {"judged_on": slot.device}
        answer = answer.model_copy(update={"conditions": conditions})
        while crashed(answer, request.settings) or occasion_for(answer, request.settings):
            self._stage("auditing")
            with self._slots.taken(request.reference, ranks[1]) as slot, suppress(AuditEndedError):
                asked = AuditRequest(request=request, evaluation=answer, earlier=earlier)
                return self._answer(slot, asked)
        return answer

    def _answer(self, slot: DeviceSlot, asked: EvaluationRequest | AuditRequest) -> Evaluation:
        return Evaluation.model_validate_json(slot.judge.ask(asked.model_dump_json().encode()))

    def for_profiler(self) -> AbstractContextManager[str]:
        return self._slots.for_profiler()

    @property
    def judge_pids(self) -> dict[str, int]:
        return {slot.device: pid for slot in self._slots if (pid := slot.judge.pid) is not None}

    def close(self) -> None:
        self._set_up.shutdown(wait=False, cancel_futures=True)
        for slot in self._slots:
            slot.judge.hang_up()
        for slot in self._slots:
            slot.judge.close()
        self._builders.close()
        self._set_up.shutdown()

    def __exit__(self, *_: object) -> None:
        self.close()
