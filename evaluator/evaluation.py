"""What the judge says about one candidate: the records that leave the evaluator.

Everything here is frozen, is written to disk as JSON, and ties its payload to its status, so that
an impossible result can't be written. Names of fields are a contract with other programs.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from evaluator.audit_record import DeepAudit, Provenance
from evaluator.mismatch_pattern import Pattern
from evaluator.protocol import RULES
from evaluator.reason import Reason
from evaluator.record import Record
from evaluator.settings import BaselineName, Settings
from problems.case import Case, Served, spread
from problems.function import with_model
from problems.problem import Problem
from problems.sizes import SizeClass

SCHEMA = 1


Rates = Literal["published", "measured"]
"""Where the rates of a bound come from: the device's data sheet, or this very device."""
Weights = Literal["none", "named", "ordered", "derived", "seeded"]
"""The weights a candidate was judged with: the reference's, copied by name or by order; `derived`,
copied by name, but for those that its constructor had derived from the reference's; or `seeded`,
both sides as constructed from the same secret seed."""
Stopped = Literal["precise", "clear", "time", "calls"]
"""Why the last worker's sampling ended: narrow interval, clear difference, time, or most calls."""


class Backend(StrEnum):
    CUDA = "cuda"
    TRITON = "triton"
    CPP = "cpp"


class Status(StrEnum):
    NO_CODE = "no_code"
    BUILD_ERROR = "build_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    INCORRECT = "incorrect"
    INTEGRITY = "integrity"
    CORRECT = "correct"


class Verdict(StrEnum):
    """What the interval of the speedup over a baseline allows one to say."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    UNCLEAR = "unclear"


class Candidate(Record):
    """A kernel to be judged: Python source that defines `ModelNew`."""

    source: str
    backend: Backend

    @property
    def hash(self) -> str:
        """SHA-256 of backend and source, first 16 hex digits."""
        return hashlib.sha256(f"{self.backend}\0{self.source}".encode()).hexdigest()[:16]


class BuildReport(Record):
    ok: bool
    seconds: float = 0.0
    headers: Literal["none", "light", "full"] = "none"
    """`none`: nothing was compiled. `full`: PyTorch's own headers were needed."""
    cached: bool = False
    log: str = ""
    """The compiler's output, whole (up to 64 KiB); empty for a clean build."""
    timed_out: bool = False


ErrorPart = Literal["whole", "row", "column", "element of a row", "element of a column"]


class WrongElement(Record):
    index: tuple[int, ...]
    expected: float
    actual: float


class Mismatch(Record):
    """Where and how an output differs from what it should be. Facts only; words are made later."""

    output: int
    """Which of the outputs, in flattened order."""
    kind: Literal["count", "shape", "dtype", "values"]
    expected_shape: tuple[int, ...] = ()
    actual_shape: tuple[int, ...] = ()
    expected_dtype: str = ""
    actual_dtype: str = ""
    wrong: int = 0
    total: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    examples: tuple[WrongElement, ...] = ()
    """At most 8, the first ones and the worst ones."""
    furthest: tuple[int, ...] = ()
    """The element that is furthest off in the row or column that is furthest beyond its limit."""
    patterns: tuple[Pattern, ...] = ()
    """The likeliest first."""
    details: dict[str, float | int | str] = Field(default_factory=dict)
    """What a pattern rests on: `factor`, `offset`, `first_wrong_flat`, `period`, ..."""


class Correctness(Record):
    calls_judged: int
    calls_made: int
    calls_judged_in_fp64: int | None = None
    """Those of `calls_judged` that were compared with an fp64 reference. All others were compared
    with the reference in the task's precision, by a rule that is no more lenient. None: unknown."""
    reference: Literal["fp64", "fp64_sliced", "fp64_cpu", "task_precision"] = "fp64"
    """Where the reference came from; `task_precision` where the module can't run in fp64."""
    input_kinds: tuple[str, ...] = ()
    """Kinds of inputs that were used: plain, smaller, uneven, larger, signed (`variation.py`)."""
    error_ratio: float | None = None
    """The candidate's error over that of the task-precision reference, both against fp64, of what
    was nearest to its limit or furthest beyond."""
    error_ratio_limit: float | None = None
    thresholds: dict[str, float] = Field(default_factory=dict)
    """A quantised task's own, in place of our rule; `error_ratio` is the share of them."""
    error_part: ErrorPart = "whole"
    """What `error_ratio` is of: an RMSE, or the largest error in a row or column."""
    mismatch: Mismatch | None = None


