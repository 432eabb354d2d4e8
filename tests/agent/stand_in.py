"""A small world without a model, a compiler or a device: deterministic, and it keeps a diary.

Every answer follows from the request and every verdict from the kernel, so that a run that was
killed and resumed can be compared with one that was not. The diary is one line for each begin and
end of a call, an evaluation or a profile: it tells what was really done, and how often.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from agent.config.run_config import RunConfig
from agent.record.completion import Completion, CompletionRequest, Tell, Usage, unheard
from agent.record.events import Event
from evaluator.evaluation import (
    Backend,
    Evaluation,
    EvaluationRequest,
    Seconds,
)
from evaluator.executor.ray_judge import Place
from evaluator.rival import CheckRequest, Rival
from problems.problem import Problem
from tests.agent.made_records import advice, correct, incorrect, profile
from tests.evaluator.made_evaluations import unbuilt
from tools.profiling.profile_report import Bottleneck, Profile


def number(text: str, below: int) -> int:
    """A number that follows from `text`."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % below


class Diary:
    """Appends lines, each in one write, so that a kill tears none."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *words: object) -> None:
        line = " ".join(map(str, words)) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, line.encode())
        os.close(handle)

    def count(self, what: str) -> Counter[str]:
        """How often each key began `what`."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        begun = (line.split() for line in lines)
        return Counter(words[2] for words in begun if words[:2] == ["begin", what])


class ScriptedClient:
    """Answers with a kernel that follows from seed and place; every fifth answer holds none."""

    def __init__(
        self,
        diary: Diary,
        *,
        delay_s: float = 0.0,
        usage: Usage | None = None,
        answer: Callable[[CompletionRequest], str] | None = None,
    ) -> None:
        self.diary = diary
        self.delay_s = delay_s
        self.usage = usage or Usage(prompt_tokens=100, completion_tokens=20, cost_usd=0.01)
        self.answer = answer or self.write_kernel
        self.requests: list[CompletionRequest] = []

    @staticmethod
    def write_kernel(request: CompletionRequest) -> str:
        place = f"{request.problem}.{request.sample}.{request.turn}"
        digest = number(f"{request.seed} {place}", 10**6)
        if digest % 5 == 0:
            return f"I would rather not write one ({digest})."
        return kernel_answer(digest)

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        key = f"{request.problem}.{request.sample}.{request.turn}"
        self.diary.write("begin", "model", key)
        self.requests.append(request)
        time.sleep(self.delay_s)
        text = self.answer(request)
        so_far(text)
        self.diary.write("end", "model", key)
        return Completion(
            text=text,
            model_asked=request.model,
            model_answered="stand-in",
            usage=self.usage,
            seconds=0.5,
        )


def kernel_answer(digest: int) -> str:
    return f"Here:\n\n```python\n# plan: version {digest}\nclass ModelNew:\n    n = {digest}\n```\n"


SOUND_KERNEL = kernel_answer(6)
"""Its kernel is correct, and can be profiled."""


class StandInExecutor:
    """Gives a verdict that follows from the kernel's source. Not one kernel is run."""

    def __init__(self, diary: Diary, *, delay_s: float = 0.0) -> None:
        self.diary = diary
        self.delay_s = delay_s
        self.failures: list[Exception] = []
        """Raised, in order, by the next evaluations."""
        self.unusable: list[Exception] = []
        """Raised, in order, by the next checks."""
        self._lock = threading.Lock()

    def prepare(self, candidates: int = 1, backend: Backend = Backend.CUDA) -> None:
        self.diary.write("begin", "prepare", f"{candidates} {backend}")

    def build_ahead(self, request: EvaluationRequest) -> None:
        self.diary.write("begin", "build", f"{request.problem_id}.{request.candidate.hash}")

    def check(self, request: CheckRequest) -> Rival:
        self.diary.write("begin", "check", request.problem_id)
        with self._lock:
            if self.unusable:
                raise self.unusable.pop(0)
        return Rival()

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.diary.write("begin", "judge", f"{request.problem_id}.{request.candidate.hash}")
        time.sleep(self.delay_s)
        with self._lock:
            if self.failures:
                raise self.failures.pop(0)
        self.diary.write("end", "judge", f"{request.problem_id}.{request.candidate.hash}")
        return verdict_on(request.candidate.source)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


def verdict_on(source: str) -> Evaluation:
    digest = number(source, 100)
    if digest < 12:
        found = unbuilt()
    elif digest < 25:
        found = incorrect()
    else:
        found = correct(speedup=0.5 + digest / 40, latency_us=100.0)
    took = Seconds(build=0.5, judge=1.0, device=0.25)
    return found.model_copy(update={"device": "stand-in", "seconds": took})


class StandInProfiler:
    """Says of every third kernel that it can't be profiled."""

    def __init__(self, diary: Diary, *, delay_s: float = 0.0) -> None:
        self.diary = diary
        self.delay_s = delay_s

    def __call__(self, request: EvaluationRequest, evaluation: Evaluation) -> Profile:
        from evaluator.errors import ProfilerError

        self.diary.write("begin", "profile", f"{request.problem_id}.{request.candidate.hash}")
        time.sleep(self.delay_s)
        digest = number(request.candidate.source, 99)
        if digest % 3 == 0:
            raise ProfilerError(f"no counters for {digest}")
        bottlenecks = list(Bottleneck)
        advised = advice().model_copy(update={"before": float(digest)})
        made = {
            "bottleneck": bottlenecks[digest % len(bottlenecks)],
            "figures": {"dram_pct": float(digest)},
            "advice": (advised,),
            "summary": f"headline {digest}\nsecond line",
            "seconds": 0.125,
        }
        return profile().model_copy(update=made)


class Listener:
    """Keeps every event; `at` is called with the index of each as it comes."""

    def __init__(self, at: Callable[[int, Event], None] | None = None) -> None:
        self.events: list[Event] = []
        self.at = at

    def notice(self, event: Event) -> None:
        self.events.append(event)
        if self.at:
            self.at(len(self.events) - 1, event)


PLACE = Place(device_name="NVIDIA H200", hardware=("GPU: NVIDIA H200",), packages={})
"""Of a device whose prices and limits are known, whatever machine is at hand."""


def problem(name: str = "first") -> Problem:
    source = f"# {name}\nclass Model:\n    pass\n"
    return Problem(
        id=name,
        suite="stand_in",
        level=0,
        name=name,
        category="pointwise",
        path=Path(f"{name}.py"),
        source=source,
        hash=hashlib.sha256(source.encode()).hexdigest()[:16],
    )


def config(output: Path, **settings: object) -> RunConfig:
    defaults: dict[str, object] = {"problems": ("first", "second"), "budget": 4, "output": output}
    defaults["confirm"] = 0
    return RunConfig.model_validate({**defaults, **settings})