class BaselineTiming(Record):
    """The candidate against one baseline, measured in the same run in alternation."""

    latency_us: float
    speedup: float
    speedup_low: float
    speedup_high: float
    verdict: Verdict
    pairs: int
    flags: str = ""
    """The arithmetic it was allowed on a GPU: `fp32, TF32 off`. Empty: a CPU, or not recorded."""


class Counted(Record):
    """What a kernel reaches by the task's own counts of bytes and operations."""

    gbps: float
    tflops: float
    peak_share: float | None = None
    """The larger of both over the device's published peak; None without one."""

    @property
    def words(self) -> str:
        share = f", {100 * self.peak_share:.3g} % of the peak" if self.peak_share else ""
        return f"{self.gbps:.4g} GB/s, {self.tflops:.3g} TFLOP/s by the task's own counts{share}"


class CallTiming(Record):
    """Times of calls that are launched from Python on an idle GPU, launching included."""

    latency_us: float
    eager_us: float
    speedup: float
    """Over eager; the bounds are those of a 95 % interval."""
    speedup_low: float
    speedup_high: float


class Timing(Record):
    """How long the candidate takes, and against what. On a CPU by the judge's clock.

    On a GPU these are device times of calls that are all enqueued before they start; where eager
    cannot be timed so, of calls as they are launched.
    """

    verdict: Verdict
    latency_us: float
    latency_low_us: float
    latency_high_us: float
    speedup: float
    """Over eager; the bounds are those of a 95 % interval, or of the wider one that left the
    verdict `unclear`, which holds 1."""
    speedup_low: float
    speedup_high: float
    geometric_speedup: float | None = None
    """Over several cases `speedup` is eager's summed time over the kernel's, as KernelBench-X has
    it; this is the geometric mean of the cases' speedups."""
    baselines: dict[BaselineName, BaselineTiming]
    sol_fraction: float | None = None
    """Speed-of-light bound over latency: 1.0 would be perfect. None where no peak is known."""
    floor_us: float | None = None
    """Hard floor: bytes that must move over the published peak. None: no published peak."""
    bound_us: float | None = None
    """Soft bound: the largest of bytes over bandwidth, operations over rates, an empty call; at
    published rates where there are such."""
    bound_rates: Rates | None = None
    """Whose rates those are; None: not recorded, or no bound."""
    attainable_us: float | None = None
    """The same at the rates that PyTorch's own copies and products reach on this device. None:
    not measured, or the kernel is faster."""
    sol_score: float | None = None
    """SOL-ExecBench's: 0.5 at the fastest baseline that was timed, 1 at the bound (`metrics`)."""
    calls: int
    workers: int = 1
    """In so many fresh processes each side was timed; the intervals cover how these differ."""
    worker_speedups: tuple[float, ...] = ()
    """The median in each of them; none in older records."""
    stopped: Stopped
    disturbed_blocks: int = 0
    """Blocks of calls left out because something outside disturbed them; above 20 % of those that
    the verdict rests on, a candidate is called slower or nothing."""
    launch_bound: bool = False
    """Eager mostly calls operators: the sizes are so small that a speedup tells how many. On a GPU:
    the host limits eager's calls or the candidate's."""
    counted: Counted | None = None
    """Of cases, where the problem has counts of all that were timed."""
    called: CallTiming | None = None
    """On a GPU: the same calls as they are launched, where the other figures are device times."""
    wall_latency_us: float | None = None
    """On GPU: the judge's own clock around the same calls."""


def success_message(timing: Timing | None) -> str:
    if timing is None:
        return "correct"
    mean = timing.geometric_speedup
    apart = f" of summed times, geometric mean {mean:.3g}x," if mean is not None else ""
    return (
        f"correct; {timing.speedup:.3g}x [{timing.speedup_low:.3g}, {timing.speedup_high:.3g}]"
        f"{apart} over {BaselineName.EAGER}: {timing.verdict}"
    )


class CaseTiming(Served, Record):
    """One of the sizes that a problem is served at; the kernel was right there."""

    timing: Timing | None
    """None where it was verified only, as a search does with the lightest of many cases."""

    @property
    def words(self) -> str:
        case, timing = f"{self.name}, weight {self.weight:.3g}", self.timing
        if timing is None:
            return f"{case}: right, not timed in the search"
        return (
            f"{case}: eager {timing.baselines[BaselineName.EAGER].latency_us:.1f} us, kernel "
            f"{timing.latency_us:.1f} us, {timing.speedup:.2f}x "
            f"[{timing.speedup_low:.2f}, {timing.speedup_high:.2f}], {timing.verdict}"
            + (" than eager" if timing.verdict is Verdict.SLOWER else "")
        )


class DeviceMemory(Record):
    """Most bytes held of the memory of the device, by process; None where that is not known.

    Both workers are measured alike, by what the system counts for their processes beyond a context
    and the slot for their outputs: weights, intermediate results, caches and workspaces.
    """

    candidate_bytes: int | None = None
    baseline_bytes: int | None = None
    """Of eager."""
    judge_bytes: int | None = None
    """On a GPU: inputs, slots for outputs, and all that verifying took."""


class Seconds(Record):
    """Where the evaluation's time went; `device` is what the candidate's imports, constructors and
    calls took of `judge`."""

    build: float = 0.0
    judge: float = 0.0
    waiting: float = 0.0
    """Before that, while something else held the device, a profile of this run as well."""
    timing: float = 0.0
    """Of `judge`: after the verdict on correctness."""
    narrowing: float = 0.0
    """Of `timing`: after there was an interval, on making it narrower."""
    device: float = 0.0
    audit: float = 0.0
    """Of the deep audit, after the verdict on correctness and time, or of the look at a crash."""


class Evaluation(Record):
    schema_: int = Field(default=SCHEMA, alias="schema")
    status: Status
    reason: Reason | Literal[""] = ""
    """Empty only for `correct`."""
    message: str = ""
    """For a person, one to a few lines."""
    detail: str = ""
    """Longer evidence: traceback, signal and last known position (up to 16 KiB)."""
    weights: Weights = "none"
    build: BuildReport | None = None
    correctness: Correctness | None = None
    timing: Timing | None = None
    """Where the problem lists cases, that of their weighted time (`evaluator.judge.cases`)."""
    cases: tuple[CaseTiming, ...] = ()
    """Of a correct kernel, where the problem lists cases: each, the heaviest first."""
    case: str = ""
    """Of a refused one: the case where it was, as `CaseTiming.name`."""
    memory: DeviceMemory = DeviceMemory()
    provenance: Provenance | None = None
    """Whose code the time was spent in; None where not asked for, or where a note says why."""
    audit: DeepAudit | None = None
    """None where there was no occasion for one."""
    isolation: tuple[str, ...] = ()
    """The layers that were active in the worker, each of them tried, and around its compilers."""
    device: str = ""
    conditions: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """Threads, clocks, throttling, other processes on the device, versions."""
    seeds: tuple[int, ...] = ()
    """Input seeds of the judged calls, published afterwards for reproduction."""
    findings: tuple[str, ...] = ()
    """Under KernelBench's protocol: what our own checks hold against a kernel that is correct by
    its rules. Such a kernel is never a run's best one."""
    notes: tuple[str, ...] = ()
    """What a reader should know: fp64 made in slices, timing not possible, fallback noticed."""
    seconds: Seconds = Seconds()

    @property
    def is_lasting(self) -> bool:
        """Good for an identical candidate as well: neither a limit of time, which another attempt
        may keep, nor an audit that our side did not finish, decided it."""
        audited = self.audit is not None and self.audit.occasion != "crash"
        broke_off = audited and self.provenance is None
        late = self.status is Status.TIMEOUT or (self.build is not None and self.build.timed_out)
        return not late and not broke_off

    @model_validator(mode="after")
    def _payload_fits_status(self) -> Self:
        if self.timing is not None and self.status is not Status.CORRECT:
            raise ValueError(f"a {self.status} candidate has no timing")
        if (self.reason == "") != (self.status is Status.CORRECT):
            raise ValueError("a reason is given exactly when the status is not correct")
        if self.status is Status.CORRECT:
            if self.correctness is None or self.correctness.calls_judged < 1:
                raise ValueError("correct needs at least one judged call")
            if self.correctness.mismatch is not None:
                raise ValueError("correct has no mismatch")
        if self.status is Status.BUILD_ERROR and (self.build is None or self.build.ok):
            raise ValueError("build_error needs the report of a failed build")
        if self.status is Status.NO_CODE and (self.build or self.correctness):
            raise ValueError("no_code was neither built nor run")
        if self.status is Status.INCORRECT and (
            self.correctness is None or self.correctness.mismatch is None
        ):
            raise ValueError("incorrect needs the mismatch")
        return self


class ProblemRequest(Record):
    """A problem and how it is to be judged."""

    problem_id: str
    reference: str
    """Source of the problem with its sizes substituted (`Problem.reference`)."""
    hidden_references: tuple[str, ...] = ()
    """The same at other sizes, at which the candidate must be right, but isn't timed."""
    cases: tuple[Case, ...] = ()
    """What the problem is served at, the heaviest first; `reference` is that of the first one."""
    weights: Path | None = None
    """A file of weights with which the candidate must be right as well."""
    is_timed: bool = True
    """False for a case that is verified only."""
    decides: bool = True
    """False for a case that is timed only, where what is wrong is a finding."""
    settings: Settings

    @classmethod
    def of(cls, problem: Problem, settings: Settings, **fields: object) -> Self:
        """`problem` in the sizes that suit the device: large ones on a GPU."""
        size_class = SizeClass.of(settings.device)
        asked = {
            "problem_id": problem.id,
            "reference": problem.reference(size_class),
            "hidden_references": problem.hidden_references(size_class),
            "cases": problem.cases(size_class),
            "weights": problem.weights,
            "settings": settings,
        }
        if isinstance(candidate := fields.get("candidate"), Candidate):
            source = with_model(candidate.source, problem)
            fields = fields | {"candidate": candidate.model_copy(update={"source": source})}
        return cls.model_validate(asked | fields)

    def on(self, device: str) -> Self:
        settings = self.settings.model_copy(update={"device": device})
        return self.model_copy(update={"settings": settings})

    def at_each_case(self) -> list[Self]:
        """What the judge is asked at each case that is timed, one after another. Itself where there
        are no cases. Two of the others are hidden ones of the first: all would take too long.

        Under a protocol that sweeps: at the hidden sizes, and then at each case that is timed."""
        if not self.cases:
            return [self]
        timed = self.settings.timed_cases or len(self.cases)
        one = self.model_copy(update={"cases": ()})
        bare = one.model_copy(update={"hidden_references": (), "weights": None})
        if RULES[self.settings.protocol].sweeps and self.hidden_references:
            first, *more = self.hidden_references
            tested = {"reference": first, "hidden_references": tuple(more), "is_timed": False}
            swept = [{"reference": c.reference, "decides": False} for c in self.cases[:timed]]
            return [one.model_copy(update=tested), *(bare.model_copy(update=u) for u in swept)]
        untimed = [case.reference for case in self.cases[timed:]]
        hidden = (*self.hidden_references, *spread(untimed, 3)[-2:])
        heaviest = one.model_copy(update={"hidden_references": hidden})
        others = [bare.model_copy(update={"reference": c.reference}) for c in self.cases[1:timed]]
        return [heaviest, *others]

    @property
    def context_key(self) -> tuple[object, ...]:
        """What must agree for two requests to be judged on the same set-up."""
        settings = self.settings
        return (
            self.reference,
            settings.device,
            settings.precision,
            settings.protocol,
            settings.threads,
            settings.memory_limit_bytes,
            settings.inputs,
        )


class EvaluationRequest(ProblemRequest):
    """What crosses from the agent to the judge's process to have a candidate judged."""

    candidate: Candidate
    is_second: bool = False
    """A second verdict: turns and checks of problems go before it."""
    chooses: bool = False
    """A second verdict that is to choose among several, and states nothing."""


class AuditRequest(Record):
    """Asks the judge for the deep audit, or the look at a crash, that follows a verdict."""

    request: EvaluationRequest
    evaluation: Evaluation
    earlier: tuple[DeepAudit, ...] = ()
    """Those of the same kernel at the problem's heavier cases."""
